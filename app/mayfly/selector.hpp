// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Which interfaces a command is about: conditions that must all hold. One grammar for show, count and delete:
//
//   group N   parent NAME   type KIND   vlan A[-B] [inner C[-D]]   up | down   limit N

#include <cstdint>
#include <optional>
#include <string_view>

#include "control/client.hpp"
#include "words.hpp"

namespace mayfly::cli {

constexpr std::string_view kSelectorHelp =
    "SELECTOR: group N | parent NAME | type KIND | vlan A[-B] [inner C[-D]] | up | down | limit N\n"
    "          (several conditions must all hold)\n";

struct Selector {
  std::optional<uint32_t> group;
  std::optional<std::string_view> parent;
  std::optional<std::string_view> kind;
  std::optional<NumberRange> outer;
  std::optional<NumberRange> inner;
  std::optional<bool> admin_up;
  std::optional<uint64_t> limit;

  // No condition; a limit is none.
  bool empty() const noexcept { return !group && !parent && !kind && !outer && !inner && !admin_up; }
};

// Takes one condition; false when the next word begins none.
bool take_condition(Words& words, Selector& selector);
void put_selector(RequestMessage& message, uint16_t attribute, const Selector& selector);
// EINVAL for what nobody can mean when interfaces are to be deleted: no condition, group 0, a limit.
Status check_deletable(const Selector& selector);

}  // namespace mayfly::cli
