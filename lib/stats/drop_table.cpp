// SPDX-License-Identifier: BSD-3-Clause
#include "stats/drop_table.hpp"

#include "base/index_hash.hpp"

namespace mayfly {

DropTable::DropTable() : entries_(new Entry[kEntries]{}) {}

void DropTable::add(uint64_t interface_id, uint32_t ifindex, DropReason reason, uint64_t packets) noexcept {
  const uint64_t key = interface_id << 8 | (static_cast<uint64_t>(reason) + 1);
  Entry* const window = &entries_[mix_hash(key) % (kEntries / kWindow) * kWindow];
  Entry* smallest = window;
  for (Entry* entry = window; entry != window + kWindow; ++entry) {
    const uint64_t present = entry->key.load(std::memory_order_relaxed);
    if (present == key) {
      entry->packets.store(entry->packets.load(std::memory_order_relaxed) + packets,
                           std::memory_order_release);
      return;
    }
    if (present == 0) {
      smallest = entry;
      break;
    }
    if (entry->packets.load(std::memory_order_relaxed) < smallest->packets.load(std::memory_order_relaxed))
      smallest = entry;
  }
  // A reader that meets the entry in between sees no key, or the key with the right count.
  smallest->key.store(0, std::memory_order_relaxed);
  smallest->ifindex.store(ifindex, std::memory_order_relaxed);
  smallest->packets.store(packets, std::memory_order_release);
  smallest->key.store(key, std::memory_order_release);
}

}  // namespace mayfly
