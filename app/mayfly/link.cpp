// SPDX-License-Identifier: BSD-3-Clause
#include "link.hpp"

#include <linux/genetlink.h>
#include <linux/if.h>
#include <linux/rtnetlink.h>

#include <array>

#include "base/units.hpp"
#include "link_spec.hpp"
#include "session.hpp"

namespace mayfly::cli {
namespace {

ifinfomsg fixed_link(std::optional<bool> up, std::optional<bool> promiscuous = {}) {
  ifinfomsg fixed{};
  fixed.ifi_family = AF_UNSPEC;
  if (up) {
    fixed.ifi_flags = *up ? IFF_UP : 0;
    fixed.ifi_change = IFF_UP;
  }
  if (promiscuous) {
    fixed.ifi_flags |= *promiscuous ? IFF_PROMISC : 0;
    fixed.ifi_change |= IFF_PROMISC;
  }
  return fixed;
}

Status parse_add(Words& words, const Options&, Plan& plan) {
  LinkSpec spec;
  while (!words.done()) {
    if (take_link_word(words, false, spec)) continue;
    if (words.take("index")) {
      spec.index = static_cast<uint32_t>(words.number(1, INT32_MAX));
    } else if (words.take({"name", "dev"})) {
      spec.name = words.text();
    } else if (spec.name.empty()) {
      spec.name = words.next();
    } else {
      return words.unknown();
    }
  }
  if (Status understood = words.status(); !understood) return understood;
  if (spec.name.empty()) return fail(EINVAL, "the name of the new interface is missing");
  if (Status complete = check_complete(spec); !complete) return complete;
  plan.family = Plan::Family::route;
  begin_link_add(plan.message, spec);
  return {};
}

// As with the kernel, a message that carries a new name says by ifindex which interface it means.
Result<int> rename_link(Session& session, std::string_view name, const LinkSpec& spec,
                        std::optional<bool> promiscuous, std::string_view new_name) {
  RequestMessage message;
  begin_get_link(message, name, {});
  ifinfomsg fixed = fixed_link(spec.up, promiscuous);
  Status done = session.request(Plan::Family::route, message, [&fixed](const nlmsghdr& answer) {
    fixed.ifi_index = static_cast<int>(link_index(answer));
  });
  if (!done) return std::unexpected(done.error());
  message.begin_route(RTM_NEWLINK, 0, fixed);
  message.put_string(IFLA_IFNAME, new_name);
  put_link(message, spec);
  done = session.request(Plan::Family::route, message);
  if (!done) return std::unexpected(done.error());
  return kExitOk;
}

Status parse_set(Words& words, const Options&, Plan& plan) {
  LinkSpec spec;
  std::optional<std::string_view> new_name;
  std::optional<bool> promiscuous;
  while (!words.done()) {
    if (words.take("dev") || (spec.name.empty() && words.peek() != "dev")) {
      spec.name = words.next();
    } else if (words.take("name")) {
      new_name = words.text();
    } else if (words.take({"promisc", "promiscuous"})) {
      const std::string_view value = words.text();
      if (value != "on" && value != "off") return fail(EINVAL, "promisc '{}': accepted on, off", value);
      promiscuous = value == "on";
    } else if (words.peek() == "type" || words.peek() == "link" || !take_link_word(words, false, spec)) {
      return words.unknown();
    }
  }
  if (Status understood = words.status(); !understood) return understood;
  if (spec.name.empty()) return fail(EINVAL, "the name of the interface is missing");
  if (!spec.has_settings() && !new_name && !promiscuous)
    return fail(EINVAL,
                "nothing to set: expected up, down, mtu, name, group, alias, address, promisc, netns, "
                "unnumbered, rp_filter, "
                "proxy_arp, proxy_nd or addrgenmode");
  if (new_name) {
    plan.family = Plan::Family::route;
    plan.present = [spec, promiscuous, new_name](Session& session, Plan&) {
      return rename_link(session, spec.name, spec, promiscuous, *new_name);
    };
    return {};
  }
  plan.begin_route(RTM_NEWLINK, 0, fixed_link(spec.up, promiscuous));
  plan.message.put_string(IFLA_IFNAME, spec.name);
  put_link(plan.message, spec);
  return {};
}

std::string spelled(std::string_view operation, std::span<const std::string_view> words) {
  std::string text(operation);
  for (const std::string_view word : words)
    if (word != "--dry-run" && word != "-force" && word != "--force") text += fmt::format(" {}", word);
  return text;
}

Status parse_delete(Words& words, const Options& options, Plan& plan) {
  const std::string operation = spelled("link del", words.rest());
  Selector selector;
  std::string_view name;
  bool dry_run = false;
  bool force = options.force;
  while (!words.done()) {
    if (words.take({"--dry-run", "-dry-run"})) {
      dry_run = true;
    } else if (words.take({"-force", "--force"})) {
      force = true;
    } else if (words.take("dev")) {
      name = words.text();
    } else if (!name.empty() || !take_condition(words, selector)) {
      if (!name.empty() || !selector.empty()) return words.unknown();
      name = words.next();
    }
  }
  if (Status understood = words.status(); !understood) return understood;
  if (!name.empty() && !selector.empty()) return fail(EINVAL, "a name or a selector, not both");
  if (!name.empty() && dry_run) {
    plan_delete_named(plan, name, force);
    return {};
  }
  if (!name.empty()) {
    plan.begin_route(RTM_DELLINK, 0, fixed_link({}));
    plan.message.put_string(IFLA_IFNAME, name);
    return {};
  }
  if (Status deletable = check_deletable(selector); !deletable) return deletable;
  plan_delete_selected(plan, selector, operation, dry_run, force);
  return {};
}

Result<int> show_count(Session& session, Plan& plan) {
  uint64_t count = 0;
  const Status done = session.request(plan.family, plan.message, [&count](const nlmsghdr& answer) {
    count = Attributes(answer, sizeof(genlmsghdr)).number_or(protocol::kValueCount, 0);
  });
  if (!done) return std::unexpected(done.error());
  if (session.options().json)
    session.out().write_json(Json{{"count", count}, {"boot_id", session.boot_id()}},
                             session.options().pretty);
  else
    session.out().print("{}\n", count);
  return kExitOk;
}

Status parse_count(Words& words, const Options&, Plan& plan) {
  Selector selector;
  while (!words.done())
    if (!take_condition(words, selector)) return words.unknown();
  if (Status understood = words.status(); !understood) return understood;
  if (selector.limit) return fail(EINVAL, "'limit' has no meaning for a count");
  plan.begin_generic(protocol::kCmdLinkCount);
  if (!selector.empty()) put_selector(plan.message, protocol::kBulkSelector, selector);
  plan.present = show_count;
  return {};
}

Result<int> show_which(Session& session, Plan& plan, std::string_view port, std::string_view tags) {
  std::string name;
  std::string drop;
  uint64_t ifindex = 0;
  const Status done = session.request(plan.family, plan.message, [&](const nlmsghdr& answer) {
    const Attributes attributes(answer, sizeof(genlmsghdr));
    name = attributes.string(protocol::kWhichName);
    drop = attributes.string(protocol::kWhichDrop);
    ifindex = attributes.number_or(protocol::kWhichIfindex, 0);
  });
  if (!done) return std::unexpected(done.error());
  if (session.options().json) {
    Json answer{{"link", port}, {"tags", tags}};
    if (!name.empty()) answer.update({{"ifname", name}, {"ifindex", ifindex}});
    if (!drop.empty()) answer.set("drop", drop);
    session.out().write_json(answer, session.options().pretty);
    return kExitOk;
  }
  const std::string what = fmt::format("{}{}{}", port, tags.empty() ? "" : " ", tags);
  if (!name.empty())
    session.out().print("{}: {} (ifindex {}){}{}\n", what, name, ifindex, drop.empty() ? "" : "; dropped as ",
                        drop);
  else
    session.out().print("{}: nobody's; dropped as {}\n", what, drop.empty() ? "unknown" : drop);
  return kExitOk;
}

Status parse_which(Words& words, const Options&, Plan& plan) {
  const std::string_view port = words.next();
  if (port.empty()) return fail(EINVAL, "expected PORT [OUTER[.INNER]] [protocol 802.1Q|802.1ad]");
  std::string_view tags;
  std::optional<uint16_t> ethertype;
  while (!words.done()) {
    if (words.take("protocol")) {
      ethertype = words.ethertype();
    } else if (tags.empty()) {
      tags = words.next();
    } else {
      return words.unknown();
    }
  }
  if (Status understood = words.status(); !understood) return understood;
  plan.begin_generic(protocol::kCmdLinkWhich);
  plan.message.put_string(protocol::kWhichPort, port);
  if (ethertype) plan.message.put_u16(protocol::kWhichProtocol, *ethertype);
  if (!tags.empty()) {
    const size_t dot = tags.find('.');
    const auto outer = parse_number("outer tag", tags.substr(0, dot), 0, UINT16_MAX);
    if (!outer) return std::unexpected(outer.error());
    plan.message.put_u16(protocol::kWhichOuter, static_cast<uint16_t>(*outer));
    if (dot != std::string_view::npos) {
      const auto inner = parse_number("inner tag", tags.substr(dot + 1), 0, UINT16_MAX);
      if (!inner) return std::unexpected(inner.error());
      plan.message.put_u16(protocol::kWhichInner, static_cast<uint16_t>(*inner));
    }
  }
  plan.present = [port, tags](Session& session, Plan& self) { return show_which(session, self, port, tags); };
  return {};
}

Status parse_flush(Words& words, const Options& options, Plan& plan) {
  bool dry_run = false;
  while (!words.done()) {
    if (!words.take({"--dry-run", "-dry-run"})) return words.unknown();
    dry_run = true;
  }
  // Nobody empties the namespace he happens to be in by a word.
  if (options.netns.empty()) return fail(EINVAL, "say which namespace: mayfly -n NETNS link flush");
  plan_flush(plan, options.netns, dry_run, options.force);
  return {};
}

constexpr std::array kCommands = {
    CommandEntry{"add", parse_add},
    CommandEntry{"set", parse_set},
    CommandEntry{"show", parse_link_show},
    CommandEntry{"count", parse_count},
    CommandEntry{"delete", parse_delete},
    CommandEntry{"flush", parse_flush},
    CommandEntry{"which", parse_which},
    CommandEntry{"bulk", parse_link_bulk},
    CommandEntry{"change", parse_set, true},
    CommandEntry{"list", parse_link_show, true},
    CommandEntry{"lst", parse_link_show, true},
};

}  // namespace

std::string link_help() {
  return std::string(R"(Usage: mayfly link add NAME [link PARENT] [mtu N] [address MAC] [group N] [alias TEXT]
                       [index N] [up] [netns NETNS] [SETTINGS] type KIND [PARAMETERS]
       mayfly link set NAME [up | down] [mtu N] [name NEW] [group N] [alias TEXT] [address MAC]
                       [promisc on|off] [netns NETNS] [SETTINGS]
       mayfly link show [NAME | SELECTOR]
       mayfly link count [SELECTOR]
       mayfly link del NAME | SELECTOR [--dry-run]
       mayfly link flush [--dry-run]          (only with -n NETNS: all that is in it but its ports)
       mayfly link which PORT [OUTER[.INNER]] [protocol 802.1Q|802.1ad]
       mayfly link bulk add [count N] [name PATTERN] [link PARENT] [mtu N] [group N] [up] [netns NETNS]
                       [SETTINGS] [DRESSING] [--dry-run] type KIND [PARAMETERS, each a number or FIRST-LAST]
       mayfly link bulk add --from FILE [link PARENT] [type KIND] [WORDS for all rows] [--dry-run]
       mayfly link bulk replace ... [--sweep group N]
                       (like bulk add, but what is there is kept or changed, and what else is in group N deleted)
       mayfly link bulk del name PATTERN count N | - | SELECTOR [--dry-run]
                       ('-': names on standard input)
SETTINGS: unnumbered NAME|none | rp_filter strict|off | proxy_arp on|off | proxy_nd on|off | addrgenmode eui64|none
DRESSING: addr PREFIX [step S] [nodad] | route PREFIX [step S] | neigh ADDRESS [step S] lladdr MAC [step N]
          (S: addresses from one to the next, or /LENGTH: networks of that length)
FILE:     (CSV with a header row, or JSON lines, of the words of link add, and addr, route, neigh; '-': standard input)
PATTERN:  '{}' counts from 0; also {parent} {outer} {inner} {n:06} %d; of the ranges the last varies fastest
)") + std::string(kSelectorHelp) +
         "KIND:\n" + describe_kinds();
}

Status parse_link(Words& words, const Options& options, Plan& plan) {
  static const std::string help = link_help();
  return parse_in_table(kCommands, "command of link", "show", help, words, options, plan);
}

}  // namespace mayfly::cli
