// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The probe's own ways through the daemon: pairs of VLAN interfaces on the port probe0, which nothing that a
// run creates or deletes touches; and what became of its frames.

#include <vector>

#include "console.hpp"
#include "paths.hpp"
#include "probe.hpp"
#include "report.hpp"

namespace mayfly::perf {

constexpr uint64_t kProbePairs = 16;

struct ProbePaths {
  std::vector<FlowFrame> flows;
};

Result<ProbePaths> lay_probe_paths(Console& console, ProbeDevice& device, uint32_t family);
// Losses, and latencies of both phases: quiet (0) and churn (1).
void report_probe(const Probe& probe, Report& report);

}  // namespace mayfly::perf
