// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// What a run measured: a few figures a round (Samples), or millions of latencies (LatencyHistogram).

#include <array>
#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

namespace mayfly::perf {

struct Summary {
  uint64_t count = 0;
  double min = 0, median = 0, p99 = 0, p999 = 0, max = 0;  // of no sample: 0
};

// One thread. Quantiles are the nearest rank: always a value that was measured.
class Samples {
 public:
  void add(double value) { values_.push_back(value); }
  Summary summary() const;

 private:
  std::vector<double> values_;
};

// Nanoseconds in buckets that are at most 1/32 wide: exact below 32 ns. One thread adds, any thread copies.
class LatencyHistogram {
 public:
  static constexpr uint32_t kSubBits = 5;
  static constexpr uint32_t kBuckets = (64 - kSubBits + 1) << kSubBits;
  using Counts = std::vector<uint64_t>;

  void add(uint64_t ns) noexcept {
    std::atomic<uint64_t>& bucket = buckets_[bucket_of(ns)];
    bucket.store(bucket.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  Counts counts() const;

  static uint32_t bucket_of(uint64_t ns) noexcept;
  // The largest value of a bucket.
  static uint64_t upper_ns(uint32_t bucket) noexcept;

 private:
  std::array<std::atomic<uint64_t>, kBuckets> buckets_{};
};

// Of the counts of a histogram, or of the difference of two copies.
Summary summary_of(const LatencyHistogram::Counts& counts);
LatencyHistogram::Counts difference(const LatencyHistogram::Counts& now,
                                    const LatencyHistogram::Counts& before);
// (largest value, count) of each bucket that is not empty.
std::vector<std::pair<uint64_t, uint64_t>> filled_buckets(const LatencyHistogram::Counts& counts);

}  // namespace mayfly::perf
