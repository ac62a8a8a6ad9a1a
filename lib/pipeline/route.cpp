// SPDX-License-Identifier: BSD-3-Clause
// look_up and route: the namespace's FIB, then what a router does to a packet (RFC 1812 5.3): TTL, checksum,
// MTU.
#include <rte_prefetch.h>

#include <bit>

#include "netns/netns.hpp"
#include "pipeline/stages.hpp"
#include "pipeline/wire.hpp"

namespace mayfly {
namespace {

// Packets of several namespaces: those of packet `first`'s that have not been looked up yet.
void look_up_group(PacketVector& packets, uint32_t first, uint64_t& pending) noexcept {
  const Netns* netns = packets.packets[first].netns;
  Ipv4 addresses[kVectorSize]{};
  const RouteValue* values[kVectorSize];
  uint8_t members[kVectorSize];
  unsigned count = 0;
  for (uint32_t i = first; i < packets.count; ++i) {
    if (packets.packets[i].netns != netns) continue;
    addresses[count] = packets.packets[i].address;
    members[count++] = static_cast<uint8_t>(i);
    pending &= ~(uint64_t{1} << i);
  }
  netns->fib.lookup_bulk(addresses, values, count);
  for (unsigned i = 0; i < count; ++i) packets.packets[members[i]].route = values[i];
}

void look_up_groups(PacketVector& packets) noexcept {
  uint64_t pending = ~uint64_t{0} >> (kVectorSize - packets.count);
  while (pending != 0) look_up_group(packets, static_cast<uint32_t>(std::countr_zero(pending)), pending);
}

DropReason reason_of(const RouteValue* route) noexcept {
  if (route == nullptr) return DropReason::no_route;
  switch (route->type) {
    case RouteType::kBlackhole:
      return DropReason::blackhole;
    case RouteType::kUnreachable:
      return DropReason::unreachable;
    case RouteType::kProhibit:
      return DropReason::prohibited;
    case RouteType::kBroadcast:
      return DropReason::multicast;
    case RouteType::kLocal:
      return DropReason::martian_source;  // an answer to one of our own addresses
    default:
      return DropReason::no_route;
  }
}

void drop_down(Path& path, const Packet& packet) noexcept {
  if (packet.egress->live())
    drop(path, packet.mbuf, packet.egress, Side::tx, DropReason::interface_down);
  else
    drop(path, packet.mbuf, packet.ingress, Side::rx, DropReason::interface_down);
}

void decrease_ttl(Ipv4Header& header) noexcept {
  --header.ttl;
  header.checksum = checksum_after_decrease(header.checksum, swap16(0x0100));
}

// False when the packet ended here.
bool forward(Path& path, Packet& packet) noexcept {
  const uint32_t most = sendable_bytes(path, *packet.egress);
  if (most == 0) [[unlikely]] {
    drop_down(path, packet);
    return false;
  }
  auto& header = *reinterpret_cast<Ipv4Header*>(packet.network);
  if (!packet.from_us) [[likely]] {
    if (header.ttl <= 1) [[unlikely]] {
      drop(path, packet, DropReason::ttl_exceeded);
      return false;
    }
    decrease_ttl(header);
  }
  if (swap16(header.total_length) > most) [[unlikely]] {
    drop(path, packet.mbuf, packet.egress, Side::tx, DropReason::mtu_exceeded);
    return false;
  }
  if (packet.route->gateway != 0) packet.address = packet.route->gateway;
  return true;
}

}  // namespace

void look_up(PacketVector& packets) noexcept {
  if (packets.count == 0) return;
  const Netns* netns = packets.packets[0].netns;
  Ipv4 addresses[kVectorSize]{};
  const RouteValue* values[kVectorSize];
  bool one_netns = true;
  for (uint32_t i = 0; i < packets.count; ++i) {
    addresses[i] = packets.packets[i].address;
    one_netns &= packets.packets[i].netns == netns;
  }
  if (!one_netns) [[unlikely]]
    return look_up_groups(packets);
  netns->fib.lookup_bulk(addresses, values, packets.count);
  for (uint32_t i = 0; i < packets.count; ++i) packets.packets[i].route = values[i];
}

void route(Path& path, PacketVector& packets, PacketVector* local) noexcept {
  for (Packet& packet : packets) {
    const uint32_t oif = packet.route == nullptr ? kNoInterface : packet.route->oif;
    packet.egress = &path.interface(oif);
    rte_prefetch0(packet.egress);
    rte_prefetch0(&path.statistics.interfaces[oif]);
  }
  uint32_t kept = 0;
  for (Packet& packet : packets) {
    if (packet.route == nullptr || packet.route->type != RouteType::kUnicast) [[unlikely]] {
      if (local != nullptr && packet.route != nullptr && packet.route->type == RouteType::kLocal)
        local->append(packet);
      else
        drop(path, packet, reason_of(packet.route));
      continue;
    }
    if (forward(path, packet)) [[likely]]
      packets.keep(packet, kept);
  }
  packets.count = kept;
}

}  // namespace mayfly
