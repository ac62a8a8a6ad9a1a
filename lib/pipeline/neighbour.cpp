// SPDX-License-Identifier: BSD-3-Clause
// neighbour: the MAC address of the next hop.
#include "neigh/neighbour.hpp"

#include "pipeline/parked.hpp"
#include "pipeline/stages.hpp"

namespace mayfly {
namespace {

// True when the packet can go on.
bool resolve(Path& path, Packet& packet) noexcept {
  const Interface& egress = *packet.egress;
  const Neighbour* neighbour = find_neighbour(egress.neighbours.read(), IpAddress(packet.address));
  if (neighbour != nullptr) [[likely]] {
    const NeighbourWord word = neighbour->read();
    if (word.usable()) [[likely]] {
      packet.destination_mac = word.mac();
      if (word.is(NeighbourState::kStale)) [[unlikely]]
        neighbour->mark_used();
      return true;
    }
    if (word.is(NeighbourState::kFailed)) {
      drop(path, packet.mbuf, &egress, Side::tx, DropReason::neighbour_failed);
      return false;
    }
  } else if (egress.port == kNoPort) {
    // There is nobody behind it, and nobody to ask.
    packet.destination_mac = 0;
    return true;
  }
  park(path, packet);
  return false;
}

}  // namespace

void neighbour(Path& path, PacketVector& packets) noexcept {
  for (const Packet& packet : packets)
    if (const NeighbourTable* table = packet.egress->neighbours.read(); table != nullptr)
      prefetch_neighbour_slot(table, IpAddress(packet.address));
  uint32_t kept = 0;
  for (Packet& packet : packets)
    if (resolve(path, packet)) [[likely]]
      packets.keep(packet, kept);
  packets.count = kept;
}

}  // namespace mayfly
