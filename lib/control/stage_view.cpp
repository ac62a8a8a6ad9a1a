// SPDX-License-Identifier: BSD-3-Clause
#include "control/stage_view.hpp"

#include <linux/genetlink.h>

#include <algorithm>

namespace mayfly {
namespace {

std::optional<double> ratio(uint64_t of, uint64_t to) noexcept {
  if (to == 0) return std::nullopt;
  return static_cast<double>(of) / static_cast<double>(to);
}

StageRow read_row(const Attributes& stage) {
  return {.name = std::string(stage.string(protocol::kStageName)),
          .kind = static_cast<StageKind>(stage.number_or(protocol::kStageKind, 0)),
          .sum = {.vectors = stage.number_or(protocol::kStageVectors, 0),
                  .packets = stage.number_or(protocol::kStagePackets, 0),
                  .clocks = stage.number_or(protocol::kStageClocks, 0)}};
}

}  // namespace

std::optional<double> StageRow::packets_per_vector() const noexcept {
  return kind == StageKind::work || kind == StageKind::burst ? ratio(sum.packets, sum.vectors) : std::nullopt;
}

std::optional<double> StageRow::clocks_per_packet() const noexcept {
  return ratio(sum.clocks, sum.packets);
}

std::optional<double> StageRow::clocks_per_vector() const noexcept {
  return ratio(sum.clocks, sum.vectors);
}

uint64_t WorkerStages::received() const noexcept {
  const auto rx = std::ranges::find(rows, describe(Stage::rx).name, &StageRow::name);
  return rx == rows.end() ? 0 : rx->sum.packets;
}

uint64_t WorkerStages::clocks(StageKind kind) const noexcept {
  uint64_t sum = 0;
  for (const StageRow& row : rows)
    if (row.kind == kind) sum += row.sum.clocks;
  return sum;
}

uint64_t WorkerStages::busy_clocks() const noexcept {
  return counted_clocks() - clocks(StageKind::idle);
}

uint64_t WorkerStages::counted_clocks() const noexcept {
  uint64_t sum = 0;
  for (const StageRow& row : rows) sum += row.sum.clocks;
  return sum;
}

std::optional<double> WorkerStages::clocks_per_packet() const noexcept {
  return ratio(clocks(StageKind::work) + clocks(StageKind::burst), received());
}

std::optional<double> WorkerStages::clocks_outside_bursts() const noexcept {
  return ratio(clocks(StageKind::work), received());
}

WorkerStages StageView::all() const {
  if (workers.empty()) return {};
  WorkerStages sums = workers.front();
  for (size_t i = 1; i < workers.size(); ++i)
    for (size_t row = 0; row < std::min(sums.rows.size(), workers[i].rows.size()); ++row) {
      StageSum& sum = sums.rows[row].sum;
      const StageSum& more = workers[i].rows[row].sum;
      sum = {sum.vectors + more.vectors, sum.packets + more.packets, sum.clocks + more.clocks};
    }
  return sums;
}

void begin_stages_show(RequestMessage& message) {
  message.begin_generic(protocol::kCmdStages, NLM_F_DUMP);
}

void begin_stages_switch(RequestMessage& message, bool on) {
  message.begin_generic(protocol::kCmdStagesSet);
  message.put_u8(protocol::kStagesOn, on ? 1 : 0);
}

void begin_stages_reset(RequestMessage& message) {
  message.begin_generic(protocol::kCmdStagesSet);
  message.put_flag(protocol::kStagesReset);
}

void add_stages(const nlmsghdr& answer, StageView& view) {
  const Attributes attributes(answer, sizeof(genlmsghdr));
  view.on = attributes.number_or(protocol::kStagesOn, 0) != 0;
  view.counted_ns = attributes.number_or(protocol::kStagesCounted, 0);
  view.clock_hz = attributes.number_or(protocol::kStagesClockHz, 0);
  WorkerStages worker{.worker = static_cast<uint32_t>(attributes.number_or(protocol::kStagesWorker, 0)),
                      .rows = {}};
  attributes.each(protocol::kStagesStage,
                  [&worker](const Attributes& stage) { worker.rows.push_back(read_row(stage)); });
  view.workers.push_back(std::move(worker));
}

Result<StageView> read_stages(ControlClient& client) {
  StageView view;
  RequestMessage message;
  begin_stages_show(message);
  if (Status done = client.request(message, [&view](const nlmsghdr& answer) { add_stages(answer, view); });
      !done)
    return std::unexpected(done.error());
  return view;
}

Status switch_stages(ControlClient& client, bool on) {
  RequestMessage message;
  begin_stages_switch(message, on);
  return client.request(message);
}

Status reset_stages(ControlClient& client) {
  RequestMessage message;
  begin_stages_reset(message);
  return client.request(message);
}

}  // namespace mayfly
