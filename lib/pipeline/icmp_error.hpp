// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// ICMP and ICMPv6 errors of ours (RFC 792, 1122 section 3.2.2, 1812 section 4.3; RFC 4443), internal to
// lib/pipeline.
//
//   report<V4>(path, packet, V4::kTimeExceeded);
//   drop(path, packet, DropReason::ttl_exceeded);
//
// report() reads the packet and makes another one beside it, quoting it: the packet keeps its own end and its
// own reason, the error is `originated`. The errors gather in path.errors (errors6) and are looked up, routed
// and sent like every packet of ours when the vector at hand is through (Worker). No error answers an ICMP
// error, a fragment that is not the first, a frame to a group, or a source that does not name one host.
// Redirects are never sent.
//
// The source is what the kernel takes: for a packet to one of our addresses that address, otherwise that of
// the interface the error leaves by, as for any packet to its sender; where that has none, one of the
// interface the packet came by. Without any there is no error.

#include <array>
#include <cstdint>

#include "base/clock.hpp"
#include "base/ip_address.hpp"

namespace mayfly {

struct Packet;
struct Path;

// rest: what follows the checksum, host order: the MTU of the next hop, or where the bad octet is.
struct IcmpError {
  uint8_t type;
  uint8_t code;
  uint32_t rest = 0;
};

// How many errors a worker makes, in all and about packets of one interface. A rate that is used up lets one
// error pass per interval; one that has been idle lets `burst` pass at once. Private to a worker, so that
// nothing is shared: with several workers the limits are that many times as high.
//
// In all: the kernel's icmp_msgs_per_sec and icmp_msgs_burst, 1,000 and 50. An interface: a tenth of it and
// a fifth of the burst, so that nine others still get theirs while one is flooded; ten at once are three
// traceroutes. Interfaces whose numbers are equal modulo 4,096 share one rate (32 KiB a worker), which bounds
// whoever owns several of them, too.
class ErrorLimit {
 public:
  static constexpr uint64_t kIntervalNs = kNsPerSecond / 1'000;
  static constexpr uint64_t kBurst = 50;
  static constexpr uint64_t kInterfaceIntervalNs = kNsPerSecond / 100;
  static constexpr uint64_t kInterfaceBurst = 10;

  bool allows(uint64_t now_ns, uint32_t ifindex) const noexcept {
    return used_up_to_ns_ <= now_ns + (kBurst - 1) * kIntervalNs &&
           interfaces_[ifindex % kRates] <= now_ns + (kInterfaceBurst - 1) * kInterfaceIntervalNs;
  }
  // One was made: allows() said so.
  void take(uint64_t now_ns, uint32_t ifindex) noexcept {
    advance(used_up_to_ns_, now_ns, kIntervalNs);
    advance(interfaces_[ifindex % kRates], now_ns, kInterfaceIntervalNs);
  }

 private:
  static constexpr uint32_t kRates = 4096;
  static void advance(uint64_t& used_up_to_ns, uint64_t now_ns, uint64_t by_ns) noexcept {
    used_up_to_ns = (used_up_to_ns < now_ns ? now_ns : used_up_to_ns) + by_ns;
  }

  uint64_t used_up_to_ns_ = 0;
  std::array<uint64_t, kRates> interfaces_{};
};

// The packet is whole and still has the TTL it came with, or that of the hop it was to make. `from`: the
// address of ours it was sent to; none when it was to be forwarded.
template <class Family>
void report(Path& path, const Packet& packet, IcmpError error, IpAddress from = {}) noexcept;

}  // namespace mayfly
