// SPDX-License-Identifier: BSD-3-Clause
#include "perf_daemon.hpp"

#include <rte_dev.h>
#include <rte_ethdev.h>
#include <sched.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include <fmt/format.h>

#include "base/units.hpp"
#include "mayflyd/daemon.hpp"
#include "port/mbuf_pool.hpp"

namespace mayfly::perf {
namespace {

constexpr std::array<const char*, 2> kReplayDevices = {"net_pcap_perf0", "net_pcap_perf1"};
constexpr std::array<const char*, 2> kSinks = {"net_null0,no-rx=1", "net_null1,no-rx=1"};
constexpr uint64_t kEalSlackBytes = uint64_t{96} << 20;
// Twice what a VLAN interface takes (docs/performance.md); one that is dressed has an address list,
// neighbours and routes of its own.
constexpr uint64_t kBareBytes = 700;
constexpr uint64_t kDressedBytes = 2'500;
constexpr uint64_t kPollNs = 10 * kNsPerMs;

std::atomic<bool> interrupt_requested{false};

void request_interrupt(int) {
  interrupt_requested.store(true);
}

uint64_t available_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  uint64_t kib = 0;
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("MemAvailable:")) kib = std::strtoull(line.c_str() + 13, nullptr, 10);
  return kib << 10;
}

Status pin_to(const std::vector<uint32_t>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const uint32_t cpu : cpus) CPU_SET(cpu, &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0)
    return fail(errno, "-l: these CPUs are not ours to use: {}", std::strerror(errno));
  return {};
}

PortConfig port_of(std::string name, std::string devargs, bool existing = false) {
  PortConfig port;
  port.name = std::move(name);
  port.devargs = std::move(devargs);
  port.existing = existing;
  return port;
}

}  // namespace

void handle_interrupts() {
  struct sigaction action {};
  action.sa_handler = request_interrupt;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

bool interrupted() noexcept {
  return interrupt_requested.load();
}

bool sleep_ns(uint64_t ns) {
  const uint64_t until = monotonic_ns() + ns;
  while (!interrupted()) {
    const uint64_t now = monotonic_ns();
    if (now >= until) return true;
    const uint64_t left = std::min(until - now, kPollNs);
    const timespec pause{.tv_sec = 0, .tv_nsec = static_cast<long>(left)};
    nanosleep(&pause, nullptr);
  }
  return false;
}

PerfDaemon::PerfDaemon(const PerfOptions& options, RunDevices devices)
    : options_(options), devices_(std::move(devices)) {
  config_.log_level = LogLevel::warning;
  config_.workers.idle.adaptive = options.adaptive.value_or(!loaded() && devices_.external.empty());
  if (!options.cpus.empty()) {
    config_.workers.cpus.assign(options.cpus.begin() + 1, options.cpus.end());
    config_.workers.count = static_cast<uint32_t>(config_.workers.cpus.size());
  }
  config_.eal.hugepages = options.hugepages;
  // The driver keeps a copy of every frame.
  config_.mbufs.count += static_cast<uint32_t>(devices_.frames) * config_.workers.count;
  if (!devices_.external.empty()) {
    config_.ports = {port_of("port0", devices_.external[0]), port_of("port1", devices_.external[1])};
  } else {
    for (size_t i = 0; i < (loaded() || devices_.probe ? 2 : 1); ++i) {
      const bool replays = devices_.replays[i] != nullptr;
      config_.ports.push_back(
          port_of(fmt::format("port{}", i), replays ? kReplayDevices[i] : kSinks[i], replays));
      config_.ports.back().rx_queues = 1;
    }
  }
  if (devices_.probe) {
    config_.ports.push_back(port_of("probe0", kProbeDevice, true));
    config_.ports.back().rx_queues = 1;
  }
}

PerfDaemon::~PerfDaemon() {
  std::error_code ignored;
  if (!directory_.empty()) std::filesystem::remove_all(directory_, ignored);
}

Status PerfDaemon::make_directory() {
  std::string name = (std::filesystem::temp_directory_path() / "mayfly-perf-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) return fail(errno, "{}: {}", name, std::strerror(errno));
  directory_ = name;
  config_.socket.path = directory_ + "/mayfly.sock";
  return {};
}

Status PerfDaemon::check_memory() const {
  const uint64_t each = options_.dressed && options_.run == RunKind::churn ? kDressedBytes : kBareBytes;
  const uint64_t interfaces = options_.interfaces + (options_.run == RunKind::survive ? options_.churn : 0);
  const uint64_t fixed = config_.eal.memory_or_default();
  const uint64_t needed = fixed + interfaces * each;
  const uint64_t available = available_bytes();
  if (needed <= available) return {};
  return fail(ENOMEM, "{} interfaces and {} of packet buffers take about {}; {} are available, enough for {}",
              format_count(interfaces), format_bytes(fixed), format_bytes(needed), format_bytes(available),
              format_count(available <= fixed ? 0 : (available - fixed) / each));
}

// The frames carry the device's address, which it has once it is probed, and its file is read when its queues
// are set up: so the file gets them in between.
Status PerfDaemon::make_replay(size_t replay) {
  const char* device = kReplayDevices[replay];
  const std::string file = fmt::format("{}/{}.pcap", directory_, device);
  if (auto begun = begin_capture(file); !begun) return begun;
  const std::string devargs = fmt::format("{},rx_pcap={},infinite_rx=1", device, file);
  uint16_t port = 0;
  rte_ether_addr mac{};
  if (rte_dev_probe(devargs.c_str()) != 0 || rte_eth_dev_get_port_by_name(device, &port) != 0 ||
      rte_eth_macaddr_get(port, &mac) != 0)
    return fail(ENODEV, "net_pcap made no device of {}", file);
  return append_capture(file, devices_.replays[replay](load_mac(mac.addr_bytes)));
}

Status PerfDaemon::make_devices() {
  for (size_t i = 0; i < devices_.replays.size(); ++i)
    if (devices_.replays[i] && devices_.external.empty())
      if (auto made = make_replay(i); !made) return made;
  return devices_.probe ? probe_.open() : Status();
}

Status PerfDaemon::run(const std::function<Status(PerfDaemon&)>& body) {
  if (!options_.cpus.empty())
    if (auto pinned = pin_to(options_.cpus); !pinned) return pinned;
  if (auto made = make_directory(); !made) return made;
  if (!config_.eal.hugepages) {
    const uint64_t pool = MbufPool::needed_bytes({.count = config_.mbufs.count,
                                                  .data_room_bytes = config_.mbufs.size_bytes,
                                                  .cache = config_.mbufs.cache});
    // Without hugepages an mbuf may not cross a page: it takes a whole one.
    const uint64_t bytes = 2 * pool + kEalSlackBytes;
    config_.eal.memory_bytes = std::max(bytes, EalConfig::kMemoryWithoutHugepages) >> 20 << 20;
  }
  if (auto checked = check_memory(); !checked) return checked;
  set_log_level(config_.log_level);
  std::atomic<bool> stop{false};
  Status outcome;
  std::thread thread;
  ServiceNotification service;
  Status ran;
  {
    Daemon daemon(config_, service,
                  {.environment_started = [this] { return make_devices(); },
                   .ready =
                       [&] {
                         thread = std::thread([&] {
                           outcome = body(*this);
                           stop.store(true);
                         });
                       },
                   .ports_closed = [this] { probe_.close(); }});
    ran = daemon.run(stop);
    if (thread.joinable()) thread.join();
  }
  return ran ? outcome : ran;
}

}  // namespace mayfly::perf
