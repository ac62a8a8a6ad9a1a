// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// CLOCK_MONOTONIC for a worker: one TSC read a loop, no call of the system on the packet path.
//
// A pair (TSC, ns) is taken at start() and about once a second by adjust(), off the packet path; between two
// of them time is the TSC's, at the rate measured over the last second, so NTP's corrections are followed. It
// never goes back. Worker only; the EAL must be up.

#include <cstdint>

namespace mayfly {

class TscClock {
 public:
  void start() noexcept;
  uint64_t now_ns() noexcept;
  // Takes a new pair when the last one is older than a second.
  void adjust() noexcept;

 private:
  uint64_t base_tsc_ = 0;
  uint64_t base_ns_ = 0;
  uint64_t last_ns_ = 0;
  uint64_t ns_per_tick_ = 0;  // times 2^32
};

}  // namespace mayfly
