// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// A device as users write it: "net_af_packet0,iface=veth0" is a driver, a number of theirs, and arguments. A
// value in parentheses may hold commas (bonding.hpp).

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace mayfly {

struct Devargs {
  std::string
      device;  // "net_af_packet0", "0000:03:00.0": a PCI address with its domain, however it was written
  std::vector<std::pair<std::string, std::string>> arguments;

  static Devargs parse(std::string_view text);
  std::string text() const;

  // The first of this name; nullptr when absent.
  const std::string* find(std::string_view name) const noexcept;
  void add(std::string name, std::string value) { arguments.emplace_back(std::move(name), std::move(value)); }
  // A whole number; nullopt when absent. EINVAL for what the driver would read as something else.
  Result<std::optional<uint32_t>> number(std::string_view name) const;

  // Whether the device is of this driver: its name and digits.
  bool is_of(std::string_view driver) const noexcept;
  // The kernel's interface it sits on; empty: none.
  std::string kernel_interface() const;
};

// Drivers that people are likely to want, for error texts.
std::string list_known_drivers();

}  // namespace mayfly
