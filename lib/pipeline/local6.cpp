// SPDX-License-Identifier: BSD-3-Clause
// local6: IPv6 packets for our own addresses and for groups we listen to. ICMPv6 echo requests are answered
// in place (RFC 4443 section 4), neighbour discovery is heard (nd.cpp), everything else is refused as in
// local.cpp: UDP and TCP by "port unreachable", other protocols by "unknown next header".
//
// Multicast listener discovery is not spoken: the groups here are those of neighbour discovery, which RFC
// 4861 section 7.2.1 lets work without, and the port takes all groups.
#include "iface/own_addresses.hpp"
#include "pipeline/family.hpp"
#include "pipeline/headers.hpp"
#include "pipeline/stages.hpp"

namespace mayfly {
namespace {

constexpr bool is_neighbour_discovery(uint8_t type) noexcept {
  return type >= kRouterSolicitation && type <= kRedirect;
}

// All nodes and all routers: who asks a solicited-node group means one station.
bool is_to_everyone(Ipv6 group) noexcept {
  return is_multicast(group) && group.low <= 0xffff;
}

DropReason refuse(Path& path, const Packet& packet, const UpperHeader& upper) noexcept {
  const Ipv6 destination = V6::destination(packet);
  if (is_multicast(destination)) return DropReason::multicast;
  const IpAddress from(destination);
  if (upper.has_source_route)
    report<V6>(path, packet, V6::bad_header(upper.named_at), from);
  else if (upper.protocol == kProtocolUdp || upper.protocol == kProtocolTcp)
    report<V6>(path, packet, V6::kPortUnreachable, from);
  else if (upper.protocol != kProtocolNone)
    report<V6>(path, packet, V6::unknown_next_header(upper.named_at), from);
  return DropReason::local_unknown;
}

DropReason check_icmpv6(const Packet& packet, const UpperHeader& upper) noexcept {
  const uint32_t total = V6::bytes(packet);
  if (total < upper.offset + kIcmpBytes) return DropReason::icmp_invalid;
  if (in_segment(packet) < upper.offset + kIcmpBytes) return DropReason::truncated;
  const uint32_t bytes = total - upper.offset;
  const uint32_t before = packet.mbuf->data_len - in_segment(packet) + upper.offset;
  const uint32_t sum =
      sum_pseudo_header(V6::header(packet), bytes, kProtocolIcmpv6) + sum_packet(packet.mbuf, before, bytes);
  return fold_sum(sum) == 0xffff ? kNoDrop : DropReason::icmp_invalid;
}

// False when there is no address to answer from.
bool turn_into_reply(Path& path, Packet& packet, uint32_t offset) noexcept {
  auto& header = V6::header(packet);
  auto& icmp = *reinterpret_cast<IcmpHeader*>(packet.network + offset);
  const Ipv6 asker = V6::source(packet);
  const Ipv6 asked = V6::destination(packet);
  icmp.type = kEchoReply6;
  icmp.checksum = checksum_after_increase(icmp.checksum, swap16((kEchoReply6 - kEchoRequest6) << 8));
  store_ipv6(header.destination, asker);
  if (is_multicast(asked)) {
    const IpAddress own = source_of(path.interfaces, *packet.ingress, IpAddress(asker));
    if (own.none()) return false;
    store_ipv6(header.source, own.v6());
    icmp.checksum = 0;
    const uint32_t bytes = V6::bytes(packet) - offset;
    const uint32_t before = packet.mbuf->data_len - in_segment(packet) + offset;
    icmp.checksum = static_cast<uint16_t>(~fold_sum(sum_pseudo_header(header, bytes, kProtocolIcmpv6) +
                                                    sum_packet(packet.mbuf, before, bytes)));
  } else {
    store_ipv6(header.source, asked);
  }
  header.hop_limit = kOwnTtl;
  packet.from_us = true;
  packet.to_group = false;
  packet.egress = packet.ingress;  // when the asker is link-local; otherwise route finds another
  return true;
}

// kNoDrop: the packet is a reply now.
DropReason answer_echo(Path& path, Packet& packet, uint32_t offset) noexcept {
  const Ipv6 destination = V6::destination(packet);
  if (is_multicast(destination) && !is_to_everyone(destination)) return DropReason::multicast;
  if (V6::source(packet) == Ipv6{}) return DropReason::martian_source;
  return turn_into_reply(path, packet, offset) ? kNoDrop : DropReason::neighbour_no_source;
}

// True when the packet stays in the vector, as an answer.
bool handle(Path& path, Packet& packet, PacketVector& answers) noexcept {
  const UpperHeader upper = find_upper_header(packet);
  DropReason reason = DropReason::local_unknown;
  if (!upper.is_complete) {
    reason = DropReason::truncated;
  } else if (!upper.is_fragment && upper.protocol != kProtocolIcmpv6) {
    reason = refuse(path, packet, upper);
  } else if (!upper.is_fragment) {
    reason = check_icmpv6(packet, upper);
    const uint8_t type = reason == kNoDrop ? packet.network[upper.offset] : 0;
    if (is_neighbour_discovery(type) && !upper.has_fragment_header) {
      input_nd(path, packet, upper.offset, answers);
      return false;
    }
    // Switches that inspect neighbour discovery do not look behind a fragment header (RFC 6980 section 5).
    if (is_neighbour_discovery(type))
      reason = DropReason::nd_invalid;
    else if (type == kEchoRequest6)
      reason = answer_echo(path, packet, upper.offset);
    else if (reason == kNoDrop)
      reason = is_multicast(V6::destination(packet)) ? DropReason::multicast : DropReason::local_unknown;
  }
  if (reason == kNoDrop) return true;
  drop(path, packet, reason);
  return false;
}

}  // namespace

void local6(Path& path, PacketVector& packets, PacketVector& answers) noexcept {
  uint32_t kept = 0;
  for (Packet& packet : packets)
    if (handle(path, packet, answers)) packets.keep(packet, kept);
  packets.count = kept;
}

}  // namespace mayfly
