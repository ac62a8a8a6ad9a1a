// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The last part of classify, for frames of a port and of a veth alike (internal to lib/pipeline).

#include <rte_mbuf.h>

#include "pipeline/path.hpp"
#include "pipeline/wire.hpp"

namespace mayfly {

// For frames that are not for the interface's own MAC.
inline DropReason judge_destination(Packet& packet, Mac destination) noexcept {
  if (!is_multicast(destination)) return DropReason::other_host;
  packet.to_group = true;
  return kNoDrop;
}

// The interface exists; `flags` are its flags. Whether it takes the frame, and the packet's namespace.
inline DropReason accept(Packet& packet, const Interface& interface, uint32_t flags) noexcept {
  if ((flags & Interface::kUp) == 0) [[unlikely]]
    return DropReason::interface_down;
  const Mac destination = load_frame_mac(rte_pktmbuf_mtod(packet.mbuf, const uint8_t*));
  if (destination != interface.mac.load(std::memory_order_relaxed)) [[unlikely]]
    if (const DropReason reason = judge_destination(packet, destination); reason != kNoDrop) return reason;
  if (packet.protocol != kProtocolIpv4 && packet.protocol != kProtocolIpv6 && packet.protocol != kProtocolArp)
      [[unlikely]]
    return DropReason::unknown_protocol;
  packet.netns = interface.netns.read();
  return kNoDrop;
}

}  // namespace mayfly
