// SPDX-License-Identifier: BSD-3-Clause
// ROUTE messages: add, replace, delete, dump, and `route get` through the FIB that workers use.
#include <arpa/inet.h>
#include <linux/rtnetlink.h>

#include "control/handlers.hpp"
#include "control/link_request.hpp"
#include "control/protocol.hpp"
#include "fib/rib.hpp"

namespace mayfly {
namespace {

using namespace protocol;

constexpr AttributeSpec kRouteSpecs[] = {
    {RTA_DST, AttributeSpec::Type::u32, "dst"},
    {RTA_GATEWAY, AttributeSpec::Type::u32, "via"},
    {RTA_OIF, AttributeSpec::Type::u32, "oif"},
    {RTA_PRIORITY, AttributeSpec::Type::u32, "metric"},
    {RTA_PREFSRC, AttributeSpec::Type::u32, "src"},
    {RTA_TABLE, AttributeSpec::Type::u32, "table"},
    {kAttrDevice, AttributeSpec::Type::string, "dev", kInterfaceNameBytes - 1},
};

bool needs_device(RouteType type) {
  return type == RouteType::kUnicast;
}

void write_route(Connection& connection, const Route& route, uint32_t sequence, uint16_t flags) {
  MessageWriter& writer = connection.writer();
  writer.begin(RTM_NEWROUTE, flags, sequence);
  auto* fixed = writer.header<rtmsg>();
  const bool in_local_table = route.type == RouteType::kLocal || route.type == RouteType::kBroadcast;
  fixed->rtm_family = AF_INET;
  fixed->rtm_dst_len = route.length;
  fixed->rtm_table = in_local_table ? RT_TABLE_LOCAL : RT_TABLE_MAIN;
  fixed->rtm_protocol = route.protocol;
  fixed->rtm_scope = route.scope;
  fixed->rtm_type = static_cast<uint8_t>(route.type);
  if (route.length != 0) writer.put_u32(RTA_DST, htonl(route.address));
  if (route.gateway != 0) writer.put_u32(RTA_GATEWAY, htonl(route.gateway));
  if (route.prefsrc != 0) writer.put_u32(RTA_PREFSRC, htonl(route.prefsrc));
  if (route.metric != 0) writer.put_u32(RTA_PRIORITY, route.metric);
  if (route.oif != 0) {
    writer.put_u32(RTA_OIF, route.oif);
    writer.put_string(kAttrDevice, connection.dataplane().interfaces.record(route.oif).name);
  }
  writer.end();
}

class RouteDump final : public Operation {
 public:
  RouteDump(Connection& connection, const nlmsghdr& request, uint32_t oif)
      : connection_(connection), sequence_(request.nlmsg_seq), cursor_(connection.netns().rib), oif_(oif) {}

