// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "../../lib/base/seed.hpp"
#include "mayfly-perf/samples.hpp"

namespace mayfly::perf {
namespace {

// The nearest rank, by counting.
double model_quantile(const std::vector<double>& values, double quantile) {
  for (const double candidate : values) {
    const auto not_above = std::ranges::count_if(values, [&](double value) { return value <= candidate; });
    const auto below = std::ranges::count_if(values, [&](double value) { return value < candidate; });
    const double rank = std::max(1.0, std::ceil(quantile * static_cast<double>(values.size())));
    if (static_cast<double>(below) < rank && rank <= static_cast<double>(not_above)) return candidate;
  }
  return -1;
}

TEST(Samples, QuantilesAreNearestRanks) {
  std::mt19937_64 random = mayfly::testing::seeded_random();
  for (const size_t count : {1, 2, 3, 10, 99, 100, 101, 1000, 1001}) {
    Samples samples;
    std::vector<double> values;
    for (size_t i = 0; i < count; ++i) {
      values.push_back(static_cast<double>(random() % 500));
      samples.add(values.back());
    }
    const Summary summary = samples.summary();
    EXPECT_EQ(summary.count, count);
    EXPECT_EQ(summary.min, *std::ranges::min_element(values));
    EXPECT_EQ(summary.median, model_quantile(values, 0.5));
    EXPECT_EQ(summary.p99, model_quantile(values, 0.99));
    EXPECT_EQ(summary.p999, model_quantile(values, 0.999));
    EXPECT_EQ(summary.max, *std::ranges::max_element(values));
  }
  EXPECT_EQ(Samples().summary().count, 0u);
}

TEST(LatencyHistogram, BucketsCoverEverythingAndAreNarrow) {
  for (uint32_t bucket = 1; bucket < LatencyHistogram::kBuckets; ++bucket) {
    const uint64_t upper = LatencyHistogram::upper_ns(bucket);
    const uint64_t lower = LatencyHistogram::upper_ns(bucket - 1) + 1;
    ASSERT_LE(lower, upper) << bucket;
    EXPECT_EQ(LatencyHistogram::bucket_of(upper), bucket);
    EXPECT_EQ(LatencyHistogram::bucket_of(lower), bucket);
    EXPECT_LE(upper - lower, lower / 32) << bucket;
  }
  EXPECT_EQ(LatencyHistogram::bucket_of(0), 0u);
  EXPECT_EQ(LatencyHistogram::bucket_of(UINT64_MAX), LatencyHistogram::kBuckets - 1);
}

TEST(LatencyHistogram, SummaryIsThatOfItsValuesWithinABucket) {
  std::mt19937_64 random = mayfly::testing::seeded_random();
  LatencyHistogram histogram;
  Samples samples;
  for (int i = 0; i < 5'000; ++i) {
    const uint64_t ns = random() >> (24 + random() % 36);
    histogram.add(ns);
    samples.add(static_cast<double>(ns));
  }
  const Summary exact = samples.summary();
  const Summary coarse = summary_of(histogram.counts());
  EXPECT_EQ(coarse.count, exact.count);
  for (const double Summary::*value :
       {&Summary::min, &Summary::median, &Summary::p99, &Summary::p999, &Summary::max}) {
    EXPECT_GE(coarse.*value, exact.*value);
    EXPECT_LE(coarse.*value, exact.*value * 33 / 32 + 1);
  }
}

TEST(LatencyHistogram, DifferenceIsWhatCameBetween) {
  LatencyHistogram histogram;
  for (int i = 0; i < 10; ++i) histogram.add(100);
  const auto before = histogram.counts();
  histogram.add(1'000'000);
  const auto grown = difference(histogram.counts(), before);
  EXPECT_EQ(summary_of(grown).count, 1u);
  EXPECT_GE(summary_of(grown).min, 1'000'000);
  EXPECT_EQ(filled_buckets(grown).size(), 1u);
  // The first copy of all: nothing to take off.
  EXPECT_EQ(summary_of(difference(histogram.counts(), {})).count, 11u);
}

}  // namespace
}  // namespace mayfly::perf
