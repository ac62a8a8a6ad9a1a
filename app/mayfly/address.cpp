// SPDX-License-Identifier: BSD-3-Clause
#include <libmnl/libmnl.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>

#include <array>
#include <unordered_map>

#include "device.hpp"
#include "link.hpp"

namespace mayfly::cli {
namespace {

constexpr std::string_view kHelp = R"(Usage: mayfly address add|replace|del PREFIX dev NAME
       mayfly address show [[dev] NAME | SELECTOR]
       mayfly address flush dev NAME
)";

const ifaddrmsg& fixed_of(const nlmsghdr& answer) {
  return *static_cast<const ifaddrmsg*>(mnl_nlmsg_get_payload(&answer));
}

void put_address(RequestMessage& message, Ipv4 address) {
  put_ipv4(message, IFA_LOCAL, address);
  put_ipv4(message, IFA_ADDRESS, address);
}

Status parse_change(Words& words, Plan& plan, uint16_t type, uint16_t flags) {
  std::optional<Ipv4Prefix> prefix;
  std::string_view device;
  while (!words.done()) {
    if (words.take("dev")) {
      device = words.text();
    } else if (words.take("local") || !prefix) {
      prefix = words.prefix();
    } else {
      return words.unknown();
    }
  }
  if (Status understood = words.status(); !understood) return understood;
  if (!prefix) return fail(EINVAL, "the address is missing: expected PREFIX dev NAME");
  if (device.empty()) return fail(EINVAL, "'dev NAME' is missing");
  ifaddrmsg fixed{};
  fixed.ifa_family = AF_INET;
  fixed.ifa_prefixlen = prefix->length;
  fixed.ifa_scope = RT_SCOPE_UNIVERSE;
  plan.begin_route(type, flags, fixed);
  put_address(plan.message, prefix->address);
  put_device(plan.message, device);
  return {};
}

Status parse_add(Words& words, const Options&, Plan& plan) {
  return parse_change(words, plan, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL);
}

Status parse_replace(Words& words, const Options&, Plan& plan) {
  return parse_change(words, plan, RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE);
}

Status parse_delete(Words& words, const Options&, Plan& plan) {
  return parse_change(words, plan, RTM_DELADDR, 0);
}

void begin_dump(RequestMessage& message, std::string_view device) {
  ifaddrmsg fixed{};
  fixed.ifa_family = AF_INET;
  message.begin_route(RTM_GETADDR, NLM_F_DUMP, fixed);
  put_device(message, device);
}

using AddressesByIndex = std::unordered_map<uint32_t, std::vector<Ipv4Prefix>>;

void print_addresses(Output& out, const std::vector<Ipv4Prefix>& addresses, std::string_view device) {
  for (const Ipv4Prefix& address : addresses)
    out.print("    inet {} scope global {}\n", format_prefix(address), device);
}

Json addresses_json(const std::vector<Ipv4Prefix>& addresses, std::string_view device) {
  Json list = Json::array();
  for (const Ipv4Prefix& address : addresses)
    list.push_back({{"family", "inet"},
                    {"local", format_ipv4(address.address)},
                    {"prefixlen", address.length},
                    {"scope", "global"},
                    {"label", device}});
  return list;
}

void print_brief(Output& out, const Attributes& attributes, const std::vector<Ipv4Prefix>& addresses) {
  out.print("{:<15} {:<14}", attributes.string(IFLA_IFNAME), link_state(attributes));
  for (const Ipv4Prefix& address : addresses) out.print(" {}", format_prefix(address));
  out.write("\n");
}

// Addresses first, then the interfaces they belong to, as they arrive.
Result<int> show_addresses(Session& session, Plan& plan, std::string_view device) {
  AddressesByIndex by_index;
  RequestMessage dump;
  begin_dump(dump, device);
  Status done = session.request(Plan::Family::route, dump, [&by_index](const nlmsghdr& answer) {
    if (answer.nlmsg_type != RTM_NEWADDR) return;
    const auto address = ipv4_of(Attributes(answer, sizeof(ifaddrmsg)), IFA_LOCAL);
    const ifaddrmsg& fixed = fixed_of(answer);
    if (address) by_index[fixed.ifa_index].push_back({*address, fixed.ifa_prefixlen});
  });
  if (!done) return std::unexpected(done.error());
  const Options& options = session.options();
  JsonArray array(session.out(), options.pretty);
  static const std::vector<Ipv4Prefix> none;
  done = session.request(Plan::Family::route, plan.message, [&](const nlmsghdr& answer) {
    if (answer.nlmsg_type != RTM_NEWLINK) return;
    const Attributes attributes(answer, sizeof(ifinfomsg));
    const std::string_view name = attributes.string(IFLA_IFNAME);
    const auto found = by_index.find(link_index(answer));
    const std::vector<Ipv4Prefix>& addresses = found == by_index.end() ? none : found->second;
    if (options.json) {
      Json link = link_json(answer, attributes, options, session.boot_id());
      link["addr_info"] = addresses_json(addresses, name);
      array.add(link);
    } else if (options.brief) {
      print_brief(session.out(), attributes, addresses);
    } else {
      session.out().write(link_headline(answer, attributes));
      print_addresses(session.out(), addresses, name);
    }
  });
  if (!done) return std::unexpected(done.error());
  if (options.json) array.begin();
  return kExitOk;
}

Status parse_show(Words& words, const Options&, Plan& plan) {
  std::string_view name;
  Selector selector;
  if (Status understood = parse_link_choice(words, &name, &selector); !understood) return understood;
  plan.family = Plan::Family::route;
  begin_get_link(plan.message, name, selector);
  plan.present = [name](Session& session, Plan& self) { return show_addresses(session, self, name); };
  return {};
}

Status parse_flush(Words& words, const Options&, Plan& plan) {
  std::string_view device;
  if (words.take("dev")) device = words.text();
  if (!words.done()) return words.unknown();
  if (Status understood = words.status(); !understood) return understood;
  if (device.empty()) return fail(EINVAL, "'dev NAME' is missing");
  plan.family = Plan::Family::route;
  begin_dump(plan.message, device);
  plan.present = [](Session& session, Plan& self) {
    return flush_listed(session, self, [](const nlmsghdr& answer, RequestMessage& deletion) {
      const auto address = ipv4_of(Attributes(answer, sizeof(ifaddrmsg)), IFA_LOCAL);
      if (answer.nlmsg_type != RTM_NEWADDR || !address) return;
      deletion.begin_route(RTM_DELADDR, 0, fixed_of(answer));
      put_address(deletion, *address);
    });
  };
  return {};
}

constexpr std::array kCommands = {
    CommandEntry{"add", parse_add},        CommandEntry{"replace", parse_replace},
    CommandEntry{"delete", parse_delete},  CommandEntry{"show", parse_show},
    CommandEntry{"flush", parse_flush},    CommandEntry{"list", parse_show, true},
    CommandEntry{"lst", parse_show, true}, CommandEntry{"change", parse_replace, true},
};

}  // namespace

Status parse_address(Words& words, const Options& options, Plan& plan) {
  static const std::string help = std::string(kHelp) + std::string(kSelectorHelp);
  return parse_in_table(kCommands, "command of address", "show", help, words, options, plan);
}

}  // namespace mayfly::cli