  Progress step(const Deadline& deadline) override {
    for (uint32_t steps = 1; !connection_.writer().over_high_water(); ++steps) {
      const Route* route = cursor_.current();
      if (route == nullptr) {
        connection_.writer().done(sequence_, cursor_.changed());
        return Progress::done;
      }
      if (oif_ == 0 || route->oif == oif_) write_route(connection_, *route, sequence_, NLM_F_MULTI);
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
  RouteCursor cursor_;
  uint32_t oif_;
};

Result<uint32_t> read_device(Connection& connection, const RequestAttributes& attributes) {
  if (!attributes.has(RTA_OIF) && !attributes.has(kAttrDevice)) return 0;
  return find_interface(connection.dataplane(), connection.netns(), attributes.u32(RTA_OIF).value_or(0),
                        attributes.string(kAttrDevice));
}

HandlerResult get_route(Connection& connection, const Request& request, const RequestAttributes& attributes) {
  const auto address = attributes.u32(RTA_DST);
  if (!address) return fail(EINVAL, "dst: the address is missing");
  const Ipv4 destination = ntohl(*address);
  // The control thread's own view of what workers see: no change is pending here, requests commit at their
  // end.
  connection.dataplane().commit(connection.retired());
  const RouteValue* value = connection.netns().fib.lookup_edit(destination);
  if (value == nullptr) return fail(ENETUNREACH, "no route to {}", format_ipv4(destination));
  Route route;
  route.address = destination;
  route.length = 32;
  route.type = value->type;
  route.gateway = value->gateway;
  route.oif = value->oif;
  route.protocol = RTPROT_UNSPEC;
  if (value->type == RouteType::kUnicast) {
    const Interface& egress = connection.dataplane().interfaces.interface(value->oif);
    if (const AddressList* list = egress.addresses.own(); list != nullptr)
      route.prefsrc = list->source_for(value->gateway != 0 ? value->gateway : destination);
  }
  write_route(connection, route, request.header.nlmsg_seq, 0);
  return Handled::acknowledge;
}

HandlerResult read_routes(Connection& connection, const Request& request,
                          const RequestAttributes& attributes) {
  if (!request.dump()) return get_route(connection, request, attributes);
  auto oif = read_device(connection, attributes);
  if (!oif) return std::unexpected(oif.error());
  connection.start(std::make_unique<RouteDump>(connection, request.header, *oif));
  return Handled::operation;
}

Result<RouteMatch> read_match(Connection& connection, const rtmsg& fixed,
                              const RequestAttributes& attributes) {
  if (fixed.rtm_dst_len > 32) return fail(EINVAL, "prefix length {}: accepted 0..32", fixed.rtm_dst_len);
  const uint32_t table = attributes.u32(RTA_TABLE).value_or(fixed.rtm_table);
  if (table != RT_TABLE_UNSPEC && table != RT_TABLE_MAIN && table != RT_TABLE_LOCAL)
    return fail(EOPNOTSUPP, "table {}: accepted main, local", table);
  RouteMatch match;
  match.address = ntohl(attributes.u32(RTA_DST).value_or(0));
  match.length = fixed.rtm_dst_len;
  match.type = static_cast<RouteType>(fixed.rtm_type);
  match.protocol = fixed.rtm_protocol;
  match.metric = attributes.u32(RTA_PRIORITY).value_or(0);
  match.gateway = ntohl(attributes.u32(RTA_GATEWAY).value_or(0));
  match.prefsrc = ntohl(attributes.u32(RTA_PREFSRC).value_or(0));
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
  route.scope = fixed.rtm_scope;
  route.metric = match->metric;
  route.gateway = match->gateway;
  route.oif = match->oif;
  route.prefsrc = match->prefsrc;
  if (!needs_device(route.type)) {
    if (route.gateway != 0 || route.oif != 0)
      return fail(EINVAL, "route {}: blackhole, unreachable and prohibit routes have no via and no dev",
                  format_prefix(match->prefix()));
    return route;
  }
  if (route.gateway == 0 && route.oif == 0)
    return fail(EINVAL, "route {}: via or dev is missing", format_prefix(match->prefix()));
  if (route.oif != 0 && table.state(route.oif) == InterfaceState::marked)
    return fail(EBUSY, "dev '{}' is being deleted", table.record(route.oif).name);
  if (route.gateway != 0 && (fixed.rtm_flags & RTNH_F_ONLINK) == 0) {
    auto oif = connection.netns().rib.interface_of_gateway(
        route.gateway, route.oif, route.oif == 0 ? nullptr : &table.record(route.oif).routes);
    if (!oif) return std::unexpected(oif.error());
    route.oif = *oif;
  } else if (route.gateway != 0 && route.oif == 0) {
    return fail(EINVAL, "route {}: onlink needs dev", format_prefix(match->prefix()));
  }
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
  if (family != AF_INET && !(request.header.nlmsg_type == RTM_GETROUTE && family == AF_UNSPEC))
    return fail(EAFNOSUPPORT, "address family {}: accepted {} (IPv4)", family, AF_INET);
  switch (request.header.nlmsg_type) {
    case RTM_NEWROUTE:
      return add_route(connection, request, **fixed, *attributes);
    case RTM_DELROUTE:
      return delete_route(connection, **fixed, *attributes);
    default:
      return read_routes(connection, request, *attributes);
  }
}

}  // namespace mayfly
