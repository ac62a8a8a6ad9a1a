// SPDX-License-Identifier: BSD-3-Clause
// encapsulate: the Ethernet header and the egress interface's tags, written in front of the network header.
#include "pipeline/stages.hpp"
#include "pipeline/tx.hpp"
#include "pipeline/wire.hpp"

namespace mayfly {
namespace {

// Stores from the back: the tags, aligned to their end, may reach into the room of the addresses, which come
// after.
void write_header(uint8_t* network, const Packet& packet) noexcept {
  const Interface& egress = *packet.egress;
  uint64_t tags;
  std::memcpy(&tags, egress.tags, sizeof tags);
  // In two steps, since without tags it is a shift by the whole width.
  const uint32_t half = 4 * (sizeof tags - egress.tag_bytes);
  tags = tags << half << half;
  std::memcpy(network - 2 - sizeof tags, &tags, sizeof tags);
  store_be16(network - 2, packet.protocol);
  const Mac source = egress.mac.load(std::memory_order_relaxed);
  uint8_t* const frame = network - kEthernetBytes - egress.tag_bytes;
  const uint64_t first = __builtin_bswap64(packet.destination_mac << 16 | source >> 32);
  const uint32_t second = swap32(static_cast<uint32_t>(source));
  std::memcpy(frame, &first, sizeof first);
  std::memcpy(frame + sizeof first, &second, sizeof second);
}

}  // namespace

void encapsulate(Path& path, PacketVector& packets) noexcept {
  for (const Packet& packet : packets) {
    rte_mbuf* const mbuf = packet.mbuf;
    const auto* room = static_cast<const uint8_t*>(mbuf->buf_addr);
    const auto before = static_cast<uint32_t>(packet.network - room);
    const uint32_t header_bytes = kEthernetBytes + packet.egress->tag_bytes;
    if (before < header_bytes) [[unlikely]] {
      drop(path, mbuf, packet.egress, Side::tx, DropReason::no_headroom);
      continue;
    }
    write_header(packet.network, packet);
    const auto moved = static_cast<uint16_t>(mbuf->data_off - (before - header_bytes));
    mbuf->data_off = static_cast<uint16_t>(before - header_bytes);
    mbuf->data_len = static_cast<uint16_t>(mbuf->data_len + moved);
    mbuf->pkt_len += static_cast<uint32_t>(static_cast<int16_t>(moved));
    transmit(path, *packet.egress, mbuf);
  }
  packets.count = 0;
}

void encapsulate_aside(Path& path, PacketVector& packets) noexcept {
  const uint32_t count = packets.count;
  const uint64_t outer = path.stages.begin_inner();
  encapsulate(path, packets);
  path.stages.end_inner(outer, Stage::encapsulate, count);
}

}  // namespace mayfly
