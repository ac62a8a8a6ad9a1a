// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline/worker.hpp"

#include <rte_ethdev.h>
#include <sys/prctl.h>
#include <time.h>

#include <algorithm>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "pipeline/family.hpp"
#include "pipeline/parked.hpp"
#include "pipeline/stages.hpp"
#include "pipeline/tx.hpp"

namespace mayfly {
namespace {

constexpr uint64_t kTickNs = kNsPerMs;
constexpr uint64_t kFirstSleepNs = 50 * kNsPerUs;
constexpr uint32_t kMessagesPerLoop = 64;
// A tick's share of the queues of parked packets: about 20 us, and 8 ms for a walk over 4,096.
constexpr uint32_t kQueuesPerTick = 512;
// What so many of them may send into veths, or have reported, is received there before the next ones.
constexpr uint32_t kQueuesPerRound = 64;
static_assert(kQueuesPerRound * Parking::kPacketsPerNeighbour <= Crossings::kMostFrames);

template <class Family>
constexpr Stage of_family(Stage v4, Stage v6) noexcept {
  return Family::kProtocol == kProtocolIpv6 ? v6 : v4;
}

}  // namespace

Worker::Worker(uint32_t index, const WorkerSettings& settings)
    : index_(index),
      settings_(settings),
      path_{.table = settings.table,
            .interfaces = settings.table.interfaces(),
            .statistics = settings.statistics,
            .to_control = settings.to_control,
            .pool = settings.pool,
            .parking = Parking(settings.parked_limit),
            .stages = StageClock(settings.statistics.stages)} {
  MAYFLY_CHECK(settings.sleep_ns <= kMostSleepNs, "a worker must not sleep for more than a millisecond");
  settings.statistics.interfaces = settings.table.counters(index);
  settings.statistics.references = settings.table.references(index);
}

void Worker::run(const std::atomic<bool>& stop) noexcept {
  // Otherwise the kernel adds 50 us to every sleep.
  prctl(PR_SET_TIMERSLACK, 1);
  clock_.start();
  enter(clock_.now_ns());
  while (!stop.load(std::memory_order_relaxed)) {
    step(clock_.now_ns());
    if (settings_.idle == IdlePolicy::adaptive && path_.now_ns - last_packet_ns_ >= settings_.after_ns)
      sleep();
  }
  leave();
}

void Worker::enter(uint64_t now_ns) noexcept {
  rcu_register_worker();
  path_.now_ns = last_packet_ns_ = now_ns;
  next_tick_ns_ = now_ns + kTickNs;
  next_sleep_ns_ = kFirstSleepNs;
}

void Worker::leave() noexcept {
  drop_all_parked(path_);
  finish_loop(true);
  rcu_unregister_worker();
}

bool Worker::step(uint64_t now_ns) noexcept {
  path_.stages.begin_loop();
  path_.now_ns = now_ns;
  path_.queues = settings_.queues.read();
  handle_messages();
  const uint32_t received = receive();
  const bool tick = path_.now_ns >= next_tick_ns_;
  if (tick) housekeep();
  finish_loop(received != 0 || tick);
  path_.stages.end_loop(received);
  return received != 0;
}

void Worker::handle_messages() noexcept {
  ControlMessage message;
  for (uint32_t left = kMessagesPerLoop; left != 0 && settings_.from_control.pop(&message); --left) {
    path_.stages.set_aside();
    switch (message.type) {
      case ControlMessage::Type::ask_neighbour:
        if (message.address.is_v4())
          send_arp_request(path_, message);
        else
          send_solicitation(path_, message);
        break;
      case ControlMessage::Type::neighbour_resolved:
        neighbour_resolved(path_, message);
        break;
      case ControlMessage::Type::neighbour_failed:
        neighbour_failed(path_, message);
        break;
    }
    path_.stages.end(Stage::messages);
    send_errors();
    cross_veths();
  }
}

uint32_t Worker::receive() noexcept {
  if (path_.queues == nullptr) return 0;
  uint32_t received = 0;
  path_.stages.set_aside();
  for (uint32_t i = 0; i < path_.queues->rx_count; ++i) {
    const QueueList::RxQueue& from = path_.queues->rx[i];
    rte_mbuf* mbufs[kVectorSize];
    const uint16_t count = rte_eth_rx_burst(from.port, from.queue, mbufs, kVectorSize);
    path_.stages.end(count != 0 ? Stage::rx : Stage::idle, count);
    if (count == 0) continue;
    received += count;
    forward(from, mbufs, count);
  }
  if (received != 0) {
    ++settings_.statistics.totals.busy_loops;
    last_packet_ns_ = path_.now_ns;
    next_sleep_ns_ = kFirstSleepNs;
  }
  return received;
}

// The way of a packet.
void Worker::forward(const QueueList::RxQueue& from, rte_mbuf* const* mbufs, uint32_t count) noexcept {
  classify(path_, from, mbufs, count, packets_);
  path_.stages.end(Stage::classify, count);
  forward_vector();
  cross_veths();
}

void Worker::forward_vector() noexcept {
  pass(Stage::input, packets_, [this] { input(path_, packets_, packets6_, answers_); });
  pass(Stage::check_sources, packets_, [this] { check_sources<V4>(path_, packets_); });
  pass(Stage::look_up, packets_, [this] { look_up<V4>(packets_); });
  pass(Stage::route, packets_, [this] { route<V4>(path_, packets_, &local_); });
  send<V4>(packets_);
  if (packets6_.count != 0) forward_ipv6();
  pass(Stage::encapsulate, answers_, [this] { encapsulate(path_, answers_); });
  if (local_.count != 0) {
    pass(Stage::local, local_, [this] { local(path_, local_); });
    send_own<V4>(local_);
  }
  send_errors();
}

void Worker::forward_ipv6() noexcept {
  pass(Stage::input6, packets6_, [this] { input6(path_, packets6_, local6_); });
  pass(Stage::check_sources6, packets6_, [this] { check_sources<V6>(path_, packets6_); });
  pass(Stage::look_up6, packets6_, [this] { look_up<V6>(packets6_); });
  pass(Stage::route6, packets6_, [this] { route<V6>(path_, packets6_, &local6_); });
  send<V6>(packets6_);
  pass(Stage::local6, local6_, [this] { local6(path_, local6_, answers_); });
  send_own<V6>(local6_);
}

// What was sent into a veth arrives at its other end, and goes the same way from there.
void Worker::cross_veths() noexcept {
  const uint64_t& rx = settings_.statistics.totals.rx;
  for (uint64_t before = rx; arrive(path_, packets_); before = rx) {
    path_.stages.end(Stage::arrive, rx - before);
    forward_vector();
  }
}

template <class Call>
void Worker::pass(Stage stage, const PacketVector& packets, const Call& call) noexcept {
  const uint32_t count = packets.count;
  if (count == 0) return;
  call();
  path_.stages.end(stage, count);
}

template <class Family>
void Worker::send(PacketVector& packets) noexcept {
  pass(of_family<Family>(Stage::neighbour, Stage::neighbour6), packets,
       [&] { neighbour<Family>(path_, packets); });
  pass(Stage::encapsulate, packets, [&] { encapsulate(path_, packets); });
}

template <class Family>
void Worker::send_own(PacketVector& packets) noexcept {
  pass(of_family<Family>(Stage::look_up, Stage::look_up6), packets, [&] { look_up<Family>(packets); });
  pass(of_family<Family>(Stage::route, Stage::route6), packets,
       [&] { route<Family>(path_, packets, nullptr); });
  send<Family>(packets);
}

void Worker::send_errors() noexcept {
  if (path_.errors.count != 0) [[unlikely]]
    send_own<V4>(path_.errors);
  if (path_.errors6.count != 0) [[unlikely]]
    send_own<V6>(path_.errors6);
}

void Worker::housekeep() noexcept {
  next_tick_ns_ = path_.now_ns + kTickNs;
  path_.stages.set_aside();
  for (uint32_t seen = 0; seen < kQueuesPerTick && path_.parking.packets() != 0; seen += kQueuesPerRound) {
    check_parked(path_, kQueuesPerRound, &parked_cursor_);
    path_.stages.end(Stage::housekeeping);
    send_errors();
    cross_veths();
  }
  clock_.adjust();
  path_.stages.end(Stage::housekeeping);
}

void Worker::finish_loop(bool publish) noexcept {
  MAYFLY_DEBUG_CHECK(path_.errors.count + path_.errors6.count == 0,
                     "an ICMP error was kept over a quiescent state");
  flush_transmit(path_);
  settle_drops(path_);
  Totals& totals = settings_.statistics.totals;
  ++totals.loops;
  totals.parked = path_.parking.packets();
  MAYFLY_DEBUG_CHECK(totals.difference() == 0, "a worker lost count of a packet");
  if (publish) settings_.statistics.published.publish(totals);
  path_.queues = nullptr;
  rcu_quiescent_state();
}

void Worker::sleep() noexcept {
  ++settings_.statistics.totals.sleeps;
  settings_.statistics.published.publish(settings_.statistics.totals);
  const timespec duration{.tv_sec = 0,
                          .tv_nsec = static_cast<long>(std::min(next_sleep_ns_, settings_.sleep_ns))};
  next_sleep_ns_ = std::min(2 * next_sleep_ns_, settings_.sleep_ns);
  path_.stages.pause();
  const OfflineScope offline;
  nanosleep(&duration, nullptr);
}

}  // namespace mayfly
