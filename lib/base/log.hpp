// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The daemon's one logging layer: levels, one line a record, repeats folded.
//
//   2026-11-30T14:49:43.123Z info  control: client 7 (mayfly, pid 812, uid 0) connected
//
// Lines go to standard error (where systemd and a terminal both want them). Any thread may log except a
// worker while it is online: a write may block. A rate-limited site prints its first record, stays silent for
// ten seconds, and then says how many it swallowed ("x 4,113 in 10 s").

#include <atomic>
#include <cstdint>
#include <string_view>

#include <fmt/format.h>

namespace mayfly {

enum class LogLevel : uint8_t { error, warning, info, debug };

void set_log_level(LogLevel level) noexcept;
LogLevel log_level() noexcept;
void write_log(LogLevel level, std::string_view module, std::string_view text) noexcept;

// State of one rate-limited call site; static storage, any thread.
class LogLimit {
 public:
  // Whether to print now; *repeats is how many records were swallowed since the last one printed.
  bool admit(uint64_t now_ns, uint64_t* repeats) noexcept;

 private:
  std::atomic<uint64_t> open_at_ns_{0};
  std::atomic<uint64_t> swallowed_{0};
};

void write_limited_log(LogLimit& limit, LogLevel level, std::string_view module,
                       std::string_view text) noexcept;

template <class... Args>
void log(LogLevel level, std::string_view module, fmt::format_string<Args...> text, Args&&... args) {
  if (level <= log_level()) write_log(level, module, fmt::format(text, std::forward<Args>(args)...));
}

template <class... Args>
void log_limited(LogLimit& limit, LogLevel level, std::string_view module, fmt::format_string<Args...> text,
                 Args&&... args) {
  if (level <= log_level())
    write_limited_log(limit, level, module, fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace mayfly
