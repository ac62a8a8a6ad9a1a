// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Divides a worker's time among the stages: a lap clock, where the end of one stage is the start of the next.
// Worker; the times are any clock that does not go back, here the TSC (pipeline/stage_clock.hpp).
//
//   laps.restart(now);                               nothing before counts
//   ... read the messages ...
//   laps.set_aside(now);                             what a loop costs beside its stages, until end_loop()
//   ... a stage ...
//   laps.end(now, Stage::classify, 64);
//   ... a stage that sends in the middle ...
//     const uint64_t outer = laps.begin_inner(now);
//     ... rte_eth_tx_burst ...
//     laps.end_inner(now, outer, Stage::tx, 64);     the rest of the stage is still its own
//   laps.end(now, Stage::encapsulate, 64);
//   laps.end_loop(now, 64);
//
// Inner stages may nest.

#include <cstdint>
#include <utility>

#include "stats/stage_counters.hpp"

namespace mayfly {

class StageLaps {
 public:
  explicit StageLaps(StageCounters& counters) noexcept : counters_(counters) {}

  void restart(uint64_t now) noexcept {
    last_ = now;
    begun_ = aside_ = 0;
  }
  void end(uint64_t now, Stage stage, uint64_t packets) noexcept { counters_.add(stage, packets, take(now)); }
  void set_aside(uint64_t now) noexcept { aside_ += take(now); }
  // With the packets that came in this loop; 0: it was idle.
  void end_loop(uint64_t now, uint64_t packets) noexcept {
    set_aside(now);
    const uint64_t clocks = std::exchange(aside_, 0);
    if (packets != 0)
      counters_.add(Stage::loop, packets, clocks);
    else
      counters_.add_idle(clocks);
  }
  // The clocks of the stage around it so far, for end_inner().
  uint64_t begin_inner(uint64_t now) noexcept { return take(now); }
  void end_inner(uint64_t now, uint64_t outer, Stage stage, uint64_t packets) noexcept {
    end(now, stage, packets);
    begun_ = outer;
  }

  StageCounters& counters() const noexcept { return counters_; }

 private:
  uint64_t take(uint64_t now) noexcept { return std::exchange(begun_, 0) + now - std::exchange(last_, now); }

  StageCounters& counters_;
  uint64_t last_ = 0;
  uint64_t begun_ = 0;  // of the stage that runs, before an inner one
  uint64_t aside_ = 0;  // of the loop, beside its stages
};

}  // namespace mayfly
