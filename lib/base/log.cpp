// SPDX-License-Identifier: BSD-3-Clause
#include "base/log.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/units.hpp"

namespace mayfly {
namespace {

constexpr uint64_t kLimitNs = 10'000'000'000;
std::atomic<LogLevel> current_level{LogLevel::info};

constexpr const char* kLevelNames[] = {"error", "warn ", "info ", "debug"};

}  // namespace

void check_failed(const char* file, int line, const char* sentence) noexcept {
  fmt::print(stderr, "{}:{}: broken invariant: {}\n", file, line, sentence);
  std::abort();
}

void set_log_level(LogLevel level) noexcept {
  current_level.store(level, std::memory_order_relaxed);
}

LogLevel log_level() noexcept {
  return current_level.load(std::memory_order_relaxed);
}

void write_log(LogLevel level, std::string_view module, std::string_view text) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  tm utc{};
  gmtime_r(&now.tv_sec, &utc);
  char stamp[64];
  const size_t length = strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &utc);
  std::string line = fmt::format("{}.{:03}Z {} {}: {}\n", std::string_view(stamp, length),
                                 now.tv_nsec / 1'000'000, kLevelNames[static_cast<int>(level)], module, text);
  // Names that clients choose must not begin lines of their own or steer a terminal.
  std::replace_if(
      line.begin(), line.end() - 1, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; },
      '?');
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

bool LogLimit::admit(uint64_t now_ns, uint64_t* repeats) noexcept {
  uint64_t open_at = open_at_ns_.load(std::memory_order_relaxed);
  if (now_ns < open_at ||
      !open_at_ns_.compare_exchange_strong(open_at, now_ns + kLimitNs, std::memory_order_relaxed)) {
    swallowed_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  *repeats = swallowed_.exchange(0, std::memory_order_relaxed);
  return true;
}

void write_limited_log(LogLimit& limit, LogLevel level, std::string_view module,
                       std::string_view text) noexcept {
  uint64_t repeats = 0;
  if (!limit.admit(monotonic_ns(), &repeats)) return;
  if (repeats == 0)
    write_log(level, module, text);
  else
    write_log(level, module, fmt::format("{} (x {} in 10 s)", text, format_count(repeats)));
}

}  // namespace mayfly
