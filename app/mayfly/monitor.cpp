// SPDX-License-Identifier: BSD-3-Clause
#include <linux/if_link.h>
#include <linux/rtnetlink.h>

#include <array>

#include "link.hpp"
#include "session.hpp"

namespace mayfly::cli {
namespace {

constexpr std::string_view kHelp =
    R"(Usage: mayfly monitor link     what happens to interfaces, until interrupted; -j: a JSON document a line
A change that concerns many is told as one: of a port that loses its link, not of each VLAN on it.
)";

// What happened, as ip's monitor says it: nothing in front of what is new or changed.
std::string_view event_name(const nlmsghdr& event) {
  return event.nlmsg_type == RTM_DELLINK ? "deleted" : "changed";
}

void print_json(Session& session, const nlmsghdr& event, const Attributes& attributes) {
  Json json;
  if (const auto merged = attributes.number(protocol::kAttrMerged))
    json = {{"merged", *merged}};
  else if (event.nlmsg_type == RTM_DELLINK)
    json = {{"ifname", attributes.string(IFLA_IFNAME)},
            {"ifindex", link_index(event)},
            {"id", attributes.number_or(protocol::kAttrId, 0)},
            {"netns", attributes.string(protocol::kAttrNetns)}};
  else
    json = link_json(event, attributes, session.options(), session.boot_id());
  json.set("event", event_name(event));
  session.out().write_json(json, false);
}

void print_event(Session& session, const nlmsghdr& event) {
  if (event.nlmsg_type != RTM_NEWLINK && event.nlmsg_type != RTM_DELLINK) return;
  const Attributes attributes(event, sizeof(ifinfomsg));
  Output& out = session.out();
  if (session.options().json)
    print_json(session, event, attributes);
  else if (const auto merged = attributes.number(protocol::kAttrMerged))
    out.print("{} {} interfaces\n", event.nlmsg_type == RTM_DELLINK ? "Deleted" : "New or changed", *merged);
  else if (event.nlmsg_type == RTM_DELLINK)
    out.print("Deleted {}: {}\n", link_index(event), attributes.string(IFLA_IFNAME));
  else
    out.write(link_headline(event, attributes));
  out.flush();
}

Result<int> monitor(Session& session, Plan&) {
  auto client = session.listen(RTMGRP_LINK);
  if (!client) return std::unexpected(client.error());
  const Status ended =
      client->listen([&session](const nlmsghdr& event) { print_event(session, event); },
                     [&session](const Error& error) { session.note("Warning: " + error.text); });
  return std::unexpected(ended.error());
}

Status parse_links(Words& words, const Options&, Plan& plan) {
  if (!words.done()) return words.unknown();
  plan.reset();
  plan.present = monitor;
  return {};
}

constexpr std::array kCommands = {CommandEntry{"link", parse_links}};

}  // namespace

Status parse_monitor(Words& words, const Options& options, Plan& plan) {
  return parse_in_table(kCommands, "group of events", "link", kHelp, words, options, plan);
}

}  // namespace mayfly::cli
