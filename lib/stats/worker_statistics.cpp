// SPDX-License-Identifier: BSD-3-Clause
#include "stats/worker_statistics.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace mayfly {
namespace {

constexpr int kReadTries = 1000;

}  // namespace

uint64_t Totals::dropped() const noexcept {
  return std::accumulate(drops.begin(), drops.end(), uint64_t{0});
}

int64_t Totals::difference() const noexcept {
  return static_cast<int64_t>(rx + originated) - static_cast<int64_t>(tx + dropped() + punted + parked);
}

Totals& Totals::operator+=(const Totals& other) noexcept {
  rx += other.rx;
  rx_bytes += other.rx_bytes;
  originated += other.originated;
  tx += other.tx;
  tx_bytes += other.tx_bytes;
  punted += other.punted;
  parked += other.parked;
  loops += other.loops;
  busy_loops += other.busy_loops;
  sleeps += other.sleeps;
  veth_crossings += other.veth_crossings;
  icmp_errors_sent += other.icmp_errors_sent;
  icmp_errors_limited += other.icmp_errors_limited;
  icmp_errors_unsent += other.icmp_errors_unsent;
  for (size_t i = 0; i < kDropReasons; ++i) {
    drops[i] += other.drops[i];
    drop_last_ns[i] = std::max(drop_last_ns[i], other.drop_last_ns[i]);
  }
  return *this;
}

void PublishedTotals::publish(const Totals& totals) noexcept {
  uint64_t words[kWords];
  std::memcpy(words, &totals, sizeof words);
  const uint64_t sequence = sequence_.load(std::memory_order_relaxed);
  sequence_.store(sequence + 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  for (size_t i = 0; i < kWords; ++i) words_[i].store(words[i], std::memory_order_relaxed);
  sequence_.store(sequence + 2, std::memory_order_release);
}

bool PublishedTotals::read(Totals* copy) const noexcept {
  uint64_t words[kWords];
  bool consistent = false;
  for (int i = 0; i < kReadTries && !consistent; ++i) {
    const uint64_t before = sequence_.load(std::memory_order_acquire);
    for (size_t word = 0; word < kWords; ++word) words[word] = words_[word].load(std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);
    consistent = before % 2 == 0 && sequence_.load(std::memory_order_relaxed) == before;
  }
  std::memcpy(copy, words, sizeof words);
  return consistent;
}

}  // namespace mayfly
