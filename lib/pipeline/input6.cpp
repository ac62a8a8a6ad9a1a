// SPDX-License-Identifier: BSD-3-Clause
// input of IPv6: the header and its addresses (RFC 8200 section 3, RFC 4291), and what is not looked up in a
// FIB: packets to groups and to link-local addresses.
#include <rte_mbuf.h>

#include "pipeline/headers.hpp"
#include "pipeline/own.hpp"
#include "pipeline/stages.hpp"

namespace mayfly {
namespace {

constexpr Ipv6 kLoopback{0, 1};
constexpr uint64_t kLinkScopeGroup = 0xff02'0000'0000'0000ULL;
constexpr uint64_t kAllNodes = 1;
constexpr uint64_t kAllRouters = 2;

constexpr bool is_mapped(Ipv6 address) noexcept {
  return address.high == 0 && address.low >> 32 == 0xffff;
}
// Neither zero, loopback nor IPv4-mapped, all of which have nothing in their first half; nor a group.
constexpr bool is_plain(Ipv6 address) noexcept {
  return address.high != 0 && !is_multicast(address);
}

constexpr bool is_solicited_node(Ipv6 group) noexcept {
  return group.high == kLinkScopeGroup && group.low >> 24 == 0x1ff;
}
// Those that somebody here may listen to; which of the solicited-node ones are ours, nd.cpp knows.
constexpr bool is_listened_to(Ipv6 group) noexcept {
  return is_solicited_node(group) ||
         (group.high == kLinkScopeGroup && (group.low == kAllNodes || group.low == kAllRouters));
}

DropReason judge_source(Ipv6 source, Ipv6 destination) noexcept {
  if (is_multicast(source) || source == kLoopback || is_mapped(source)) return DropReason::martian_source;
  // Who has no address yet may ask whether somebody has the one it wants (RFC 4862 5.4.2).
  return source == Ipv6{} && !is_multicast(destination) ? DropReason::martian_source : kNoDrop;
}

DropReason judge_destination(const Packet& packet, Ipv6 destination) noexcept {
  if (destination == Ipv6{} || destination == kLoopback || is_mapped(destination))
    return DropReason::martian_destination;
  if (is_multicast(destination)) return is_listened_to(destination) ? kNoDrop : DropReason::multicast;
  return packet.to_group ? DropReason::multicast : kNoDrop;
}

DropReason check_ipv6(const Packet& packet) noexcept {
  rte_mbuf* const mbuf = packet.mbuf;
  const uint32_t in_first = in_segment(packet);
  if (in_first < kIpv6Bytes) return DropReason::truncated;
  const auto& header = *reinterpret_cast<const Ipv6Header*>(packet.network);
  if (packet.network[0] >> 4 != 6) return DropReason::ip_header;
  const uint32_t before = mbuf->data_len - in_first;
  const uint32_t total = kIpv6Bytes + swap16(header.payload_length);
  if (before + total > mbuf->pkt_len) return DropReason::ip_length;
  trim(mbuf, before + total);
  const Ipv6 source = load_ipv6(header.source);
  const Ipv6 destination = load_ipv6(header.destination);
  if (!is_plain(source)) [[unlikely]]
    if (const DropReason reason = judge_source(source, destination); reason != kNoDrop) return reason;
  if (!is_plain(destination) || packet.to_group) [[unlikely]]
    return judge_destination(packet, destination);
  return kNoDrop;
}

}  // namespace

void input6(Path& path, PacketVector& packets, PacketVector& local) noexcept {
  uint32_t kept = 0;
  for (Packet& packet : packets) {
    if (const DropReason reason = check_ipv6(packet); reason != kNoDrop) [[unlikely]] {
      drop(path, packet, reason);
      continue;
    }
    const Ipv6 destination = load_ipv6(packet.network + offsetof(Ipv6Header, destination));
    if (is_multicast(destination)) [[unlikely]] {
      local.append(packet);
    } else if (is_link_local(destination)) [[unlikely]] {
      if (is_own(path.interfaces, *packet.ingress, IpAddress(destination)))
        local.append(packet);
      else
        drop(path, packet, DropReason::beyond_scope);
    } else {
      packets.keep(packet, kept);
    }
  }
  packets.count = kept;
}

}  // namespace mayfly
