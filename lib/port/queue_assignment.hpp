// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Which worker serves which receive queue. Pure.

#include <cstdint>
#include <vector>

namespace mayfly {

// load: receive queues that each worker serves already. Queue q goes to worker q % workers; with fewer queues
// than workers, to the least loaded worker that has none of this port yet (the lowest number of equals). The
// answer is indexed by queue.
std::vector<uint32_t> assign_queues(uint32_t queues, std::vector<uint32_t> load);

}  // namespace mayfly
