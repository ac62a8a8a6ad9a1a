// SPDX-License-Identifier: BSD-3-Clause
#include "control/dataplane.hpp"

namespace mayfly {

void Dataplane::collect() {
  reclaim.collect(Deadline::never());
  RetireList retired;
  ports.poll_completions(retired, [](const PortEvent&) {});
  commit(retired);
}

Totals Dataplane::totals() const noexcept {
  Totals all;
  for (const WorkerLink& worker : workers) {
    Totals totals;
    worker.statistics->published.read(&totals);
    all += totals;
  }
  return all;
}

}  // namespace mayfly
