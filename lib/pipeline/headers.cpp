// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline/headers.hpp"

#include <rte_ip.h>

#include <algorithm>

namespace mayfly {
namespace {

// No sender has a reason for more (RFC 8504 section 5.3 lets a node choose a limit).
constexpr uint32_t kMostExtensions = 8;
constexpr uint32_t kExtensionUnit = 8;

constexpr bool is_extension(uint8_t protocol) noexcept {
  return protocol == kProtocolHopByHop || protocol == kProtocolRouting || protocol == kProtocolFragment ||
         protocol == kProtocolDestinationOptions;
}

}  // namespace

UpperHeader find_upper_header(const Packet& packet) noexcept {
  const uint8_t* const network = packet.network;
  const uint32_t bytes = in_segment(packet);
  UpperHeader upper{.protocol = network[offsetof(Ipv6Header, next_header)],
                    .offset = kIpv6Bytes,
                    .named_at = offsetof(Ipv6Header, next_header)};
  for (uint32_t left = kMostExtensions; is_extension(upper.protocol); --left) {
    if (left == 0 || bytes < upper.offset + kExtensionUnit) {
      upper.is_complete = false;
      return upper;
    }
    const uint8_t* const extension = network + upper.offset;
    uint32_t length = kExtensionUnit;
    if (upper.protocol == kProtocolFragment) {
      const uint16_t fragment = load_be16(extension + 2);
      upper.has_fragment_header = true;
      upper.is_fragment |= (fragment & 0xfff9) != 0;
      upper.is_later_fragment |= (fragment & 0xfff8) != 0;
    } else {
      length += extension[1] * kExtensionUnit;
    }
    if (upper.protocol == kProtocolRouting && extension[3] != 0) {
      upper.has_source_route = true;
      upper.named_at = upper.offset + 2;
      return upper;
    }
    upper.protocol = extension[0];
    upper.named_at = upper.offset;
    upper.offset += length;
    if (upper.is_later_fragment) return upper;
  }
  return upper;
}

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
  return fold_sum(sum);
}

}  // namespace mayfly
