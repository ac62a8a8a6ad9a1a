// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Which frames fit through a device: the smallest of what the device, the kernel's interface below it, its
// ring and the mbufs hold. Pure.

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "port/port.hpp"

namespace mayfly {

// What there is. Bytes; frames without FCS, unless stated.
struct FrameRoom {
  std::string device;
  uint32_t least_mtu = 68;
  uint32_t most_mtu = UINT16_MAX;
  uint32_t header_bytes = kEthernetHeaderBytes;  // that the device allows beside the MTU it is given
  std::string kernel_interface;
  std::optional<uint32_t> kernel_mtu;
  std::optional<uint32_t> ring_frame;  // largest frame of a packet ring
  uint32_t buffer_bytes = 0;           // of an mbuf
  bool scatter = false;                // the device can spread a frame over mbufs
};

struct FrameLimits {
  uint32_t most_mtu = 0;
  uint32_t device_mtu = 0;  // to configure it with, so that tags fit where they can
  bool needs_scatter = false;
  std::array<uint32_t, kMostTags + 1> mtu_by_tags{};
};

constexpr uint32_t kFcsBytes = 4;

// The bytes of a frame, FCS included, that a device does not count as MTU: the difference of the largest that
// it tells of.
uint32_t frame_overhead(uint32_t most_frame, uint32_t most_mtu) noexcept;

// ERANGE names the range and what limits it.
Result<FrameLimits> plan_frames(uint32_t mtu, const FrameRoom& room);

}  // namespace mayfly
