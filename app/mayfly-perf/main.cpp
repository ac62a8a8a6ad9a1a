// SPDX-License-Identifier: BSD-3-Clause
#include <cstdio>
#include <ctime>

#include <fmt/format.h>

#include "base/units.hpp"
#include "runs.hpp"

namespace mayfly::perf {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

std::string utc_now() {
  const time_t now = time(nullptr);
  tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

void describe(const PerfOptions& options, Report& report) {
  report.run = name_of(options.run);
  report.command = options.command;
  report.started = utc_now();
  report.settings.emplace_back("interfaces", options.interfaces);
  report.settings.emplace_back("seed", options.seed);
  if (options.run == RunKind::churn) {
    report.settings.emplace_back("kind", options.kind);
    report.settings.emplace_back("rounds", options.rounds);
    return;
  }
  report.settings.emplace_back("duration_ns", options.duration_ns);
  report.settings.emplace_back("size", options.size);
  report.settings.emplace_back("family", options.family);
  report.settings.emplace_back("order", options.order == Order::random ? "random" : "sequential");
  if (options.run != RunKind::survive) return;
  report.settings.emplace_back("churn", options.churn);
  report.settings.emplace_back("probe_rate_pps", options.probe_rate);
}

Status carry_out(const RunContext& context) {
  switch (context.options.run) {
    case RunKind::churn:
      return run_churn(context);
    case RunKind::survive:
      return run_survive(context);
    case RunKind::forward:
      return run_forward(context);
    case RunKind::scenario:
      return run_scenario(context);
  }
  return {};
}

Status write_results(const PerfOptions& options, const Report& report, const Machine& machine) {
  const bool json_on_screen = options.json == "-";
  fmt::print(json_on_screen ? stderr : stdout, "{}", summary_text(report, machine));
  const cli::Json json = to_json(report, machine);
  if (json_on_screen) {
    fmt::print("{}\n", json.text());
  } else if (!options.json.empty()) {
    if (auto written = write_file(options.json, json.text() + "\n"); !written) return written;
  }
  if (options.report.empty()) return {};
  if (auto written = write_report(options.report, json.text()); !written) return written;
  fmt::print(stderr, "\nopen {}/index.html\n", options.report);
  return {};
}

int run(std::span<const char* const> words) {
  const auto options = parse_perf_options(words);
  if (!options) {
    fmt::print(stderr, "mayfly-perf: {}\n", options.error().text);
    return kExitUsage;
  }
  if (options->help) {
    fmt::print("{}", perf_usage());
    return 0;
  }
  if (options->version) {
    fmt::print("mayfly-perf " MAYFLY_VERSION "\n");
    return 0;
  }
  handle_interrupts();
  Report report;
  describe(*options, report);
  const RunContext context{*options, report, monotonic_ns()};
  // Before the EAL goes: it knows the TSC and the hugepages.
  Machine machine = this_machine();
  if (const auto done = carry_out(context); !done) {
    fmt::print(stderr, "mayfly-perf: {}\n", done.error().text);
    return kExitFailed;
  }
  if (interrupted()) report.notes.push_back("interrupted: the figures are those of what was done");
  machine = this_machine();
  machine.hugepages = options->hugepages;
  if (const auto written = write_results(*options, report, machine); !written) {
    fmt::print(stderr, "mayfly-perf: {}\n", written.error().text);
    return kExitFailed;
  }
  const Fact* missed = report.find_fact("expectations_missed");
  return interrupted() || (missed != nullptr && missed->value != 0) ? kExitFailed : 0;
}

}  // namespace
}  // namespace mayfly::perf

int main(int argc, char** argv) {
  return mayfly::perf::run(std::span<const char* const>(argv, static_cast<size_t>(argc)));
}
