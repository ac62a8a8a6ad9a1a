// SPDX-License-Identifier: BSD-3-Clause
#include "report.hpp"

#include <fcntl.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include <fmt/format.h>

#include "base/units.hpp"
#include "report_page.hpp"

namespace mayfly::perf {

using cli::Json;

namespace {

struct Column {
  std::string_view name;
  std::optional<double> SeriesRow::*value;
};

constexpr std::array kColumns = {
    Column{"rx_pps", &SeriesRow::rx_pps},
    Column{"tx_pps", &SeriesRow::tx_pps},
    Column{"drops_pps", &SeriesRow::drops_pps},
    Column{"lost", &SeriesRow::lost},
    Column{"latency_p50_ns", &SeriesRow::latency_p50_ns},
    Column{"latency_p99_ns", &SeriesRow::latency_p99_ns},
    Column{"latency_p999_ns", &SeriesRow::latency_p999_ns},
    Column{"latency_max_ns", &SeriesRow::latency_max_ns},
    Column{"grace_p50_ns", &SeriesRow::grace_p50_ns},
    Column{"grace_p99_ns", &SeriesRow::grace_p99_ns},
    Column{"backlog_objects", &SeriesRow::backlog_objects},
    Column{"backlog_bytes", &SeriesRow::backlog_bytes},
    Column{"rss_bytes", &SeriesRow::rss_bytes},
    Column{"interfaces", &SeriesRow::interfaces},
};

Json series_json(const std::vector<SeriesRow>& series) {
  std::vector<const Column*> present;
  for (const Column& column : kColumns)
    if (std::ranges::any_of(series, [&](const SeriesRow& row) { return (row.*column.value).has_value(); }))
      present.push_back(&column);
  Json names = Json::array();
  names.push_back("at_ns");
  for (const Column* column : present) names.push_back(column->name);
  Json rows = Json::array();
  for (const SeriesRow& row : series) {
    Json cells = Json::array();
    cells.push_back(row.at_ns);
    for (const Column* column : present) {
      const std::optional<double>& value = row.*(column->value);
      cells.push_back(value ? Json(*value) : Json());
    }
    rows.push_back(cells);
  }
  return {{"columns", names}, {"rows", rows}};
}

Json result_json(const ResultRow& result) {
  const Summary& summary = result.summary;
  Json row{{"name", result.name}, {"label", result.label}, {"unit", result.unit}};
  if (!result.phase.empty()) row.set("phase", result.phase);
  row.update({{"count", summary.count},
              {"min", summary.min},
              {"median", summary.median},
              {"p99", summary.p99},
              {"p999", summary.p999},
              {"max", summary.max}});
  return row;
}

Json histogram_json(const std::string& label, const LatencyHistogram::Counts& counts) {
  Json buckets = Json::array();
  for (const auto& [upper, count] : filled_buckets(counts)) {
    Json bucket = Json::array();
    bucket.push_back(upper);
    bucket.push_back(count);
    buckets.push_back(bucket);
  }
  return {{"name", "latency"}, {"label", label}, {"unit", "ns"}, {"buckets", buckets}};
}

Json machine_json(const Machine& machine, const std::vector<std::string>& notes) {
  return {{"cpus", machine.cpus},           {"model", machine.model},   {"kernel", machine.kernel},
          {"hugepages", machine.hugepages}, {"tsc_hz", machine.tsc_hz}, {"notes", notes}};
}

std::string processor_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(std::min(line.size(), line.find(':') + 2));
  return "unknown";
}

// Duration units that keep three digits readable.
std::string nanoseconds(double ns) {
  if (ns < 1e3) return fmt::format("{:.0f} ns", ns);
  if (ns < 1e6) return fmt::format("{:.2f} us", ns / 1e3);
  if (ns < 1e9) return fmt::format("{:.2f} ms", ns / 1e6);
  return fmt::format("{:.2f} s", ns / 1e9);
}

}  // namespace

void Report::add(std::string name, std::string label, std::string unit, std::string phase,
                 const Summary& summary) {
  results.push_back({std::move(name), std::move(label), std::move(unit), std::move(phase), summary});
}

void Report::add(std::string name, std::string label, uint64_t value, std::string unit) {
  facts.push_back({std::move(name), std::move(label), value, std::move(unit)});
}

const Fact* Report::find_fact(std::string_view name) const noexcept {
  const auto found = std::ranges::find_if(facts, [&](const Fact& fact) { return fact.name == name; });
  return found == facts.end() ? nullptr : &*found;
}

Machine this_machine() {
  utsname system{};
  uname(&system);
  const bool eal = rte_eal_has_pci() != -1 && rte_get_timer_hz() != 0;
  return {.cpus = std::thread::hardware_concurrency(),
          .model = processor_model(),
          .kernel = system.release,
          .hugepages = eal && rte_eal_has_hugepages() != 0,
          .tsc_hz = eal ? rte_get_tsc_hz() : 0};
}

