// SPDX-License-Identifier: BSD-3-Clause
// ROUTE messages: add, replace, delete, dump, and `route get` through the FIB that workers use.
#include <linux/rtnetlink.h>

#include "control/family.hpp"
#include "control/handlers.hpp"
#include "control/link_request.hpp"
#include "control/protocol.hpp"
#include "fib/rib.hpp"

namespace mayfly {
namespace {

using namespace protocol;

constexpr AttributeSpec kRouteSpecs[] = {
    {RTA_DST, AttributeSpec::Type::address, "dst"},
    {RTA_GATEWAY, AttributeSpec::Type::address, "via"},
    {RTA_OIF, AttributeSpec::Type::u32, "oif"},
    {RTA_PRIORITY, AttributeSpec::Type::u32, "metric"},
    {RTA_PREFSRC, AttributeSpec::Type::address, "src"},
    {RTA_TABLE, AttributeSpec::Type::u32, "table"},
    {RTA_METRICS, AttributeSpec::Type::nested, "metrics"},
    {RTA_MULTIPATH, AttributeSpec::Type::nested, "nexthop"},
    {kAttrDevice, AttributeSpec::Type::string, "dev", kInterfaceNameBytes - 1},
};

constexpr uint32_t kDefaultMetric6 = 1024;  // the kernel's

bool needs_device(RouteType type) {
  return type == RouteType::kUnicast;
}

void write_route(Connection& connection, const Route& route, uint32_t sequence, uint16_t flags,
                 std::optional<RouteCursor::Place> place = {}) {
  MessageWriter& writer = connection.writer();
  writer.begin(RTM_NEWROUTE, flags, sequence);
  auto* fixed = writer.header<rtmsg>();
  const bool in_local_table = route.type == RouteType::kLocal || route.type == RouteType::kBroadcast;
  fixed->rtm_family = family_of(route.address);
  fixed->rtm_dst_len = route.length;
  fixed->rtm_table = in_local_table ? RT_TABLE_LOCAL : RT_TABLE_MAIN;
  fixed->rtm_protocol = route.protocol;
  fixed->rtm_scope = route.scope;
  fixed->rtm_type = static_cast<uint8_t>(route.type);
  fixed->rtm_flags = route.onlink ? RTNH_F_ONLINK : 0;
  if (route.length != 0) writer.put_address(RTA_DST, route.address);
  if (!route.gateway.none()) writer.put_address(RTA_GATEWAY, route.gateway);
  if (!route.prefsrc.none()) writer.put_address(RTA_PREFSRC, route.prefsrc);
  if (route.metric != 0) writer.put_u32(RTA_PRIORITY, route.metric);
  if (route.oif != 0) {
    writer.put_u32(RTA_OIF, route.oif);
    writer.put_string(kAttrDevice, connection.dataplane().interfaces.record(route.oif).name);
  }
  if (place) writer.put_u32(kAttrRouteNumber, place->number);
  if (place && place->behind != 0) writer.put_u32(kAttrRouteBehind, place->behind);
  writer.end();
}

class RouteDump final : public Operation {
 public:
  RouteDump(Connection& connection, const nlmsghdr& request, uint8_t family, uint32_t oif)
      : connection_(connection),
        sequence_(request.nlmsg_seq),
        family_(family),
        cursor_(connection.netns().rib),
        oif_(oif) {}

  Progress step(const Deadline& deadline) override {
    for (uint32_t steps = 1; !connection_.writer().over_high_water(); ++steps) {
      const Route* route = cursor_.current();
      if (route == nullptr) {
        connection_.writer().done(sequence_, cursor_.changed());
        return Progress::done;
      }
      if (is_wanted(family_, route->address) && (oif_ == 0 || route->oif == oif_))
        write_route(connection_, *route, sequence_, NLM_F_MULTI, cursor_.place());
      cursor_.advance();
      if (steps % 64 == 0 && deadline.over()) break;
    }
    return Progress::more;
  }

  bool ends_with_netns() const override { return true; }
  bool cancel() override { return true; }

