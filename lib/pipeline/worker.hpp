// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// A worker: one thread that polls its queues and takes every packet from rx to tx, loop by loop.
//
//   Worker worker(0, settings);
//   worker.run(stop);        on a lcore (rte_eal_remote_launch) or any thread; returns after stop is set
//
// One loop: read the queue list, do what control says, take at most 64 frames of each queue through the
// stages (stages.hpp), once a millisecond look after parked packets, send, publish the totals, announce a
// quiescent state. Nothing but (ifindex, id) is kept from one loop to the next. It takes no lock, no heap
// memory and no system call; what it writes is touched when it is constructed.
//
// When idle (adaptive): it has sent everything and holds no RCU pointer, goes offline and sleeps, at first
// shortly, then longer, at most sleep_ns; a packet that comes meanwhile waits that long.

#include <atomic>
#include <cstdint>

#include "pipeline/path.hpp"
#include "pipeline/tsc_clock.hpp"

namespace mayfly {

enum class IdlePolicy : uint8_t { adaptive, poll };

constexpr uint64_t kMostSleepNs = 1'000'000;

// References live as long as the worker.
struct WorkerSettings {
  IdlePolicy idle = IdlePolicy::adaptive;
  uint64_t after_ns = 100'000;       // without a packet, before it sleeps
  uint64_t sleep_ns = kMostSleepNs;  // the longest sleep, at most kMostSleepNs
  InterfaceTable& table;
  const PublishedQueueList& queues;
  MessageRing<WorkerMessage>& to_control;
  MessageRing<ControlMessage>& from_control;
  rte_mempool* pool;      // for packets it originates
  uint32_t parked_limit;  // mbufs that may wait for a neighbour: this worker's share of a quarter of the pool
  WorkerStatistics& statistics;
};

class Worker {
 public:
  // Control thread, before run(). Points settings.statistics at the table's arrays of worker `index`.
  Worker(uint32_t index, const WorkerSettings& settings);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // The worker's thread: enter(), loops, leave(). The thread is no RCU reader before and after.
  void run(const std::atomic<bool>& stop) noexcept;

  // The parts of run(), for tests that drive a worker and its time (CLOCK_MONOTONIC) by hand, on one thread.
  // leave() drops what is parked.
  void enter(uint64_t now_ns) noexcept;
  void leave() noexcept;
  // One loop, without sleeping; true when packets came.
  bool step(uint64_t now_ns) noexcept;

  uint32_t index() const noexcept { return index_; }

 private:
  void handle_messages() noexcept;
  // How many packets came.
  uint32_t receive() noexcept;
  void forward(const QueueList::RxQueue& from, rte_mbuf* const* mbufs, uint32_t count) noexcept;
  void forward_vector() noexcept;
  void forward_ipv6() noexcept;
  // Runs a stage that has something to do, and counts it.
  template <class Call>
  void pass(Stage stage, const PacketVector& packets, const Call& call) noexcept;
  void cross_veths() noexcept;
  template <class Family>
  void send(PacketVector& packets) noexcept;
  template <class Family>
  void send_own(PacketVector& packets) noexcept;
  void send_errors() noexcept;
  void housekeep() noexcept;
  void finish_loop(bool publish) noexcept;
  void sleep() noexcept;

  const uint32_t index_;
  const WorkerSettings settings_;
  Path path_;
  TscClock clock_;
  uint64_t last_packet_ns_ = 0;
  uint64_t next_tick_ns_ = 0;
  uint64_t next_sleep_ns_ = 0;
  uint32_t parked_cursor_ = 0;
  PacketVector packets_{};
  PacketVector packets6_{};
  PacketVector answers_{};  // ARP and neighbour discovery
  PacketVector local_{};    // for our own addresses
  PacketVector local6_{};
};

}  // namespace mayfly
