// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Everything the control thread's handlers work on: the tables, teardown, and the way to the workers.
//
// Owned by the daemon (app/mayflyd) or a test; the references outlive the control server. Control thread
// only.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "control/configuration.hpp"
#include "control/link_events.hpp"
#include "control/stage_measurement.hpp"
#include "fib/rib.hpp"
#include "iface/interface_table.hpp"
#include "neigh/neighbours.hpp"
#include "netns/addressing.hpp"
#include "netns/netns_table.hpp"
#include "pipeline/messages.hpp"
#include "port/mbuf_pool.hpp"
#include "port/port_table.hpp"
#include "reclaim/block_pools.hpp"
#include "reclaim/reclaim.hpp"
#include "stats/worker_balance.hpp"
#include "stats/worker_statistics.hpp"

namespace mayfly {

// One worker as the control thread sees it.
struct WorkerLink {
  WorkerStatistics* statistics = nullptr;
  MessageRing<WorkerMessage>* from_worker = nullptr;
  MessageRing<ControlMessage>* to_worker = nullptr;
};

// Drops a second and the clock offset, refreshed by the control loop.
struct DropRates {
  std::array<uint64_t, kDropReasons> total{};
  std::array<uint64_t, kDropReasons> per_second{};
};

struct Dataplane {
  BlockPools& blocks;
  Reclaim& reclaim;
  InterfaceTable& interfaces;
  RouteTable& routes;
  Neighbours& neighbours;
  Addressing& addressing;
  NetnsTable& netnses;
  PortTable& ports;
  rte_mempool* mbufs = nullptr;
  std::vector<WorkerLink> workers;

  std::string boot_id;
  std::string daemon_name;
  std::string socket_path;
  bool hugepages = false;
  bool adaptive_idle = true;
  uint64_t started_ns = 0;  // CLOCK_MONOTONIC

  // Written by the control loop and the server.
  DropRates drop_rates;
  uint64_t longest_slice_ns = 0;
  uint32_t clients = 0;
  WorkerBalance balance{};
  StageMeasurement stages{};
  LinkEvents link_events{};
  Configuration configuration{};
  uint32_t removals = 0;  // InterfaceRemovals and moves so far: their numbers

  // Publishes what a request changed in the FIBs of whatever namespaces, and then hands over what it retired:
  // in this order, since routes lead to what is retired.
  void commit(RetireList& retired) noexcept {
    routes.commit(retired);
    reclaim.submit(retired);
  }
  void tell_workers(const ControlMessage& message) noexcept {
    for (WorkerLink& worker : workers) worker.to_worker->push(message);
  }
  // What teardown and the port thread have done. The control loop sees to it; this is for whoever must finish
  // something while it does not run.
  void collect();
  Totals totals() const noexcept;
};

}  // namespace mayfly
