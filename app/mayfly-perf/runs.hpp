// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The runs. Each fills the report; an error is one that spoils the whole run. Each runs on a thread of its
// own beside the daemon's control thread, and takes as long as its options say.

#include <functional>
#include <memory>

#include "console.hpp"
#include "observer.hpp"
#include "options.hpp"
#include "perf_daemon.hpp"
#include "report.hpp"

namespace mayfly::perf {

struct RunContext {
  const PerfOptions& options;
  Report& report;
  uint64_t begin_ns = 0;

  uint64_t now_ns() const noexcept { return monotonic_ns() - begin_ns; }
  // The time of `what` from now on, until the mark is finished.
  Mark begin_mark(std::string what, std::string kind) const {
    return {.from_ns = now_ns(), .until_ns = 0, .what = std::move(what), .kind = std::move(kind)};
  }
  void finish(Mark mark) const {
    mark.until_ns = now_ns();
    report.marks.push_back(std::move(mark));
  }
};

// In a daemon of its own, or in the one that listens on options.socket.
Status run_churn(const RunContext& context);
Status run_forward(const RunContext& context);
Status run_survive(const RunContext& context);
Status run_scenario(const RunContext& context);

// The PID behind a socket.
Result<uint32_t> daemon_pid(Console& console);
// What the daemon says of its marks and its backlog: the page draws the lines.
void note_limits(Console& console, Report& report);
void take_series(const Observer& observer, Report& report);

}  // namespace mayfly::perf
