// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The one way an operation fails in Mayfly: an errno of the kernel's and a sentence.
//
// Result<T> is std::expected<T, Error>. Every public function that can fail returns one; nothing throws on
// the packet path. The text names the field, the value and the accepted range ("vlan id 4095: accepted
// 1..4094"), because it travels unchanged to the user of the CLI as the extended acknowledgement of netlink.

#include <cerrno>
#include <cstdint>
#include <expected>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace mayfly {

struct Error {
  int code = EINVAL;  // a positive errno
  std::string text;
  uint16_t attribute = 0;  // the netlink attribute at fault, 0 when there is none
};

template <class T>
using Result = std::expected<T, Error>;
using Status = Result<void>;

// fail(ENODEV, "interface '{}' does not exist", name)
template <class... Args>
std::unexpected<Error> fail(int code, fmt::format_string<Args...> text, Args&&... args) {
  return std::unexpected(Error{code, fmt::format(text, std::forward<Args>(args)...)});
}

// The same with the netlink attribute at fault.
template <class... Args>
std::unexpected<Error> fail_attribute(uint16_t attribute, int code, fmt::format_string<Args...> text,
                                      Args&&... args) {
  return std::unexpected(Error{code, fmt::format(text, std::forward<Args>(args)...), attribute});
}

}  // namespace mayfly
