// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// How packets get into parking and out of it (internal to lib/pipeline): the events of parked.cpp, beside the
// neighbour stage. Whatever goes in holds one reference of its egress interface until it is out again.

#include "pipeline/path.hpp"

namespace mayfly {

// A parked packet is dropped when it is this old: three unanswered requests, a second apart.
constexpr uint32_t kParkedForMs = 3000;
// Control is asked for the neighbour again after this time, in case a message was lost.
constexpr uint32_t kAskAgainMs = 1000;

// The packet's next hop has no MAC: it waits, or it is dropped when too many do, of its interface or in all;
// then control is asked for the neighbour all the same, a few thousand times a second.
void park(Path& path, const Packet& packet, IpAddress next_hop) noexcept;

// A message of control: the neighbour has a MAC now, or nobody answered, which the senders are told.
void neighbour_resolved(Path& path, const ControlMessage& message) noexcept;
void neighbour_failed(Path& path, const ControlMessage& message) noexcept;

// Looks at the next `most` queues from *cursor on: sends, drops or asks again as their interface, their
// neighbour and their age demand.
void check_parked(Path& path, uint32_t most, uint32_t* cursor) noexcept;

// The worker stops: every parked packet is dropped.
void drop_all_parked(Path& path) noexcept;

}  // namespace mayfly
