// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// What one command line asks for, ready to be sent: the product of parsing, which needs no socket.
//
// A plan without a presenter is a simple change: one message that is only acknowledged, so a batch may send
// it ahead of the answer to the one before. A plan with a presenter is carried out by it.

#include <cstdint>
#include <functional>
#include <string_view>

#include "base/result.hpp"
#include "control/client.hpp"
#include "options.hpp"
#include "words.hpp"

namespace mayfly::cli {

class Session;
struct Plan;

// Carries a plan out and prints; the exit status.
using Presenter = std::function<Result<int>(Session&, Plan&)>;

struct Plan {
  enum class Family : uint8_t { none, route, generic };

  Family family = Family::none;
  RequestMessage message;
  Presenter present;

  bool simple_change() const noexcept { return family == Family::route && !present; }
  void reset() {
    family = Family::none;
    message.clear();
    present = nullptr;
  }

  template <class Fixed>
  void begin_route(uint16_t type, uint16_t flags, const Fixed& fixed) {
    family = Family::route;
    message.begin_route(type, flags, fixed);
  }
  void begin_generic(protocol::Command command, uint16_t flags = 0) {
    family = Family::generic;
    message.begin_generic(command, flags);
  }
};

// The parser of an object or a command: takes the words behind its name.
using Parser = Status (*)(Words& words, const Options& options, Plan& plan);

struct CommandEntry {
  std::string_view name;
  Parser parse;
  bool hidden = false;  // an alias: understood, not listed
};

// A plan that prints a text.
Status plan_help(Plan& plan, std::string_view text);

// A whole command: OBJECT COMMAND ARGUMENTS.
Status parse_command(std::span<const std::string_view> words, const Options& options, Plan& plan);
// The rest of an object's command: "help", nothing (the default command), or a command of the table.
Status parse_in_table(std::span<const CommandEntry> commands, std::string_view what,
                      std::string_view default_name, std::string_view help, Words& words,
                      const Options& options, Plan& plan);

// One per object, each in the file of its name.
Status parse_link(Words& words, const Options& options, Plan& plan);
Status parse_address(Words& words, const Options& options, Plan& plan);
Status parse_route(Words& words, const Options& options, Plan& plan);
Status parse_neighbour(Words& words, const Options& options, Plan& plan);
Status parse_port(Words& words, const Options& options, Plan& plan);
Status parse_reclaim(Words& words, const Options& options, Plan& plan);
Status parse_stats(Words& words, const Options& options, Plan& plan);
Status parse_monitor(Words& words, const Options& options, Plan& plan);
Status parse_status(Words& words, const Options& options, Plan& plan);
Status parse_netns(Words& words, const Options& options, Plan& plan);
Status parse_config(Words& words, const Options& options, Plan& plan);

std::string_view general_help();

}  // namespace mayfly::cli
