// SPDX-License-Identifier: BSD-3-Clause
#include "progress.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/units.hpp"

namespace mayfly::cli {

namespace {

constexpr uint64_t kSilenceNs = kNsPerSecond;
constexpr size_t kWidth = 30;

}  // namespace

ProgressBar::ProgressBar(std::string operation)
    : operation_(std::move(operation)), started_ns_(monotonic_ns()) {}

bool ProgressBar::wanted() noexcept {
  return isatty(STDERR_FILENO) == 1;
}

void ProgressBar::update(uint64_t done, uint64_t total) {
  if (!wanted() || monotonic_ns() - started_ns_ < kSilenceNs) return;
  fmt::print(stderr, "\r{}: {}\033[K", operation_, format_progress(done, total));
  fflush(stderr);
  drawn_ = true;
}

void ProgressBar::clear() {
  if (!drawn_) return;
  fmt::print(stderr, "\r\033[K");
  fflush(stderr);
  drawn_ = false;
}

std::string format_progress(uint64_t done, uint64_t total) {
  const double share =
      total == 0 ? 0 : static_cast<double>(std::min(done, total)) / static_cast<double>(total);
  const auto full = static_cast<size_t>(share * kWidth);
  return fmt::format("[{:#<{}}{:.<{}}] {:>3} %  {} of {}", "", full, "", kWidth - full,
                     static_cast<int>(share * 100), format_count(done), format_count(total));
}

}  // namespace mayfly::cli
