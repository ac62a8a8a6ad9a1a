// SPDX-License-Identifier: BSD-3-Clause
#include <linux/if.h>
#include <linux/if_arp.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>

#include <array>
#include <cstring>

#include <libmnl/libmnl.h>

#include "link.hpp"
#include "link_spec.hpp"
#include "session.hpp"

namespace mayfly::cli {
namespace {

struct FlagName {
  uint32_t flag;
  std::string_view name;
};

// In the order and with the names of ip.
constexpr std::array kFlagNames = {
    FlagName{IFF_LOOPBACK, "LOOPBACK"},
    FlagName{IFF_BROADCAST, "BROADCAST"},
    FlagName{IFF_POINTOPOINT, "POINTOPOINT"},
    FlagName{IFF_MULTICAST, "MULTICAST"},
    FlagName{IFF_NOARP, "NOARP"},
    FlagName{IFF_ALLMULTI, "ALLMULTI"},
    FlagName{IFF_PROMISC, "PROMISC"},
    FlagName{IFF_UP, "UP"},
    FlagName{IFF_LOWER_UP, "LOWER_UP"},
    FlagName{IFF_DORMANT, "DORMANT"},
};

constexpr std::array<std::string_view, 7> kStates = {"UNKNOWN", "NOTPRESENT", "DOWN", "LOWERLAYERDOWN",
                                                     "TESTING", "DORMANT",    "UP"};

// Shown where they are not what an interface has by default.
struct Setting {
  uint16_t attribute;
  std::string_view word;
  std::string_view value;
};

constexpr std::array kSettings = {
    Setting{protocol::kAttrRpFilter, "rp_filter", "strict"},
    Setting{protocol::kAttrProxyArp, "proxy_arp", "on"},
    Setting{protocol::kAttrProxyNd, "proxy_nd", "on"},
    Setting{protocol::kAttrAddrGenMode, "addrgenmode", "none"},
};

const ifinfomsg& fixed_of(const nlmsghdr& answer) {
  return *static_cast<const ifinfomsg*>(mnl_nlmsg_get_payload(&answer));
}

// IFF_UP without IFF_RUNNING is what ip calls NO-CARRIER.
std::vector<std::string_view> flag_names(uint32_t flags) {
  std::vector<std::string_view> names;
  if ((flags & IFF_UP) != 0 && (flags & IFF_RUNNING) == 0) names.push_back("NO-CARRIER");
  for (const FlagName& entry : kFlagNames)
    if ((flags & entry.flag) != 0) names.push_back(entry.name);
  return names;
}

std::string group_name(const Attributes& attributes) {
  const uint64_t group = attributes.number_or(IFLA_GROUP, 0);
  return group == 0 ? "default" : fmt::format("{}", group);
}

std::string address_text(const Attributes& attributes) {
  const std::span<const uint8_t> address = attributes.bytes(IFLA_ADDRESS);
  return address.size() == 6 ? format_mac(load_mac(address.data())) : "";
}

struct Kind {
  std::string_view name;
  const KindDescription* description = nullptr;
  std::optional<Attributes> data;
};

Kind kind_of(const Attributes& attributes) {
  Kind kind;
  const auto info = attributes.nested(IFLA_LINKINFO);
  if (!info) return kind;
  kind.name = info->string(IFLA_INFO_KIND);
  kind.description = find_kind_description(kind.name);
  kind.data = info->nested(IFLA_INFO_DATA);
  return kind;
}

// The kernel may append fields to the structure: what is missing is zero.
std::optional<rtnl_link_stats64> counters_of(const Attributes& attributes) {
  const std::span<const uint8_t> bytes = attributes.bytes(IFLA_STATS64);
  if (bytes.empty()) return std::nullopt;
  rtnl_link_stats64 counters{};
  memcpy(&counters, bytes.data(), std::min(bytes.size(), sizeof counters));
  return counters;
}

void each_drop(const Attributes& attributes, const std::function<void(std::string_view, uint64_t)>& visit) {
  const auto drops = attributes.nested(protocol::kAttrDrops);
  if (!drops) return;
  drops->each(protocol::kAttrDrop, [&visit](const Attributes& drop) {
    visit(drop.string(protocol::kReasonName), drop.number_or(protocol::kReasonTotal, 0));
  });
}

void print_counters(Output& out, const Attributes& attributes) {
  const auto counters = counters_of(attributes);
  if (!counters) return;
  out.print("    RX: {:>14} {:>12} {:>8} {:>8}\n", "bytes", "packets", "errors", "dropped");
  out.print("        {:>14} {:>12} {:>8} {:>8}\n", counters->rx_bytes, counters->rx_packets,
            counters->rx_errors, counters->rx_dropped);
  out.print("    TX: {:>14} {:>12} {:>8} {:>8}\n", "bytes", "packets", "errors", "dropped");
  out.print("        {:>14} {:>12} {:>8} {:>8}\n", counters->tx_bytes, counters->tx_packets,
            counters->tx_errors, counters->tx_dropped);
  std::string drops;
  each_drop(attributes, [&drops](std::string_view reason, uint64_t total) {
    if (total > 0) drops += fmt::format("{}{} {}", drops.empty() ? "" : ", ", reason, total);
  });
  if (!drops.empty()) out.print("    drops: {}\n", drops);
}

void print_details(Output& out, const Attributes& attributes) {
  const Kind kind = kind_of(attributes);
  if (!kind.name.empty())
    out.print(
        "    {}{}\n", kind.name,
        kind.description != nullptr && kind.data ? format_parameters(*kind.description, *kind.data) : "");
  std::string settings;
  for (const Setting& setting : kSettings)
    if (attributes.number_or(setting.attribute, 0) != 0)
      settings += fmt::format(" {} {}", setting.word, setting.value);
  if (attributes.has(protocol::kAttrUnnumbered))
    settings += fmt::format(" unnumbered {}", attributes.string(protocol::kAttrUnnumbered));
  if (!settings.empty()) out.print("   {}\n", settings);
  if (attributes.has(protocol::kAttrPeerNetns))
    out.print("    peer {} in netns {}\n", attributes.string(protocol::kAttrPeer),
              attributes.string(protocol::kAttrPeerNetns));
  if (attributes.has(protocol::kAttrLinkNetns))
    out.print("    link {} in netns {}\n", attributes.string(protocol::kAttrDevice),
              attributes.string(protocol::kAttrLinkNetns));
  out.print("    netns {} unique id {} children {}\n", attributes.string(protocol::kAttrNetns),
            attributes.number_or(protocol::kAttrId, 0), attributes.number_or(protocol::kAttrChildren, 0));
}

void print_link(Session& session, const nlmsghdr& answer) {
  const Attributes attributes(answer, sizeof(ifinfomsg));
  Output& out = session.out();
  out.write(link_headline(answer, attributes));
  const std::string address = address_text(attributes);
  if (!address.empty()) out.print("    link/ether {} brd ff:ff:ff:ff:ff:ff\n", address);
  if (session.options().details) print_details(out, attributes);
  const std::string_view alias = attributes.string(IFLA_IFALIAS);
  if (!alias.empty()) out.print("    alias {}\n", alias);
  if (session.options().statistics) print_counters(out, attributes);
}

void print_brief(Output& out, const nlmsghdr& answer) {
  const Attributes attributes(answer, sizeof(ifinfomsg));
  const Kind kind = kind_of(attributes);
  std::string tags;
  if (kind.description != nullptr && kind.data) tags = format_tags(*kind.description, *kind.data);
  const std::string address = address_text(attributes);
  const auto shown = [](std::string_view text) { return text.empty() ? std::string_view("-") : text; };
  out.print("{:<15} {:<8} {:<6} {:<14} {:<14} {:<10} {:<8} {:<5} {}\n", attributes.string(IFLA_IFNAME),
            fixed_of(answer).ifi_index, shown(kind.name), shown(tags), link_state(attributes),
            shown(attributes.string(protocol::kAttrNetns)), group_name(attributes),
            attributes.number_or(IFLA_MTU, 0), shown(address));
}

Json counters_json(const rtnl_link_stats64& counters) {
  return {{"rx",
           {{"bytes", counters.rx_bytes},
            {"packets", counters.rx_packets},
            {"errors", counters.rx_errors},
            {"dropped", counters.rx_dropped}}},
          {"tx",
           {{"bytes", counters.tx_bytes},
            {"packets", counters.tx_packets},
            {"errors", counters.tx_errors},
            {"dropped", counters.tx_dropped}}}};
}

Json kind_json(const Kind& kind) {
  Json info{{"info_kind", kind.name}};
  if (kind.description == nullptr || !kind.data) return info;
  Json data = Json::object();
  for (const KindParameter& parameter : kind.description->parameters) {
    const auto value = parameter_value(parameter, *kind.data);
    if (!value) continue;
    if (parameter.type == KindParameter::Type::ethertype)
      data.set(parameter.word, format_ethertype(*value));
    else
      data.set(parameter.word, *value);
  }
  if (!data.empty()) info.set("info_data", data);
  return info;
}

Result<int> show_links(Session& session, Plan& plan) {
  const Options& options = session.options();
  JsonArray array(session.out(), options.pretty);
  uint64_t total = 0;
  if (options.brief && !options.json && session.out().terminal())
    session.out().print("{:<15} {:<8} {:<6} {:<14} {:<14} {:<10} {:<8} {:<5} {}\n", "NAME", "IFINDEX", "KIND",
                        "TAGS", "OPER", "NETNS", "GROUP", "MTU", "ADDR");
  const Status done = session.request(Plan::Family::route, plan.message, [&](const nlmsghdr& answer) {
    if (answer.nlmsg_type != RTM_NEWLINK) return;
    ++total;
    if (options.json)
      array.add(link_json(answer, Attributes(answer, sizeof(ifinfomsg)), options, session.boot_id()));
    else if (options.brief)
      print_brief(session.out(), answer);
    else
      print_link(session, answer);
  });
  if (!done) return std::unexpected(done.error());
  if (options.json) array.begin();
  array.end();
  if (options.brief) session.note(fmt::format("{} interface{}", total, total == 1 ? "" : "s"));
  return kExitOk;
}

}  // namespace

uint32_t link_index(const nlmsghdr& answer) {
  return static_cast<uint32_t>(fixed_of(answer).ifi_index);
}

std::string link_state(const Attributes& attributes) {
  const uint64_t state = attributes.number_or(IFLA_OPERSTATE, 0);
  return std::string(state < kStates.size() ? kStates[state] : "UNKNOWN");
}

std::string link_headline(const nlmsghdr& answer, const Attributes& attributes) {
  std::string parent(attributes.string(protocol::kAttrDevice));
  if (parent.empty()) parent = attributes.string(protocol::kAttrPeer);
  if (parent.empty() && attributes.number_or(IFLA_LINK, 0) != 0)
    parent = fmt::format("if{}", attributes.number_or(IFLA_LINK, 0));
  return fmt::format("{}: {}{}{}: <{}> mtu {} state {} group {}\n", fixed_of(answer).ifi_index,
                     attributes.string(IFLA_IFNAME), parent.empty() ? "" : "@", parent,
                     fmt::join(flag_names(fixed_of(answer).ifi_flags), ","),
                     attributes.number_or(IFLA_MTU, 0), link_state(attributes), group_name(attributes));
}

Json link_json(const nlmsghdr& answer, const Attributes& attributes, const Options& options,
               std::string_view boot_id) {
  Json link{{"ifindex", fixed_of(answer).ifi_index}};
  const std::string_view parent = attributes.string(protocol::kAttrDevice);
  const std::string_view peer = attributes.string(protocol::kAttrPeer);
  if (!parent.empty() || !peer.empty()) link.set("link", parent.empty() ? peer : parent);
  if (attributes.has(protocol::kAttrLinkNetns))
    link.set("link_netns", attributes.string(protocol::kAttrLinkNetns));
  if (!peer.empty()) link.set("peer_netns", attributes.string(protocol::kAttrPeerNetns));
  link.set("ifname", attributes.string(IFLA_IFNAME));
  link.set("flags", flag_names(fixed_of(answer).ifi_flags));
  link.set("mtu", attributes.number_or(IFLA_MTU, 0));
  link.set("operstate", link_state(attributes));
  link.set("group", group_name(attributes));
  link.set("link_type", "ether");
  const std::string address = address_text(attributes);
  if (!address.empty()) link.update({{"address", address}, {"broadcast", format_mac(kBroadcastMac)}});
  const std::string_view alias = attributes.string(IFLA_IFALIAS);
  if (!alias.empty()) link.set("ifalias", alias);
  for (const Setting& setting : kSettings)
    if (attributes.number_or(setting.attribute, 0) != 0) link.set(setting.word, setting.value);
  if (attributes.has(protocol::kAttrUnnumbered))
    link.set("unnumbered", attributes.string(protocol::kAttrUnnumbered));
  const Kind kind = kind_of(attributes);
  if (!kind.name.empty()) link.set("linkinfo", kind_json(kind));
  if (options.statistics) {
    if (const auto counters = counters_of(attributes)) link.set("stats64", counters_json(*counters));
    Json drops = Json::object();
    each_drop(attributes, [&drops](std::string_view reason, uint64_t total) { drops.set(reason, total); });
    link.set("drops", drops);
  }
  if (const auto children = attributes.number(protocol::kAttrChildren)) link.set("children", *children);
  link.set("id", attributes.number_or(protocol::kAttrId, 0));
  link.set("created_ns", attributes.number_or(protocol::kAttrCreated, 0));
  link.set("netns", attributes.string(protocol::kAttrNetns));
  link.set("boot_id", boot_id);
  return link;
}

void begin_get_link(RequestMessage& message, std::string_view name, const Selector& selector) {
  const ifinfomsg fixed{};
  message.begin_route(RTM_GETLINK, name.empty() ? NLM_F_DUMP : 0, fixed);
  if (!name.empty()) message.put_string(IFLA_IFNAME, name);
  if (name.empty() && (!selector.empty() || selector.limit))
    put_selector(message, protocol::kAttrSelector, selector);
}

Status parse_link_choice(Words& words, std::string_view* name, Selector* selector) {
  while (!words.done()) {
    if (words.take("dev")) {
      *name = words.text();
    } else if (!name->empty() || !take_condition(words, *selector)) {
      if (!name->empty() || !selector->empty()) return words.unknown();
      *name = words.next();
    }
  }
  if (!name->empty() && (!selector->empty() || selector->limit))
    words.fail(EINVAL, "a name or a selector, not both");
  return words.status();
}

Status parse_link_show(Words& words, const Options&, Plan& plan) {
  std::string_view name;
  Selector selector;
  if (Status understood = parse_link_choice(words, &name, &selector); !understood) return understood;
  plan.family = Plan::Family::route;
  begin_get_link(plan.message, name, selector);
  plan.present = show_links;
  return {};
}

}  // namespace mayfly::cli
