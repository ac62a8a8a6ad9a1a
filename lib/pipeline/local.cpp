// SPDX-License-Identifier: BSD-3-Clause
// local: packets for our own addresses. ICMP echo requests are answered in place (RFC 792, RFC 1122 3.2.2.6).
#include <rte_ip.h>

#include <algorithm>

#include "pipeline/stages.hpp"
#include "pipeline/wire.hpp"

namespace mayfly {
namespace {

constexpr uint8_t kOwnTtl = 64;

// The folded Internet checksum sum of `bytes` bytes from `from` on, which the packet has.
// rte_raw_cksum_mbuf() is wrong (DPDK 22.11) behind a segment of odd length.
uint16_t sum_packet(const rte_mbuf* mbuf, uint32_t from, uint32_t bytes) noexcept {
  for (; from >= mbuf->data_len; mbuf = mbuf->next) from -= mbuf->data_len;
  uint32_t sum = 0;
  for (uint32_t done = 0; done != bytes; mbuf = mbuf->next, from = 0) {
    const uint32_t part = std::min(mbuf->data_len - from, bytes - done);
    const uint16_t of_part = rte_raw_cksum(rte_pktmbuf_mtod_offset(mbuf, const uint8_t*, from), part);
    sum += done % 2 == 0 ? of_part : swap16(of_part);
    done += part;
  }
  sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(sum + (sum >> 16));
}

DropReason check_echo_request(const Packet& packet) noexcept {
  const auto& header = *reinterpret_cast<const Ipv4Header*>(packet.network);
  if (header.protocol != kProtocolIcmp || (swap16(header.fragment) & kFragmentMask) != 0)
    return DropReason::local_unknown;
  const uint32_t header_bytes = (header.version_words & 0xf) * 4;
  const uint32_t icmp_bytes = swap16(header.total_length) - header_bytes;
  if (icmp_bytes < kIcmpBytes) return DropReason::icmp_invalid;
  const auto before =
      static_cast<uint32_t>(packet.network - rte_pktmbuf_mtod(packet.mbuf, const uint8_t*)) + header_bytes;
  if (packet.mbuf->data_len < before + kIcmpBytes) return DropReason::truncated;
  if (sum_packet(packet.mbuf, before, icmp_bytes) != 0xffff) return DropReason::icmp_invalid;
  const auto& icmp = *reinterpret_cast<const IcmpHeader*>(packet.network + header_bytes);
  return icmp.type == kEchoRequest ? kNoDrop : DropReason::local_unknown;
}

void turn_into_reply(Packet& packet) noexcept {
  auto& header = *reinterpret_cast<Ipv4Header*>(packet.network);
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
    if (const DropReason reason = check_echo_request(packet); reason != kNoDrop) {
      drop(path, packet, reason);
      continue;
    }
    turn_into_reply(packet);
    packets.keep(packet, kept);
  }
  packets.count = kept;
}

}  // namespace mayfly
