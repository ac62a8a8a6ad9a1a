// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The packet buffers (mbufs) of the process: one pool, from which every receive queue and worker takes.
//
// Only workers touch it while packets flow, each through a cache of its own. The port thread fills and
// empties the rings of a device from it when it starts and stops one, in bursts of a few microseconds.

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.hpp"

struct rte_mempool;

namespace mayfly {

struct MbufPoolSettings {
  uint32_t count = 16'384;
  uint32_t data_room_bytes = 2'176;  // headroom included
  uint32_t cache = 256;              // mbufs that each worker keeps at hand
  int numa_node = -1;                // -1: any
};

class MbufPool {
 public:
  // Control thread, after the EAL has started. Blocks while the memory is touched: about a second per 4 GiB.
  // ENOMEM says what eal.memory would be enough.
  static Result<std::unique_ptr<MbufPool>> create(const std::string& name, const MbufPoolSettings& settings);
  // Every mbuf is back and no device uses it.
  ~MbufPool();
  MbufPool(const MbufPool&) = delete;
  MbufPool& operator=(const MbufPool&) = delete;

  rte_mempool& get() const noexcept { return *pool_; }
  uint32_t count() const noexcept { return count_; }
  // Any thread; a walk over the caches of all lcores. Exact when nobody takes or gives, approximate
  // otherwise.
  uint32_t available() const noexcept;
  uint32_t in_use() const noexcept;

  // Memory that a pool takes, its bookkeeping included. After the EAL has started: without hugepages it is
  // more.
  static uint64_t needed_bytes(const MbufPoolSettings& settings) noexcept;

 private:
  MbufPool(rte_mempool* pool, uint32_t count) noexcept : pool_(pool), count_(count) {}
  rte_mempool* pool_;
  uint32_t count_;
};

}  // namespace mayfly
