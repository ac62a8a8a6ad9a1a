// SPDX-License-Identifier: BSD-3-Clause
#include "port/queue_assignment.hpp"

#include <algorithm>

namespace mayfly {

std::vector<uint32_t> assign_queues(uint32_t queues, std::vector<uint32_t> load) {
  const auto workers = static_cast<uint32_t>(load.size());
  std::vector<uint32_t> worker_of(queues);
  for (uint32_t queue = 0; queue < queues; ++queue) {
    if (queues >= workers) {
      worker_of[queue] = queue % workers;
      continue;
    }
    const auto least = std::ranges::min_element(load);
    worker_of[queue] = static_cast<uint32_t>(least - load.begin());
    *least = UINT32_MAX;  // each worker once
  }
  return worker_of;
}

}  // namespace mayfly
