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

constexpr std::string_view kHelp = R"(Usage: mayfly address add|replace|del PREFIX dev NAME [nodad]
       mayfly address show [[dev] NAME | SELECTOR]
       mayfly address flush dev NAME
)";

const ifaddrmsg& fixed_of(const nlmsghdr& answer) {
  return *static_cast<const ifaddrmsg*>(mnl_nlmsg_get_payload(&answer));
}

// Flags as iproute2 shows them, in its order.
constexpr std::array kFlags = {Named{"nodad", IFA_F_NODAD}, Named{"optimistic", IFA_F_OPTIMISTIC},
                               Named{"dadfailed", IFA_F_DADFAILED}, Named{"tentative", IFA_F_TENTATIVE}};

Status parse_change(Words& words, const Options& options, Plan& plan, uint16_t type, uint16_t flags) {
  std::optional<IpPrefix> prefix;
  std::string_view device;
  bool nodad = false;
  while (!words.done()) {
    if (words.take("dev")) {
      device = words.text();
    } else if (words.take("nodad")) {
      nodad = true;
    } else if (words.take("local") || !prefix) {
      prefix = words.prefix();
    } else {
      return words.unknown();
    }
  }
  if (Status understood = words.status(); !understood) return understood;
  if (!prefix) return fail(EINVAL, "the address is missing: expected PREFIX dev NAME");
  if (device.empty()) return fail(EINVAL, "'dev NAME' is missing");
  if (Status fits = check_family(options, prefix->address); !fits) return fits;
  ifaddrmsg fixed{};
  fixed.ifa_family = family_of(prefix->address);
  fixed.ifa_prefixlen = prefix->length;
  fixed.ifa_flags = nodad ? IFA_F_NODAD : 0;
  fixed.ifa_scope = RT_SCOPE_UNIVERSE;
  plan.begin_route(type, flags, fixed);
  put_address(plan.message, IFA_LOCAL, prefix->address);
  put_address(plan.message, IFA_ADDRESS, prefix->address);
  put_device(plan.message, device);
  return {};
}

Status parse_add(Words& words, const Options& options, Plan& plan) {
  return parse_change(words, options, plan, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL);
}

Status parse_replace(Words& words, const Options& options, Plan& plan) {
  return parse_change(words, options, plan, RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE);
}

Status parse_delete(Words& words, const Options& options, Plan& plan) {
  return parse_change(words, options, plan, RTM_DELADDR, 0);
}

void begin_dump(RequestMessage& message, uint8_t family, std::string_view device) {
  ifaddrmsg fixed{};
  fixed.ifa_family = family;
  message.begin_route(RTM_GETADDR, NLM_F_DUMP, fixed);
  put_device(message, device);
}

// IPv4 has both and they are the same; IPv6 has IFA_ADDRESS.
std::optional<IpAddress> local_of(const Attributes& attributes) {
  const auto local = address_of(attributes, IFA_LOCAL);
  return local ? local : address_of(attributes, IFA_ADDRESS);
}

struct Address {
  IpPrefix prefix;
  uint8_t scope;
  uint32_t flags;
};

std::optional<Address> read_answer(const nlmsghdr& answer) {
  if (answer.nlmsg_type != RTM_NEWADDR) return std::nullopt;
  const ifaddrmsg& fixed = fixed_of(answer);
  const Attributes attributes(answer, sizeof(ifaddrmsg));
  const auto local = local_of(attributes);
  if (!local) return std::nullopt;
  const auto flags = static_cast<uint32_t>(attributes.number_or(IFA_FLAGS, fixed.ifa_flags));
  return Address{IpPrefix(*local, fixed.ifa_prefixlen), fixed.ifa_scope, flags};
}

using AddressesByIndex = std::unordered_map<uint32_t, std::vector<Address>>;

void print_addresses(Output& out, const std::vector<Address>& addresses, std::string_view device) {
  for (const Address& address : addresses) {
    const bool v4 = address.prefix.is_v4();
    out.print("    {} {} scope {}", v4 ? "inet" : "inet6", format_prefix(address.prefix),
              name_of(kScopes, address.scope));
    for (const Named& flag : kFlags)
      if ((address.flags & flag.number) != 0) out.print(" {}", flag.name);
    out.print("{}{}\n", v4 ? " " : "", v4 ? device : "");
  }
}

Json addresses_json(const std::vector<Address>& addresses, std::string_view device) {
  Json list = Json::array();
  for (const Address& address : addresses) {
    const bool v4 = address.prefix.is_v4();
    Json entry{{"family", v4 ? "inet" : "inet6"},
               {"local", format_address(address.prefix.address)},
               {"prefixlen", address.prefix.length},
               {"scope", name_of(kScopes, address.scope)}};
    for (const Named& flag : kFlags)
      if ((address.flags & flag.number) != 0) entry.set(flag.name, true);
    if (v4) entry.set("label", device);
    list.push_back(entry);
  }
  return list;
}

void print_brief(Output& out, const Attributes& attributes, const std::vector<Address>& addresses) {
  out.print("{:<15} {:<14}", attributes.string(IFLA_IFNAME), link_state(attributes));
  for (const Address& address : addresses) out.print(" {}", format_prefix(address.prefix));
  out.write("\n");
}

// Addresses first, then the interfaces they belong to, as they arrive.
Result<int> show_addresses(Session& session, Plan& plan, std::string_view device) {
  AddressesByIndex by_index;
  RequestMessage dump;
  begin_dump(dump, session.options().family(), device);
  Status done = session.request(Plan::Family::route, dump, [&by_index](const nlmsghdr& answer) {
    if (const auto address = read_answer(answer)) by_index[fixed_of(answer).ifa_index].push_back(*address);
  });
  if (!done) return std::unexpected(done.error());
  const Options& options = session.options();
  JsonArray array(session.out(), options.pretty);
  static const std::vector<Address> none;
  done = session.request(Plan::Family::route, plan.message, [&](const nlmsghdr& answer) {
    if (answer.nlmsg_type != RTM_NEWLINK) return;
    const Attributes attributes(answer, sizeof(ifinfomsg));
    const std::string_view name = attributes.string(IFLA_IFNAME);
    const auto found = by_index.find(link_index(answer));
    const std::vector<Address>& addresses = found == by_index.end() ? none : found->second;
    if (options.json) {
      Json link = link_json(answer, attributes, options, session.boot_id());
      link.set("addr_info", addresses_json(addresses, name));
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

Status parse_flush(Words& words, const Options& options, Plan& plan) {
  std::string_view device;
  if (words.take("dev")) device = words.text();
  if (!words.done()) return words.unknown();
  if (Status understood = words.status(); !understood) return understood;
  if (device.empty()) return fail(EINVAL, "'dev NAME' is missing");
  plan.family = Plan::Family::route;
  begin_dump(plan.message, options.family(), device);
  plan.present = [](Session& session, Plan& self) {
    return flush_listed(session, self, [](const nlmsghdr& answer, RequestMessage& deletion) {
      const auto address = read_answer(answer);
      if (!address) return;
      deletion.begin_route(RTM_DELADDR, 0, fixed_of(answer));
      put_address(deletion, IFA_ADDRESS, address->prefix.address);
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
