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

struct Named {
  std::string_view name;
  uint8_t number;
};

constexpr std::array kTypes = {Named{"unicast", RTN_UNICAST},         Named{"local", RTN_LOCAL},
                               Named{"broadcast", RTN_BROADCAST},     Named{"blackhole", RTN_BLACKHOLE},
                               Named{"unreachable", RTN_UNREACHABLE}, Named{"prohibit", RTN_PROHIBIT}};
constexpr std::array kProtocols = {Named{"kernel", RTPROT_KERNEL}, Named{"boot", RTPROT_BOOT},
                                   Named{"static", RTPROT_STATIC}};
constexpr std::array kTables = {Named{"main", RT_TABLE_MAIN}, Named{"local", RT_TABLE_LOCAL},
                                Named{"all", RT_TABLE_UNSPEC}};
constexpr std::array kScopes = {Named{"global", RT_SCOPE_UNIVERSE}, Named{"link", RT_SCOPE_LINK},
                                Named{"host", RT_SCOPE_HOST}};

std::string name_of(std::span<const Named> names, uint8_t number) {
  for (const Named& entry : names)
    if (entry.number == number) return std::string(entry.name);
  return fmt::format("{}", number);
}

const Named* find_name(std::span<const Named> names, std::string_view word) {
  for (const Named& entry : names)
    if (entry.name == word) return &entry;
  return nullptr;
}

const rtmsg& fixed_of(const nlmsghdr& answer) {
  return *static_cast<const rtmsg*>(mnl_nlmsg_get_payload(&answer));
}

struct RouteSpec {
  std::optional<Ipv4Prefix> destination;
  std::optional<Ipv4> gateway;
  std::optional<Ipv4> source;
  std::optional<uint32_t> metric;
  std::optional<uint8_t> protocol;
  std::string_view device;
  uint8_t type = RTN_UNICAST;
  bool onlink = false;
};

uint8_t take_protocol(Words& words) {
  const std::string_view word = words.peek();
  if (const Named* named = find_name(kProtocols, word)) {
    words.next();
    return named->number;
  }
  return static_cast<uint8_t>(words.number(0, UINT8_MAX));
}

Status read_route(Words& words, RouteSpec& spec) {
  while (!words.done()) {
    if (words.take("via")) {
      words.take("inet");
      spec.gateway = words.ipv4();
    } else if (words.take("dev")) {
      spec.device = words.text();
    } else if (words.take("onlink")) {
      spec.onlink = true;
    } else if (words.take("src")) {
      spec.source = words.ipv4();
    } else if (words.take({"metric", "preference", "priority"})) {
      spec.metric = static_cast<uint32_t>(words.number(0, UINT32_MAX));
    } else if (words.take({"protocol", "proto"})) {
      spec.protocol = take_protocol(words);
    } else if (spec.destination) {
      return words.unknown();
    } else if (words.take("default")) {
      spec.destination = Ipv4Prefix{0, 0};
    } else if (const Named* type = find_name(kTypes, words.peek())) {
      words.next();
      spec.type = type->number;
    } else {
      words.take("to");
      spec.destination = words.prefix();
    }
  }
  if (Status understood = words.status(); !understood) return understood;
  if (!spec.destination) return fail(EINVAL, "the destination is missing: expected PREFIX or default");
  return {};
}

Status parse_change(Words& words, Plan& plan, uint16_t type, uint16_t flags) {
  RouteSpec spec;
  if (Status understood = read_route(words, spec); !understood) return understood;
  const bool unicast = spec.type == RTN_UNICAST;
  const bool adding = type == RTM_NEWROUTE;
  if (adding && unicast && !spec.gateway && spec.device.empty())
    return fail(EINVAL, "where to: 'via ADDRESS', 'dev NAME' or both");
  rtmsg fixed{};
  fixed.rtm_family = AF_INET;
  fixed.rtm_dst_len = spec.destination->length;
  fixed.rtm_table = RT_TABLE_MAIN;
  fixed.rtm_protocol = spec.protocol.value_or(adding ? uint8_t{RTPROT_BOOT} : uint8_t{RTPROT_UNSPEC});
  fixed.rtm_scope = RT_SCOPE_UNIVERSE;
  if (unicast && !spec.gateway) fixed.rtm_scope = RT_SCOPE_LINK;
  if (!adding) fixed.rtm_scope = RT_SCOPE_NOWHERE;
  fixed.rtm_type = adding || !unicast ? spec.type : uint8_t{RTN_UNSPEC};
  if (spec.onlink) fixed.rtm_flags = RTNH_F_ONLINK;
  plan.begin_route(type, flags, fixed);
  if (spec.destination->length > 0) put_ipv4(plan.message, RTA_DST, spec.destination->address);
  if (spec.gateway) put_ipv4(plan.message, RTA_GATEWAY, *spec.gateway);
  if (spec.source) put_ipv4(plan.message, RTA_PREFSRC, *spec.source);
  if (spec.metric) plan.message.put_u32(RTA_PRIORITY, *spec.metric);
  put_device(plan.message, spec.device);
  return {};
}

