// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Where a worker's time goes: vectors, packets and clocks of every stage of its loop (pipeline/stages.hpp).
//
//   counters.set_on(true);                       control
//   const StageSums sums = counters.read();      any thread, at any time
//   sums[size_t(Stage::look_up)].clocks / sums[size_t(Stage::look_up)].packets
//
// What is counted:
//   - packets are those a stage was given, whether they went on or ended there; a vector is one call with at
//     least one packet. A packet passes a stage as often as it is given to it: an echo reply is looked up
//     twice, what crosses a veth passes everything once more;
//   - the IPv6 version of a stage is a stage of its own (look_up6). ARP is part of input, neighbour discovery
//     of local6, and an ICMP error is written by the stage that refuses the packet; what they send counts in
//     the stages it passes then;
//   - rx and tx are the calls of the device alone: without them it is what Mayfly itself costs;
//   - loop is what a loop with packets costs beside its stages; its packets are those it received;
//   - idle is polls without a packet, and loops of nothing else. They never enter clocks per packet. Sleeping
//     is not counted at all.
//   Without a gap in between: the sums of all stages are the time since it was switched on, sleeps excepted.
//
// Written by the worker alone with plain stores, on cache lines of its own, touched when it is constructed. A
// reader may see a stage in the middle of an update: then packets and clocks differ by one vector.
//
// Cost (docs/performance.md): off, one branch a stage and vector, together less than a clock a packet in full
// vectors. On, one TSC read and three stores a stage and vector, 13 clocks, which the clocks shown include:
// 2.4 a packet in full vectors, 11 in vectors of 16, 160 where every packet comes alone.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "stats/counter.hpp"

namespace mayfly {

enum class Stage : uint8_t {
  rx,
  classify,
  arrive,
  input,
  check_sources,
  look_up,
  route,
  neighbour,
  local,
  input6,
  check_sources6,
  look_up6,
  route6,
  neighbour6,
  local6,
  encapsulate,
  tx,
  tx_count,
  loop,
  messages,
  housekeeping,
  idle,
  count
};

constexpr size_t kStages = static_cast<size_t>(Stage::count);

enum class StageKind : uint8_t {
  work,    // done for packets
  burst,   // likewise, inside the device
  upkeep,  // done whether packets come or not; only vectors (times) and clocks
  idle,
};

struct StageDescription {
  std::string_view name;
  StageKind kind;
};

constexpr std::array<StageDescription, kStages> kStageDescriptions = {{
    {"rx", StageKind::burst},       // rte_eth_rx_burst that had packets
    {"classify", StageKind::work},  // tags -> interface
    {"arrive", StageKind::work},    // the same behind a veth
    {"input", StageKind::work},     // header checks, ARP
    {"check_sources", StageKind::work},
    {"look_up", StageKind::work},    // FIB
    {"route", StageKind::work},      // egress, TTL, MTU
    {"neighbour", StageKind::work},  // MAC of the next hop
    {"local", StageKind::work},      // for our own addresses
    {"input6", StageKind::work},
    {"check_sources6", StageKind::work},
    {"look_up6", StageKind::work},
    {"route6", StageKind::work},
    {"neighbour6", StageKind::work},
    {"local6", StageKind::work},       // and neighbour discovery
    {"encapsulate", StageKind::work},  // Ethernet header and tags, into the port's buffer
    {"tx", StageKind::burst},          // rte_eth_tx_burst
    {"tx_count", StageKind::work},     // counts what it took, drops what it did not
    {"loop", StageKind::work},
    {"messages", StageKind::upkeep},      // of the control thread, each a vector
    {"housekeeping", StageKind::upkeep},  // once a millisecond: parked packets, clock
    {"idle", StageKind::idle},            // each empty poll is a vector
}};

constexpr const StageDescription& describe(Stage stage) noexcept {
  return kStageDescriptions[static_cast<size_t>(stage)];
}

struct StageSum {
  uint64_t vectors = 0;
  uint64_t packets = 0;
  uint64_t clocks = 0;  // of the TSC

  bool operator==(const StageSum&) const = default;
};
using StageSums = std::array<StageSum, kStages>;

// What was counted between two readings.
StageSums operator-(const StageSums& later, const StageSums& earlier) noexcept;

class StageCounters {
 public:
  // One other thread; the worker follows with its next loop. The counts stay.
  void set_on(bool on) noexcept { on_.store(on, std::memory_order_relaxed); }
  bool on() const noexcept { return on_.load(std::memory_order_relaxed); }

  // Worker.
  void add(Stage stage, uint64_t packets, uint64_t clocks) noexcept {
    Counters& counters = counters_[static_cast<size_t>(stage)];
    bump(counters.vectors);
    bump(counters.packets, packets);
    bump(counters.clocks, clocks);
  }

  // Idle beside its polls.
  void add_idle(uint64_t clocks) noexcept {
    bump(counters_[static_cast<size_t>(Stage::idle)].clocks, clocks);
  }

  StageSums read() const noexcept;

 private:
  struct Counters {
    Counter vectors;
    Counter packets;
    Counter clocks;
  };
  alignas(64) std::atomic<bool> on_{false};
  alignas(64) std::array<Counters, kStages> counters_{};
};

}  // namespace mayfly
