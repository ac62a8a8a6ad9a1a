// SPDX-License-Identifier: BSD-3-Clause
// neighbour: the MAC address of the next hop.
#include "neigh/neighbour.hpp"

#include "iface/interface_kind.hpp"
#include "pipeline/family.hpp"
#include "pipeline/parked.hpp"
#include "pipeline/stages.hpp"

namespace mayfly {
namespace {

// Neither a device nor the other end of a veth: there is nobody behind it, and nobody to ask.
bool leads_nowhere(const Interface& egress) noexcept {
  return egress.port == kNoPort && egress.kind != kVethKind;
}

// True when the packet can go on.
template <class Family>
bool resolve(Path& path, Packet& packet) noexcept {
  const Interface& egress = *packet.egress;
  const IpAddress next_hop = Family::next_hop(packet);
  const Neighbour* neighbour = find_neighbour(egress.neighbours.read(), next_hop);
  if (neighbour != nullptr) [[likely]] {
    const NeighbourWord word = neighbour->read();
    if (word.usable()) [[likely]] {
      packet.destination_mac = word.mac();
      if (word.is(NeighbourState::kStale)) [[unlikely]]
        neighbour->mark_used();
      return true;
    }
    if (word.is(NeighbourState::kFailed)) {
      report<Family>(path, packet, Family::kNeighbourFailed);
      drop(path, packet.mbuf, &egress, Side::tx, DropReason::neighbour_failed);
      return false;
    }
  } else if (leads_nowhere(egress)) {
    packet.destination_mac = 0;
    return true;
  }
  park(path, packet, next_hop);
  return false;
}

}  // namespace

template <class Family>
void neighbour(Path& path, PacketVector& packets) noexcept {
  for (const Packet& packet : packets)
    if (const NeighbourTable* table = packet.egress->neighbours.read(); table != nullptr)
      prefetch_neighbour_slot(table, Family::next_hop(packet));
  uint32_t kept = 0;
  for (Packet& packet : packets)
    if (resolve<Family>(path, packet)) [[likely]]
      packets.keep(packet, kept);
  packets.count = kept;
}

template void neighbour<V4>(Path&, PacketVector&) noexcept;
template void neighbour<V6>(Path&, PacketVector&) noexcept;

}  // namespace mayfly