Status parse_add(Words& words, const Options&, Plan& plan) {
  return parse_change(words, plan, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL);
}
Status parse_append(Words& words, const Options&, Plan& plan) {
  return parse_change(words, plan, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_APPEND);
}
Status parse_replace(Words& words, const Options&, Plan& plan) {
  return parse_change(words, plan, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE);
}
Status parse_modify(Words& words, const Options&, Plan& plan) {
  return parse_change(words, plan, RTM_NEWROUTE, NLM_F_REPLACE);
}
Status parse_delete(Words& words, const Options&, Plan& plan) {
  return parse_change(words, plan, RTM_DELROUTE, 0);
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
  const Ipv4Prefix destination{ipv4_of(attributes, RTA_DST).value_or(0), route.fixed.rtm_dst_len};
  route.destination = destination.length == 0    ? "default"
                      : destination.length == 32 ? format_ipv4(destination.address)
                                                 : format_prefix(destination);
  if (const auto gateway = ipv4_of(attributes, RTA_GATEWAY)) route.gateway = format_ipv4(*gateway);
  if (const auto source = ipv4_of(attributes, RTA_PREFSRC)) route.source = format_ipv4(*source);
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
  out.write("\n");
}

Json route_json(const Route& route) {
  Json document = Json::object();
  if (route.fixed.rtm_type != RTN_UNICAST && route.fixed.rtm_type != RTN_UNSPEC)
    document["type"] = name_of(kTypes, route.fixed.rtm_type);
  document["dst"] = route.destination;
  if (!route.gateway.empty()) document["gateway"] = route.gateway;
  if (!route.device.empty()) document["dev"] = route.device;
  document["protocol"] = name_of(kProtocols, route.fixed.rtm_protocol);
  document["scope"] = name_of(kScopes, route.fixed.rtm_scope);
  if (!route.source.empty()) document["prefsrc"] = route.source;
  if (route.metric) document["metric"] = *route.metric;
  document["flags"] = Json::array();
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

void begin_dump(Plan& plan, std::string_view device) {
  rtmsg fixed{};
  fixed.rtm_family = AF_INET;
  plan.begin_route(RTM_GETROUTE, NLM_F_DUMP, fixed);
  put_device(plan.message, device);
}

uint8_t take_table(Words& words) {
  const std::string_view name = words.text();
  if (const Named* table = find_name(kTables, name)) return table->number;
  words.fail(EINVAL, "table '{}': expected main, local or all", name);
  return RT_TABLE_UNSPEC;
}

Status parse_show(Words& words, const Options&, Plan& plan) {
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
  begin_dump(plan, device);
  plan.present = [table](Session& session, Plan& self) { return show_routes(session, self, table); };
  return words.status();
}

Status parse_flush(Words& words, const Options&, Plan& plan) {
  std::string_view device;
  if (words.take("dev")) device = words.text();
  if (!words.done()) return words.unknown();
  if (Status understood = words.status(); !understood) return understood;
  if (device.empty()) return fail(EINVAL, "'dev NAME' is missing");
  begin_dump(plan, device);
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

Status parse_get(Words& words, const Options&, Plan& plan) {
  std::optional<Ipv4> destination;
  while (!words.done()) {
    if (destination) return words.unknown();
    words.take("to");
    destination = words.ipv4();
  }
  if (Status understood = words.status(); !understood) return understood;
  if (!destination) return fail(EINVAL, "the address is missing: expected 'route get ADDRESS'");
  rtmsg fixed{};
  fixed.rtm_family = AF_INET;
  fixed.rtm_dst_len = 32;
  plan.begin_route(RTM_GETROUTE, 0, fixed);
  put_ipv4(plan.message, RTA_DST, *destination);
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
