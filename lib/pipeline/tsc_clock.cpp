// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline/tsc_clock.hpp"

#include <rte_cycles.h>

#include <algorithm>

#include "base/clock.hpp"

namespace mayfly {
namespace {

using Wide = unsigned __int128;
constexpr unsigned kFractionBits = 32;

uint64_t ratio(uint64_t ns, uint64_t ticks) noexcept {
  return static_cast<uint64_t>((Wide{ns} << kFractionBits) / ticks);
}

}  // namespace

void TscClock::start() noexcept {
  ns_per_tick_ = ratio(kNsPerSecond, rte_get_tsc_hz());
  base_ns_ = monotonic_ns();
  base_tsc_ = rte_rdtsc();
  last_ns_ = base_ns_;
}

uint64_t TscClock::now_ns() noexcept {
  const uint64_t ticks = rte_rdtsc() - base_tsc_;
  const auto passed = static_cast<uint64_t>((Wide{ticks} * ns_per_tick_) >> kFractionBits);
  last_ns_ = std::max(last_ns_, base_ns_ + passed);
  return last_ns_;
}

void TscClock::adjust() noexcept {
  if (last_ns_ - base_ns_ < kNsPerSecond) return;
  const uint64_t ns = monotonic_ns();
  const uint64_t tsc = rte_rdtsc();
  if (ns > base_ns_ && tsc > base_tsc_) ns_per_tick_ = ratio(ns - base_ns_, tsc - base_tsc_);
  base_ns_ = ns;
  base_tsc_ = tsc;
}

}  // namespace mayfly
