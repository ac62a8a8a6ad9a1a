// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Another client that watches a run: ten times a second a row of the report's series, a line on the screen
// every
// --stats-period, and between them small requests whose latencies say what others feel meanwhile.

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "console.hpp"
#include "probe.hpp"
#include "report.hpp"

namespace mayfly::perf {

struct ObserverSettings {
  std::string socket;
  uint32_t pid = 0;        // of the daemon, for its RSS
  uint64_t begin_ns = 0;   // of the run
  uint64_t period_ns = 0;  // of lines; 0: none
  const Probe* probe = nullptr;
};

class Observer {
 public:
  explicit Observer(const ObserverSettings& settings) : settings_(settings), console_(settings.socket) {}
  ~Observer() { stop(); }

  void start();
  void stop();

  // After stop().
  const std::vector<SeriesRow>& series() const noexcept { return series_; }
  LatencyHistogram::Counts requests() const { return requests_.counts(); }

 private:
  struct Totals {
    uint64_t at_ns = 0;
    uint64_t rx = 0, tx = 0, drops = 0, missing = 0;
    std::vector<uint64_t> grace;
    LatencyHistogram::Counts latencies;
  };

  void run();
  void ask();
  SeriesRow sample();
  void print(const SeriesRow& row) const;
  void add_grace(SeriesRow& row, std::vector<uint64_t> grace);
  void add_probe(SeriesRow& row);

  const ObserverSettings settings_;
  Console console_;
  std::vector<SeriesRow> series_;
  LatencyHistogram requests_;
  Totals before_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// The resident memory of a process, as the kernel counts it; 0: it is gone.
uint64_t rss_bytes(uint32_t pid);

}  // namespace mayfly::perf
