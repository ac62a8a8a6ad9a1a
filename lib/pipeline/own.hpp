// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// is_own_address() for packets (internal to lib/pipeline). An interface may have thousands of addresses, and
// lend them to thousands of others; whoever sends ARP or solicitations chooses which one is looked for.
//
// So long lists are not searched: an address that is routed is ours when its route says local, and of the
// interface when that is the route's own one. Only where several interfaces have the same address, or long
// lists have link-local ones among them, is a list read.

#include "iface/own_addresses.hpp"
#include "netns/netns.hpp"

namespace mayfly {

// Longer lists are looked up in the FIB, which costs the same for any number of addresses.
constexpr uint32_t kFewAddresses = 8;

struct OwnRoute {
  bool local = false;
  uint32_t oif = 0;
};

inline OwnRoute find_own_route(const Netns& netns, IpAddress address) noexcept {
  if (address.is_v4()) {
    const RouteValue* value = netns.fib.lookup(address.v4());
    return value == nullptr ? OwnRoute{} : OwnRoute{value->type == RouteType::kLocal, value->oif};
  }
  const RouteValue6* value = netns.fib6.lookup(address.v6());
  return value == nullptr ? OwnRoute{} : OwnRoute{value->type == RouteType::kLocal, value->oif};
}

// Worker, online. `interfaces` is InterfaceTable::interfaces().
inline bool is_own(const Interface* interfaces, const Interface& interface, IpAddress address) noexcept {
  const AddressList* own = interface.addresses.read();
  const AddressList* lent = lent_addresses(interfaces, interface);
  const uint32_t count = (own != nullptr ? own->count : 0) + (lent != nullptr ? lent->count : 0);
  if (count <= kFewAddresses) return is_own_address(interfaces, interface, address);
  if (!address.is_v4() && is_link_local(address.v6())) {
    const bool listed =
        (own != nullptr && own->link_locals != 0) || (lent != nullptr && lent->link_locals != 0);
    return listed ? is_own_address(interfaces, interface, address) : is_implicit(interface, address);
  }
  const OwnRoute route = find_own_route(*interface.netns.read(), address);
  if (!route.local) return false;
  if (route.oif == interface.ifindex) return true;
  if (lent != nullptr && route.oif == interface.unnumbered.load(std::memory_order_relaxed)) return true;
  return is_own_address(interfaces, interface, address);
}

}  // namespace mayfly
