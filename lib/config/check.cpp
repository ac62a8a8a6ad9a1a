// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <initializer_list>
#include <map>
#include <set>

#include "config/config.hpp"
#include "config/nearest.hpp"
#include "config/ranges.hpp"

namespace mayfly {
namespace {

class Checks {
 public:
  explicit Checks(const Origins& origins) : origins_(origins) {}

  // The text blames the first key; where it says the value came from is the first of the keys that is not a
  // default.
  template <class... Args>
  std::unexpected<Error> refuse(std::initializer_list<std::string_view> keys,
                                fmt::format_string<Args...> text, Args&&... args) const {
    std::string where;
    for (const std::string_view key : keys)
      if (where = origin(key); !where.empty()) break;
    return fail(EINVAL, "{}{}{}: {}", where, where.empty() ? "" : ": ", *keys.begin(),
                fmt::format(text, std::forward<Args>(args)...));
  }

  std::string origin(std::string_view key) const {
    const auto found = origins_.find(key);
    return found == origins_.end() ? std::string() : found->second;
  }

 private:
  const Origins& origins_;
};

Status check_eal(const Checks& checks, const Config& config) {
  for (size_t i = 0; i < config.eal.args.size(); ++i) {
    const std::string& arg = config.eal.args[i];
    if (arg.empty() || arg.size() > kMostTextBytes || has_control_character(arg))
      return checks.refuse({fmt::format("eal.args[{}]", i), "eal.args"},
                           "value '{}': expected 1..{} characters, no control characters", shown(arg),
                           kMostTextBytes);
  }
  if (config.eal.memory_bytes && *config.eal.memory_bytes % kMiB != 0)
    return checks.refuse({"eal.memory"}, "value {} B: expected a whole number of MiB",
                         *config.eal.memory_bytes);
  const uint64_t memory = config.eal.memory_or_default();
  const uint64_t least =
      mbuf_pool_bytes(config.mbufs.count, config.mbufs.size_bytes, config.eal.hugepages) + kEalOwnBytes;
  if (!config.eal.hugepages && memory < least)
    return checks.refuse({"eal.memory", "mbufs.count", "mbufs.size"},
                         "value {}MiB: {} mbufs of {} B need more, accepted {}MiB and above", memory / kMiB,
                         config.mbufs.count, config.mbufs.size_bytes, (least + kMiB - 1) / kMiB);
  return {};
}

Status check_workers(const Checks& checks, const WorkersConfig& workers) {
  if (workers.cpus.empty()) return {};
  if (workers.cpus.size() != workers.count)
    return checks.refuse({"workers.cpus", "workers.count"},
                         "a list of {}: expected one CPU for each of {} worker{}", workers.cpus.size(),
                         workers.count, workers.count == 1 ? "" : "s");
  std::set<uint32_t> seen;
  for (size_t i = 0; i < workers.cpus.size(); ++i)
    if (!seen.insert(workers.cpus[i]).second)
      return checks.refuse({fmt::format("workers.cpus[{}]", i), "workers.cpus"},
                           "value {}: this CPU is in the list already, expected one worker a CPU",
                           workers.cpus[i]);
  return {};
}

Status check_mbufs(const Checks& checks, const MbufsConfig& mbufs) {
  // The mempool's own rule: a cache is flushed at one and a half times its size.
  if (uint64_t{mbufs.cache} * 3 / 2 > mbufs.count)
    return checks.refuse({"mbufs.cache", "mbufs.count"},
                         "value {}: accepted at most two thirds of mbufs.count ({})", mbufs.cache,
                         mbufs.count);
  return {};
}

Status check_port(const Checks& checks, const Config& config, const PortConfig& port,
                  const std::string& path) {
  const std::string name_key = path + ".name";
  const std::string devargs_key = path + ".devargs";
  if (const char* rule = broken_name_rule(port.name))
    return checks.refuse({name_key, path}, "value '{}': expected {}", shown(port.name), rule);
  if (port.devargs.empty() || port.devargs[0] == ',' || port.devargs.size() > kMostTextBytes ||
      has_control_character(port.devargs))
    return checks.refuse({devargs_key, path},
                         "value '{}': expected a device like net_af_packet0,iface=eth1 or 0000:03:00.0",
                         shown(port.devargs));
  const uint32_t room = config.mbufs.size_bytes - kMbufHeadroomBytes;
  if (port.mtu + kFrameOverheadBytes > room)
    return checks.refuse({path + ".mtu", "mbufs.size", path},
                         "value {}: accepted {}..{} with mbufs.size {} B; a larger MTU needs larger mbufs",
                         port.mtu, kMtuRange.least, room - kFrameOverheadBytes, config.mbufs.size_bytes);
  return {};
}

Status check_ports(const Checks& checks, const Config& config) {
  if (config.ports.size() > kMostPorts)
    return checks.refuse({"ports"}, "{} ports: accepted at most {}", config.ports.size(), kMostPorts);
  std::map<std::string_view, size_t> names;
  std::map<std::string_view, size_t> devices;
  for (size_t i = 0; i < config.ports.size(); ++i) {
    const PortConfig& port = config.ports[i];
    const std::string path = fmt::format("ports[{}]", i);
    if (auto status = check_port(checks, config, port, path); !status) return status;
    const auto taken = [&](std::string_view key, std::string_view what, size_t other) {
      const std::string first = checks.origin(fmt::format("ports[{}].{}", other, key));
      return checks.refuse({fmt::format("{}.{}", path, key), path},
                           "value '{}': a port of this {} exists already{}{}, expected another {}",
                           key == "name" ? port.name : port.devargs, what, first.empty() ? "" : ", at ",
                           first, what);
    };
    if (const auto [at, added] = names.try_emplace(port.name, i); !added)
      return taken("name", "name", at->second);
    const std::string_view device = std::string_view(port.devargs).substr(0, port.devargs.find(','));
    if (const auto [at, added] = devices.try_emplace(device, i); !added)
      return taken("devargs", "device", at->second);
  }
  return {};
}

Status check_limits(const Checks& checks, const Config& config) {
  const LimitsConfig& limits = config.limits;
  if (limits.neighbours_per_interface > limits.neighbours)
    return checks.refuse({"neighbours.per_interface", "neighbours.limit"},
                         "value {}: accepted 1..{} (neighbours.limit)", limits.neighbours_per_interface,
                         limits.neighbours);
  if (config.ports.size() > limits.interfaces)
    return checks.refuse({"interfaces.limit"},
                         "value {}: each of {} ports is an interface, accepted {} and above",
                         limits.interfaces, config.ports.size(), config.ports.size());
  return {};
}

Status check_socket(const Checks& checks, const SocketConfig& socket) {
  if (socket.path.empty() || socket.path.size() > kMostSocketPathBytes ||
      has_control_character(socket.path) || socket.path.back() == '/')
    return checks.refuse({"socket.path"}, "value '{}': expected the path of a file, 1..{} bytes",
                         shown(socket.path), kMostSocketPathBytes);
  if (socket.group.size() > kMostGroupBytes || socket.group.find_first_of(" :,/") != std::string::npos ||
      has_control_character(socket.group))
    return checks.refuse({"socket.group"}, "value '{}': expected the name of a group, at most {} bytes",
                         shown(socket.group), kMostGroupBytes);
  return {};
}

Status check_teardown(const Checks& checks, const TeardownConfig& teardown) {
  if (teardown.low_objects >= teardown.high_objects)
    return checks.refuse({"teardown.low_objects", "teardown.high_objects"},
                         "value {}: expected below teardown.high_objects ({})", teardown.low_objects,
                         teardown.high_objects);
  if (teardown.low_bytes >= teardown.high_bytes)
    return checks.refuse({"teardown.low_bytes", "teardown.high_bytes"},
                         "value {} B: expected below teardown.high_bytes ({} B)", teardown.low_bytes,
                         teardown.high_bytes);
  return {};
}

}  // namespace

const char* broken_name_rule(std::string_view name) noexcept {
  if (name.empty() || name.size() > 15) return "a name of 1..15 characters";
  if (name == "." || name == "..") return "a name other than '.' and '..'";
  if (name.find_first_of("/ ") != std::string_view::npos || has_control_character(name))
    return "a name without '/' and white space";
  return nullptr;
}

Status check_config(const Config& config, const Origins& origins) {
  const Checks checks(origins);
  if (auto status = check_workers(checks, config.workers); !status) return status;
  if (auto status = check_mbufs(checks, config.mbufs); !status) return status;
  if (auto status = check_eal(checks, config); !status) return status;
  if (auto status = check_ports(checks, config); !status) return status;
  if (auto status = check_limits(checks, config); !status) return status;
  if (auto status = check_socket(checks, config.socket); !status) return status;
  return check_teardown(checks, config.teardown);
}

}  // namespace mayfly