 private:
  Connection& connection_;
  uint32_t sequence_;
  uint8_t family_;
  RouteCursor cursor_;
  uint32_t oif_;
};

Result<uint32_t> read_device(Connection& connection, const RequestAttributes& attributes) {
  if (!attributes.has(RTA_OIF) && !attributes.has(kAttrDevice)) return 0;
  return find_interface(connection.dataplane(), connection.netns(), attributes.u32(RTA_OIF).value_or(0),
                        attributes.string(kAttrDevice));
}

struct Found {
  uint32_t oif;
  RouteType type;
  IpAddress gateway;
};

// The control thread's own view of what workers see.
std::optional<Found> look_up(const Netns& netns, IpAddress destination) {
  if (destination.is_v4()) {
    const RouteValue* value = netns.fib.lookup_edit(destination.v4());
    if (value == nullptr) return std::nullopt;
    return Found{value->oif, value->type, value->gateway == 0 ? IpAddress{} : IpAddress(value->gateway)};
  }
  const RouteValue6* value = netns.fib6.lookup_edit(destination.v6());
  if (value == nullptr) return std::nullopt;
  return Found{value->oif, value->type, IpAddress(value->gateway)};
}

HandlerResult get_route(Connection& connection, const Request& request, const RequestAttributes& attributes) {
  const auto destination = attributes.address(RTA_DST);
  if (!destination) return fail(EINVAL, "dst: the address is missing");
  // No change is pending here, requests commit at their end.
  connection.dataplane().commit(connection.retired());
  const auto found = look_up(connection.netns(), *destination);
  if (!found) return fail(ENETUNREACH, "no route to {}", format_address(*destination));
  Route route;
  route.address = *destination;
  route.length = IpPrefix(*destination, 0).most_length();
  route.type = found->type;
  route.gateway = found->gateway;
  route.oif = found->oif;
  route.protocol = RTPROT_UNSPEC;
  if (found->type == RouteType::kUnicast) {
    const InterfaceTable& table = connection.dataplane().interfaces;
    route.prefsrc = source_of(table.interfaces(), table.interface(found->oif),
                              found->gateway.none() ? *destination : found->gateway);
  }
  write_route(connection, route, request.header.nlmsg_seq, 0);
  return Handled::acknowledge;
}

HandlerResult read_routes(Connection& connection, const Request& request, uint8_t family,
                          const RequestAttributes& attributes) {
  if (!request.dump()) return get_route(connection, request, attributes);
  auto oif = read_device(connection, attributes);
  if (!oif) return std::unexpected(oif.error());
  connection.start(std::make_unique<RouteDump>(connection, request.header, family, *oif));
  return Handled::operation;
}

Result<RouteMatch> read_match(Connection& connection, const rtmsg& fixed,
                              const RequestAttributes& attributes) {
  const bool v4 = fixed.rtm_family == AF_INET;
  if (const unsigned most = v4 ? 32 : 128; fixed.rtm_dst_len > most)
    return fail(EINVAL, "prefix length {}: accepted 0..{}", fixed.rtm_dst_len, most);
  const uint32_t table = attributes.u32(RTA_TABLE).value_or(fixed.rtm_table);
  if (table != RT_TABLE_UNSPEC && table != RT_TABLE_MAIN && table != RT_TABLE_LOCAL)
    return fail(EOPNOTSUPP, "table {}: accepted main, local", table);
  RouteMatch match;
  const auto read = [&](uint16_t number, const char* name, IpAddress& address) -> Status {
    auto given = read_address(attributes, number, name, fixed.rtm_family);
    if (!given) return std::unexpected(given.error());
    address = *given;
    return {};
  };
  if (auto dst = read(RTA_DST, "dst", match.address); !dst) return std::unexpected(dst.error());
  if (auto via = read(RTA_GATEWAY, "via", match.gateway); !via) return std::unexpected(via.error());
  if (auto src = read(RTA_PREFSRC, "src", match.prefsrc); !src) return std::unexpected(src.error());
  if (v4 && match.address.none()) match.address = IpAddress(Ipv4{0});
  match.length = fixed.rtm_dst_len;
  match.type = static_cast<RouteType>(fixed.rtm_type);
  match.protocol = fixed.rtm_protocol;
  match.metric = attributes.u32(RTA_PRIORITY).value_or(0);
  auto oif = read_device(connection, attributes);
  if (!oif) return std::unexpected(oif.error());
  match.oif = *oif;
  return match;
}

Status check_type(RouteType type) {
  switch (type) {
    case RouteType::kUnicast:
    case RouteType::kBlackhole:
    case RouteType::kUnreachable:
    case RouteType::kProhibit:
      return {};
    default:
      return fail(EOPNOTSUPP, "route type {}: accepted unicast, blackhole, unreachable, prohibit",
                  static_cast<unsigned>(type));
  }
}

// Sets the interface that the gateway is a neighbour on.
Status find_gateway(Connection& connection, const rtmsg& fixed, Route& route) {
  const InterfaceTable& table = connection.dataplane().interfaces;
  route.onlink = (fixed.rtm_flags & RTNH_F_ONLINK) != 0;
  if (route.onlink) {
    if (route.oif != 0) return {};
    return fail(EINVAL, "route {}: onlink needs dev", format_prefix(route.prefix()));
  }
  auto oif = connection.netns().rib.interface_of_gateway(
      route.gateway, route.oif, route.oif == 0 ? nullptr : &table.record(route.oif).routes);
  if (!oif) return std::unexpected(oif.error());
  route.oif = *oif;
  const Interface& egress = table.interface(route.oif);
  if (!route.gateway.is_v4() && is_own_address(table.interfaces(), egress, route.gateway))
    return fail_attribute(RTA_GATEWAY, EINVAL, "gateway {}: an address of dev '{}' itself",
                          format_address(route.gateway), table.record(route.oif).name);
  return {};
}

// What a route cannot have, and destinations that no route is for.
Status check_supported(const Route& route, const RequestAttributes& attributes) {
  if (attributes.has(RTA_METRICS))
    return fail_attribute(RTA_METRICS, EOPNOTSUPP, "route {}: metrics like mtu and advmss are not supported",
                          format_prefix(route.prefix()));
  if (attributes.has(RTA_MULTIPATH))
    return fail_attribute(RTA_MULTIPATH, EOPNOTSUPP, "route {}: several next hops are not supported",
                          format_prefix(route.prefix()));
  if (route.address.is_v4()) return {};
  constexpr uint8_t kLinkLocalLength = 10;
  const Ipv6 address = route.address.v6();
  if ((is_link_local(address) && route.length >= kLinkLocalLength) || is_multicast(address))
    return fail_attribute(RTA_DST, EINVAL,
                          "route {}: fe80::/10 and ff00::/8 are not routed, they belong to each interface",
                          format_prefix(route.prefix()));
  return {};
}

Result<Route> read_route(Connection& connection, const rtmsg& fixed, const RequestAttributes& attributes) {
  auto match = read_match(connection, fixed, attributes);
  if (!match) return std::unexpected(match.error());
  if (auto valid = check_type(match->type); !valid) return std::unexpected(valid.error());
  const InterfaceTable& table = connection.dataplane().interfaces;
  Route route;
  route.address = match->address;
  route.length = match->length;
  route.type = match->type;
  route.protocol = match->protocol != RTPROT_UNSPEC ? match->protocol : uint8_t{RTPROT_STATIC};
  route.scope = route.address.is_v4() ? fixed.rtm_scope : uint8_t{RT_SCOPE_UNIVERSE};
  route.metric = match->metric;
  if (route.metric == 0 && !route.address.is_v4()) route.metric = kDefaultMetric6;
  route.gateway = match->gateway;
  route.oif = match->oif;
  route.prefsrc = match->prefsrc;
  if (auto supported = check_supported(route, attributes); !supported)
    return std::unexpected(supported.error());
  if (!needs_device(route.type)) {
    if (!route.gateway.none() || route.oif != 0)
      return fail(EINVAL, "route {}: blackhole, unreachable and prohibit routes have no via and no dev",
                  format_prefix(match->prefix()));
    return route;
  }
  if (route.gateway.none() && route.oif == 0)
    return fail(EINVAL, "route {}: via or dev is missing", format_prefix(match->prefix()));
  if (route.oif != 0 && table.state(route.oif) == InterfaceState::marked)
    return fail(EBUSY, "dev '{}' is being deleted", table.record(route.oif).name);
  if (!route.gateway.none())
    if (auto found = find_gateway(connection, fixed, route); !found) return std::unexpected(found.error());
  if (!table.record(route.oif).admin_up)
    return fail(ENETDOWN, "dev '{}' is down", table.record(route.oif).name);
  return route;
}

HandlerResult add_route(Connection& connection, const Request& request, const rtmsg& fixed,
                        const RequestAttributes& attributes) {
  auto route = read_route(connection, fixed, attributes);
  if (!route) return std::unexpected(route.error());
  const RouteAdd how{.create = request.has_flags(NLM_F_CREATE),
                     .exclusive = request.has_flags(NLM_F_EXCL),
                     .replace = request.has_flags(NLM_F_REPLACE),
                     .append = request.has_flags(NLM_F_APPEND)};
  uint32_t* list = route->oif == 0 ? nullptr : &connection.dataplane().interfaces.record(route->oif).routes;
  if (auto added = connection.netns().rib.add(*route, how, list); !added)
    return std::unexpected(added.error());
  return Handled::acknowledge;
}

HandlerResult delete_route(Connection& connection, const rtmsg& fixed, const RequestAttributes& attributes) {
  auto match = read_match(connection, fixed, attributes);
  if (!match) return std::unexpected(match.error());
  const uint32_t* list =
      match->oif == 0 ? nullptr : &connection.dataplane().interfaces.record(match->oif).routes;
  if (auto removed = connection.netns().rib.remove(*match, list); !removed)
    return std::unexpected(removed.error());
  return Handled::acknowledge;
}

}  // namespace

HandlerResult handle_route(Connection& connection, const Request& request) {
  auto fixed = request.fixed<rtmsg>();
  if (!fixed) return std::unexpected(fixed.error());
  auto attributes = request.attributes<rtmsg>(kRouteSpecs);
  if (!attributes) return std::unexpected(attributes.error());
  const uint8_t family = (*fixed)->rtm_family;
  const bool reads = request.header.nlmsg_type == RTM_GETROUTE;
  if (auto known = check_family(family, reads); !known) return std::unexpected(known.error());
  switch (request.header.nlmsg_type) {
    case RTM_NEWROUTE:
      return add_route(connection, request, **fixed, *attributes);
    case RTM_DELROUTE:
      return delete_route(connection, **fixed, *attributes);
    default:
      return read_routes(connection, request, family, *attributes);
  }
}

}  // namespace mayfly
