// SPDX-License-Identifier: BSD-3-Clause
#include "stage_reader.hpp"

#include <linux/netlink.h>

#include <fmt/format.h>

#include "control/stage_view.hpp"

namespace mayfly::perf {
namespace {

Summary one_value(std::optional<double> value) {
  Samples samples;
  if (value) samples.add(*value);
  return samples.summary();
}

void add_clocks(Report& report, const WorkerStages& worker, const std::string& phase) {
  report.add("clocks_per_packet", "clocks a packet", "clocks", phase, one_value(worker.clocks_per_packet()));
  report.add("clocks_outside_bursts", "clocks a packet outside rx_burst and tx_burst", "clocks", phase,
             one_value(worker.clocks_outside_bursts()));
}

}  // namespace

Status StageReader::begin() {
  if (!wanted_) return {};
  auto client = console_.connect(NETLINK_GENERIC);
  if (!client) return std::unexpected(client.error());
  client_.emplace(std::move(*client));
  return switch_stages(*client_, true);
}

Status StageReader::restart() {
  return wanted_ ? reset_stages(*client_) : Status();
}

Status StageReader::report(Report& report) {
  if (!wanted_) return {};
  const auto view = read_stages(*client_);
  if (!view) return std::unexpected(view.error());
  const WorkerStages all = view->all();
  add_clocks(report, all, "");
  for (const WorkerStages& worker : view->workers)
    if (view->workers.size() > 1) add_clocks(report, worker, fmt::format("worker {}", worker.worker));
  for (const StageRow& row : all.rows)
    if (row.sum.vectors != 0)
      report.stages.push_back({row.name, row.sum.vectors, row.sum.packets, row.sum.clocks});
  report.notes.push_back(
      "the clocks of stages are measured at a small cost of their own: --no-stages leaves them out");
  return {};
}

}  // namespace mayfly::perf
