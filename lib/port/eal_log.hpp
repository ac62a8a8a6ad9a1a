// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// What DPDK logs, as records of our log ("dpdk: ..."), warnings and worse; and, where one of its calls fails
// with a bare -1, the sentence it logged meanwhile as the reason.
//
//   EalErrorScope words;
//   if (rte_dev_probe(devargs) != 0) return fail(ENODEV, "port0: ... {}", words.reason());

#include <string>

namespace mayfly {

// Control thread, before the EAL starts. Once a process.
void redirect_eal_log();

// While one lives on a thread, errors that DPDK logs on that thread are collected and go to the log as debug
// records only: they return in an Error. Not nested.
class EalErrorScope {
 public:
  EalErrorScope() noexcept;
  ~EalErrorScope();
  EalErrorScope(const EalErrorScope&) = delete;
  EalErrorScope& operator=(const EalErrorScope&) = delete;

  // The first error logged since: the one nearest to the cause. Empty when there was none.
  const std::string& first() const noexcept { return first_; }
  // " (DPDK says: ...)", or nothing.
  std::string reason() const;

 private:
  friend void record_eal_error(std::string_view line);
  std::string first_;
};

}  // namespace mayfly
