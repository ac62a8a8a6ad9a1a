// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Whether one worker carries much more than the others: a device that cannot hash what arrives puts it all on
// one queue, and the forwarding rate of the machine is that worker's.
//
// Workers are out of balance when the busiest received more than twice the mean of the *others* over the last
// kSeconds, and at least kLeastRate packets a second. Of the others, because with two workers one can never
// have more than twice the mean of both; the least rate, because a few packets are never even.
//
// Control thread; a call a second.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace mayfly {

struct WorkerImbalance {
  uint32_t busiest = 0;
  uint64_t busiest_rate = 0;  // packets/s
  uint64_t others_rate = 0;   // packets/s, mean of the other workers
  uint32_t others = 0;        // how many those are
  uint32_t idlest = 0;

  // "worker 1 handles 4.2x the packets of worker 0: ..."
  std::string describe() const;
};

class WorkerBalance {
 public:
  static constexpr size_t kSeconds = 3;
  static constexpr uint64_t kLeastRate = 10'000;

  // Packets that each worker received since its start; once a second.
  void sample(std::span<const uint64_t> received);
  const std::optional<WorkerImbalance>& imbalance() const noexcept { return imbalance_; }

 private:
  std::vector<std::array<uint64_t, kSeconds + 1>> samples_;  // by worker; the newest at next_ - 1
  uint64_t taken_ = 0;
  std::optional<WorkerImbalance> imbalance_;
};

}  // namespace mayfly
