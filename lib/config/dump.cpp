// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <span>

#include "base/clock.hpp"
#include "config/config.hpp"
#include "config/ranges.hpp"

namespace mayfly {
namespace {

struct Unit {
  uint64_t factor;
  std::string_view suffix;
};

constexpr Unit kByteUnits[] = {{uint64_t{1} << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}, {1, "B"}};
constexpr Unit kTimeUnits[] = {{kNsPerSecond, "s"}, {kNsPerMs, "ms"}, {kNsPerUs, "us"}, {1, "ns"}};

// Exact, unlike format_bytes() and format_duration(): the largest unit that divides the value.
std::string exactly(uint64_t value, std::span<const Unit> units) {
  for (const Unit& unit : units)
    if (value >= unit.factor && value % unit.factor == 0)
      return fmt::format("{}{}", value / unit.factor, unit.suffix);
  return fmt::format("{}{}", value, units.back().suffix);
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string_view log_level_name(LogLevel level) {
  const auto* named = std::ranges::find(kLogLevels, level, [](const auto& entry) { return entry.second; });
  return named->first;
}

std::string dump_ports(const std::vector<PortConfig>& ports) {
  if (ports.empty()) return "ports: []\n";
  std::string out = "ports:\n";
  for (const PortConfig& port : ports) {
    out += fmt::format("  - name: {}\n    devargs: {}\n", quoted(port.name), quoted(port.devargs));
    if (port.rx_queues != 0) out += fmt::format("    rx_queues: {}\n", port.rx_queues);
    out += fmt::format("    rx_descriptors: {}\n    tx_descriptors: {}\n    mtu: {}\n    promiscuous: {}\n",
                       port.rx_descriptors, port.tx_descriptors, port.mtu, port.promiscuous);
  }
  return out;
}

std::string dump_eal(const EalConfig& eal) {
  std::string out = fmt::format("eal:\n  hugepages: {}\n", eal.hugepages);
  if (eal.memory_bytes) out += fmt::format("  memory: {}\n", exactly(*eal.memory_bytes, kByteUnits));
  out += eal.args.empty() ? "  args: []\n" : "  args:\n";
  for (const std::string& arg : eal.args) out += fmt::format("    - {}\n", quoted(arg));
  return out;
}

std::string dump_workers(const WorkersConfig& workers) {
  return fmt::format(
      "workers:\n  count: {}\n  cpus: [{}]\n  idle:\n    policy: {}\n    after: {}\n    sleep: {}\n",
      workers.count, fmt::join(workers.cpus, ", "), workers.idle.adaptive ? "adaptive" : "poll",
      exactly(workers.idle.after_ns, kTimeUnits), exactly(workers.idle.sleep_ns, kTimeUnits));
}

std::string dump_teardown(const TeardownConfig& teardown) {
  return fmt::format(
      "teardown:\n  workers: {}\n  nice: {}\n  policy: {}\n  high_objects: {}\n  low_objects: {}\n"
      "  high_bytes: {}\n  low_bytes: {}\n",
      teardown.workers, teardown.nice, teardown.block ? "block" : "fail", teardown.high_objects,
      teardown.low_objects, exactly(teardown.high_bytes, kByteUnits),
      exactly(teardown.low_bytes, kByteUnits));
}

}  // namespace

std::string dump_settings(const Config& config) {
  std::string out = dump_eal(config.eal) + dump_workers(config.workers);
  out += fmt::format("mbufs:\n  count: {}\n  size: {}\n  cache: {}\n", config.mbufs.count,
                     exactly(config.mbufs.size_bytes, kByteUnits), config.mbufs.cache);
  out += dump_ports(config.ports);
  out += fmt::format("interfaces:\n  limit: {}\n", config.limits.interfaces);
  out += fmt::format("neighbours:\n  limit: {}\n  per_interface: {}\n", config.limits.neighbours,
                     config.limits.neighbours_per_interface);
  out += fmt::format("routes:\n  limit: {}\n", config.limits.routes);
  out += fmt::format("namespaces:\n  limit: {}\n", config.limits.namespaces);
  out += fmt::format("socket:\n  path: {}\n  group: {}\n  mode: \"{:04o}\"\n", quoted(config.socket.path),
                     quoted(config.socket.group), config.socket.mode);
  out += dump_teardown(config.teardown);
  return out + fmt::format("log:\n  level: {}\n", log_level_name(config.log_level));
}

std::string dump_config(const Config& config) {
  return dump_settings(config) + dump_network(config.network);
}

}  // namespace mayfly
