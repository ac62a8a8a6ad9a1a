// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Which CPUs poll and which are left for everything else. Pure; any thread, before the EAL starts.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace mayfly {

struct CpuPlan {
  std::vector<int> worker_cpus;   // one a worker
  std::vector<int> control_cpus;  // control, grace, teardown and port threads: every other CPU
  std::string warning;            // when workers and control share CPUs; empty otherwise
};

// The CPUs this process may run on, ascending.
std::vector<int> allowed_cpus();

// wanted: one CPU a worker, or empty: the last allowed ones, so that the first stays with the kernel and
// control. With too few CPUs they are shared, and the plan warns. EINVAL when wanted names a CPU that is not
// allowed, or not one a worker.
Result<CpuPlan> plan_cpus(uint32_t workers, const std::vector<int>& wanted, const std::vector<int>& allowed);

// "0-3,7"
std::string format_cpus(const std::vector<int>& cpus);

}  // namespace mayfly
