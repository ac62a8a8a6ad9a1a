// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The daemon: builds every part in the order of their dependencies, runs the control loop, takes all apart
// again.
//
// The thread that calls run() becomes the control thread (lcore 0). Parts are members in the order they are
// built, so that they go in the reverse order; what must happen in between (workers stop, teardown finishes,
// devices close) is in shut_down().

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "base/result.hpp"
#include "config/config.hpp"
#include "control/control_loop.hpp"
#include "control/dataplane.hpp"
#include "control/server.hpp"
#include "pipeline/worker.hpp"
#include "port/cpu_plan.hpp"
#include "port/eal.hpp"
#include "service_notification.hpp"

namespace mayfly {

// What a program that has the daemon in its process does between the daemon's steps; on the control thread,
// and all of it may be absent.
struct DaemonSurroundings {
  std::function<Status()> environment_started;  // makes the ethdevs of `existing` ports
  std::function<void()> ready;                  // clients can connect
  std::function<void()> ports_closed;           // no worker runs and no port is left; the EAL is
};

class Daemon {
 public:
  Daemon(const Config& config, ServiceNotification& service, DaemonSurroundings surroundings = {})
      : config_(config), service_(service), surroundings_(std::move(surroundings)) {}
  ~Daemon();

  // Returns when *stop is set, after everything has been given back. An error means that it did not start:
  // nothing is left behind.
  Status run(const std::atomic<bool>& stop);

 private:
  struct WorkerParts {
    WorkerStatistics statistics;
    MessageRing<WorkerMessage> to_control;
    MessageRing<ControlMessage> from_control;
    std::unique_ptr<Worker> worker;
  };

  Status start_environment();
  Status build_tables();
  Status start_workers();
  Status add_ports(const std::atomic<bool>& stop);
  Status make_network(const std::atomic<bool>& stop);
  void describe_start() const;
  std::string describe_size() const;
  void shut_down();
  void stop_workers();
  void retire_everything();

  const Config& config_;
  ServiceNotification& service_;
  const DaemonSurroundings surroundings_;
  CpuPlan cpus_;
  std::unique_ptr<Eal> eal_;
  std::unique_ptr<MbufPool> mbufs_;
  std::unique_ptr<BlockPools> blocks_;
  std::unique_ptr<Neighbours> neighbours_;
  std::unique_ptr<InterfaceTable> interfaces_;
  std::unique_ptr<RouteTable> routes_;
  std::unique_ptr<NetnsTable> netnses_;
  std::unique_ptr<Addressing> addressing_;
  std::unique_ptr<Reclaim> reclaim_;
  std::unique_ptr<PortThread> port_thread_;
  std::unique_ptr<PortTable> ports_;
  std::vector<std::unique_ptr<WorkerParts>> workers_;
  std::unique_ptr<Dataplane> dataplane_;
  std::unique_ptr<ControlServer> server_;
  std::unique_ptr<ControlLoop> loop_;
  std::atomic<bool> stop_workers_{false};
  bool workers_running_ = false;
};

}  // namespace mayfly
