// SPDX-License-Identifier: BSD-3-Clause
// How fast packets go through, and what each stage takes of it.
#include <fmt/format.h>

#include "load.hpp"
#include "runs.hpp"
#include "stage_reader.hpp"

namespace mayfly::perf {
namespace {

// Until caches, branch predictors and the clock are as they stay.
constexpr uint64_t kWarmUpNs = 500 * kNsPerMs;

Status measure(const RunContext& context, const std::string& socket) {
  const PerfOptions& options = context.options;
  Console console(socket);
  const auto pid = daemon_pid(console);
  if (!pid) return std::unexpected(pid.error());
  if (auto laid = lay_paths(console, load_plan(options)); !laid) return laid;
  if (!options.devices.empty()) fmt::print(stderr, "{}", describe_wanted_traffic(console, options));
  StageReader stages(console, options.stages);
  if (auto switched = stages.begin(); !switched) return switched;
  sleep_ns(kWarmUpNs);
  Observer observer(
      {.socket = socket, .pid = *pid, .begin_ns = context.begin_ns, .period_ns = options.period_ns});
  Mark mark = context.begin_mark("forward", "other");
  const auto before = count_load(console);
  if (!before) return std::unexpected(before.error());
  if (auto restarted = stages.restart(); !restarted) return restarted;
  observer.start();
  sleep_ns(options.duration_ns);
  observer.stop();
  const auto after = count_load(console);
  if (!after) return std::unexpected(after.error());
  if (auto read = stages.report(context.report); !read) return read;
  context.finish(std::move(mark));
  Report& report = context.report;
  take_series(observer, report);
  report.add("forwarded", "forwarded", "packets/s", "", forwarded(report.series, report.marks, "").summary());
  report_load(*before, *after, report);
  if (after->rx == before->rx)
    return fail(ENODATA, "no packet came in: is there traffic on {}?",
                options.devices.empty() ? "port0" : options.devices[0]);
  return {};
}

}  // namespace

Status run_forward(const RunContext& context) {
  const PerfOptions& options = context.options;
  PerfDaemon daemon(options, load_devices(options));
  if (options.devices.empty())
    context.report.notes.push_back(
        "net_pcap replays frames from memory, net_null swallows them: not a NIC figure");
  return daemon.run([&context](PerfDaemon& own) { return measure(context, own.socket()); });
}

}  // namespace mayfly::perf
