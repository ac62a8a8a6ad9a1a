// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The addresses of one interface, of both families: an immutable RCU block, replaced whole.
//
// Workers read it to answer ARP and solicitations and to choose a source address; the control thread builds a
// new one for every change and retires the old. An interface without addresses has none (nullptr). What an
// interface has beside its list (the link-local address of its MAC, the addresses of another one when it is
// unnumbered): own_addresses.hpp.

#include <bit>
#include <span>

#include "base/ip_address.hpp"
#include "reclaim/block_pools.hpp"

namespace mayfly {

struct InterfaceAddress {
  static constexpr uint8_t kOptimistic = 1;  // used already, while the link is asked whether another has it
  static constexpr uint8_t kDuplicate = 2;   // another has it: neither answered for nor a source
  static constexpr uint8_t kNoDad = 4;       // nobody is to be asked

  IpAddress address;
  uint8_t length;  // of its subnet
  uint8_t flags;

  IpPrefix prefix() const noexcept { return {address, length}; }
  bool usable() const noexcept { return (flags & kDuplicate) == 0; }
};
static_assert(sizeof(InterfaceAddress) == 24);

// Bits that two addresses have in common, from the first on.
inline unsigned common_bits(Ipv6 a, Ipv6 b) noexcept {
  const uint64_t high = a.high ^ b.high;
  return static_cast<unsigned>(high != 0 ? std::countl_zero(high) : 64 + std::countl_zero(a.low ^ b.low));
}

struct AddressList {
  Retired retired;
  uint32_t count;
  uint16_t link_locals;        // entries that are link-local, of which no FIB knows
  uint16_t optimistic;         // entries with kOptimistic
  InterfaceAddress entries[];  // in the order they were added

  // Before it is published.
  void count_kinds() noexcept {
    link_locals = optimistic = 0;
    for (const InterfaceAddress& entry : all()) {
      link_locals += !entry.address.is_v4() && is_link_local(entry.address.v6()) ? 1 : 0;
      optimistic += (entry.flags & InterfaceAddress::kOptimistic) != 0 ? 1 : 0;
    }
  }

  std::span<const InterfaceAddress> all() const noexcept { return {entries, count}; }
  bool has(IpAddress address) const noexcept {
    for (const InterfaceAddress& entry : all())
      if (entry.address == address) return entry.usable();
    return false;
  }

  // The source for packets to a neighbour, none when there is no address of its family. IPv4: the first one
  // whose subnet contains it, else the first. IPv6 (RFC 6724): one of its scope, then one that is not
  // optimistic, then the one with most bits in common.
  IpAddress source_for(IpAddress neighbour) const noexcept {
    return neighbour.is_v4() ? source_for_v4(neighbour) : source_for_v6(neighbour.v6());
  }

 private:
  IpAddress source_for_v4(IpAddress neighbour) const noexcept {
    IpAddress first;
    for (const InterfaceAddress& entry : all()) {
      if (!entry.address.is_v4()) continue;
      if (entry.prefix().contains(neighbour)) return entry.address;
      if (first.none()) first = entry.address;
    }
    return first;
  }
  IpAddress source_for_v6(Ipv6 neighbour) const noexcept {
    IpAddress best;
    unsigned best_rank = 0;
    for (const InterfaceAddress& entry : all()) {
      if (entry.address.is_v4() || !entry.usable()) continue;
      const unsigned same_scope = is_link_local(entry.address.v6()) == is_link_local(neighbour) ? 512 : 0;
      const unsigned settled = (entry.flags & InterfaceAddress::kOptimistic) == 0 ? 256 : 0;
      const unsigned rank = 1 + same_scope + settled + common_bits(entry.address.v6(), neighbour);
      if (rank <= best_rank) continue;
      best_rank = rank;
      best = entry.address;
    }
    return best;
  }
};

}  // namespace mayfly
