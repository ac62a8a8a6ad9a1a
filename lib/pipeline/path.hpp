// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// What the stages of one worker share, and how a packet ends (internal to lib/pipeline).
//
// Every mbuf a worker has in hand ends in exactly one way: drop() here (freed with a reason), transmit()
// (sent, or swallowed by an interface without a device), park in neighbour.cpp, or punt() here (what it said
// was told to the control thread). Each of them counts, so that rx + originated = tx + drops + punted +
// parked at the end of a loop. An interface's counters follow the same rule: what it received includes what
// was dropped after that.
//
// A frame that crosses a veth pair counts as sent by one end and as received by the other, in the interfaces'
// counters and in the totals: rx is what all interfaces received, tx what all of them sent, so the balance
// and the interfaces' sums hold whatever a packet's way was. Totals::veth_crossings tells how much of both
// never saw a device.

#include <rte_mbuf.h>

#include <array>
#include <cstdint>

#include "iface/interface_table.hpp"
#include "pipeline/icmp_error.hpp"
#include "pipeline/messages.hpp"
#include "pipeline/packet.hpp"
#include "pipeline/parking.hpp"
#include "pipeline/stage_clock.hpp"
#include "port/queue_list.hpp"
#include "stats/worker_statistics.hpp"

namespace mayfly {

// Frames that leave by one port, until the loop ends or the buffer is full.
struct TransmitBuffer {
  uint32_t count = 0;
  std::array<rte_mbuf*, kVectorSize> mbufs{};
  std::array<const Interface*, kVectorSize> interfaces{};
  std::array<uint32_t, kVectorSize> bytes{};
};

// Drops of one interface for one reason that have not been entered in the DropTable yet.
struct DropRun {
  uint64_t interface_id = 0;
  uint32_t ifindex = 0;
  DropReason reason{};
  uint64_t packets = 0;
};

// Frames that were sent into a veth, until the other end receives them: in the same loop, one round later.
// Frames of one round have all crossed as many veths.
struct Crossings {
  static constexpr uint32_t kMostRounds = 8;
  // Of a round: what a vector, or a round of parked packets, makes.
  static constexpr uint32_t kMostFrames = 256;
  struct Frames {
    uint32_t count = 0;
    std::array<rte_mbuf*, kMostFrames> mbufs{};
    std::array<const Interface*, kMostFrames> receivers{};
  };
  uint32_t round = 0;
  uint32_t taken = 0;  // of those that arrive
  std::array<Frames, 2> frames{};

  Frames& leaving() noexcept { return frames[round & 1]; }
  Frames& arriving() noexcept { return frames[~round & 1]; }
};

// Neighbours that control was asked for while their packets could not wait, in one millisecond.
struct BlindQuestions {
  uint32_t at_ms = 0;
  uint32_t count = 0;
};

enum class Side : uint8_t { rx, tx };

struct Path {
  InterfaceTable& table;
  const Interface* interfaces;  // the table's
  WorkerStatistics& statistics;
  MessageRing<WorkerMessage>& to_control;
  rte_mempool* pool;
  Parking parking;
  StageClock stages;
  ErrorLimit error_limit{};
  BlindQuestions blind_questions{};

  // Of this loop.
  const QueueList* queues = nullptr;
  uint64_t now_ns = 0;
  DropRun drop_run{};
  uint64_t transmit_ports = 0;  // one bit a port whose buffer is not empty
  std::array<TransmitBuffer, kMostPorts> transmit{};
  Crossings crossings{};
  PacketVector errors{};   // ICMP errors of ours, until the vector at hand is through
  PacketVector errors6{};  // the same of ICMPv6

  const Interface& interface(uint32_t ifindex) const noexcept { return interfaces[ifindex]; }
  InterfaceCounters& counters(const Interface& interface) const noexcept {
    return statistics.interfaces[interface.ifindex];
  }
  uint32_t now_ms() const noexcept { return static_cast<uint32_t>(now_ns / 1'000'000); }
};

static_assert(kMostPorts <= 64, "transmit_ports has one bit a port");

// Stages return this when nothing is wrong with a packet.
constexpr DropReason kNoDrop = DropReason::count;

// Counts a packet that ends at the interface (nullptr: at none that exists), on the side where it happened.
void count_drop(Path& path, const Interface* interface, Side side, DropReason reason) noexcept;
void drop(Path& path, rte_mbuf* mbuf, const Interface* interface, Side side, DropReason reason) noexcept;
// At the interface it came by, or, when it was made here, at the one it was to leave by.
void drop(Path& path, const Packet& packet, DropReason reason) noexcept;
// Enters what drop_run holds; at the end of the loop.
void settle_drops(Path& path) noexcept;

// The packet has told control what it had to say.
inline void punt(Path& path, rte_mbuf* mbuf) noexcept {
  ++path.statistics.totals.punted;
  rte_pktmbuf_free(mbuf);
}

// Gives a packet of our own making, which has its egress, an mbuf with room for `bytes` from the network
// header on, and counts it. False when there is none: then that is counted as its drop.
bool originate(Path& path, Packet& packet, uint32_t bytes) noexcept;

// Cuts the packet to its first `keep` bytes (it has that many): Ethernet's padding goes.
void trim_segments(rte_mbuf* mbuf, uint32_t keep) noexcept;
inline void trim(rte_mbuf* mbuf, uint32_t keep) noexcept {
  if (mbuf->nb_segs != 1) [[unlikely]]
    return trim_segments(mbuf, keep);
  mbuf->data_len = static_cast<uint16_t>(keep);
  mbuf->pkt_len = keep;
}

// The interface of this number when it is the same as then, and live; nullptr otherwise. For numbers that
// come from a message or a parked packet: the slot may have been given back, or to somebody else.
const Interface* find_live(const Path& path, uint32_t ifindex, uint64_t id) noexcept;

// The longest IP packet the interface can send at this moment; 0 when it or its port is down or gone, or the
// port has no carrier.
inline uint32_t sendable_bytes(const Path& path, const Interface& egress) noexcept {
  if (!egress.live_and_up()) [[unlikely]]
    return 0;
  const uint32_t mtu = egress.mtu.load(std::memory_order_relaxed);
  if (egress.port == kNoPort) return mtu;
  const QueueList::TxPort& port = path.queues->tx[egress.port];
  if (port.queue == kNoQueue) [[unlikely]]
    return 0;
  const Interface& of_port = path.interface(port.ifindex);
  constexpr uint32_t kLooked = Interface::kLive | Interface::kUp | Interface::kNoCarrier;
  const uint32_t flags = of_port.flags.load(std::memory_order_acquire);
  if ((flags & kLooked) != (Interface::kLive | Interface::kUp)) [[unlikely]]
    return 0;
  const uint32_t port_mtu =
      of_port.mtu.load(std::memory_order_relaxed) - Interface::tag_loss(flags, egress.tag_bytes);
  return mtu < port_mtu ? mtu : port_mtu;
}

}  // namespace mayfly
