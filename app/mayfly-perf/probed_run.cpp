// SPDX-License-Identifier: BSD-3-Clause
#include "probed_run.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "load.hpp"

namespace mayfly::perf {
namespace {

constexpr uint64_t kWarmUpNs = 500 * kNsPerMs;

Result<std::vector<FlowFrame>> lay_probe_paths(Console& console, ProbeDevice& device, uint32_t family) {
  const PathPlan plan{.in_port = "probe0",
                      .out_port = "probe0",
                      .in_name = "pin",
                      .out_name = "pout",
                      .pairs = kProbePairs,
                      .family = family,
                      .first_outer = 1,
                      .first_outer_out = 2'001,
                      .network = 1};
  if (auto laid = lay_paths(console, plan); !laid) return std::unexpected(laid.error());
  const auto link = console.read("link show pin0");
  if (!link) return std::unexpected(link.error());
  const auto mac = parse_mac("address", link->at(0).at("address").get<std::string>());
  if (!mac) return std::unexpected(mac.error());
  if (auto watched = device.watch_transmit(family); !watched) return std::unexpected(watched.error());
  return flows_of(plan, *mac);
}

void report_probe(const Probe& probe, Report& report) {
  const ProbeCounts counts = probe.counts();
  for (uint32_t phase = 0; phase < kProbePhases; ++phase) {
    const std::string name = phase == 0 ? "quiet" : "churn";
    const LatencyHistogram::Counts latencies = probe.latencies(phase);
    report.add("latency", "latency", "ns", name, summary_of(latencies));
    report.histograms.emplace_back(fmt::format("latency, {}", name), latencies);
  }
  report.add("probe_sent", "probe: sent", counts.sent, "packets");
  report.add("probe_received", "probe: received", counts.received, "packets");
  report.add("lost", "probe: lost", counts.sent - (counts.received - counts.duplicated), "packets");
  report.add("reordered", "probe: reordered", counts.reordered, "packets");
  report.add("duplicated", "probe: duplicated", counts.duplicated, "packets");
  report.add("refused", "probe: never sent (ring full)", counts.refused, "packets");
  if (!probe.realtime())
    report.notes.push_back("the probe did not get SCHED_FIFO: refused frames may be its own sleep");
}

}  // namespace

Status run_probed(const RunContext& context, PerfDaemon& daemon, Console& console, const ProbedRun& run) {
  const PerfOptions& options = context.options;
  const auto pid = daemon_pid(console);
  if (!pid) return std::unexpected(pid.error());
  if (auto ready = run.prepare(); !ready) return ready;
  const auto flows = lay_probe_paths(console, daemon.probe_device(), options.family);
  if (!flows) return std::unexpected(flows.error());
  note_limits(console, context.report);
  sleep_ns(kWarmUpNs);
  const auto before = count_load(console);
  if (!before) return std::unexpected(before.error());
  Probe probe(daemon.probe_device(), *flows, options.family);
  Observer observer({.socket = daemon.socket(),
                     .pid = *pid,
                     .begin_ns = context.begin_ns,
                     .period_ns = options.period_ns,
                     .probe = &probe});
  probe.start(options.probe_rate);
  observer.start();
  const Status done = run.carry_out(probe);
  observer.stop();
  probe.stop();
  if (!done) return done;
  const auto after = count_load(console);
  if (!after) return std::unexpected(after.error());
  take_series(observer, context.report);
  report_probe(probe, context.report);
  report_load(*before, *after, context.report);
  return {};
}

}  // namespace mayfly::perf
