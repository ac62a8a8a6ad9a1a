// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// What came of a run: the same numbers for people (the summary on standard output), for machines (--json,
// docs/perf-report.schema.json) and for eyes (--report). Times are ns since the run began.
//
// Filled by the run's thread and its observer, one at a time: the observer has ended before anybody reads.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "mayfly/json.hpp"
#include "samples.hpp"

namespace mayfly::perf {

struct ResultRow {
  std::string name;   // "create_rate"
  std::string label;  // "created"
  std::string unit;   // "interfaces/s", "ns", "B"
  std::string phase;  // "bulk, bare"; empty: the whole run
  Summary summary;
};

struct Fact {
  std::string name;
  std::string label;
  uint64_t value = 0;
  std::string unit;
};

struct Mark {
  uint64_t from_ns = 0;
  uint64_t until_ns = 0;
  std::string what;  // "create 50,000"
  std::string kind;  // "create", "delete", "quiet", "other"
};

struct StageFigures {
  std::string stage;
  uint64_t vectors = 0, packets = 0, clocks = 0;
};

// A moment; what a run does not have stays absent. Rates, losses and quantiles are of the time since the row
// before.
struct SeriesRow {
  uint64_t at_ns = 0;
  std::optional<double> rx_pps, tx_pps, drops_pps, lost, latency_p50_ns, latency_p99_ns, latency_p999_ns,
      latency_max_ns, grace_p50_ns, grace_p99_ns, backlog_objects, backlog_bytes, rss_bytes, interfaces;
};

struct Report {
  std::string run;
  std::string command;
  std::string started;  // UTC
  std::vector<std::string> notes;
  std::vector<std::pair<std::string, cli::Json>> settings;
  std::vector<ResultRow> results;
  std::vector<Fact> facts;
  std::vector<SeriesRow> series;
  std::vector<Mark> marks;
  std::vector<std::pair<std::string, LatencyHistogram::Counts>> histograms;  // by label, ns
  std::vector<StageFigures> stages;
  std::optional<uint64_t> most_backlog_objects, most_backlog_bytes;

  void add(std::string name, std::string label, std::string unit, std::string phase, const Summary& summary);
  void add(std::string name, std::string label, uint64_t value, std::string unit);
  const Fact* find_fact(std::string_view name) const noexcept;
};

// CPUs, kernel, TSC: what every figure needs beside it.
struct Machine {
  uint32_t cpus = 0;
  std::string model;
  std::string kernel;
  bool hugepages = false;
  uint64_t tsc_hz = 0;  // 0: unknown, no EAL runs here
};
Machine this_machine();

cli::Json to_json(const Report& report, const Machine& machine);
// The table that ends a run.
std::string summary_text(const Report& report, const Machine& machine);
// "1,234,567 /s", "12.3 us".
std::string format_value(double value, std::string_view unit);

// Writes FILE, or DIR/index.html with DIR/report.json beside it. The directory is made.
Status write_file(const std::string& path, std::string_view text);
Status write_report(const std::string& directory, const std::string& json);

}  // namespace mayfly::perf
