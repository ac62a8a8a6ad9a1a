// SPDX-License-Identifier: BSD-3-Clause
#include "control/stage_measurement.hpp"

#include "control/dataplane.hpp"

namespace mayfly {

void StageMeasurement::switch_to(bool on, std::span<const WorkerLink> workers, uint64_t now_ns) {
  if (on == on_) return;
  if (on)
    reset(workers, now_ns);
  else
    counted_ns_ = counted_ns(now_ns);
  on_ = on;
  for (const WorkerLink& worker : workers) worker.statistics->stages.set_on(on);
}

void StageMeasurement::reset(std::span<const WorkerLink> workers, uint64_t now_ns) {
  forgotten_.clear();
  for (const WorkerLink& worker : workers) forgotten_.push_back(worker.statistics->stages.read());
  since_ns_ = now_ns;
  counted_ns_ = 0;
}

StageSums StageMeasurement::of_worker(size_t index, std::span<const WorkerLink> workers) const noexcept {
  const StageSums sums = workers[index].statistics->stages.read();
  return index < forgotten_.size() ? sums - forgotten_[index] : sums;
}

}  // namespace mayfly
