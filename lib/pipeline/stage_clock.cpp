// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline/stage_clock.hpp"

#include <rte_cycles.h>

namespace mayfly {

void StageClock::toggle() noexcept {
  running_ = !running_;
  laps_.restart(rte_rdtsc());
}

void StageClock::end_now(Stage stage, uint64_t packets) noexcept {
  laps_.end(rte_rdtsc(), stage, packets);
}

void StageClock::set_aside_now() noexcept {
  laps_.set_aside(rte_rdtsc());
}

void StageClock::end_loop_now(uint64_t packets) noexcept {
  laps_.end_loop(rte_rdtsc(), packets);
}

uint64_t StageClock::begin_inner_now() noexcept {
  return laps_.begin_inner(rte_rdtsc());
}

void StageClock::end_inner_now(uint64_t outer, Stage stage, uint64_t packets) noexcept {
  laps_.end_inner(rte_rdtsc(), outer, stage, packets);
}

}  // namespace mayfly
