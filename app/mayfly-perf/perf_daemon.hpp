// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// mayflyd in this process, with devices of a run's own, and a thread beside it that carries the run out
// through the control socket as any client would. Nothing of the daemon is built twice: this is the class
// that app/mayflyd runs.
//
// The thread that calls run() becomes the control thread. The socket, and the file that net_pcap replays,
// live in a directory of their own, gone at the end.

#include <array>
#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "options.hpp"
#include "paths.hpp"
#include "probe.hpp"

namespace mayfly::perf {

// Where a run's frames come from and go.
struct RunDevices {
  // The frames that a port replays without end, made once its MAC is known.
  using Frames = std::function<std::vector<std::vector<uint8_t>>(Mac)>;

  std::array<Frames, 2> replays;      // of port0 and port1; a port without any swallows what it gets
  uint64_t frames = 0;                // of both
  std::vector<std::string> external;  // instead: port0 and port1, traffic from outside
  bool probe = false;                 // the port probe0, a ring to and from this process
};

class PerfDaemon {
 public:
  PerfDaemon(const PerfOptions& options, RunDevices devices);
  ~PerfDaemon();
  PerfDaemon(const PerfDaemon&) = delete;
  PerfDaemon& operator=(const PerfDaemon&) = delete;

  // body: on its own thread, once clients can connect; the daemon ends when it returns. ENOMEM, with what
  // would work, where this machine has not the memory.
  Status run(const std::function<Status(PerfDaemon&)>& body);

  const std::string& socket() const noexcept { return config_.socket.path; }
  ProbeDevice& probe_device() noexcept { return probe_; }

 private:
  Status make_directory();
  Status check_memory() const;
  Status make_devices();
  bool loaded() const noexcept { return devices_.replays[0] || devices_.replays[1]; }
  Status make_replay(size_t port);

  const PerfOptions& options_;
  const RunDevices devices_;
  Config config_;
  std::string directory_;
  ProbeDevice probe_;
};

// Ctrl-C: runs end early, with what they have.
void handle_interrupts();
bool interrupted() noexcept;
// False when interrupted meanwhile.
bool sleep_ns(uint64_t ns);

}  // namespace mayfly::perf
