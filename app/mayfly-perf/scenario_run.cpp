// SPDX-License-Identifier: BSD-3-Clause
// A workload of a file: its traffic as fast as the worker goes, probes beside it, and its flaps when they are
// due.
#include <fmt/format.h>

#include <map>

#include <nlohmann/json.hpp>

#include "base/units.hpp"
#include "load.hpp"
#include "probed_run.hpp"
#include "runs.hpp"
#include "scenario.hpp"

namespace mayfly::perf {
namespace {

struct DueFlap {
  const Flap* flap;
  uint64_t due_ns;
  uint64_t left;
};

class ScenarioRun {
 public:
  ScenarioRun(const RunContext& context, const Scenario& scenario, PerfDaemon& daemon)
      : context_(context), scenario_(scenario), daemon_(daemon), console_(daemon.socket()) {}
  Status run();

 private:
  Status prepare();
  Status flap_until_the_end(Probe& probe);
  Status flap(const Flap& flap);
  Status check();

  const RunContext& context_;
  const Scenario& scenario_;
  PerfDaemon& daemon_;
  Console console_;
  std::map<std::string, Samples> lines_;  // ns a line took, by flap
};

Status ScenarioRun::prepare() {
  for (const std::string& line : scenario_.setup)
    if (auto done = console_.run(line); !done) return fail(done.error().code, "setup: {}", done.error().text);
  return {};
}

Status ScenarioRun::flap(const Flap& flap) {
  Mark mark = context_.begin_mark(flap.name, "other");
  for (const Step& step : flap.steps) {
    if (step.line.empty()) {
      if (!sleep_ns(step.pause_ns)) break;
      continue;
    }
    Mark line_mark =
        context_.begin_mark(step.line, step.line.find(" del") != std::string::npos ? "delete" : "create");
    const uint64_t begin = monotonic_ns();
    if (auto done = console_.run(step.line); !done)
      return fail(done.error().code, "flap '{}': {}", flap.name, done.error().text);
    lines_[flap.name].add(static_cast<double>(monotonic_ns() - begin));
    context_.finish(std::move(line_mark));
  }
  context_.finish(std::move(mark));
  return {};
}

// One after the other: what is due while another one is at work comes after it.
Status ScenarioRun::flap_until_the_end(Probe& probe) {
  const uint64_t begin = monotonic_ns();
  std::vector<DueFlap> due;
  for (const Flap& flap : scenario_.flaps) due.push_back({&flap, begin + flap.after_ns, flap.times});
  const uint64_t end = begin + scenario_.duration_ns;
  while (!interrupted()) {
    const auto next = std::ranges::min_element(due, {}, &DueFlap::due_ns);
    if (next == due.end() || next->due_ns >= end) {
      const uint64_t now = monotonic_ns();
      sleep_ns(end > now ? end - now : 0);
      return {};
    }
    const uint64_t now = monotonic_ns();
    if (next->due_ns > now && !sleep_ns(next->due_ns - now)) return {};
    probe.set_phase(1);
    if (auto done = flap(*next->flap); !done) return done;
    probe.set_phase(0);
    next->due_ns += next->flap->every_ns;
    if (--next->left == 0) due.erase(next);
  }
  return {};
}

Status ScenarioRun::check() {
  const uint64_t lost = context_.report.find_fact("lost")->value;
  const auto count = console_.read("link count");
  if (!count) return std::unexpected(count.error());
  const uint64_t interfaces = count->at("count").get<uint64_t>() - 2 * kProbePairs;
  context_.report.add("interfaces", "interfaces in the end, without the probe's", interfaces, "");
  const bool kept = lost <= scenario_.most_lost;
  const bool complete = !scenario_.interfaces || interfaces == *scenario_.interfaces;
  context_.report.add("expectations_missed", "expectations missed", (kept ? 0 : 1) + (complete ? 0 : 1), "");
  if (!kept)
    context_.report.notes.push_back(
        fmt::format("MISSED: {} probes lost, at most {} expected", lost, scenario_.most_lost));
  if (!complete)
    context_.report.notes.push_back(
        fmt::format("MISSED: {} interfaces in the end, {} expected", interfaces, *scenario_.interfaces));
  return {};
}

Status ScenarioRun::run() {
  const ProbedRun run{.prepare = [this] { return prepare(); },
                      .carry_out = [this](Probe& probe) { return flap_until_the_end(probe); }};
  if (auto done = run_probed(context_, daemon_, console_, run); !done) return done;
  Report& report = context_.report;
  report.add("forwarded", "forwarded", "packets/s", "", forwarded(report.series, report.marks, "").summary());
  for (const auto& [name, samples] : lines_)
    report.add("flap_line", "a line of the flap", "ns", name, samples.summary());
  return check();
}

}  // namespace

Status run_scenario(const RunContext& context) {
  const PerfOptions& options = context.options;
  const auto scenario = load_scenario(options.scenario);
  if (!scenario) return std::unexpected(scenario.error());
  Report& report = context.report;
  if (!scenario->about.empty()) report.notes.push_back(scenario->about);
  for (const std::string& what : scenario->skipped) report.notes.push_back("skipped: " + what);
  RunDevices devices;
  devices.probe = true;
  devices.external = options.devices;
  for (size_t port = 0; port < devices.replays.size() && options.devices.empty(); ++port)
    for (const TrafficClass& traffic : scenario->traffic) {
      if (traffic.port != port) continue;
      devices.frames += traffic.frames;
      devices.replays[port] = [&, port](Mac mac) {
        return scenario_frames(*scenario, port, mac, options.seed);
      };
    }
  PerfDaemon daemon(options, std::move(devices));
  return daemon.run([&](PerfDaemon& own) { return ScenarioRun(context, *scenario, own).run(); });
}

}  // namespace mayfly::perf
