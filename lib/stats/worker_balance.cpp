// SPDX-License-Identifier: BSD-3-Clause
#include "stats/worker_balance.hpp"

#include <fmt/format.h>

namespace mayfly {
namespace {

constexpr uint64_t kMostTimesMean = 2;

}  // namespace

std::string WorkerImbalance::describe() const {
  const std::string whom =
      others == 1 ? fmt::format("worker {}", idlest) : fmt::format("the mean of the other {}", others);
  const std::string times =
      others_rate == 0
          ? fmt::format("{} packets/s, {} none", busiest_rate, whom)
          : fmt::format("{:.1f}x the packets of {}",
                        static_cast<double>(busiest_rate) / static_cast<double>(others_rate), whom);
  return fmt::format(
      "worker {} handles {}: its receive queues get most of the traffic; many NICs cannot hash QinQ or "
      "tunnels "
      "(mayfly port show: rss, queues)",
      busiest, times);
}

void WorkerBalance::sample(std::span<const uint64_t> received) {
  samples_.resize(received.size());
  const size_t newest = taken_ % (kSeconds + 1);
  for (size_t worker = 0; worker < received.size(); ++worker) samples_[worker][newest] = received[worker];
  ++taken_;
  imbalance_.reset();
  if (received.size() < 2 || taken_ <= kSeconds) return;
  const size_t oldest = taken_ % (kSeconds + 1);
  std::vector<uint64_t> rates;
  for (const auto& samples : samples_) rates.push_back((samples[newest] - samples[oldest]) / kSeconds);
  WorkerImbalance found;
  uint64_t all = 0;
  for (uint32_t worker = 0; worker < rates.size(); ++worker) {
    all += rates[worker];
    if (rates[worker] > rates[found.busiest]) found.busiest = worker;
    if (rates[worker] < rates[found.idlest]) found.idlest = worker;
  }
  found.busiest_rate = rates[found.busiest];
  found.others = static_cast<uint32_t>(rates.size() - 1);
  found.others_rate = (all - found.busiest_rate) / found.others;
  if (found.busiest_rate >= kLeastRate && found.busiest_rate > kMostTimesMean * found.others_rate)
    imbalance_ = found;
}

}  // namespace mayfly
