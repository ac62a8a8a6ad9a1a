// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Addresses of interfaces and what follows from them: local, connected and broadcast routes, and what an
// interface loses when it goes down or dies. The kernel's rules (net/ipv4/devinet.c, fib_frontend.c,
// net/ipv6/addrconf.c):
//
//   an address gives a local route (/32 or /128) at once, and while the interface is up the connected route
//   of its subnet and, IPv4 below /31, broadcast routes for the subnet's first and last address; going down
//   removes every route through the interface but the local ones (static ones for good) and every neighbour;
//   coming up brings the connected routes back; the same address twice on one interface is EEXIST, on
//   different interfaces it is normal.
//
// IPv6 beside that: a link-local address (fe80::/10) is valid on its interface alone and has no routes; the
// one that follows from the MAC is in no list (iface/own_addresses.hpp). Unlike in the kernel, addresses stay
// when the interface goes down, as IPv4 ones do (its keep_addr_on_down), and there are no subnet-router
// anycast addresses.
//
// Duplicate address detection (RFC 4862) is optimistic (RFC 4429): an address given to an interface that is
// up, or that comes up, is used at once; tick() says whom the link is to be asked about, a few at a time, and
// a second after the question the address counts as ours. A conflict() until then ends its use. Addresses
// with kNoDad, and the one that follows from the MAC, are never asked about.
//
// Control thread. Route changes go into the open edit of the namespace's FIBs: the caller commits
// (Dataplane::commit). A failure leaves nothing half done. Costs follow the number of addresses and routes of
// the one interface: 4,096 at most are sorted when it comes up or goes down.

#include <deque>
#include <vector>

#include "base/ip_address.hpp"
#include "iface/interface_table.hpp"
#include "iface/own_addresses.hpp"
#include "neigh/neighbours.hpp"
#include "netns/netns.hpp"

namespace mayfly {

// One address of one interface, as long as that is still the same.
struct AddressQuestion {
  uint32_t ifindex;
  uint64_t id;
  Ipv6 address;
};

class Addressing {
 public:
  Addressing(InterfaceTable& interfaces, Neighbours& neighbours, BlockPools& blocks)
      : interfaces_(interfaces), neighbours_(neighbours), blocks_(blocks) {}

  // EINVAL, EADDRNOTAVAIL for an address that no interface can have.
  static Status check(const IpPrefix& prefix);
  // flags: kNoDad or nothing.
  Status add(uint32_t ifindex, const IpPrefix& prefix, uint8_t flags, RetireList& retired);
  // EADDRNOTAVAIL when the interface does not have it.
  Status remove(uint32_t ifindex, const IpPrefix& prefix, RetireList& retired);

  // An interface may have a million routes, and what takes them all away below does so at once. So whoever
  // has such a one takes them away in steps before, each of kRoutesPerStep routes, until true is said: then
  // none is left but those of its own addresses. Nobody gives it new ones meanwhile, who respects that it is
  // down or marked.
  bool shed_routes(uint32_t ifindex) noexcept;
  // It takes more than one step.
  bool has_many_routes(uint32_t ifindex) const noexcept;

  // After InterfaceTable::set_admin_up.
  Status came_up(uint32_t ifindex, RetireList& retired);
  void went_down(uint32_t ifindex, RetireList& retired);
  // Before InterfaceTable::retire: routes, timers of neighbours and counts go; its blocks are taken by
  // teardown, and count in the backlog from then on.
  void detach(uint32_t ifindex, RetireList& retired);
  // Before it moves to another namespace: addresses, routes and neighbours go; it uses no other's addresses.
  void clear(uint32_t ifindex, RetireList& retired);

  // From now on the interface uses the addresses of `lender` as its own, beside those it has; kNoInterface:
  // no longer. Of a lender that is unnumbered too, its own ones alone count. EINVAL when the lender is itself
  // or uses it in turn, over however many others, or is of another namespace. Nothing needs to
  // be done when the lender dies: from then on it lends nothing, at no cost.
  Status set_unnumbered(uint32_t ifindex, uint32_t lender);
  // What of that does not depend on namespaces. Walks from lender to lender, kMostLenders at most.
  Status check_lender(uint32_t ifindex, uint32_t lender) const;
  // The lender, kNoInterface when there is none any more.
  uint32_t lender_of(uint32_t ifindex) const noexcept;

  // Another station uses the address, of which it is not known yet whether it is ours alone: it is not used
  // any more until the interface comes up again. False when there is no such address (any more).
  bool conflict(uint32_t ifindex, Ipv6 address, RetireList& retired);
  // Appends the addresses whose links are to be asked now, at most kQuestionsPerTick, and settles those a
  // second old, at most kSettledPerTick.
  void tick(uint64_t now_ns, std::vector<AddressQuestion>& questions, RetireList& retired);

  uint64_t addresses() const noexcept { return addresses_; }

  static constexpr uint32_t kQuestionsPerTick = 16;
  static constexpr uint32_t kMostAddresses = 4096;  // of one interface: a list is copied for every change
  static constexpr uint32_t kRoutesPerStep = 1024;
  static constexpr uint32_t kMostLenders = 1024;  // one using the next one's addresses

 private:
  static constexpr uint64_t kAnswerNs = 1 * kNsPerSecond;
  static constexpr uint32_t kSettledPerTick = 64;
  // Addresses beyond this many that wait at one time are not asked about.
  static constexpr uint32_t kMostQuestions = 1'048'576;
  struct Asked {
    AddressQuestion question;
    uint64_t at_ns;
  };

  Rib& rib_of(uint32_t ifindex) noexcept { return interfaces_.interface(ifindex).netns.own()->rib; }
  const AddressList* list_of(uint32_t ifindex) const noexcept {
    return interfaces_.interface(ifindex).addresses.own();
  }
  Status add_subnet_routes(uint32_t ifindex, const IpPrefix& prefix);
  Status add_local_route(uint32_t ifindex, IpAddress address);
  void remove_local_route(uint32_t ifindex, IpAddress address) noexcept;
  // False when there is none. source: none matches all.
  bool remove_route(uint32_t ifindex, const IpPrefix& prefix, RouteType type, IpAddress source = {}) noexcept;
  bool is_broadcast(uint32_t ifindex, IpAddress address) const noexcept;
  void remove_subnet_routes(uint32_t ifindex, const IpPrefix& prefix) noexcept;
  void remove_all_routes(uint32_t ifindex) noexcept;
  Result<AddressList*> copy_list(uint32_t ifindex, uint32_t more);
  void publish(uint32_t ifindex, AddressList* next, RetireList& retired) noexcept;
  bool ask_about(uint32_t ifindex, const InterfaceAddress& entry);
  Status ask_about_all(uint32_t ifindex, RetireList& retired);
  void settle(const AddressQuestion& question, RetireList& retired) noexcept;

  InterfaceTable& interfaces_;
  Neighbours& neighbours_;
  BlockPools& blocks_;
  uint64_t addresses_ = 0;
  std::deque<AddressQuestion> questions_;
  std::deque<Asked> asked_;
};

}  // namespace mayfly
