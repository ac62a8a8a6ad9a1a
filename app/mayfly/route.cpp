// SPDX-License-Identifier: BSD-3-Clause
#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>

#include <array>

#include "device.hpp"
#include "plan.hpp"

namespace mayfly::cli {
namespace {

constexpr std::string_view kHelp = R"(Usage: mayfly route add|append|replace|change|del ROUTE
       mayfly route show [table main|local|all] [dev NAME]
       mayfly route flush dev NAME     (routes of the kernel's kind, which belong to addresses, stay)
       mayfly route get ADDRESS
ROUTE: [unicast|blackhole|unreachable|prohibit] PREFIX|default [via ADDRESS] [dev NAME] [src ADDRESS]
       [onlink] [metric N] [protocol boot|static|N]
)";

constexpr std::array kTypes = {Named{"unicast", RTN_UNICAST},         Named{"local", RTN_LOCAL},
                               Named{"broadcast", RTN_BROADCAST},     Named{"blackhole", RTN_BLACKHOLE},
                               Named{"unreachable", RTN_UNREACHABLE}, Named{"prohibit", RTN_PROHIBIT}};
constexpr std::array kProtocols = {Named{"kernel", RTPROT_KERNEL}, Named{"boot", RTPROT_BOOT},
                                   Named{"static", RTPROT_STATIC}};
constexpr std::array kTables = {Named{"main", RT_TABLE_MAIN}, Named{"local", RT_TABLE_LOCAL},
                                Named{"all", RT_TABLE_UNSPEC}};

const rtmsg& fixed_of(const nlmsghdr& answer) {
  return *static_cast<const rtmsg*>(mnl_nlmsg_get_payload(&answer));
}

struct RouteSpec {
  std::optional<IpPrefix> destination;  // that of `default` is none until its family is known
  std::optional<IpAddress> gateway;
  std::optional<IpAddress> source;
  std::optional<uint32_t> metric;
  std::optional<uint8_t> protocol;
  std::string_view device;
  uint8_t type = RTN_UNICAST;
  bool onlink = false;
  bool is_default = false;
};

uint8_t take_protocol(Words& words) {
  const std::string_view word = words.peek();
  if (const Named* named = find_name(kProtocols, word)) {
    words.next();
    return static_cast<uint8_t>(named->number);
  }
  return static_cast<uint8_t>(words.number(0, UINT8_MAX));
}

Status read_route(Words& words, RouteSpec& spec) {
  while (!words.done()) {
    if (words.take("via")) {
      words.take({"inet", "inet6"});
      spec.gateway = words.address();
    } else if (words.take("dev")) {
      spec.device = words.text();
    } else if (words.take("onlink")) {
      spec.onlink = true;
    } else if (words.take("src")) {
      spec.source = words.address();
    } else if (words.take({"metric", "preference", "priority"})) {
      spec.metric = static_cast<uint32_t>(words.number(0, UINT32_MAX));
    } else if (words.take({"protocol", "proto"})) {
      spec.protocol = take_protocol(words);
    } else if (spec.destination) {
      return words.unknown();
    } else if (words.take("default")) {
      spec.destination = IpPrefix{};
      spec.is_default = true;
    } else if (const Named* type = find_name(kTypes, words.peek())) {
      words.next();
      spec.type = static_cast<uint8_t>(type->number);
    } else {
      words.take("to");
      spec.destination = words.prefix();
    }
  }
  if (Status understood = words.status(); !understood) return understood;
  if (!spec.destination) return fail(EINVAL, "the destination is missing: expected PREFIX or default");
  return {};
}

// That of the destination; of `default`, that of the option, of the gateway or the source, or IPv4.
Status settle_family(const Options& options, RouteSpec& spec) {
  if (spec.is_default) {
    const auto& hint = spec.gateway ? spec.gateway : spec.source;
    const bool v6 = options.ipv6 || (!options.ipv4 && hint && !hint->is_v4());
    spec.destination = v6 ? IpPrefix{} : IpPrefix(IpAddress(Ipv4{0}), 0);
  }
  if (Status fits = check_family(options, spec.destination->address); !fits) return fits;
  for (const auto& other : {spec.gateway, spec.source})
    if (other && other->family() != spec.destination->address.family())
      return fail(EINVAL, "'{}': not of the family of {}", format_address(*other),
                  format_prefix(*spec.destination));
  return {};
}

Status parse_change(Words& words, const Options& options, Plan& plan, uint16_t type, uint16_t flags) {
  RouteSpec spec;
  if (Status understood = read_route(words, spec); !understood) return understood;
  if (Status settled = settle_family(options, spec); !settled) return settled;
  const bool unicast = spec.type == RTN_UNICAST;
  const bool adding = type == RTM_NEWROUTE;
  if (adding && unicast && !spec.gateway && spec.device.empty())
    return fail(EINVAL, "where to: 'via ADDRESS', 'dev NAME' or both");
  const uint8_t family = family_of(spec.destination->address);
  rtmsg fixed{};
  fixed.rtm_family = family;
  fixed.rtm_dst_len = spec.destination->length;
  fixed.rtm_table = RT_TABLE_MAIN;
  fixed.rtm_protocol = spec.protocol.value_or(adding ? uint8_t{RTPROT_BOOT} : uint8_t{RTPROT_UNSPEC});
  fixed.rtm_scope = RT_SCOPE_UNIVERSE;
  if (unicast && !spec.gateway && family == AF_INET) fixed.rtm_scope = RT_SCOPE_LINK;
  if (!adding) fixed.rtm_scope = RT_SCOPE_NOWHERE;
  fixed.rtm_type = adding || !unicast ? spec.type : uint8_t{RTN_UNSPEC};
  if (spec.onlink) fixed.rtm_flags = RTNH_F_ONLINK;
  plan.begin_route(type, flags, fixed);
  if (spec.destination->length > 0) put_address(plan.message, RTA_DST, spec.destination->address);
  if (spec.gateway) put_address(plan.message, RTA_GATEWAY, *spec.gateway);
  if (spec.source) put_address(plan.message, RTA_PREFSRC, *spec.source);
  if (spec.metric) plan.message.put_u32(RTA_PRIORITY, *spec.metric);
  put_device(plan.message, spec.device);
  return {};
}

Status parse_add(Words& words, const Options& options, Plan& plan) {
  return parse_change(words, options, plan, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL);
}
Status parse_append(Words& words, const Options& options, Plan& plan) {
  return parse_change(words, options, plan, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_APPEND);
}
Status parse_replace(Words& words, const Options& options, Plan& plan) {
  return parse_change(words, options, plan, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE);
}
Status parse_modify(Words& words, const Options& options, Plan& plan) {
  return parse_change(words, options, plan, RTM_NEWROUTE, NLM_F_REPLACE);
}
Status parse_delete(Words& words, const Options& options, Plan& plan) {
  return parse_change(words, options, plan, RTM_DELROUTE, 0);
}

struct Route {
  std::string destination;
  std::string gateway;
  std::string device;
  std::string source;
  std::optional<uint64_t> metric;
  rtmsg fixed{};
};

Route read_answer(const nlmsghdr& answer) {
  const Attributes attributes(answer, sizeof(rtmsg));
  Route route;
  route.fixed = fixed_of(answer);
  const IpAddress any = route.fixed.rtm_family == AF_INET6 ? IpAddress{} : IpAddress(Ipv4{0});
  const IpPrefix destination(address_of(attributes, RTA_DST).value_or(any), route.fixed.rtm_dst_len);
  route.destination = destination.length == 0                           ? "default"
                      : destination.length == destination.most_length() ? format_address(destination.address)
                                                                        : format_prefix(destination);
  if (const auto gateway = address_of(attributes, RTA_GATEWAY)) route.gateway = format_address(*gateway);
  if (const auto source = address_of(attributes, RTA_PREFSRC)) route.source = format_address(*source);
  route.device = device_name(attributes, attributes.number_or(RTA_OIF, 0));
  route.metric = attributes.number(RTA_PRIORITY);
  return route;
}

void print_route(Output& out, const Route& route, bool details) {
  if (details || (route.fixed.rtm_type != RTN_UNICAST && route.fixed.rtm_type != RTN_UNSPEC))
    out.print("{} ", name_of(kTypes, route.fixed.rtm_type));
  out.write(route.destination);
  if (!route.gateway.empty()) out.print(" via {}", route.gateway);
  if (!route.device.empty()) out.print(" dev {}", route.device);
  const uint8_t protocol = route.fixed.rtm_protocol;
  if (details || (protocol != RTPROT_BOOT && protocol != RTPROT_UNSPEC))
    out.print(" proto {}", name_of(kProtocols, protocol));
  if (details || route.fixed.rtm_scope != RT_SCOPE_UNIVERSE)
    out.print(" scope {}", name_of(kScopes, route.fixed.rtm_scope));
  if (!route.source.empty()) out.print(" src {}", route.source);
  if (route.metric) out.print(" metric {}", *route.metric);
  if ((route.fixed.rtm_flags & RTNH_F_ONLINK) != 0) out.write(" onlink");
  out.write("\n");
}

Json route_json(const Route& route) {
  Json document = Json::object();
  if (route.fixed.rtm_type != RTN_UNICAST && route.fixed.rtm_type != RTN_UNSPEC)
    document.set("type", name_of(kTypes, route.fixed.rtm_type));
  document.set("dst", route.destination);
  if (!route.gateway.empty()) document.set("gateway", route.gateway);
  if (!route.device.empty()) document.set("dev", route.device);
  document.set("protocol", name_of(kProtocols, route.fixed.rtm_protocol));
  document.set("scope", name_of(kScopes, route.fixed.rtm_scope));
  if (!route.source.empty()) document.set("prefsrc", route.source);
  if (route.metric) document.set("metric", *route.metric);
  Json flags = Json::array();
  if ((route.fixed.rtm_flags & RTNH_F_ONLINK) != 0) flags.push_back("onlink");
  document.set("flags", flags);
  return document;
}

// RT_TABLE_UNSPEC: of every table.
Result<int> show_routes(Session& session, Plan& plan, uint8_t table) {
  const Options& options = session.options();
  JsonArray array(session.out(), options.pretty);
  const Status done = session.request(plan.family, plan.message, [&](const nlmsghdr& answer) {
    if (answer.nlmsg_type != RTM_NEWROUTE) return;
    if (table != RT_TABLE_UNSPEC && fixed_of(answer).rtm_table != table) return;
    const Route route = read_answer(answer);
    if (options.json)
      array.add(route_json(route));
    else
      print_route(session.out(), route, options.details);
  });
  if (!done) return std::unexpected(done.error());
  if (options.json) array.begin();
  return kExitOk;
}

void begin_dump(Plan& plan, uint8_t family, std::string_view device) {
  rtmsg fixed{};
  fixed.rtm_family = family;
  plan.begin_route(RTM_GETROUTE, NLM_F_DUMP, fixed);
  put_device(plan.message, device);
}

uint8_t take_table(Words& words) {
  const std::string_view name = words.text();
  if (const Named* table = find_name(kTables, name)) return static_cast<uint8_t>(table->number);
  words.fail(EINVAL, "table '{}': expected main, local or all", name);
  return RT_TABLE_UNSPEC;
}

// IPv4 unless -6 says otherwise, as ip does.
Status parse_show(Words& words, const Options& options, Plan& plan) {
  std::string_view device;
  uint8_t table = RT_TABLE_MAIN;
  while (!words.done()) {
    if (words.take("dev")) {
      device = words.text();
    } else if (words.take("table")) {
      table = take_table(words);
    } else {
      return words.unknown();
    }
  }
  begin_dump(plan, options.ipv6 ? AF_INET6 : AF_INET, device);
  plan.present = [table](Session& session, Plan& self) { return show_routes(session, self, table); };
  return words.status();
}

Status parse_flush(Words& words, const Options& options, Plan& plan) {
  std::string_view device;
  if (words.take("dev")) device = words.text();
  if (!words.done()) return words.unknown();
  if (Status understood = words.status(); !understood) return understood;
  if (device.empty()) return fail(EINVAL, "'dev NAME' is missing");
  begin_dump(plan, options.family(), device);
  plan.present = [](Session& session, Plan& self) {
    return flush_listed(session, self, [](const nlmsghdr& answer, RequestMessage& deletion) {
      const rtmsg& fixed = fixed_of(answer);
      if (answer.nlmsg_type != RTM_NEWROUTE || fixed.rtm_protocol == RTPROT_KERNEL) return;
      const Attributes attributes(answer, sizeof(rtmsg));
      deletion.begin_route(RTM_DELROUTE, 0, fixed);
      for (const uint16_t attribute : {RTA_DST, RTA_GATEWAY, RTA_PRIORITY, RTA_OIF})
        if (attributes.has(attribute))
          deletion.put(attribute, attributes.bytes(attribute).data(), attributes.bytes(attribute).size());
    });
  };
  return {};
}

Status parse_get(Words& words, const Options& options, Plan& plan) {
  std::optional<IpAddress> destination;
  while (!words.done()) {
    if (destination) return words.unknown();
    words.take("to");
    destination = words.address();
  }
  if (Status understood = words.status(); !understood) return understood;
  if (!destination) return fail(EINVAL, "the address is missing: expected 'route get ADDRESS'");
  if (Status fits = check_family(options, *destination); !fits) return fits;
  rtmsg fixed{};
  fixed.rtm_family = family_of(*destination);
  fixed.rtm_dst_len = IpPrefix(*destination, 0).most_length();
  plan.begin_route(RTM_GETROUTE, 0, fixed);
  put_address(plan.message, RTA_DST, *destination);
  plan.present = [](Session& session, Plan& self) { return show_routes(session, self, RT_TABLE_UNSPEC); };
  return {};
}

constexpr std::array kCommands = {
    CommandEntry{"add", parse_add},         CommandEntry{"append", parse_append},
    CommandEntry{"replace", parse_replace}, CommandEntry{"change", parse_modify},
    CommandEntry{"delete", parse_delete},   CommandEntry{"show", parse_show},
    CommandEntry{"flush", parse_flush},     CommandEntry{"get", parse_get},
    CommandEntry{"list", parse_show, true}, CommandEntry{"lst", parse_show, true},
};

}  // namespace

Status parse_route(Words& words, const Options& options, Plan& plan) {
  return parse_in_table(kCommands, "command of route", "show", kHelp, words, options, plan);
}

}  // namespace mayfly::cli
