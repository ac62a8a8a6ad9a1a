// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// tx: frames leave through one buffer a port (internal to lib/pipeline). Worker, online.

#include "pipeline/path.hpp"

namespace mayfly {

// Sends what the port's buffer holds; what the device does not take is dropped.
void flush_port(Path& path, uint16_t port) noexcept;
// The same for all ports: at the end of a loop.
void flush_transmit(Path& path) noexcept;
// The frame leaves by an interface without a device: through a veth to its other end, otherwise it is gone.
void transmit_inside(Path& path, const Interface& egress, rte_mbuf* mbuf) noexcept;
// Into one end of a veth (veth.cpp).
void cross(Path& path, const Interface& egress, rte_mbuf* mbuf) noexcept;
void count_sent(Path& path, const Interface& egress, uint32_t bytes) noexcept;

inline void transmit(Path& path, const Interface& egress, rte_mbuf* mbuf) noexcept {
  if (egress.port == kNoPort) [[unlikely]]
    return transmit_inside(path, egress, mbuf);
  TransmitBuffer& buffer = path.transmit[egress.port];
  buffer.mbufs[buffer.count] = mbuf;
  buffer.interfaces[buffer.count] = &egress;
  buffer.bytes[buffer.count] = mbuf->pkt_len;
  path.transmit_ports |= uint64_t{1} << egress.port;
  if (++buffer.count == kVectorSize) [[unlikely]]
    flush_port(path, egress.port);
}

}  // namespace mayfly
