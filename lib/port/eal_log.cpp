// SPDX-License-Identifier: BSD-3-Clause
#include "port/eal_log.hpp"

#include <rte_log.h>

#include <cstdio>
#include <string_view>

#include "base/check.hpp"
#include "base/log.hpp"

namespace mayfly {
namespace {

thread_local EalErrorScope* scope = nullptr;

LogLevel level_of(int eal_level) {
  if (eal_level <= static_cast<int>(RTE_LOG_ERR)) return LogLevel::error;
  if (eal_level == static_cast<int>(RTE_LOG_WARNING)) return LogLevel::warning;
  if (eal_level <= static_cast<int>(RTE_LOG_INFO)) return LogLevel::info;
  return LogLevel::debug;
}

}  // namespace

void record_eal_error(std::string_view line) {
  if (scope->first_.empty()) scope->first_ = line;
}

namespace {

// rte_log flushes after every record, on the thread that logs.
ssize_t write_eal_record(void*, const char* data, size_t size) {
  std::string_view text(data, size);
  const LogLevel level = level_of(rte_log_cur_msg_loglevel());
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty()) continue;
    if (scope != nullptr && level == LogLevel::error) {
      record_eal_error(line);
      log(LogLevel::debug, "dpdk", "{}", line);
    } else {
      log(level, "dpdk", "{}", line);
    }
  }
  return static_cast<ssize_t>(size);
}

}  // namespace

void redirect_eal_log() {
  cookie_io_functions_t functions{};
  functions.write = write_eal_record;
  FILE* stream = fopencookie(nullptr, "w", functions);
  if (stream == nullptr) return;
  rte_openlog_stream(stream);
  rte_log_set_global_level(RTE_LOG_WARNING);
}

EalErrorScope::EalErrorScope() noexcept {
  MAYFLY_CHECK(scope == nullptr, "an EalErrorScope inside another");
  scope = this;
}

EalErrorScope::~EalErrorScope() {
  scope = nullptr;
}

std::string EalErrorScope::reason() const {
  return first_.empty() ? std::string() : fmt::format(" (DPDK says: {})", first_);
}

}  // namespace mayfly
