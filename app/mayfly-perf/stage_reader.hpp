// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The stages' share of a run: the counters of `mayfly stats stages`, from restart() on. Where they are not
// wanted
// (--no-stages) every call does nothing.

#include <optional>

#include "console.hpp"
#include "report.hpp"

namespace mayfly::perf {

class StageReader {
 public:
  StageReader(const Console& console, bool wanted) : console_(console), wanted_(wanted) {}

  Status begin();
  Status restart();
  Status report(Report& report);

 private:
  const Console& console_;
  const bool wanted_;
  std::optional<ControlClient> client_;
};

}  // namespace mayfly::perf
