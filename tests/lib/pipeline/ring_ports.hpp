// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The EAL of this test process and its devices: kRingPorts net_ring ports, started once and used by every
// World.

#include <array>
#include <cstdint>

struct rte_mempool;
struct rte_ring;

namespace mayfly::testing {

constexpr uint16_t kRingPorts = 3;
constexpr uint32_t kRingFrames = 128;  // what one device takes before it is full
constexpr uint32_t kMbufs = 2047;

struct RingPorts {
  rte_mempool* pool;
  // By port number, as the worker sees them.
  std::array<rte_ring*, kRingPorts> received;
  std::array<rte_ring*, kRingPorts> sent;
};

// Starts everything at the first call; aborts when that fails.
const RingPorts& ring_ports();

}  // namespace mayfly::testing
