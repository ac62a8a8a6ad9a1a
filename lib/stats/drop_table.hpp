// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Which interface lost how many packets for which reason, in bounded memory.
//
// One table a worker, written by it alone: open addressing over eight neighbouring entries keyed by
// (interface id, reason). Ids are never reused, so a dead interface's entries need no clean-up. When all
// eight are taken the smallest is replaced: the split by reason is then incomplete for that interface (shown
// as "other"), while its rx_dropped / tx_dropped and the totals by reason stay exact.
//
// add(): worker, two cache lines at most. for_each(): any thread; sees single entries change, never torn
// ones.

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "stats/drop_reason.hpp"

namespace mayfly {

class DropTable {
 public:
  DropTable();

  void add(uint64_t interface_id, uint32_t ifindex, DropReason reason, uint64_t packets) noexcept;

  // visit(interface_id, ifindex, reason, packets); the ifindex may have another owner by now: compare the id.
  template <class Visit>
  void for_each(Visit visit) const {
    for (uint32_t i = 0; i < kEntries; ++i) {
      const uint64_t key = entries_[i].key.load(std::memory_order_acquire);
      if (key == 0) continue;
      const uint32_t ifindex = entries_[i].ifindex.load(std::memory_order_relaxed);
      const uint64_t packets = entries_[i].packets.load(std::memory_order_acquire);
      if (entries_[i].key.load(std::memory_order_relaxed) != key) continue;
      visit(key >> 8, ifindex, static_cast<DropReason>((key & 0xff) - 1), packets);
    }
  }

 private:
  static constexpr uint32_t kEntries = 8192;
  static constexpr uint32_t kWindow = 8;
  struct Entry {
    std::atomic<uint64_t> key;  // id << 8 | reason + 1; 0: free
    std::atomic<uint64_t> packets;
    std::atomic<uint32_t> ifindex;
  };
  std::unique_ptr<Entry[]> entries_;
};

}  // namespace mayfly
