// SPDX-License-Identifier: BSD-3-Clause
#include "control/requests.hpp"

#include <arpa/inet.h>
#include <linux/if_addr.h>
#include <linux/neighbour.h>
#include <sys/socket.h>

#include <array>

#include "base/units.hpp"

namespace mayfly {
namespace {

struct Named {
  std::string_view name;
  uint8_t number;
};
constexpr std::array kTypes = {Named{"unicast", RTN_UNICAST}, Named{"blackhole", RTN_BLACKHOLE},
                               Named{"unreachable", RTN_UNREACHABLE}, Named{"prohibit", RTN_PROHIBIT}};
constexpr std::array kProtocols = {Named{"kernel", RTPROT_KERNEL}, Named{"boot", RTPROT_BOOT},
                                   Named{"static", RTPROT_STATIC}};

uint8_t family_of(IpAddress address) noexcept {
  return address.is_v4() ? AF_INET : AF_INET6;
}

void put_address(RequestMessage& message, uint16_t attribute, IpAddress address) {
  if (address.is_v4()) return message.put_u32(attribute, htonl(address.v4()));
  uint8_t octets[sizeof(Ipv6)];
  store_ipv6(octets, address.v6());
  message.put(attribute, octets, sizeof octets);
}

void put_device(RequestMessage& message, const std::string& device) {
  if (!device.empty()) message.put_string(protocol::kAttrDevice, device);
}

void begin_address(RequestMessage& message, uint16_t type, uint16_t flags,
                   const AddressDescription& address) {
  ifaddrmsg fixed{};
  fixed.ifa_family = family_of(address.prefix.address);
  fixed.ifa_prefixlen = address.prefix.length;
  fixed.ifa_scope = RT_SCOPE_UNIVERSE;
  message.begin_route(type, flags, fixed);
  put_address(message, IFA_LOCAL, address.prefix.address);
  put_address(message, IFA_ADDRESS, address.prefix.address);
  if (address.nodad && type == RTM_NEWADDR) message.put_u32(IFA_FLAGS, IFA_F_NODAD);
  put_device(message, address.device);
}

void put_route(RequestMessage& message, const RouteDescription& route) {
  if (route.destination.length > 0) put_address(message, RTA_DST, route.destination.address);
  if (route.gateway) put_address(message, RTA_GATEWAY, *route.gateway);
  if (route.source) put_address(message, RTA_PREFSRC, *route.source);
  if (route.metric) message.put_u32(RTA_PRIORITY, *route.metric);
  put_device(message, route.device);
}

rtmsg fixed_route(const RouteDescription& route) {
  rtmsg fixed{};
  fixed.rtm_family = family_of(route.destination.address);
  fixed.rtm_dst_len = route.destination.length;
  fixed.rtm_table = RT_TABLE_MAIN;
  fixed.rtm_protocol = route.protocol;
  fixed.rtm_type = route.type;
  return fixed;
}

std::string_view name_of(std::span<const Named> names, uint8_t number) {
  for (const Named& named : names)
    if (named.number == number) return named.name;
  return {};
}

}  // namespace

void begin_address_add(RequestMessage& message, const AddressDescription& address) {
  begin_address(message, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, address);
}

void begin_address_delete(RequestMessage& message, const AddressDescription& address) {
  begin_address(message, RTM_DELADDR, 0, address);
}

void begin_route_add(RequestMessage& message, const RouteDescription& route, bool behind) {
  rtmsg fixed = fixed_route(route);
  fixed.rtm_scope =
      route.type == RTN_UNICAST && !route.gateway ? uint8_t{RT_SCOPE_LINK} : uint8_t{RT_SCOPE_UNIVERSE};
  if (route.onlink) fixed.rtm_flags = RTNH_F_ONLINK;
  const auto how = static_cast<uint16_t>(NLM_F_CREATE | (behind ? NLM_F_APPEND : NLM_F_EXCL));
  message.begin_route(RTM_NEWROUTE, how, fixed);
  put_route(message, route);
}

void begin_route_delete(RequestMessage& message, const RouteDescription& route) {
  rtmsg fixed = fixed_route(route);
  fixed.rtm_scope = RT_SCOPE_NOWHERE;
  message.begin_route(RTM_DELROUTE, 0, fixed);
  put_route(message, route);
}

void begin_neighbour_add(RequestMessage& message, const NeighbourDescription& neighbour) {
  ndmsg fixed{};
  fixed.ndm_family = family_of(neighbour.address);
  fixed.ndm_state = NUD_PERMANENT;
  fixed.ndm_flags = neighbour.router ? NTF_ROUTER : 0;
  message.begin_route(RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, fixed);
  put_address(message, NDA_DST, neighbour.address);
  uint8_t octets[6];
  store_mac(octets, neighbour.mac);
  message.put(NDA_LLADDR, octets, sizeof octets);
  put_device(message, neighbour.device);
}

void begin_neighbour_delete(RequestMessage& message, const NeighbourDescription& neighbour) {
  ndmsg fixed{};
  fixed.ndm_family = family_of(neighbour.address);
  message.begin_route(RTM_DELNEIGH, 0, fixed);
  put_address(message, NDA_DST, neighbour.address);
  put_device(message, neighbour.device);
}

void begin_netns(RequestMessage& message, protocol::Command command, const std::string& name) {
  message.begin_generic(command);
  message.put_string(protocol::kNetnsName, name);
}

std::string words_of(const AddressDescription& address) {
  return fmt::format("{} dev {}{}", format_prefix(address.prefix), address.device,
                     address.nodad ? " nodad" : "");
}

std::string words_of(const RouteDescription& route) {
  std::string words;
  if (route.type != RTN_UNICAST) words = route_type_name(route.type) + " ";
  words += destination_name(route.destination);
  // "default" alone does not say of which family.
  if (route.destination.length == 0 && !route.destination.is_v4() && !route.gateway) words += " (IPv6)";
  if (route.gateway) words += fmt::format(" via {}", format_address(*route.gateway));
  if (!route.device.empty()) words += fmt::format(" dev {}", route.device);
  if (route.onlink) words += " onlink";
  if (route.source) words += fmt::format(" src {}", format_address(*route.source));
  if (route.metric) words += fmt::format(" metric {}", *route.metric);
  if (route.protocol != RTPROT_STATIC) words += fmt::format(" proto {}", route_protocol_name(route.protocol));
  return words;
}

std::string words_of(const NeighbourDescription& neighbour) {
  return fmt::format("{} lladdr {} dev {}{}", format_address(neighbour.address), format_mac(neighbour.mac),
                     neighbour.device, neighbour.router ? " router" : "");
}

std::optional<uint8_t> find_route_type(std::string_view name) {
  for (const Named& named : kTypes)
    if (named.name == name) return named.number;
  return std::nullopt;
}

std::string route_type_name(uint8_t type) {
  return std::string(name_of(kTypes, type));
}

Result<uint8_t> parse_route_protocol(std::string_view text) {
  for (const Named& named : kProtocols)
    if (named.name == text && named.number != RTPROT_KERNEL) return named.number;
  // All but 0, which is none, and the kernel's.
  auto number = parse_number("protocol", text, RTPROT_REDIRECT, UINT8_MAX);
  if (!number || *number == RTPROT_KERNEL)
    return fail(EINVAL, "protocol '{}': expected boot, static, {} or {}..{}", text, RTPROT_REDIRECT,
                RTPROT_KERNEL + 1, UINT8_MAX);
  return static_cast<uint8_t>(*number);
}

std::string route_protocol_name(uint8_t protocol) {
  const std::string_view name = name_of(kProtocols, protocol);
  return name.empty() ? fmt::format("{}", protocol) : std::string(name);
}

std::string destination_name(const IpPrefix& destination) {
  if (destination.length == 0) return "default";
  return destination.length == destination.most_length() ? format_address(destination.address)
                                                         : format_prefix(destination);
}

}  // namespace mayfly
