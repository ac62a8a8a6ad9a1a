// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Stage counters of all workers (stats/stage_counters.hpp) as operators have them: switched on and off, and
// counted since then. Workers' counts only ever grow; what a reset forgets is subtracted here.
//
// Control thread.

#include <cstdint>
#include <span>
#include <vector>

#include "stats/stage_counters.hpp"

namespace mayfly {

struct WorkerLink;

class StageMeasurement {
 public:
  // Turning on what was off counts from nothing. Off leaves the counts to be read.
  void switch_to(bool on, std::span<const WorkerLink> workers, uint64_t now_ns);
  // Counts from nothing, on or off.
  void reset(std::span<const WorkerLink> workers, uint64_t now_ns);

  bool on() const noexcept { return on_; }
  // For how long it has been on since counts were nothing.
  uint64_t counted_ns(uint64_t now_ns) const noexcept { return counted_ns_ + (on_ ? now_ns - since_ns_ : 0); }
  StageSums of_worker(size_t index, std::span<const WorkerLink> workers) const noexcept;

 private:
  bool on_ = false;
  uint64_t since_ns_ = 0;
  uint64_t counted_ns_ = 0;
  std::vector<StageSums> forgotten_;  // by worker
};

}  // namespace mayfly
