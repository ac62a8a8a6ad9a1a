// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The traffic of forward and survive: N interfaces, half of them on port0 where frames come in, half on port1
// where they leave; and what the workers did with it between two moments.

#include <cstdint>
#include <vector>

#include "console.hpp"
#include "options.hpp"
#include "paths.hpp"
#include "report.hpp"
#include "runs.hpp"

namespace mayfly::perf {

RunDevices load_devices(const PerfOptions& options, bool probe = false);
PathPlan load_plan(const PerfOptions& options);
uint64_t load_frame_count(const PerfOptions& options);
// In the order in which they are replayed.
std::vector<std::vector<uint8_t>> load_frames(const PerfOptions& options, Mac mac);

// For whoever sends from outside: what port0 forwards.
std::string describe_wanted_traffic(Console& console, const PerfOptions& options);

struct WorkerCounts {
  uint64_t rx = 0, tx = 0;
};
struct LoadCounts {
  uint64_t at_ns = 0;
  uint64_t rx = 0, tx = 0, drops = 0;
  int64_t difference = 0;
  std::vector<WorkerCounts> workers;
};
Result<LoadCounts> count_load(Console& console);
// Rates of each worker, drops, the balance.
void report_load(const LoadCounts& before, const LoadCounts& after, Report& report);
// Rates of the rows within a mark of this kind ("": all), ten a second.
Samples forwarded(const std::vector<SeriesRow>& series, const std::vector<Mark>& marks,
                  std::string_view kind);

}  // namespace mayfly::perf
