// SPDX-License-Identifier: BSD-3-Clause
// look_up and route: the namespace's FIB, then what a router does to a packet (RFC 1812 5.3, RFC 8200): TTL,
// checksum, MTU.
#include <rte_prefetch.h>

#include <algorithm>
#include <bit>

#include "pipeline/family.hpp"
#include "pipeline/stages.hpp"

namespace mayfly {
namespace {

// Packets of several namespaces: those of packet `first`'s that have not been looked up yet.
template <class Family>
void look_up_group(PacketVector& packets, uint32_t first, uint64_t& pending) noexcept {
  const Netns* netns = packets.packets[first].netns;
  typename Family::Address addresses[kVectorSize]{};
  const typename Family::Value* values[kVectorSize];
  uint8_t members[kVectorSize];
  unsigned count = 0;
  for (uint32_t i = first; i < packets.count; ++i) {
    if (packets.packets[i].netns != netns) continue;
    addresses[count] = Family::destination(packets.packets[i]);
    members[count++] = static_cast<uint8_t>(i);
    pending &= ~(uint64_t{1} << i);
  }
  Family::fib(*netns).lookup_bulk(addresses, values, count);
  for (unsigned i = 0; i < count; ++i) Family::set_route(packets.packets[members[i]], values[i]);
}

template <class Family>
void look_up_groups(PacketVector& packets) noexcept {
  uint64_t pending = ~uint64_t{0} >> (kVectorSize - packets.count);
  while (pending != 0)
    look_up_group<Family>(packets, static_cast<uint32_t>(std::countr_zero(pending)), pending);
}

// The packet's route leads nowhere, or to ourselves.
template <class Family>
void refuse(Path& path, const Packet& packet) noexcept {
  const auto* route = Family::route(packet);
  DropReason reason = DropReason::no_route;
  switch (route == nullptr ? RouteType::kUnspecified : route->type) {
    case RouteType::kBlackhole:
      reason = DropReason::blackhole;
      break;
    case RouteType::kUnreachable:
      report<Family>(path, packet, Family::kUnreachable);
      reason = DropReason::unreachable;
      break;
    case RouteType::kProhibit:
      report<Family>(path, packet, Family::kProhibited);
      reason = DropReason::prohibited;
      break;
    case RouteType::kBroadcast:
      reason = DropReason::multicast;
      break;
    case RouteType::kLocal:
      reason = DropReason::spoofed_source;  // an answer to one of our own addresses
      break;
    default:
      report<Family>(path, packet, Family::kNoRoute);
      break;
  }
  drop(path, packet, reason);
}

// As if the routes through it were gone, which they are when it went down by a request.
template <class Family>
void drop_down(Path& path, const Packet& packet) noexcept {
  report<Family>(path, packet, Family::kNoRoute);
  if (packet.egress->live())
    drop(path, packet.mbuf, packet.egress, Side::tx, DropReason::interface_down);
  else
    drop(path, packet.mbuf, packet.ingress, Side::rx, DropReason::interface_down);
}

// Only who could not know better is told: an IPv4 sender that allows fragments expects them.
template <class Family>
void drop_long(Path& path, const Packet& packet, uint32_t most) noexcept {
  if (Family::may_not_be_cut(packet)) report<Family>(path, packet, Family::too_big(most));
  drop(path, packet.mbuf, packet.egress, Side::tx, DropReason::mtu_exceeded);
}

// What a packet of somebody else must pass on its way. False when it ended here.
template <class Family>
bool may_pass(Path& path, const Packet& packet) noexcept {
  if (Family::ttl(packet) <= 1) [[unlikely]] {
    report<Family>(path, packet, Family::kTimeExceeded);
    drop(path, packet, DropReason::ttl_exceeded);
    return false;
  }
  if constexpr (Family::kProtocol == kProtocolIpv6)
    if (Family::is_scoped(Family::source(packet))) [[unlikely]] {
      report<Family>(path, packet, Family::kBeyondScope);
      drop(path, packet, DropReason::beyond_scope);
      return false;
    }
  return true;
}

// False when the packet ended here.
template <class Family>
bool forward(Path& path, Packet& packet) noexcept {
  const uint32_t most = sendable_bytes(path, *packet.egress);
  if (most == 0) [[unlikely]] {
    drop_down<Family>(path, packet);
    return false;
  }
  if (!packet.from_us) [[likely]]
    if (!may_pass<Family>(path, packet)) [[unlikely]]
      return false;
  if (Family::bytes(packet) > most) [[unlikely]] {
    drop_long<Family>(path, packet, most);
    return false;
  }
  if (!packet.from_us) [[likely]]
    Family::decrease_ttl(packet);
  return true;
}

// An answer to a link-local address leaves by the interface it belongs to, which its maker named.
template <class Family>
bool names_egress(const Packet& packet) noexcept {
  return packet.from_us && Family::is_scoped(Family::destination(packet));
}

}  // namespace

template <class Family>
void look_up(PacketVector& packets) noexcept {
  if (packets.count == 0) return;
  const Netns* netns = packets.packets[0].netns;
  typename Family::Address addresses[kVectorSize]{};
  const typename Family::Value* values[kVectorSize];
  bool one_netns = true;
  for (uint32_t i = 0; i < packets.count; ++i) {
    addresses[i] = Family::destination(packets.packets[i]);
    one_netns &= packets.packets[i].netns == netns;
  }
  if (!one_netns) [[unlikely]]
    return look_up_groups<Family>(packets);
  Family::fib(*netns).lookup_bulk(addresses, values, packets.count);
  for (uint32_t i = 0; i < packets.count; ++i) Family::set_route(packets.packets[i], values[i]);
}

template <class Family>
void route(Path& path, PacketVector& packets, PacketVector* local) noexcept {
  for (Packet& packet : packets) {
    if (names_egress<Family>(packet)) {
      Family::set_route(packet, nullptr);
      continue;
    }
    const auto* value = Family::route(packet);
    const uint32_t oif = value == nullptr ? kNoInterface : value->oif;
    packet.egress = &path.interface(oif);
    rte_prefetch0(packet.egress);
    rte_prefetch0(&path.statistics.interfaces[oif]);
  }
  uint32_t kept = 0;
  for (Packet& packet : packets) {
    const auto* value = Family::route(packet);
    if (value == nullptr || value->type != RouteType::kUnicast) [[unlikely]] {
      if (local != nullptr && value != nullptr && value->type == RouteType::kLocal) {
        local->append(packet);
        continue;
      }
      if (!names_egress<Family>(packet)) {
        refuse<Family>(path, packet);
        continue;
      }
    }
    if (!forward<Family>(path, packet)) [[unlikely]]
      continue;
    if (value != nullptr) [[likely]]
      Family::take_gateway(packet);
    packets.keep(packet, kept);
  }
  packets.count = kept;
}

template void look_up<V4>(PacketVector&) noexcept;
template void look_up<V6>(PacketVector&) noexcept;
template void route<V4>(Path&, PacketVector&, PacketVector*) noexcept;
template void route<V6>(Path&, PacketVector&, PacketVector*) noexcept;

}  // namespace mayfly
