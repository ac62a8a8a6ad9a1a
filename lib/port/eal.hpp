// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// DPDK's environment (EAL): started once, from plain settings, and cleaned up whatever happens.
//
// lcore 0 is the thread that calls start(), the control thread; lcore n + 1 is worker n, pinned to its CPU.
// Files of the EAL live in a directory of this process alone (file prefix mayfly-PID), so that daemons run
// side by side; it is removed at the end, after a failed start too. Only the PCI devices that the ports name
// are taken: without -a the EAL would grab every NIC bound to vfio, those of a neighbouring daemon too.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace mayfly {

struct EalSettings {
  std::string program = "mayflyd";
  bool hugepages = false;
  uint64_t memory_bytes = 0;  // 0: the EAL's choice; without hugepages that is 64 MiB, and it never grows
  bool telemetry = false;
  std::vector<int> worker_cpus;   // one a worker: see plan_cpus()
  std::vector<int> control_cpus;  // where lcore 0, and every thread it starts, may run
  std::vector<std::string>
      port_devargs;                     // of every port: those that are PCI addresses are allowed to the EAL
  std::vector<std::string> extra_args;  // after ours
};

constexpr unsigned worker_lcore(uint32_t worker) noexcept {
  return worker + 1;
}

// "0000:03:00.0" or "03:00.0", arguments may follow.
bool is_pci_devargs(std::string_view devargs) noexcept;

// As DPDK and the kernel write it, with domain and in small letters, where the devargs are of a PCI device:
// DPDK compares names. Others come back unchanged.
std::string with_full_pci_address(std::string_view devargs);

// The command line of the EAL, the program's name first.
std::vector<std::string> eal_arguments(const EalSettings& settings, std::string_view file_prefix);

class Eal {
 public:
  // Control thread, which becomes lcore 0 and is pinned to control_cpus. Blocks: 10 ms to a second. At most
  // once in the life of a process, even when it failed: DPDK can not start twice.
  static Result<std::unique_ptr<Eal>> start(const EalSettings& settings);

  // No worker runs, every port is closed and every mempool freed.
  ~Eal();
  Eal(const Eal&) = delete;
  Eal& operator=(const Eal&) = delete;

  const std::string& file_prefix() const noexcept { return file_prefix_; }
  const std::string& runtime_directory() const noexcept { return runtime_directory_; }

 private:
  explicit Eal(std::string file_prefix) : file_prefix_(std::move(file_prefix)) {}
  void note_runtime_directory();

  std::string file_prefix_;
  std::string runtime_directory_;
  bool running_ = false;
};

}  // namespace mayfly
