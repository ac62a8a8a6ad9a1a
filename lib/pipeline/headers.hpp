// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Looking into packets behind the IP header (internal to lib/pipeline). Worker; reads no further than the
// first segment.

#include <rte_mbuf.h>

#include "pipeline/packet.hpp"
#include "pipeline/wire.hpp"

namespace mayfly {

// Bytes of the packet in the first segment, from the network header on.
inline uint32_t in_segment(const Packet& packet) noexcept {
  return packet.mbuf->data_len -
         static_cast<uint32_t>(packet.network - rte_pktmbuf_mtod(packet.mbuf, const uint8_t*));
}

// What is behind an IPv6 header and its extension headers.
struct UpperHeader {
  uint8_t protocol;                  // kProtocolHopByHop .. when the chain could not be followed to its end
  uint32_t offset;                   // from the network header
  uint32_t named_at;                 // where the octet `protocol` stands
  bool has_fragment_header = false;  // it may be whole all the same: an atomic fragment
  bool is_fragment = false;
  bool is_later_fragment = false;  // the upper header is in another packet
  bool is_complete = true;         // false: cut off, or more headers than anybody needs
  bool has_source_route = false;   // a routing header that is not through; named_at is that of its type
};

// Follows at most kMostExtensions headers: hop-by-hop and destination options, routing, fragment.
UpperHeader find_upper_header(const Packet& packet) noexcept;

// The folded Internet checksum sum of `bytes` bytes from `from` on, counted from the start of the mbuf, which
// has them.
uint16_t sum_packet(const rte_mbuf* mbuf, uint32_t from, uint32_t bytes) noexcept;

}  // namespace mayfly
