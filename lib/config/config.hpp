// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// What mayflyd is told at its start: a plain struct, the YAML it is read from, and the YAML it is written as.
//
// The defaults below are the embedded configuration: an empty file and no file at all mean the same. YAML is
// read strictly. An unknown or repeated key, a wrong type and a value out of range are refused with
//
//   mayfly.yaml:12: teardown.low_bytes: value 4GiB: accepted 1 B .. 2 GiB - 1 B, below high_bytes
//
// that is file, line, key, value and what was expected; the first error ends it. docs/configuration.md has
// every key.
//
// All calls: any thread, no state; they block on the file they read and use the heap.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.hpp"
#include "base/result.hpp"
#include "config/network.hpp"
#include "reclaim/reclaim.hpp"

namespace mayfly {

struct EalConfig {
  bool hugepages = false;
  // Memory of the EAL, a whole number of MiB. Absent: kMemoryWithoutHugepages without hugepages, and with
  // them whatever the EAL takes as it needs it.
  std::optional<uint64_t> memory_bytes;
  std::vector<std::string> args;  // handed to the EAL as they are, after ours

  static constexpr uint64_t kMemoryWithoutHugepages = uint64_t{256} << 20;
  uint64_t memory_or_default() const noexcept {
    return memory_bytes.value_or(hugepages ? 0 : kMemoryWithoutHugepages);
  }
};

struct IdleConfig {
  bool adaptive = true;  // policy: adaptive | poll
  uint64_t after_ns = 50'000;
  uint64_t sleep_ns = 500'000;
};

struct WorkersConfig {
  uint32_t count = 1;
  std::vector<uint32_t> cpus;  // empty: chosen at start; otherwise one a worker
  IdleConfig idle;
};

// Packet buffers, in all: every worker takes from the same pool.
struct MbufsConfig {
  uint32_t count = 16'384;
  uint32_t size_bytes = 2'176;  // data room, the headroom of 128 bytes included
  uint32_t cache = 256;         // mbufs that each worker keeps at hand
};

struct PortConfig {
  std::string name;
  std::string devargs;
  uint32_t rx_queues = 0;  // 0: one a worker
  uint32_t rx_descriptors = 1'024;
  uint32_t tx_descriptors = 1'024;
  uint32_t mtu = 1'500;
  bool promiscuous = true;
  bool existing = false;  // no key of the file: see PortSettings
};

struct LimitsConfig {
  uint32_t interfaces = 4'194'304;
  uint32_t neighbours = 1'048'576;
  uint32_t neighbours_per_interface = 8192;
  uint32_t routes = 4'194'304;
  uint32_t namespaces = 131'072;
};

struct SocketConfig {
  std::string path = "/run/mayfly/mayfly.sock";
  std::string group;  // empty: the group of the process
  uint32_t mode = 0660;
};

struct Config {
  EalConfig eal;
  WorkersConfig workers;
  MbufsConfig mbufs;
  std::vector<PortConfig> ports;
  LimitsConfig limits;
  SocketConfig socket;
  TeardownConfig teardown;  // teardown.cpus is not configured: it follows from the CPUs of the workers
  LogLevel log_level = LogLevel::info;
  NetworkConfig network;
  std::string text;  // the file

  uint32_t rx_queues(const PortConfig& port) const noexcept {
    return port.rx_queues != 0 ? port.rx_queues : workers.count;
  }
};

// Where each value came from: key path ("workers.count", "ports[0].name") -> "mayfly.yaml:7" or "--workers".
// A key that is not in it has its default.
using Origins = std::map<std::string, std::string, std::less<>>;

constexpr size_t kMaxConfigBytes = protocol::kMostConfigBytes;

// Reads and checks a file. ENOENT, EISDIR, EFBIG ... for the file; EINVAL for its content.
Result<Config> load_config(const std::string& path, Origins* origins = nullptr);

// The same for text in memory; file is the name that errors show.
Result<Config> parse_config(std::string_view text, std::string_view file, Origins* origins = nullptr);

// What no single value shows: that the values fit together. load_config() and parse_config() have done it;
// whoever changes a Config afterwards (the command line does) does it again.
Status check_config(const Config& config, const Origins& origins);

// YAML that parse_config() reads back into the same Config: every key, whether or not it has its default.
std::string dump_config(const Config& config);
// The same without the network: what a restart is needed for.
std::string dump_settings(const Config& config);

// For --check: what the limits may take of address space and memory, with this number of workers, and what
// the network section will take, in a few lines.
std::string describe_memory(const Config& config);

// Names of ports and interfaces: 1..15 characters, no '/', no white space or control character, not '.' or
// '..'. Gives the rule that the name breaks, nullptr when it breaks none.
const char* broken_name_rule(std::string_view name) noexcept;

}  // namespace mayfly
