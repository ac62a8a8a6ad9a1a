// SPDX-License-Identifier: BSD-3-Clause
#include <linux/genetlink.h>

#include <array>

#include "session.hpp"

namespace mayfly::cli {
namespace {

constexpr std::string_view kHelp = R"(Usage: mayfly netns list [NAME]
       mayfly netns add NAME
       mayfly netns del NAME
       mayfly netns set NAME name NEW
'del' deletes everything inside, too; ports in it move to 'default' and go down.
'mayfly -n NAME link flush' empties a namespace and keeps it.
)";

Result<int> list_namespaces(Session& session, Plan& plan) {
  const Options& options = session.options();
  JsonArray array(session.out(), options.pretty);
  const Status done = session.request(plan.family, plan.message, [&](const nlmsghdr& answer) {
    const Attributes netns(answer, sizeof(genlmsghdr));
    const std::string_view name = netns.string(protocol::kNetnsName);
    const uint64_t id = netns.number_or(protocol::kNetnsId, 0);
    const uint64_t interfaces = netns.number_or(protocol::kNetnsInterfaces, 0);
    const uint64_t routes = netns.number_or(protocol::kNetnsRoutes, 0);
    if (options.json)
      array.add({{"name", name},
                 {"id", id},
                 {"interfaces", interfaces},
                 {"routes", routes},
                 {"boot_id", session.boot_id()}});
    else if (options.statistics || options.details)
      session.out().print("{} (id: {}) interfaces {} routes {}\n", name, id, interfaces, routes);
    else
      session.out().print("{}\n", name);
  });
  if (!done) return std::unexpected(done.error());
  if (options.json) array.begin();
  return kExitOk;
}

Status parse_list(Words& words, const Options&, Plan& plan) {
  const std::string_view name = words.next();
  if (!words.done()) return words.unknown();
  plan.begin_generic(protocol::kCmdNetnsShow, name.empty() ? NLM_F_DUMP : 0);
  if (!name.empty()) plan.message.put_string(protocol::kNetnsName, name);
  plan.present = list_namespaces;
  return {};
}

Status parse_name(Words& words, Plan& plan, protocol::Command command) {
  const std::string_view name = words.next();
  if (name.empty()) return fail(EINVAL, "the name of the namespace is missing");
  plan.begin_generic(command);
  plan.message.put_string(protocol::kNetnsName, name);
  return {};
}

Status parse_add(Words& words, const Options&, Plan& plan) {
  if (Status named = parse_name(words, plan, protocol::kCmdNetnsAdd); !named) return named;
  return words.done() ? words.status() : words.unknown();
}

Status parse_delete(Words& words, const Options&, Plan& plan) {
  if (Status named = parse_name(words, plan, protocol::kCmdNetnsDel); !named) return named;
  return words.done() ? words.status() : words.unknown();
}

Status parse_set(Words& words, const Options&, Plan& plan) {
  if (Status named = parse_name(words, plan, protocol::kCmdNetnsRename); !named) return named;
  if (!words.take("name")) return fail(EINVAL, "nothing to set: expected 'name NEW'");
  plan.message.put_string(protocol::kNetnsNewName, words.text());
  return words.done() ? words.status() : words.unknown();
}

constexpr std::array kCommands = {CommandEntry{"list", parse_list}, CommandEntry{"add", parse_add},
                                  CommandEntry{"delete", parse_delete}, CommandEntry{"set", parse_set},
                                  CommandEntry{"show", parse_list, true}};

}  // namespace

Status parse_netns(Words& words, const Options& options, Plan& plan) {
  return parse_in_table(kCommands, "command of netns", "list", kHelp, words, options, plan);
}

}  // namespace mayfly::cli
