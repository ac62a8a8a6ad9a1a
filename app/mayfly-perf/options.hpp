// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The command line of mayfly-perf. Whatever can be refused without a daemon is refused here, with a sentence
// that says what would work.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace mayfly::perf {

enum class RunKind : uint8_t { churn, forward, survive, scenario };
enum class Way : uint8_t { bulk, batch, single };
enum class Order : uint8_t { sequential, random };

// Interfaces that a run creates in each way of creating them one by one, at most, where all ways are
// measured.
constexpr uint64_t kMostSingle = 10'000;

struct PerfOptions {
  RunKind run = RunKind::churn;
  bool help = false;
  bool version = false;

  // Where.
  std::string socket;                // of a running daemon; empty: one in this process
  std::vector<std::string> devices;  // -a: PCI addresses or virtual devices; empty: devices of the tool's own
  std::vector<uint32_t> cpus;        // -l: the first for everything else, one worker on each of the others
  bool hugepages = false;
  std::optional<bool>
      adaptive;  // --idle: whether workers sleep when nothing comes; absent: as the run needs it

  // How much.
  uint64_t interfaces = 0;  // 0: the run's own default
  uint64_t churn = 50'000;  // survive: interfaces that come and go
  uint32_t rounds = 5;
  uint64_t duration_ns = 10 * kNsPerSecond;
  uint64_t period_ns = kNsPerSecond;  // --stats-period; 0: no lines while it runs
  uint64_t seed = 1;

  // What.
  std::string kind = "vlan";
  std::vector<Way> ways{Way::bulk, Way::batch, Way::single};
  bool bare = true;
  bool dressed = true;
  std::string link;  // churn on a running daemon: the parent of VLANs; empty: its first port
  std::string size = "64";
  Order order = Order::sequential;
  uint32_t family = 4;
  uint64_t probe_rate = 10'000;  // survive: packets/s with sequence numbers
  bool stages = true;
  std::string scenario;

  // What comes out.
  std::string json;
  std::string report;
  std::string command;  // as it was typed
};

// words: argv with the program's name.
Result<PerfOptions> parse_perf_options(std::span<const char* const> words);
std::string_view perf_usage() noexcept;
std::string_view name_of(RunKind run) noexcept;
std::string_view name_of(Way way) noexcept;

}  // namespace mayfly::perf
