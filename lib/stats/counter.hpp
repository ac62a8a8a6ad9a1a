// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// A counter that one thread writes and any thread reads.

#include <atomic>
#include <cstdint>

namespace mayfly {

using Counter = std::atomic<uint64_t>;

// The owner's increment: a load and a store.
inline void bump(Counter& counter, uint64_t by = 1) noexcept {
  counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

}  // namespace mayfly
