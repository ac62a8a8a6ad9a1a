// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// What every bulk operation counts, answers and logs. Control thread.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "control/connection.hpp"

namespace mayfly {

class BulkResult {
 public:
  struct Failure {
    std::string name;
    Error error;
    std::optional<uint64_t> member;
  };
  // Of a replace, beside `changed`, which then means: in place.
  struct Replaced {
    uint64_t created = 0;
    uint64_t kept = 0;
    uint64_t deleted = 0;
  };

  void failed(std::string_view name, Error error, std::optional<uint64_t> member = {}) {
    ++failed_;
    if (failures_.size() < kFailuresTold) failures_.push_back({std::string(name), std::move(error), member});
  }
  // So many more, of which nothing is told.
  void failed_beside(uint64_t count) noexcept { failed_ += count; }
  uint64_t failures() const noexcept { return failed_; }
  const Failure& first_failure() const noexcept { return failures_.front(); }

  uint64_t matched = 0;
  uint64_t changed = 0;
  uint64_t to_reclaim_bytes = 0;
  std::optional<Replaced> replaced;
  // Memory ran out where nothing could be taken back any more: a failure does not mean that nothing changed.
  bool incomplete = false;

  // The result message, then the acknowledgement: an error when something failed and the request was not
  // forced.
  void answer(Connection& connection, const nlmsghdr& request, bool forced) const;
  // Progress for a client that asked for it, at most every 200 ms.
  void tell_progress(Connection& connection, const nlmsghdr& request, uint64_t done, uint64_t total);
  // One line: what, matched, failed, time, client.
  void log_line(const Connection& connection, std::string_view what) const;

 private:
  static constexpr size_t kFailuresTold = 10;
  uint64_t began_ns_ = monotonic_ns();
  uint64_t told_ns_ = began_ns_;
  uint64_t failed_ = 0;
  std::vector<Failure> failures_;
};

}  // namespace mayfly
