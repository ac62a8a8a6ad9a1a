// SPDX-License-Identifier: BSD-3-Clause
// tx: one buffer a port, sent when it is full and at the end of every loop.
#include <rte_ethdev.h>

#include <bit>

#include "iface/interface_kind.hpp"
#include "pipeline/tx.hpp"

namespace mayfly {
namespace {

// Counts sent frames of one interface, written when the next one has another interface.
struct SendRun {
  const Interface* interface = nullptr;
  uint64_t packets = 0;
  uint64_t bytes = 0;

  void add(Path& path, const Interface* of, uint32_t frame_bytes) noexcept {
    if (interface != of) {
      settle(path);
      interface = of;
    }
    ++packets;
    bytes += frame_bytes;
  }

  void settle(Path& path) noexcept {
    if (packets == 0) return;
    InterfaceCounters& counters = path.counters(*interface);
    bump(counters.tx_packets, packets);
    bump(counters.tx_bytes, bytes);
    path.statistics.totals.tx += packets;
    path.statistics.totals.tx_bytes += bytes;
    packets = bytes = 0;
  }
};

}  // namespace

void flush_port(Path& path, uint16_t port) noexcept {
  TransmitBuffer& buffer = path.transmit[port];
  const uint16_t queue = path.queues->tx[port].queue;
  const uint32_t count = buffer.count;
  const uint64_t outer = path.stages.begin_inner();
  const uint32_t sent = rte_eth_tx_burst(port, queue, buffer.mbufs.data(), static_cast<uint16_t>(count));
  path.stages.end(Stage::tx, count);
  SendRun run;
  for (uint32_t i = 0; i < sent; ++i) run.add(path, buffer.interfaces[i], buffer.bytes[i]);
  run.settle(path);
  for (uint32_t i = sent; i < count; ++i)
    drop(path, buffer.mbufs[i], buffer.interfaces[i], Side::tx, DropReason::tx_full);
  buffer.count = 0;
  path.transmit_ports &= ~(uint64_t{1} << port);
  path.stages.end_inner(outer, Stage::tx_count, count);
}

void count_sent(Path& path, const Interface& egress, uint32_t bytes) noexcept {
  SendRun run;
  run.add(path, &egress, bytes);
  run.settle(path);
}

void transmit_inside(Path& path, const Interface& egress, rte_mbuf* mbuf) noexcept {
  if (egress.kind == kVethKind) return cross(path, egress, mbuf);
  count_sent(path, egress, mbuf->pkt_len);
  rte_pktmbuf_free(mbuf);
}

void flush_transmit(Path& path) noexcept {
  while (path.transmit_ports != 0)
    flush_port(path, static_cast<uint16_t>(std::countr_zero(path.transmit_ports)));
}

}  // namespace mayfly
