// SPDX-License-Identifier: BSD-3-Clause
#include "probe.hpp"

#include <pthread.h>
#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_ring.h>
#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cstring>
#include <ctime>

#include "base/clock.hpp"

namespace mayfly::perf {
namespace {

constexpr uint32_t kRingFrames = 4'096;
constexpr uint32_t kMbufs = 16'383;
constexpr uint32_t kBurst = 32;
constexpr uint64_t kRoundNs = 50 * kNsPerUs;
constexpr uint64_t kDrainNs = kNsPerSecond;

// At the payload's begin; the daemon carries it through untouched.
struct Payload {
  uint64_t magic;
  uint32_t flow;
  uint32_t reserved;
  uint64_t sequence;
  uint64_t entered;  // TSC
  uint64_t left;     // TSC
};
constexpr uint64_t kMagic = 0x6d61'7966'6c79'0001;
static_assert(sizeof(Payload) + 14 + 8 + 40 + 8 <= kProbeFrame - kChecksumBytes, "it fits behind IPv6, too");

// On the worker: when it sends the burst.
uint16_t stamp(uint16_t, uint16_t, rte_mbuf** mbufs, uint16_t count, void* offset) {
  const uint64_t now = rte_rdtsc();
  for (uint16_t i = 0; i < count; ++i)
    std::memcpy(rte_pktmbuf_mtod_offset(mbufs[i], char*, reinterpret_cast<uintptr_t>(offset)) +
                    offsetof(Payload, left),
                &now, sizeof now);
  return count;
}

void count_one(std::atomic<uint64_t>& counter, uint64_t by = 1) {
  counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

}  // namespace

Status ProbeDevice::open() {
  const auto make_ring = [](const char* name) {
    return rte_ring_create(name, kRingFrames, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ);
  };
  to_daemon_ = make_ring("probe_in");
  from_daemon_ = make_ring("probe_out");
  pool_ = rte_pktmbuf_pool_create("probe", kMbufs, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
  if (to_daemon_ == nullptr || from_daemon_ == nullptr || pool_ == nullptr)
    return fail(ENOMEM, "no memory for the probe's rings and mbufs: {}", rte_strerror(rte_errno));
  // The driver's name goes in front: kProbeDevice.
  if (rte_eth_from_rings("probe", &to_daemon_, 1, &from_daemon_, 1, SOCKET_ID_ANY) < 0)
    return fail(EIO, "net_ring made no device: {}", rte_strerror(rte_errno));
  return {};
}

void ProbeDevice::close() {
  for (rte_ring* ring : {to_daemon_, from_daemon_}) {
    void* frame = nullptr;
    while (ring != nullptr && rte_ring_sc_dequeue(ring, &frame) == 0)
      rte_pktmbuf_free(static_cast<rte_mbuf*>(frame));
  }
  rte_ring_free(to_daemon_);
  rte_ring_free(from_daemon_);
  rte_mempool_free(pool_);
  to_daemon_ = from_daemon_ = nullptr;
  pool_ = nullptr;
}

Status ProbeDevice::watch_transmit(uint32_t family) {
  stamp_offset_ = payload_offset(family);
  uint16_t port = 0;
  if (rte_eth_dev_get_port_by_name(kProbeDevice, &port) != 0)
    return fail(ENODEV, "{} is not there", kProbeDevice);
  rte_eth_dev_info offered{};
  rte_eth_dev_info_get(port, &offered);
  for (uint16_t queue = 0; queue < offered.nb_tx_queues; ++queue)
    if (rte_eth_add_tx_callback(port, queue, stamp, reinterpret_cast<void*>(stamp_offset_)) == nullptr)
      return fail(ENOTSUP, "{}: this DPDK has no transmit callbacks: {}", kProbeDevice,
                  rte_strerror(rte_errno));
  return {};
}

Probe::Probe(ProbeDevice& device, std::span<const FlowFrame> flows, uint32_t family)
    : device_(device), payload_(payload_offset(family)), flows_(flows.size()) {
  for (size_t i = 0; i < flows.size(); ++i) {
    flows_[i].frame = build_frame(flows[i], kProbeFrame);
    const Payload payload{.magic = kMagic,
                          .flow = static_cast<uint32_t>(i),
                          .reserved = 0,
                          .sequence = 0,
                          .entered = 0,
                          .left = 0};
    std::memcpy(flows_[i].frame.data() + payload_, &payload, sizeof payload);
  }
  ns_per_tick_ = static_cast<double>(kNsPerSecond) / static_cast<double>(rte_get_tsc_hz());
}

void Probe::start(uint64_t rate) {
  sending_.store(true);
  thread_ = std::thread([this, rate] { run(rate); });
}

void Probe::stop() {
  if (!thread_.joinable()) return;
  sending_.store(false);
  const uint64_t until = monotonic_ns() + kDrainNs;
  while (monotonic_ns() < until && counts().received < counts().sent) {
    const timespec pause{.tv_sec = 0, .tv_nsec = kNsPerMs};
    nanosleep(&pause, nullptr);
  }
  stop_.store(true);
  thread_.join();
}

void Probe::run(uint64_t rate) {
  const sched_param priority{.sched_priority = 1};
  realtime_.store(pthread_setschedparam(pthread_self(), SCHED_FIFO, &priority) == 0);
  prctl(PR_SET_TIMERSLACK, 1);
  uint64_t last_ns = monotonic_ns();
  double due = 0;
  while (!stop_.load(std::memory_order_relaxed)) {
    const uint64_t now_ns = monotonic_ns();
    if (sending_.load(std::memory_order_relaxed)) {
      // A thread that slept too long does not make up for it with a burst that no device would see.
      due = std::min(due + static_cast<double>(now_ns - last_ns) * static_cast<double>(rate) / kNsPerSecond,
                     static_cast<double>(kRingFrames) / 4);
      send(static_cast<uint64_t>(due));
      due -= static_cast<double>(static_cast<uint64_t>(due));
    }
    last_ns = now_ns;
    while (receive()) continue;
    const timespec pause{.tv_sec = 0, .tv_nsec = kRoundNs};
    nanosleep(&pause, nullptr);
  }
}

void Probe::send(uint64_t count) {
  for (; count != 0; --count) {
    Flow& flow = flows_[next_flow_];
    rte_mbuf* mbuf = rte_pktmbuf_alloc(device_.pool());
    if (mbuf == nullptr) {
      count_one(refused_, count);
      return;
    }
    char* data = rte_pktmbuf_append(mbuf, static_cast<uint16_t>(flow.frame.size()));
    Payload payload;
    std::memcpy(&payload, flow.frame.data() + payload_, sizeof payload);
    payload.sequence = flow.next;
    std::memcpy(data, flow.frame.data(), flow.frame.size());
    payload.entered = rte_rdtsc();
    std::memcpy(data + payload_, &payload, sizeof payload);
    if (rte_ring_sp_enqueue(device_.to_daemon(), mbuf) != 0) {
      rte_pktmbuf_free(mbuf);
      count_one(refused_, count);
      return;
    }
    ++flow.next;
    next_flow_ = (next_flow_ + 1) % flows_.size();
    count_one(sent_);
  }
}

bool Probe::receive() {
  void* frames[kBurst];
  const unsigned count = rte_ring_sc_dequeue_burst(device_.from_daemon(), frames, kBurst, nullptr);
  for (unsigned i = 0; i < count; ++i) {
    auto* mbuf = static_cast<rte_mbuf*>(frames[i]);
    judge(*mbuf);
    rte_pktmbuf_free(mbuf);
  }
  return count == kBurst;
}

void Probe::judge(const rte_mbuf& mbuf) {
  Payload payload{};
  if (rte_pktmbuf_data_len(&mbuf) >= payload_ + sizeof payload)
    std::memcpy(&payload, rte_pktmbuf_mtod_offset(&mbuf, const char*, payload_), sizeof payload);
  if (payload.magic != kMagic || payload.flow >= flows_.size()) {
    count_one(foreign_);
    return;
  }
  count_one(received_);
  const uint64_t ticks = payload.left > payload.entered ? payload.left - payload.entered : 0;
  latencies_[phase_.load(std::memory_order_relaxed)].add(
      static_cast<uint64_t>(static_cast<double>(ticks) * ns_per_tick_));
  judge_sequence(flows_[payload.flow], payload.sequence);
}

void Probe::judge_sequence(Flow& flow, uint64_t sequence) {
  if (sequence >= flow.expected) {
    for (uint64_t number = flow.expected; number < sequence; ++number) flow.missing.push_back(number);
    count_one(missing_, sequence - flow.expected);
    flow.expected = sequence + 1;
    return;
  }
  const auto found = std::ranges::find(flow.missing, sequence);
  if (found == flow.missing.end()) {
    count_one(duplicated_);
    return;
  }
  flow.missing.erase(found);
  count_one(reordered_);
  missing_.store(missing_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
}

ProbeCounts Probe::counts() const noexcept {
  // Received before sent: never more than sent.
  ProbeCounts counts;
  counts.received = received_.load();
  counts.sent = sent_.load();
  counts.refused = refused_.load();
  counts.missing = missing_.load();
  counts.reordered = reordered_.load();
  counts.duplicated = duplicated_.load();
  counts.foreign = foreign_.load();
  return counts;
}

}  // namespace mayfly::perf
