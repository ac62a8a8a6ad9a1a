// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The one thread that calls what blocks in ethdev: probe, configure, start, stop, close, link, counters.
//
// The control thread posts requests and takes replies, in the order of the requests; both are values. It
// never waits: completion_fd() becomes readable when there are replies. Requests name a port by a slot that
// control chose.
//
// Before a remove is posted no worker polls the device any more: that is the business of PortTable.

#include <semaphore.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "base/result.hpp"
#include "port/handover_queue.hpp"
#include "port/port.hpp"

struct rte_mempool;

namespace mayfly {

class Device;

struct PortRequest {
  enum class Type : uint8_t { add, remove, refresh, set_mtu, set_mac, set_promiscuous, set_filter, xstats };
  Type type = Type::refresh;
  uint32_t slot = 0;
  uint64_t cookie = 0;       // returned in the reply
  PortSettings settings;     // add
  uint32_t mtu = 0;          // set_mtu
  Mac mac = 0;               // set_mac
  bool promiscuous = false;  // set_promiscuous
  MacFilterRequest filter;   // set_promiscuous, set_filter
};

struct PortReply {
  PortRequest::Type type = PortRequest::Type::refresh;
  uint32_t slot = 0;
  uint64_t cookie = 0;
  Status result;
  // As the device is now; of a failed add or after a remove: nothing.
  PortInfo info;
  PortCounters counters;
  ExtendedCounters xstats;  // xstats
};

class PortThread {
 public:
  // The mempool fills every receive queue. cpus: where the thread runs; empty: where its creator does.
  PortThread(rte_mempool& pool, std::vector<int> cpus);
  // As stop().
  ~PortThread();
  PortThread(const PortThread&) = delete;
  PortThread& operator=(const PortThread&) = delete;

  Status start();
  // Control thread, at the end, when no worker runs any more. Blocks: what was posted is done, then every
  // device that is still open is closed and the thread joined. Requests posted afterwards are ignored.
  void stop();

  // Control thread; wait-free.
  void post(PortRequest request);
  // Control thread: false when there is none.
  bool take(PortReply* reply);
  // Any thread: mbufs that drivers may have kept of devices that are closed.
  uint64_t buffers_kept() const noexcept { return buffers_kept_.load(std::memory_order_relaxed); }
  int completion_fd() const noexcept { return completion_fd_; }

  // The thread's own side: the next request, and its answer. A test that never calls start() stands in for
  // the thread with these.
  bool next(PortRequest* request) { return requests_.pop(request); }
  void reply(PortReply reply);

 private:
  void run();
  PortReply serve(const PortRequest& request);
  Status serve_add(const PortRequest& request);
  Device* device_of(uint32_t slot) noexcept;
  void close_device(uint32_t slot);

  rte_mempool& pool_;
  std::vector<int> cpus_;
  HandoverQueue<PortRequest> requests_;
  HandoverQueue<PortReply> replies_;
  sem_t work_;
  std::atomic<bool> stopping_{false};
  std::atomic<uint64_t> buffers_kept_{0};
  int completion_fd_ = -1;
  std::map<uint32_t, std::unique_ptr<Device>> devices_;  // the thread's own, by slot
  std::thread thread_;
};

}  // namespace mayfly
