// SPDX-License-Identifier: BSD-3-Clause
#include "samples.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace mayfly::perf {

namespace {

// The 1-based rank of a quantile.
uint64_t rank_of(double quantile, uint64_t count) {
  return std::max<uint64_t>(1, static_cast<uint64_t>(std::ceil(quantile * static_cast<double>(count))));
}

}  // namespace

Summary Samples::summary() const {
  if (values_.empty()) return {};
  std::vector<double> sorted = values_;
  std::ranges::sort(sorted);
  const auto at = [&sorted](double quantile) { return sorted[rank_of(quantile, sorted.size()) - 1]; };
  return {.count = sorted.size(),
          .min = sorted.front(),
          .median = at(0.5),
          .p99 = at(0.99),
          .p999 = at(0.999),
          .max = sorted.back()};
}

uint32_t LatencyHistogram::bucket_of(uint64_t ns) noexcept {
  constexpr uint64_t kExact = uint64_t{1} << kSubBits;
  if (ns < kExact) return static_cast<uint32_t>(ns);
  const auto shift = static_cast<uint32_t>(std::bit_width(ns)) - kSubBits - 1;
  return ((shift + 1) << kSubBits) + static_cast<uint32_t>((ns >> shift) - kExact);
}

uint64_t LatencyHistogram::upper_ns(uint32_t bucket) noexcept {
  constexpr uint64_t kExact = uint64_t{1} << kSubBits;
  if (bucket < kExact) return bucket;
  const uint32_t shift = (bucket >> kSubBits) - 1;
  return ((((bucket & (kExact - 1)) + kExact) << shift) | ((uint64_t{1} << shift) - 1));
}

LatencyHistogram::Counts LatencyHistogram::counts() const {
  Counts counts(kBuckets);
  for (uint32_t i = 0; i < kBuckets; ++i) counts[i] = buckets_[i].load(std::memory_order_relaxed);
  return counts;
}

Summary summary_of(const LatencyHistogram::Counts& counts) {
  Summary summary;
  for (const uint64_t count : counts) summary.count += count;
  if (summary.count == 0) return summary;
  const uint64_t ranks[] = {1, rank_of(0.5, summary.count), rank_of(0.99, summary.count),
                            rank_of(0.999, summary.count), summary.count};
  double* const values[] = {&summary.min, &summary.median, &summary.p99, &summary.p999, &summary.max};
  uint64_t below = 0;
  size_t next = 0;
  for (uint32_t bucket = 0; bucket < counts.size() && next < std::size(ranks); ++bucket) {
    below += counts[bucket];
    while (next < std::size(ranks) && below >= ranks[next])
      *values[next++] = static_cast<double>(LatencyHistogram::upper_ns(bucket));
  }
  return summary;
}

LatencyHistogram::Counts difference(const LatencyHistogram::Counts& now,
                                    const LatencyHistogram::Counts& before) {
  LatencyHistogram::Counts counts = now;
  for (size_t i = 0; i < before.size(); ++i) counts[i] -= before[i];
  return counts;
}

std::vector<std::pair<uint64_t, uint64_t>> filled_buckets(const LatencyHistogram::Counts& counts) {
  std::vector<std::pair<uint64_t, uint64_t>> filled;
  for (uint32_t i = 0; i < counts.size(); ++i)
    if (counts[i] != 0) filled.emplace_back(LatencyHistogram::upper_ns(i), counts[i]);
  return filled;
}

}  // namespace mayfly::perf
