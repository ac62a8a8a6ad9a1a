// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The IPv4 addresses of one interface: an immutable RCU block, replaced whole.
//
// Workers read it to answer ARP and to choose a source address; the control thread builds a new one for every
// change and retires the old. An interface without addresses has none (nullptr).

#include <span>

#include "base/address.hpp"
#include "reclaim/block_pools.hpp"

namespace mayfly {

struct AddressList {
  Retired retired;
  uint32_t count;
  Ipv4Prefix prefixes[];  // the address with the length of its subnet, in the order they were added

  std::span<const Ipv4Prefix> all() const noexcept { return {prefixes, count}; }
  bool has(Ipv4 address) const noexcept {
    for (const Ipv4Prefix& prefix : all())
      if (prefix.address == address) return true;
    return false;
  }
  // The source for packets to a neighbour: the first address whose subnet contains it, else the first.
  Ipv4 source_for(Ipv4 neighbour) const noexcept {
    for (const Ipv4Prefix& prefix : all())
      if (prefix.contains(neighbour)) return prefix.address;
    return count == 0 ? 0 : prefixes[0].address;
  }
};

}  // namespace mayfly
