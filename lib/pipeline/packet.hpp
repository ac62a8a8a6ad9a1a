// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// What the stages know of a packet, and the vectors they work on.
//
// One cache line a packet, so that a vector stays in the first-level cache from rx to tx. The stage that
// learns something fills in its field; the pointers live until the end of the loop. A vector holds packets of
// one address family from input on. IPv6 addresses are not copied: the destination is read from the header,
// the next hop from the route (family.hpp).

#include <array>
#include <cstdint>

#include "base/address.hpp"
#include "iface/interface.hpp"

struct rte_mbuf;

namespace mayfly {

constexpr uint32_t kVectorSize = 64;

struct alignas(64) Packet {
  rte_mbuf* mbuf = nullptr;    // rx
  uint8_t* network = nullptr;  // classify: the IP header or the ARP packet, in the mbuf's first segment
  const Interface* ingress = nullptr;  // classify; nullptr: made here, or it has been parked
  const Netns* netns = nullptr;        // classify
  const void* route = nullptr;         // look_up: of its family (family.hpp); nullptr: there is none
  const Interface* egress = nullptr;   // route
  Mac destination_mac = 0;             // neighbour
  Ipv4 address = 0;                    // IPv4, input: the destination; from route on the next hop
  uint16_t protocol = 0;               // classify: the EtherType
  bool to_group = false;               // classify: the frame was broadcast or multicast
  bool from_us = false;                // of our own making: not forwarded, so its TTL stays
};
static_assert(sizeof(Packet) == 64);

// A stage works through a vector and keeps what goes on, in order, at its front.
struct PacketVector {
  uint32_t count = 0;
  std::array<Packet, kVectorSize> packets;

  Packet* begin() noexcept { return packets.data(); }
  Packet* end() noexcept { return packets.data() + count; }
  bool full() const noexcept { return count == kVectorSize; }
  void append(const Packet& packet) noexcept { packets[count++] = packet; }
  // Keeps the packet as number `kept` and counts it.
  void keep(const Packet& packet, uint32_t& kept) noexcept {
    if (&packets[kept] != &packet) packets[kept] = packet;
    ++kept;
  }
};

}  // namespace mayfly
