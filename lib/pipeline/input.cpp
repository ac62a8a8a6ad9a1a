// SPDX-License-Identifier: BSD-3-Clause
// input: the families part here, ARP leaves; IPv4 headers are checked as RFC 1812 5.2.2 asks.
#include <rte_mbuf.h>

#include "pipeline/stages.hpp"
#include "pipeline/wire.hpp"

namespace mayfly {
namespace {

constexpr uint32_t kPlainVersionWords = 0x45;
constexpr Ipv4 kLimitedBroadcast = 0xffff'ffff;

constexpr bool is_zero_network(Ipv4 address) noexcept {
  return address >> 24 == 0;
}
constexpr bool is_loopback(Ipv4 address) noexcept {
  return address >> 24 == 127;
}

// Neither of the networks 0, 127 nor 224 and above: nothing to be looked at twice.
constexpr bool is_plain(Ipv4 address) noexcept {
  return address - 0x0100'0000 < 0xdf00'0000 && !is_loopback(address);
}

constexpr bool is_reserved(Ipv4 address) noexcept {
  return address >> 28 == 0xf && address != kLimitedBroadcast;
}

// At least one of them is not plain.
DropReason judge_addresses(Ipv4 source, Ipv4 destination) noexcept {
  // Who has no address yet may broadcast (RFC 1122 3.2.1.3).
  if (source == 0 && destination == kLimitedBroadcast) return DropReason::multicast;
  if (!is_plain(source)) return DropReason::martian_source;
  if (is_zero_network(destination) || is_loopback(destination) || is_reserved(destination))
    return DropReason::martian_destination;
  return DropReason::multicast;
}

DropReason check_ipv4(Packet& packet) noexcept {
  rte_mbuf* const mbuf = packet.mbuf;
  const auto before = static_cast<uint32_t>(packet.network - rte_pktmbuf_mtod(mbuf, const uint8_t*));
  const uint32_t in_segment = mbuf->data_len - before;
  if (in_segment < kIpv4Bytes) [[unlikely]]
    return DropReason::truncated;
  const auto* header = reinterpret_cast<const Ipv4Header*>(packet.network);
  uint32_t words = kIpv4Bytes / 4;
  if (header->version_words != kPlainVersionWords) [[unlikely]] {
    words = header->version_words & 0xf;
    if (header->version_words >> 4 != 4 || words < kIpv4Bytes / 4) return DropReason::ip_header;
    if (in_segment < words * 4) return DropReason::truncated;
  }
  if (sum_header(packet.network, words) != 0xffff) [[unlikely]]
    return DropReason::ip_checksum;
  const uint32_t total = swap16(header->total_length);
  if (total < words * 4) [[unlikely]]
    return DropReason::ip_header;
  if (before + total > mbuf->pkt_len) [[unlikely]]
    return DropReason::ip_length;
  trim(mbuf, before + total);
  const Ipv4 source = swap32(header->source);
  packet.address = swap32(header->destination);
  if (!is_plain(source) || !is_plain(packet.address)) [[unlikely]]
    return judge_addresses(source, packet.address);
  return packet.to_group ? DropReason::multicast : kNoDrop;
}

}  // namespace

void input(Path& path, PacketVector& packets, PacketVector& packets6, PacketVector& answers) noexcept {
  uint32_t kept = 0;
  for (Packet& packet : packets) {
    if (packet.protocol != kProtocolIpv4) [[unlikely]] {
      if (packet.protocol == kProtocolIpv6)
        packets6.append(packet);
      else
        input_arp(path, packet, answers);
      continue;
    }
    if (const DropReason reason = check_ipv4(packet); reason != kNoDrop) [[unlikely]] {
      drop(path, packet, reason);
      continue;
    }
    packets.keep(packet, kept);
  }
  packets.count = kept;
}

}  // namespace mayfly
