// SPDX-License-Identifier: BSD-3-Clause
// Whether packets notice. Quiet and churning times alternate within one run, so that a noisy machine hits
// both: the load (as fast as the worker goes) gives the throughput of each, the probe losses and latencies.
#include <fmt/format.h>

#include "base/units.hpp"
#include "load.hpp"
#include "probed_run.hpp"
#include "runs.hpp"

namespace mayfly::perf {
namespace {

constexpr uint32_t kGroup = 7'002;
constexpr uint32_t kSlices = 6;  // quiet, churn, quiet, churn ...

struct ChurnTotals {
  Samples created, deleted;
  uint64_t interfaces = 0;
};

class Survival {
 public:
  Survival(const RunContext& context, PerfDaemon& daemon)
      : context_(context), daemon_(daemon), console_(daemon.socket()) {}
  Status run();

 private:
  const PerfOptions& options() const { return context_.options; }
  Status slices(Probe& probe);
  Status churn_until(uint64_t until_ns);
  void report();

  const RunContext& context_;
  PerfDaemon& daemon_;
  Console console_;
  ChurnTotals totals_;
};

Status Survival::churn_until(uint64_t until_ns) {
  const uint64_t count = options().churn;
  const std::string dressing =
      options().dressed && !options().bare ? " addr 100.64.0.0/32 step 1 addr fd00:2::/128 step 1 nodad" : "";
  const uint32_t first = outer_tags(options().interfaces / 2) + 1;
  const std::string create = fmt::format("link bulk add count {} name churn{{}} link port1 group {} up{}{}",
                                         count, kGroup, dressing, tag_words(count, first));
  const std::string remove = fmt::format("link del group {}", kGroup);
  do {
    Mark mark = context_.begin_mark(fmt::format("create {}", format_count(count)), "create");
    const uint64_t begin = monotonic_ns();
    if (auto made = console_.run(create); !made) return made;
    const uint64_t created = monotonic_ns();
    context_.finish(std::move(mark));
    mark = context_.begin_mark(fmt::format("delete {}", format_count(count)), "delete");
    if (auto removed = console_.run(remove); !removed) return removed;
    const uint64_t deleted = monotonic_ns();
    context_.finish(std::move(mark));
    totals_.created.add(static_cast<double>(count * kNsPerSecond) / static_cast<double>(created - begin));
    totals_.deleted.add(static_cast<double>(count * kNsPerSecond) / static_cast<double>(deleted - created));
    totals_.interfaces += count;
  } while (monotonic_ns() < until_ns && !interrupted());
  return console_.run("reclaim wait");
}

Status Survival::slices(Probe& probe) {
  const uint64_t slice_ns = options().duration_ns / kSlices;
  for (uint32_t slice = 0; slice < kSlices && !interrupted(); ++slice) {
    const bool churning = slice % 2 == 1;
    probe.set_phase(churning ? 1 : 0);
    Mark mark = context_.begin_mark(churning ? "churn" : "quiet", churning ? "other" : "quiet");
    if (!churning)
      sleep_ns(slice_ns);
    else if (auto done = churn_until(monotonic_ns() + slice_ns); !done)
      return done;
    context_.finish(std::move(mark));
  }
  return {};
}

void Survival::report() {
  Report& report = context_.report;
  std::vector<Mark> churns;
  for (const Mark& mark : report.marks)
    if (mark.what == "churn") churns.push_back(mark);
  const Summary quiet = forwarded(report.series, report.marks, "quiet").summary();
  const Summary churning = forwarded(report.series, churns, "other").summary();
  report.add("forwarded", "forwarded", "packets/s", "quiet", quiet);
  report.add("forwarded", "forwarded", "packets/s", "churn", churning);
  report.add("created", "created", "interfaces/s", "", totals_.created.summary());
  report.add("deleted", "deleted", "interfaces/s", "", totals_.deleted.summary());
  report.add("churned", "created and deleted", totals_.interfaces, "interfaces");
  if (quiet.median > 0)
    report.add("throughput_kept", "throughput kept while they come and go",
               static_cast<uint64_t>(1'000 * churning.median / quiet.median + 0.5), "of 1,000");
}

Status Survival::run() {
  const ProbedRun run{.prepare = [this] { return lay_paths(console_, load_plan(options())); },
                      .carry_out = [this](Probe& probe) { return slices(probe); }};
  if (auto done = run_probed(context_, daemon_, console_, run); !done) return done;
  report();
  return {};
}

}  // namespace

Status run_survive(const RunContext& context) {
  const PerfOptions& options = context.options;
  PerfDaemon daemon(options, load_devices(options, true));
  context.report.notes.push_back("probes pass rings of this process: what is lost there was lost by Mayfly");
  return daemon.run([&context](PerfDaemon& own) { return Survival(context, own).run(); });
}

}  // namespace mayfly::perf
