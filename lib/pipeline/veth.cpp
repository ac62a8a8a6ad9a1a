// SPDX-License-Identifier: BSD-3-Clause
// veth: a frame that is sent into one end of a pair is received by the other, in the same loop.
#include "pipeline/accept.hpp"
#include "pipeline/stages.hpp"
#include "pipeline/tx.hpp"

namespace mayfly {
namespace {

DropReason judge(Packet& packet, const Interface& interface) noexcept {
  if (packet.mbuf->data_len < kEthernetBytes) return DropReason::truncated;
  packet.protocol = load_be16(packet.network - 2);
  if (is_tag(packet.protocol)) return DropReason::unknown_tag;
  return accept(packet, interface, interface.flags.load(std::memory_order_acquire));
}

void receive(Path& path, rte_mbuf* mbuf, const Interface& interface, PacketVector& packets) noexcept {
  path.statistics.totals.rx += 1;
  path.statistics.totals.rx_bytes += mbuf->pkt_len;
  InterfaceCounters& counters = path.counters(interface);
  bump(counters.rx_packets);
  bump(counters.rx_bytes, mbuf->pkt_len);
  counters.last_rx_ns.store(path.now_ns, std::memory_order_relaxed);
  Packet packet{
      .mbuf = mbuf, .network = rte_pktmbuf_mtod(mbuf, uint8_t*) + kEthernetBytes, .ingress = &interface};
  if (const DropReason reason = judge(packet, interface); reason != kNoDrop)
    drop(path, packet, reason);
  else
    packets.append(packet);
}

}  // namespace

// The other end cannot become another interface while we are online: at worst it is not live any more.
void cross(Path& path, const Interface& egress, rte_mbuf* mbuf) noexcept {
  const Interface& peer = path.interface(egress.peer.load(std::memory_order_acquire));
  if (!peer.live_and_up()) return drop(path, mbuf, &egress, Side::tx, DropReason::interface_down);
  if (path.crossings.round == Crossings::kMostRounds)
    return drop(path, mbuf, &egress, Side::tx, DropReason::veth_loop);
  Crossings::Frames& frames = path.crossings.leaving();
  if (frames.count == Crossings::kMostFrames) return drop(path, mbuf, &egress, Side::tx, DropReason::tx_full);
  count_sent(path, egress, mbuf->pkt_len);
  ++path.statistics.totals.veth_crossings;
  frames.mbufs[frames.count] = mbuf;
  frames.receivers[frames.count] = &peer;
  ++frames.count;
}

bool arrive(Path& path, PacketVector& packets) noexcept {
  Crossings& crossings = path.crossings;
  packets.count = 0;
  if (crossings.taken == crossings.arriving().count) {
    crossings.arriving().count = crossings.taken = 0;
    if (crossings.leaving().count == 0) {
      crossings.round = 0;
      return false;
    }
    ++crossings.round;
  }
  Crossings::Frames& frames = crossings.arriving();
  while (crossings.taken != frames.count && !packets.full()) {
    const uint32_t next = crossings.taken++;
    receive(path, frames.mbufs[next], *frames.receivers[next], packets);
  }
  return true;
}

}  // namespace mayfly
