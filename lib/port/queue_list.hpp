// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Which device queues a worker serves: an RCU block per worker, replaced whole when a port comes or goes.
//
// The worker reads it afresh at the start of every loop and holds it until its quiescent state. A port is
// stopped only after the grace period that follows its unpublishing (architecture.md, invariant 5). There is
// always a list, an empty one before the first port, from PortTable::create() to PortTable::shutdown().

#include <array>
#include <cstdint>

#include "iface/interface_table.hpp"
#include "rcu/rcu.hpp"
#include "reclaim/retire.hpp"

namespace mayfly {

constexpr uint16_t kNoQueue = UINT16_MAX;
// Receive queues that one worker can serve: more than one a port where ports have more queues than there are
// workers.
constexpr uint32_t kMostRxQueues = 256;

struct QueueList {
  Retired retired;

  struct RxQueue {
    uint16_t port;  // ethdev
    uint16_t queue;
    uint32_t ifindex;  // the port's interface
  };
  struct TxPort {
    uint16_t queue = kNoQueue;  // this worker's own; kNoQueue: the port is not there
    uint16_t reserved = 0;
    uint32_t ifindex = kNoInterface;
  };

  uint32_t rx_count;
  std::array<RxQueue, kMostRxQueues> rx;
  std::array<TxPort, kMostPorts> tx;  // by port number
};

using PublishedQueueList = RcuPointer<QueueList>;

}  // namespace mayfly
