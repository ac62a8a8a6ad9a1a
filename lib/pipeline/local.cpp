// SPDX-License-Identifier: BSD-3-Clause
// local: IPv4 packets for our own addresses. ICMP echo requests are answered in place (RFC 792, RFC 1122
// 3.2.2.6). There are no sockets here: UDP and TCP are told that the port is unreachable - a TCP of ours
// would send a reset, and a connecting client takes this for the same - and everything else that the protocol
// is.
#include "pipeline/family.hpp"
#include "pipeline/headers.hpp"
#include "pipeline/stages.hpp"

namespace mayfly {
namespace {

DropReason check_echo_request(Path& path, const Packet& packet) noexcept {
  const auto& header = V4::header(packet);
  // Nothing is put together here, so whom a fragment belongs to is not known.
  if ((swap16(header.fragment) & kFragmentMask) != 0) return DropReason::local_unknown;
  if (header.protocol != kProtocolIcmp) {
    const bool has_ports = header.protocol == kProtocolUdp || header.protocol == kProtocolTcp;
    report<V4>(path, packet, has_ports ? V4::kPortUnreachable : V4::kUnknownProtocol,
               IpAddress(packet.address));
    return DropReason::local_unknown;
  }
  const uint32_t header_bytes = (header.version_words & 0xf) * 4u;
  const uint32_t icmp_bytes = swap16(header.total_length) - header_bytes;
  if (icmp_bytes < kIcmpBytes) return DropReason::icmp_invalid;
  if (in_segment(packet) < header_bytes + kIcmpBytes) return DropReason::truncated;
  const uint32_t before = packet.mbuf->data_len - in_segment(packet) + header_bytes;
  if (sum_packet(packet.mbuf, before, icmp_bytes) != 0xffff) return DropReason::icmp_invalid;
  const auto& icmp = *reinterpret_cast<const IcmpHeader*>(packet.network + header_bytes);
  return icmp.type == kEchoRequest ? kNoDrop : DropReason::local_unknown;
}

void turn_into_reply(Packet& packet) noexcept {
  auto& header = V4::header(packet);
  const uint32_t words = header.version_words & 0xf;
  auto& icmp = *reinterpret_cast<IcmpHeader*>(packet.network + words * 4);
  icmp.type = kEchoReply;
  icmp.checksum = checksum_after_decrease(icmp.checksum, swap16(kEchoRequest << 8));
  const uint32_t asker = header.source;
  header.source = header.destination;
  header.destination = asker;
  header.ttl = kOwnTtl;
  header.checksum = 0;
  header.checksum = static_cast<uint16_t>(~sum_header(packet.network, words));
  packet.address = swap32(asker);
  packet.from_us = true;
}

}  // namespace

void local(Path& path, PacketVector& packets) noexcept {
  uint32_t kept = 0;
  for (Packet& packet : packets) {
    if (const DropReason reason = check_echo_request(path, packet); reason != kNoDrop) {
      drop(path, packet, reason);
      continue;
    }
    turn_into_reply(packet);
    packets.keep(packet, kept);
  }
  packets.count = kept;
}

}  // namespace mayfly
