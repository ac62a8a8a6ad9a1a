// SPDX-License-Identifier: BSD-3-Clause
#include "load.hpp"

#include <algorithm>
#include <random>

#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace mayfly::perf {
namespace {

// Fewer would all lie in the cache, whatever the interfaces do.
constexpr uint64_t kLeastFrames = 4'096;

}  // namespace

PathPlan load_plan(const PerfOptions& options) {
  PathPlan plan;
  plan.pairs = options.interfaces / 2;
  plan.family = options.family;
  return plan;
}

RunDevices load_devices(const PerfOptions& options, bool probe) {
  RunDevices devices;
  devices.external = options.devices;
  devices.probe = probe;
  if (!options.devices.empty()) return devices;
  devices.replays[0] = [&options](Mac mac) { return load_frames(options, mac); };
  devices.frames = load_frame_count(options);
  return devices;
}

uint64_t load_frame_count(const PerfOptions& options) {
  const uint64_t pairs = options.interfaces / 2;
  return (kLeastFrames + pairs - 1) / pairs * pairs;
}

std::vector<std::vector<uint8_t>> load_frames(const PerfOptions& options, Mac mac) {
  const std::vector<FlowFrame> flows = flows_of(load_plan(options), mac);
  const std::vector<uint32_t> sizes = parse_sizes(options.size).value();
  std::vector<size_t> order(load_frame_count(options));
  for (size_t i = 0; i < order.size(); ++i) order[i] = i % flows.size();
  std::mt19937_64 random(options.seed);
  if (options.order == Order::random) std::ranges::shuffle(order, random);
  std::vector<std::vector<uint8_t>> frames;
  frames.reserve(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    frames.push_back(build_frame(flows[order[i]], sizes[i % sizes.size()]));
  return frames;
}

std::string describe_wanted_traffic(Console& console, const PerfOptions& options) {
  const auto ports = console.look("link show in0");
  const std::vector<FlowFrame> flows = flows_of(load_plan(options), 0);
  return fmt::format(
      "port0 ({}) forwards to port1 what is sent to {}, with two 802.1Q tags:\n"
      "  tags {}.{} to {}  ..  tags {}.{} to {}; sources like {}\n",
      options.devices[0], ports.is_array() ? ports[0]["address"].get<std::string>() : "its address",
      flows.front().outer, flows.front().inner, format_address(flows.front().target), flows.back().outer,
      flows.back().inner, format_address(flows.back().target), format_address(flows.front().source));
}

Result<LoadCounts> count_load(Console& console) {
  const auto stats = console.read("stats");
  if (!stats) return std::unexpected(stats.error());
  const auto& balance = stats->at("balance");
  LoadCounts counts{.at_ns = monotonic_ns(),
                    .rx = balance.at("rx"),
                    .tx = balance.at("tx"),
                    .drops = balance.at("drops"),
                    .difference = balance.at("difference"),
                    .workers = {}};
  for (const auto& worker : stats->at("workers"))
    counts.workers.push_back({worker.at("rx"), worker.at("tx")});
  return counts;
}

void report_load(const LoadCounts& before, const LoadCounts& after, Report& report) {
  const double seconds = static_cast<double>(after.at_ns - before.at_ns) / kNsPerSecond;
  const auto rate = [seconds](uint64_t now, uint64_t then) {
    return static_cast<uint64_t>(static_cast<double>(now - then) / seconds);
  };
  for (size_t i = 0; after.workers.size() > 1 && i < after.workers.size(); ++i)
    report.add(fmt::format("worker_{}_tx", i), fmt::format("worker {} sent", i),
               rate(after.workers[i].tx, before.workers[i].tx), "packets/s");
  report.add("rx_packets", "received", after.rx - before.rx, "packets");
  report.add("tx_packets", "sent", after.tx - before.tx, "packets");
  report.add("drops", "dropped by Mayfly", after.drops - before.drops, "packets");
  report.add("balance_difference", "balance: difference", static_cast<uint64_t>(std::abs(after.difference)),
             "packets");
}

Samples forwarded(const std::vector<SeriesRow>& series, const std::vector<Mark>& marks,
                  std::string_view kind) {
  Samples samples;
  for (size_t i = 1; i < series.size(); ++i) {
    // The whole of its tenth of a second lies inside.
    const uint64_t from = series[i - 1].at_ns, until = series[i].at_ns;
    const bool inside = kind.empty() || std::ranges::any_of(marks, [&](const Mark& mark) {
                          return mark.kind == kind && mark.from_ns <= from && until <= mark.until_ns;
                        });
    if (inside && series[i].tx_pps) samples.add(*series[i].tx_pps);
  }
  return samples;
}

}  // namespace mayfly::perf