Json to_json(const Report& report, const Machine& machine) {
  Json settings = Json::object();
  for (const auto& [key, value] : report.settings) settings.set(key, value);
  Json results = Json::array();
  for (const ResultRow& result : report.results) results.push_back(result_json(result));
  Json facts = Json::array();
  for (const Fact& fact : report.facts)
    facts.push_back({{"name", fact.name}, {"label", fact.label}, {"value", fact.value}, {"unit", fact.unit}});
  Json marks = Json::array();
  for (const Mark& mark : report.marks)
    marks.push_back(
        {{"from_ns", mark.from_ns}, {"until_ns", mark.until_ns}, {"what", mark.what}, {"kind", mark.kind}});
  Json histograms = Json::array();
  for (const auto& [label, counts] : report.histograms) histograms.push_back(histogram_json(label, counts));
  Json stages = Json::array();
  for (const StageFigures& row : report.stages)
    stages.push_back(
        {{"stage", row.stage}, {"packets", row.packets}, {"vectors", row.vectors}, {"clocks", row.clocks}});
  Json document{{"run", report.run},
                {"version", MAYFLY_VERSION},
                {"started", report.started},
                {"command", report.command},
                {"machine", machine_json(machine, report.notes)},
                {"settings", settings},
                {"results", results},
                {"facts", facts},
                {"series", series_json(report.series)},
                {"marks", marks},
                {"histograms", histograms},
                {"stages", stages}};
  if (report.most_backlog_objects && report.most_backlog_bytes)
    document.set("limits", {{"backlog_objects", *report.most_backlog_objects},
                            {"backlog_bytes", *report.most_backlog_bytes}});
  return document;
}

std::string format_value(double value, std::string_view unit) {
  if (unit == "ns") return nanoseconds(value);
  if (unit == "B") return format_bytes(static_cast<uint64_t>(value));
  if (value >= 1000) return format_count(static_cast<uint64_t>(value + 0.5));
  return fmt::format("{:.{}f}", value, value == static_cast<double>(static_cast<uint64_t>(value)) ? 0 : 1);
}

std::string summary_text(const Report& report, const Machine& machine) {
  std::string text =
      fmt::format("\nmayfly-perf {}\n  machine   {} CPUs, {}, kernel {}, {}\n", report.run, machine.cpus,
                  machine.model, machine.kernel, machine.hugepages ? "hugepages" : "no hugepages");
  for (const std::string& note : report.notes) text += fmt::format("  note      {}\n", note);
  if (!report.results.empty())
    text += fmt::format("\n  {:<56} {:>6} {:>13} {:>13} {:>13} {:>13} {:>13}\n", "", "count", "min", "median",
                        "p99", "p99.9", "max");
  for (const ResultRow& row : report.results) {
    const std::string name =
        fmt::format("{}{}{}{}", row.label, row.phase.empty() ? "" : ", ", row.phase,
                    row.unit == "ns" || row.unit == "B" ? "" : fmt::format(" ({})", row.unit));
    text += fmt::format("  {:<56} {:>6}", name, format_count(row.summary.count));
    for (const double value :
         {row.summary.min, row.summary.median, row.summary.p99, row.summary.p999, row.summary.max})
      text += fmt::format(" {:>13}", row.summary.count == 0 ? "-" : format_value(value, row.unit));
    text += '\n';
  }
  if (!report.stages.empty()) {
    text += fmt::format("\n  {:<24} {:>16} {:>16} {:>16} {:>16}\n", "stage", "vectors", "packets",
                        "packets/vector", "clocks/packet");
    for (const StageFigures& row : report.stages)
      text += fmt::format("  {:<24} {:>16} {:>16} {:>16.1f} {:>16.1f}\n", row.stage,
                          format_count(row.vectors), format_count(row.packets),
                          row.vectors == 0 ? 0.0 : double(row.packets) / double(row.vectors),
                          row.packets == 0 ? 0.0 : double(row.clocks) / double(row.packets));
  }
  if (!report.facts.empty()) text += '\n';
  for (const Fact& fact : report.facts)
    text +=
        fmt::format("  {:<44} {}{}{}\n", fact.label, format_value(static_cast<double>(fact.value), fact.unit),
                    fact.unit.empty() || fact.unit == "ns" || fact.unit == "B" ? "" : " ",
                    fact.unit == "ns" || fact.unit == "B" ? "" : fact.unit);
  return text;
}

Status write_file(const std::string& path, std::string_view text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return fail(errno, "{}: {}", path, std::strerror(errno));
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int code = errno;
      close(fd);
      return fail(code, "{}: {}", path, std::strerror(code));
    }
    text.remove_prefix(static_cast<size_t>(written));
  }
  if (close(fd) != 0) return fail(errno, "{}: {}", path, std::strerror(errno));
  return {};
}

Status write_report(const std::string& directory, const std::string& json) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return fail(error.value(), "--report {}: {}", directory, error.message());
  if (auto written = write_file(directory + "/report.json", json + "\n"); !written) return written;
  return write_file(directory + "/index.html", report_page(json));
}

}  // namespace mayfly::perf
