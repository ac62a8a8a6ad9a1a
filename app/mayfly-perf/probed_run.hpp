// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// What survive and scenario have in common: while something is done to the daemon, the load is counted, an
// observer watches, and a probe sends through ways of its own, which nothing that is created or deleted
// touches: pairs of VLAN interfaces on the port probe0.

#include <functional>

#include "probe.hpp"
#include "runs.hpp"

namespace mayfly::perf {

// Interfaces of the probe, in and out.
constexpr uint64_t kProbePairs = 16;

struct ProbedRun {
  std::function<Status()> prepare;                // before anything is measured
  std::function<Status(Probe& probe)> carry_out;  // says when which phase is: quiet (0), churn (1)
};

// Adds what everybody wants to know to the report: series, losses, latencies of both phases, the load's
// counts.
Status run_probed(const RunContext& context, PerfDaemon& daemon, Console& console, const ProbedRun& run);

}  // namespace mayfly::perf
