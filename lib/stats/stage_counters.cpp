// SPDX-License-Identifier: BSD-3-Clause
#include "stats/stage_counters.hpp"

namespace mayfly {

StageSums operator-(const StageSums& later, const StageSums& earlier) noexcept {
  StageSums between;
  for (size_t i = 0; i < kStages; ++i)
    between[i] = {later[i].vectors - earlier[i].vectors, later[i].packets - earlier[i].packets,
                  later[i].clocks - earlier[i].clocks};
  return between;
}

StageSums StageCounters::read() const noexcept {
  StageSums sums;
  for (size_t i = 0; i < kStages; ++i)
    sums[i] = {counters_[i].vectors.load(std::memory_order_relaxed),
               counters_[i].packets.load(std::memory_order_relaxed),
               counters_[i].clocks.load(std::memory_order_relaxed)};
  return sums;
}

}  // namespace mayfly
