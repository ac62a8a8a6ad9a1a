// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// A trickle of frames that carry sequence numbers and time stamps, through a net_ring device of this process:
// what the daemon receives comes out of one ring, what it sends goes into another, and neither can lose a
// frame by itself.
//
//   ProbeDevice device; device.open()        control thread, once the EAL is up: the ethdev kProbeDevice
//   Probe probe(device, flows, family); probe.start(rate)    a thread of its own
//   probe.set_phase(1) ... probe.stop()
//
// Latency is from just before a frame is put into the receive ring until the worker sends it: the second
// stamp is written by a transmit callback of the ethdev, on the worker, so that it does not matter when the
// probe's thread comes to look. It costs the worker a read of the TSC a burst of this device.
//
// The thread sleeps between bursts, under SCHED_FIFO where that is allowed: with two CPUs it shares one with
// the control thread, and would otherwise measure the scheduler.

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "base/result.hpp"
#include "frames.hpp"
#include "samples.hpp"

struct rte_ring;
struct rte_mempool;
struct rte_mbuf;

namespace mayfly::perf {

constexpr const char* kProbeDevice = "net_ring_probe";
constexpr uint32_t kProbePhases = 2;
constexpr uint32_t kProbeFrame = 128;

class ProbeDevice {
 public:
  ProbeDevice() = default;
  // After the EAL and every port is gone.
  ~ProbeDevice() { close(); }
  ProbeDevice(const ProbeDevice&) = delete;
  ProbeDevice& operator=(const ProbeDevice&) = delete;

  Status open();
  void close();
  // The worker's stamps; once its port runs.
  Status watch_transmit(uint32_t family);

  rte_ring* to_daemon() const noexcept { return to_daemon_; }
  rte_ring* from_daemon() const noexcept { return from_daemon_; }
  rte_mempool* pool() const noexcept { return pool_; }

 private:
  rte_ring* to_daemon_ = nullptr;
  rte_ring* from_daemon_ = nullptr;
  rte_mempool* pool_ = nullptr;
  uintptr_t stamp_offset_ = 0;
};

struct ProbeCounts {
  uint64_t sent = 0;
  uint64_t refused = 0;  // the receive ring was full: never sent
  uint64_t received = 0;
  uint64_t missing = 0;     // numbers passed over so far; a late one takes its own back
  uint64_t reordered = 0;   // came after a higher number
  uint64_t duplicated = 0;  // came twice
  uint64_t foreign = 0;     // no frame of ours
};

class Probe {
 public:
  Probe(ProbeDevice& device, std::span<const FlowFrame> flows, uint32_t family);
  ~Probe() { stop(); }

  void start(uint64_t rate);
  // What is received from now on counts for this phase.
  void set_phase(uint32_t phase) noexcept { phase_.store(phase, std::memory_order_relaxed); }
  // Stops sending, waits for what is on its way (at most a second), ends the thread.
  void stop();

  ProbeCounts counts() const noexcept;
  LatencyHistogram::Counts latencies(uint32_t phase) const { return latencies_[phase].counts(); }
  // Whether the thread got SCHED_FIFO.
  bool realtime() const noexcept { return realtime_.load(); }

 private:
  struct Flow {
    std::vector<uint8_t> frame;
    uint64_t next = 1;      // to send
    uint64_t expected = 1;  // to receive
    std::vector<uint64_t> missing;
  };

  void run(uint64_t rate);
  void send(uint64_t count);
  bool receive();
  void judge(const rte_mbuf& mbuf);
  void judge_sequence(Flow& flow, uint64_t sequence);

  ProbeDevice& device_;
  const uint32_t payload_;
  std::vector<Flow> flows_;
  size_t next_flow_ = 0;
  std::array<LatencyHistogram, kProbePhases> latencies_;
  std::atomic<uint64_t> sent_{0}, refused_{0}, received_{0}, missing_{0}, reordered_{0}, duplicated_{0},
      foreign_{0};
  std::atomic<uint32_t> phase_{0};
  std::atomic<bool> sending_{false};
  std::atomic<bool> stop_{false};
  std::atomic<bool> realtime_{false};
  double ns_per_tick_ = 0;
  std::thread thread_;
};

}  // namespace mayfly::perf
