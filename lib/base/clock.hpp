// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Time as control and teardown threads read it. Workers read the TSC once per vector instead (lib/pipeline).

#include <cstdint>
#include <ctime>

namespace mayfly {

constexpr uint64_t kNsPerUs = 1'000;
constexpr uint64_t kNsPerMs = 1'000'000;
constexpr uint64_t kNsPerSecond = 1'000'000'000;

inline uint64_t monotonic_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * kNsPerSecond + static_cast<uint64_t>(now.tv_nsec);
}

inline uint64_t realtime_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * kNsPerSecond + static_cast<uint64_t>(now.tv_nsec);
}

// When a slice of long work must hand the control thread back.
class Deadline {
 public:
  static Deadline after_ns(uint64_t ns) noexcept { return Deadline(monotonic_ns() + ns); }
  static Deadline never() noexcept { return Deadline(UINT64_MAX); }
  bool over() const noexcept { return at_ns_ != UINT64_MAX && monotonic_ns() >= at_ns_; }

 private:
  explicit Deadline(uint64_t at_ns) noexcept : at_ns_(at_ns) {}
  uint64_t at_ns_;
};

}  // namespace mayfly
