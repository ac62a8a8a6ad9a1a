// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// One step of a change of the configuration, as control messages: made by lib/config, executed by
// control/change_list. Plain data.

#include <linux/netlink.h>

#include <cstdint>
#include <string>
#include <vector>

namespace mayfly {

struct Change {
  enum class Kind : uint8_t { removal, setting, creation };
  // Whole netlink messages, each aligned, one behind the other.
  using Messages = std::vector<std::byte>;

  Kind kind = Kind::creation;
  bool generic = false;       // family of its messages: generic or route
  bool undo_generic = false;  // family of the messages that undo it
  std::string netns;          // the namespace its messages are sent in
  std::string undo_netns;     // the same for undo; empty: netns
  std::string where;          // "mayfly.yaml:12"
  std::string what;           // "addr add 10.0.0.1/24 dev port0 netns default"
  Messages messages;
  Messages undo;

  // What `config reload` prints it with.
  char sign() const noexcept { return kind == Kind::removal ? '-' : kind == Kind::setting ? '~' : '+'; }
};

}  // namespace mayfly
