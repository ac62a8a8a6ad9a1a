// SPDX-License-Identifier: BSD-3-Clause
#include <array>

#include "session.hpp"

namespace mayfly::cli {
namespace {

constexpr std::string_view kHelp = "Usage: mayfly netns list\n";
constexpr std::string_view kDefaultNetns = "default";

// A daemon of this protocol version has this one namespace; the hello proves that there is a daemon.
Result<int> list_namespaces(Session& session, Plan& plan) {
  const auto client = session.client(plan.family);
  if (!client) return std::unexpected(client.error());
  if (session.options().json)
    session.out().write_json(Json::array({{{"name", kDefaultNetns}}}), session.options().pretty);
  else
    session.out().print("{}\n", kDefaultNetns);
  return kExitOk;
}

Status parse_list(Words& words, const Options&, Plan& plan) {
  if (!words.done()) return words.unknown();
  plan.family = Plan::Family::generic;
  plan.present = list_namespaces;
  return {};
}

constexpr std::array kCommands = {CommandEntry{"list", parse_list}, CommandEntry{"show", parse_list, true}};

}  // namespace

Status parse_netns(Words& words, const Options& options, Plan& plan) {
  return parse_in_table(kCommands, "command of netns", "list", kHelp, words, options, plan);
}

}  // namespace mayfly::cli
