// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// What a worker counts: per interface, in all, and references. Written by that worker alone with plain stores
// (no read-modify-write, no shared line), summed only by readers.
//
// The balance rx + originated = tx + drops + punted + parked holds exactly at the end of every loop: a worker
// counts in a struct of its own and publishes the whole of it once per loop, so that a reader on another
// thread takes a consistent copy without ever stopping the worker.

#include <array>
#include <atomic>
#include <cstdint>

#include "stats/counter.hpp"
#include "stats/drop_reason.hpp"
#include "stats/drop_table.hpp"
#include "stats/stage_counters.hpp"

namespace mayfly {

// One cache line per (worker, interface).
struct alignas(64) InterfaceCounters {
  Counter rx_packets;
  Counter rx_bytes;  // Ethernet frame without FCS, as rtnl_link_stats64
  Counter tx_packets;
  Counter tx_bytes;
  Counter rx_dropped;
  Counter tx_dropped;
  Counter last_rx_ns;  // CLOCK_MONOTONIC of the loop that last received a packet
  Counter reserved;
};
static_assert(sizeof(InterfaceCounters) == 64);

struct InterfaceSums {
  uint64_t rx_packets = 0, rx_bytes = 0, tx_packets = 0, tx_bytes = 0, rx_dropped = 0, tx_dropped = 0;
  uint64_t last_rx_ns = 0;
};

// Packets a worker has in hand or has got rid of: words only, so that it can be published word by word.
struct Totals {
  uint64_t rx = 0, rx_bytes = 0, originated = 0, tx = 0, tx_bytes = 0, punted = 0;
  uint64_t parked = 0;  // waiting for a neighbour at this moment
  uint64_t loops = 0, busy_loops = 0, sleeps = 0;
  uint64_t veth_crossings = 0;       // each is in rx and in tx
  uint64_t icmp_errors_sent = 0;     // of ours, part of originated
  uint64_t icmp_errors_limited = 0;  // not made, to keep to the rate
  uint64_t icmp_errors_unsent = 0;   // not made for want of a route, of a source address or of an mbuf
  std::array<uint64_t, kDropReasons> drops{};
  std::array<uint64_t, kDropReasons> drop_last_ns{};  // CLOCK_MONOTONIC

  uint64_t dropped() const noexcept;
  // rx + originated - (tx + drops + punted + parked): 0, always.
  int64_t difference() const noexcept;
  Totals& operator+=(const Totals& other) noexcept;
};
static_assert(sizeof(Totals) % sizeof(uint64_t) == 0);

class alignas(64) PublishedTotals {
 public:
  // Worker, at the end of a loop. About a store a word.
  void publish(const Totals& totals) noexcept;
  // Any other thread. False when the writer was caught in the middle a thousand times (preempted there): the
  // copy may then mix two loops.
  bool read(Totals* copy) const noexcept;

 private:
  static constexpr size_t kWords = sizeof(Totals) / sizeof(uint64_t);
  std::atomic<uint64_t> sequence_{0};
  std::array<Counter, kWords> words_{};
};

// References that outlive a loop (a parked packet), per (worker, interface).
using References = std::atomic<uint64_t>;

// Everything one worker writes; the arrays are indexed by ifindex and belong to the interface table.
struct WorkerStatistics {
  InterfaceCounters* interfaces = nullptr;
  References* references = nullptr;
  Totals totals;  // the worker's own; everybody else reads published
  PublishedTotals published;
  DropTable drops;
  StageCounters stages;

  // Worker: takes or releases a reference of its own; only it changes this word.
  void hold(uint32_t ifindex) noexcept {
    References& count = references[ifindex];
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  uint64_t held(uint32_t ifindex) const noexcept {
    return references[ifindex].load(std::memory_order_relaxed);
  }
  void release(uint32_t ifindex) noexcept {
    References& count = references[ifindex];
    count.store(count.load(std::memory_order_relaxed) - 1, std::memory_order_release);
  }
};

}  // namespace mayfly
