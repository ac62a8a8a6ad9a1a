// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The seed of a randomised test: MAYFLY_TEST_SEED, or a new one at every run. It is printed, so that a
// failure can be run again.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace mayfly::testing {

inline std::mt19937_64 seeded_random() {
  const char* given = std::getenv("MAYFLY_TEST_SEED");
  const uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::printf("MAYFLY_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  ::testing::Test::RecordProperty("seed", std::to_string(seed));
  return std::mt19937_64(seed);
}

}  // namespace mayfly::testing
