// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The client's side of the stage counters: where a daemon's workers spend their time, as VPP's `show
// runtime`.
//
//   switch_stages(client, true);                  on, from nothing; the client's family is generic
//   ...
//   auto view = read_stages(client);
//   view->all().clocks_per_packet();              of which outside_bursts() is Mayfly itself
//   for (const StageRow& row : view->workers[0].rows) row.name, row.clocks_per_packet() ...
//
// What each number means: stats/stage_counters.hpp. Plain data: any thread.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "control/client.hpp"
#include "stats/stage_counters.hpp"

namespace mayfly {

// nullopt: there is nothing to divide by.
struct StageRow {
  std::string name;
  StageKind kind{};
  StageSum sum;

  std::optional<double> packets_per_vector() const noexcept;
  std::optional<double> clocks_per_packet() const noexcept;
  std::optional<double> clocks_per_vector() const noexcept;
};

struct WorkerStages {
  uint32_t worker = 0;
  std::vector<StageRow> rows;  // in the order a packet meets them

  uint64_t received() const noexcept;  // packets, from devices
  uint64_t clocks(StageKind kind) const noexcept;
  uint64_t busy_clocks() const noexcept;     // everything but idle
  uint64_t counted_clocks() const noexcept;  // and with it: all the time it was awake
  // A received packet's share of what was done for packets; and of that without the devices' bursts.
  std::optional<double> clocks_per_packet() const noexcept;
  std::optional<double> clocks_outside_bursts() const noexcept;
};

struct StageView {
  bool on = false;
  uint64_t counted_ns = 0;
  uint64_t clock_hz = 0;
  std::vector<WorkerStages> workers;

  // The sums of all workers.
  WorkerStages all() const;
};

void begin_stages_show(RequestMessage& message);
void begin_stages_switch(RequestMessage& message, bool on);
void begin_stages_reset(RequestMessage& message);
// One answer to begin_stages_show(): one worker.
void add_stages(const nlmsghdr& answer, StageView& view);

Result<StageView> read_stages(ControlClient& client);
Status switch_stages(ControlClient& client, bool on);
Status reset_stages(ControlClient& client);

}  // namespace mayfly
