// SPDX-License-Identifier: BSD-3-Clause
#include "observer.hpp"

#include <unistd.h>

#include <cmath>
#include <fstream>

#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/units.hpp"

namespace mayfly::perf {
namespace {

constexpr uint64_t kSampleNs = 100 * kNsPerMs;
constexpr long kAskNs = 2 * static_cast<long>(kNsPerMs);
constexpr size_t kMostRows = 100'000;

// The upper bound of the bucket that the quantile falls into; buckets are powers of two of microseconds.
std::optional<double> quantile_ns(const std::vector<uint64_t>& buckets, double quantile) {
  uint64_t count = 0;
  for (const uint64_t bucket : buckets) count += bucket;
  if (count == 0) return std::nullopt;
  const auto rank = static_cast<uint64_t>(std::ceil(quantile * static_cast<double>(count)));
  uint64_t below = 0;
  for (size_t i = 0; i < buckets.size(); ++i) {
    below += buckets[i];
    if (below >= rank) return static_cast<double>((uint64_t{2} << i) * kNsPerUs);
  }
  return std::nullopt;
}

}  // namespace

uint64_t rss_bytes(uint32_t pid) {
  std::ifstream file(fmt::format("/proc/{}/statm", pid));
  uint64_t size = 0, resident = 0;
  file >> size >> resident;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

void Observer::start() {
  thread_ = std::thread([this] { run(); });
}

void Observer::stop() {
  if (!thread_.joinable()) return;
  stop_.store(true);
  thread_.join();
}

void Observer::run() {
  sample();  // what was before
  uint64_t next_sample = monotonic_ns() + kSampleNs;
  uint64_t next_line = monotonic_ns() + settings_.period_ns;
  while (!stop_.load(std::memory_order_relaxed)) {
    ask();
    const uint64_t now = monotonic_ns();
    if (now >= next_sample && series_.size() < kMostRows) {
      next_sample = now + kSampleNs;
      series_.push_back(sample());
      if (settings_.period_ns != 0 && now >= next_line) {
        next_line += settings_.period_ns;
        print(series_.back());
      }
    }
    const timespec pause{.tv_sec = 0, .tv_nsec = kAskNs};
    nanosleep(&pause, nullptr);
  }
}

void Observer::ask() {
  const uint64_t begin = monotonic_ns();
  if (console_.answer("status")) requests_.add(monotonic_ns() - begin);
}

void Observer::add_grace(SeriesRow& row, std::vector<uint64_t> grace) {
  std::vector<uint64_t> grown = grace;
  for (size_t i = 0; i < std::min(grown.size(), before_.grace.size()); ++i) grown[i] -= before_.grace[i];
  row.grace_p50_ns = quantile_ns(grown, 0.5);
  row.grace_p99_ns = quantile_ns(grown, 0.99);
  before_.grace = std::move(grace);
}

void Observer::add_probe(SeriesRow& row) {
  if (settings_.probe == nullptr) return;
  // One that comes late takes its number back: none lost, then.
  const uint64_t missing = settings_.probe->counts().missing;
  row.lost = missing > before_.missing ? static_cast<double>(missing - before_.missing) : 0;
  before_.missing = missing;
  LatencyHistogram::Counts now = settings_.probe->latencies(0);
  for (uint32_t phase = 1; phase < kProbePhases; ++phase) {
    const LatencyHistogram::Counts counts = settings_.probe->latencies(phase);
    for (size_t i = 0; i < now.size(); ++i) now[i] += counts[i];
  }
  const Summary grown = summary_of(difference(now, before_.latencies));
  before_.latencies = std::move(now);
  if (grown.count == 0) return;
  row.latency_p50_ns = grown.median;
  row.latency_p99_ns = grown.p99;
  row.latency_p999_ns = grown.p999;
  row.latency_max_ns = grown.max;
}

SeriesRow Observer::sample() {
  const auto stats = console_.look("stats");
  const auto reclaim = console_.look("reclaim show");
  const auto status = console_.look("status");
  const uint64_t now = monotonic_ns();
  SeriesRow row;
  row.at_ns = now - settings_.begin_ns;
  if (stats.is_object()) {
    const auto& balance = stats["balance"];
    const uint64_t rx = balance["rx"], tx = balance["tx"], drops = balance["drops"];
    const double seconds = static_cast<double>(now - before_.at_ns) / kNsPerSecond;
    row.rx_pps = static_cast<double>(rx - before_.rx) / seconds;
    row.tx_pps = static_cast<double>(tx - before_.tx) / seconds;
    row.drops_pps = static_cast<double>(drops - before_.drops) / seconds;
    before_.rx = rx;
    before_.tx = tx;
    before_.drops = drops;
  }
  before_.at_ns = now;
  if (reclaim.is_object()) {
    row.backlog_objects = reclaim["backlog_objects"].get<double>();
    row.backlog_bytes = reclaim["backlog_bytes"].get<double>();
    add_grace(row, reclaim["grace_histogram_log2_us"].get<std::vector<uint64_t>>());
  }
  if (status.is_object()) row.interfaces = status["interfaces"].get<double>();
  row.rss_bytes = static_cast<double>(rss_bytes(settings_.pid));
  add_probe(row);
  return row;
}

void Observer::print(const SeriesRow& row) const {
  const auto number = [](const std::optional<double>& value) {
    return format_count(static_cast<uint64_t>(value.value_or(0)));
  };
  fmt::print(
      stderr,
      "{:7.1f} s  Rx-pps {:>12}  Tx-pps {:>12}  Drops/s {:>9}  interfaces {:>10}  backlog {:>10}  RSS {}",
      static_cast<double>(row.at_ns) / kNsPerSecond, number(row.rx_pps), number(row.tx_pps),
      number(row.drops_pps), number(row.interfaces), number(row.backlog_objects),
      format_bytes(static_cast<uint64_t>(row.rss_bytes.value_or(0))));
  if (row.lost)
    fmt::print(stderr, "  lost {}  p99 {}", number(row.lost),
               row.latency_p99_ns ? format_value(*row.latency_p99_ns, "ns") : "-");
  fmt::print(stderr, "\n");
}

}  // namespace mayfly::perf
