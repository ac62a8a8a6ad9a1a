// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The worker's hold on its stage counters (stats/stage_counters.hpp): StageLaps over the TSC, switched by the
// control thread. The switch is looked at once a loop; while it is off every call is one predictable branch,
// and what is behind it stays out of the caller's code. Worker (internal to lib/pipeline).

#include "stats/stage_laps.hpp"

namespace mayfly {

class StageClock {
 public:
  explicit StageClock(StageCounters& counters) noexcept : laps_(counters) {}

  // At the start of a loop, before anything else.
  void begin_loop() noexcept {
    if (running_ != laps_.counters().on()) [[unlikely]]
      toggle();
  }
  // As in StageLaps; packets == 0 where a stage has none.
  void end(Stage stage, uint64_t packets = 0) noexcept {
    if (running_) [[unlikely]]
      end_now(stage, packets);
  }
  void set_aside() noexcept {
    if (running_) [[unlikely]]
      set_aside_now();
  }
  void end_loop(uint64_t packets) noexcept {
    if (running_) [[unlikely]]
      end_loop_now(packets);
  }
  uint64_t begin_inner() noexcept { return running_ ? begin_inner_now() : 0; }
  void end_inner(uint64_t outer, Stage stage, uint64_t packets) noexcept {
    if (running_) [[unlikely]]
      end_inner_now(outer, stage, packets);
  }
  // What follows until the next loop is not counted: the worker sleeps.
  void pause() noexcept { running_ = false; }

 private:
  [[gnu::cold]] void toggle() noexcept;
  [[gnu::cold]] void end_now(Stage stage, uint64_t packets) noexcept;
  [[gnu::cold]] void set_aside_now() noexcept;
  [[gnu::cold]] void end_loop_now(uint64_t packets) noexcept;
  [[gnu::cold]] uint64_t begin_inner_now() noexcept;
  [[gnu::cold]] void end_inner_now(uint64_t outer, Stage stage, uint64_t packets) noexcept;

  bool running_ = false;
  StageLaps laps_;
};

}  // namespace mayfly
