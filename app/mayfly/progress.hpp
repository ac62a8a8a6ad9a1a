// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// A bar on standard error, when that is a terminal and the operation lasts over a second.

#include <cstdint>
#include <string>

namespace mayfly::cli {

class ProgressBar {
 public:
  explicit ProgressBar(std::string operation);
  ~ProgressBar() { clear(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  static bool wanted() noexcept;
  void update(uint64_t done, uint64_t total);
  // Removes the bar from the terminal.
  void clear();

 private:
  std::string operation_;
  uint64_t started_ns_;
  bool drawn_ = false;
};

// "[#####.....]  50 %  500,000 of 1,000,000"
std::string format_progress(uint64_t done, uint64_t total);

}  // namespace mayfly::cli
