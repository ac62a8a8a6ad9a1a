// SPDX-License-Identifier: BSD-3-Clause
#include "plan.hpp"

#include <array>

#include "session.hpp"

namespace mayfly::cli {
namespace {

constexpr std::string_view kHelp =
    R"(Usage: mayfly [OPTIONS] OBJECT [COMMAND [ARGUMENTS]]
       mayfly [OPTIONS] -batch FILE
OBJECT:  link | address | route | neighbour | netns | port | reclaim | stats | status | monitor | config
         ('mayfly OBJECT help' explains each; names may be abbreviated, and l, a, r, n are what ip makes of them)
OPTIONS: -n[etns] NAME    work in this namespace (default: default)
         -4, -6           addresses, routes and neighbours of this family alone
         -j[son]          JSON, with iproute2's keys where it has them
         -p[retty]        JSON for people
         -s[tatistics]    counters
         -d[etails]       more of everything
         -br[ief]         a line each
         -b[atch] FILE    a command a line, '-' for standard input; stops at the first error
         -force           in a batch, go on after errors; in bulk commands, do what is possible
         --socket PATH    the daemon's socket (default: MAYFLY_SOCKET, else /run/mayfly/mayfly.sock)
         --version
Exit status: 0 done, 1 refused, 2 not understood
)";

Status parse_help(Words&, const Options&, Plan& plan) {
  return plan_help(plan, kHelp);
}

// The single letters are ip's, for fingers that know them.
constexpr std::array kObjects = {
    CommandEntry{"link", parse_link},
    CommandEntry{"address", parse_address},
    CommandEntry{"route", parse_route},
    CommandEntry{"neighbour", parse_neighbour},
    CommandEntry{"netns", parse_netns},
    CommandEntry{"port", parse_port},
    CommandEntry{"reclaim", parse_reclaim},
    CommandEntry{"stats", parse_stats},
    CommandEntry{"status", parse_status},
    CommandEntry{"monitor", parse_monitor},
    CommandEntry{"config", parse_config},
    CommandEntry{"help", parse_help},
    CommandEntry{"neighbor", parse_neighbour, true},
    CommandEntry{"l", parse_link, true},
    CommandEntry{"a", parse_address, true},
    CommandEntry{"r", parse_route, true},
    CommandEntry{"n", parse_neighbour, true},
};

}  // namespace

std::string_view general_help() {
  return kHelp;
}

Status plan_help(Plan& plan, std::string_view text) {
  plan.reset();
  plan.present = [text](Session& session, Plan&) -> Result<int> {
    session.out().write(text);
    return kExitOk;
  };
  return {};
}

Status parse_command(std::span<const std::string_view> words, const Options& options, Plan& plan) {
  if (words.empty()) return fail(EINVAL, "an object must follow: see 'mayfly help'");
  const auto object = find_abbreviated(std::span<const CommandEntry>(kObjects), "object", words.front());
  if (!object) return std::unexpected(object.error());
  Words rest(words.subspan(1));
  return (*object)->parse(rest, options, plan);
}

Status parse_in_table(std::span<const CommandEntry> commands, std::string_view what,
                      std::string_view default_name, std::string_view help, Words& words,
                      const Options& options, Plan& plan) {
  const std::string_view word = words.done() ? default_name : words.next();
  if (word == "help") return plan_help(plan, help);
  const auto command = find_abbreviated(commands, what, word);
  if (!command) return std::unexpected(command.error());
  if (words.peek() == "help") return plan_help(plan, help);
  return (*command)->parse(words, options, plan);
}

}  // namespace mayfly::cli
