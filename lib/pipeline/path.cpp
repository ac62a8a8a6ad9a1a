// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline/path.hpp"

namespace mayfly {

void count_drop(Path& path, const Interface* interface, Side side, DropReason reason) noexcept {
  Totals& totals = path.statistics.totals;
  const auto index = static_cast<size_t>(reason);
  ++totals.drops[index];
  totals.drop_last_ns[index] = path.now_ns;
  if (interface == nullptr) return;
  InterfaceCounters& counters = path.counters(*interface);
  bump(side == Side::rx ? counters.rx_dropped : counters.tx_dropped);
  DropRun& run = path.drop_run;
  if (run.interface_id != interface->id || run.reason != reason) {
    settle_drops(path);
    run.interface_id = interface->id;
    run.ifindex = interface->ifindex;
    run.reason = reason;
  }
  ++run.packets;
}

void drop(Path& path, rte_mbuf* mbuf, const Interface* interface, Side side, DropReason reason) noexcept {
  count_drop(path, interface, side, reason);
  rte_pktmbuf_free(mbuf);
}

void drop(Path& path, const Packet& packet, DropReason reason) noexcept {
  if (packet.ingress != nullptr)
    drop(path, packet.mbuf, packet.ingress, Side::rx, reason);
  else
    drop(path, packet.mbuf,
         packet.egress != nullptr && packet.egress->ifindex != kNoInterface ? packet.egress : nullptr,
         Side::tx, reason);
}

bool originate(Path& path, Packet& packet, uint32_t bytes) noexcept {
  ++path.statistics.totals.originated;
  packet.mbuf = rte_pktmbuf_alloc(path.pool);
  if (packet.mbuf == nullptr) {
    count_drop(path, packet.egress, Side::tx, DropReason::no_mbuf);
    return false;
  }
  packet.network = reinterpret_cast<uint8_t*>(rte_pktmbuf_append(packet.mbuf, static_cast<uint16_t>(bytes)));
  if (packet.network != nullptr) return true;
  drop(path, packet.mbuf, packet.egress, Side::tx, DropReason::no_headroom);
  return false;
}

void settle_drops(Path& path) noexcept {
  DropRun& run = path.drop_run;
  if (run.packets != 0) path.statistics.drops.add(run.interface_id, run.ifindex, run.reason, run.packets);
  run = DropRun{};
}

void trim_segments(rte_mbuf* mbuf, uint32_t keep) noexcept {
  mbuf->pkt_len = keep;
  uint16_t segments = 1;
  rte_mbuf* last = mbuf;
  for (; last->data_len < keep; last = last->next, ++segments) keep -= last->data_len;
  last->data_len = static_cast<uint16_t>(keep);
  rte_mbuf* const rest = last->next;
  last->next = nullptr;
  mbuf->nb_segs = segments;
  rte_pktmbuf_free(rest);
}

// AddressSanitizer knows free slots as poisoned; looking whether one is live is what flags and id are there
// for.
[[gnu::no_sanitize_address]] const Interface* find_live(const Path& path, uint32_t ifindex,
                                                        uint64_t id) noexcept {
  const Interface* interface = &path.interfaces[ifindex];
  uint32_t flags;
  __atomic_load(reinterpret_cast<const uint32_t*>(&interface->flags), &flags, __ATOMIC_ACQUIRE);
  return (flags & Interface::kLive) != 0 && interface->id == id ? interface : nullptr;
}

}  // namespace mayfly
