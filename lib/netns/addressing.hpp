// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Addresses of interfaces and what follows from them: local, connected and broadcast routes, and what an
// interface loses when it goes down or dies. The kernel's rules (net/ipv4/devinet.c, fib_frontend.c):
//
//   an address gives a local /32 route at once, and while the interface is up the connected route of its
//   subnet and, below /31, broadcast routes for the subnet's first and last address; going down removes every
//   route through the interface but the local ones (static ones for good) and every neighbour; coming up
//   brings the connected routes back; the same address twice on one interface is EEXIST, on different
//   interfaces it is normal.
//
// Control thread. Route changes go into the open edit of the namespace's FIB: the caller commits
// (Dataplane::commit). A failure leaves nothing half done. Costs follow the number of addresses and routes of
// the one interface.

#include "base/address.hpp"
#include "iface/address_list.hpp"
#include "iface/interface_table.hpp"
#include "neigh/neighbours.hpp"
#include "netns/netns.hpp"

namespace mayfly {

class Addressing {
 public:
  Addressing(InterfaceTable& interfaces, Neighbours& neighbours, BlockPools& blocks)
      : interfaces_(interfaces), neighbours_(neighbours), blocks_(blocks) {}

  Status add(uint32_t ifindex, const Ipv4Prefix& prefix, RetireList& retired);
  // EADDRNOTAVAIL when the interface does not have it.
  Status remove(uint32_t ifindex, const Ipv4Prefix& prefix, RetireList& retired);

  // After InterfaceTable::set_admin_up.
  Status came_up(uint32_t ifindex);
  void went_down(uint32_t ifindex, RetireList& retired);
  // Before InterfaceTable::retire: routes, timers of neighbours and counts go; its blocks are taken by
  // teardown.
  void detach(uint32_t ifindex, RetireList& retired);
  // Before it moves to another namespace: addresses, routes and neighbours go; it uses no other's addresses.
  void clear(uint32_t ifindex, RetireList& retired);

  uint64_t addresses() const noexcept { return addresses_; }

 private:
  Rib& rib_of(uint32_t ifindex) noexcept { return interfaces_.interface(ifindex).netns.own()->rib; }
  Status add_subnet_routes(uint32_t ifindex, const Ipv4Prefix& prefix);
  Status add_local_route(uint32_t ifindex, const Ipv4Prefix& prefix);
  void remove_route(uint32_t ifindex, const Ipv4Prefix& prefix, RouteType type) noexcept;
  void remove_subnet_routes(uint32_t ifindex, const Ipv4Prefix& prefix) noexcept;
  Status publish(uint32_t ifindex, const AddressList* old, const Ipv4Prefix* add, const Ipv4Prefix* remove,
                 RetireList& retired);
  void remove_all_routes(uint32_t ifindex) noexcept;

  InterfaceTable& interfaces_;
  Neighbours& neighbours_;
  BlockPools& blocks_;
  uint64_t addresses_ = 0;
};

}  // namespace mayfly
