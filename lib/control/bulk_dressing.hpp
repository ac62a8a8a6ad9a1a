// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// What the members of a bulk request wear: addresses, routes and neighbours, the same for all or counted on
// from one member to the next.
//
//   addr 10.0.0.1/30 step 4     kBulkAddress      10.0.0.1/30, 10.0.0.5/30, ...
//   route 2001:db8::/56 step /56  kBulkRoute      to each member, static and on-link; one after the other
//   neigh A step N lladdr M step N  kBulkNeighbour  permanent; each value with a step of its own
//
// parse() finds every mistake that does not depend on what exists. apply() is called in the commit pass, for
// a member that is still claimed or is changed in place: routes enter the open edit of the FIB together with
// their interface, so that no commit, whoever it is by, can publish a route to something that is not there.
// For want of memory alone it can fail; then it has undone what it did to a claimed member, and the caller
// takes back the members before it (control/bulk_add).
//
// A route is put before those that others have to the same prefix: the newest session wins, and the one
// before it gets its route back when that goes.
//
// Control thread.

#include <vector>

#include "base/ip_address.hpp"
#include "control/dataplane.hpp"
#include "control/request_attributes.hpp"

namespace mayfly {

// An address and how it grows from member to member.
struct SteppedAddress {
  IpAddress first;
  uint8_t length = 0;
  uint8_t shift = 0;
  uint64_t step = 0;
  uint8_t flags = 0;  // of InterfaceAddress

  IpPrefix of(uint64_t member) const noexcept;
};

struct SteppedNeighbour {
  SteppedAddress address;
  Mac first = 0;
  uint64_t step = 0;

  Mac mac_of(uint64_t member) const noexcept { return first + step * member; }
};

class Dressing {
 public:
  // Of each sort. A member's are compared with each other and put on in one go.
  static constexpr size_t kMostOfEach = 16;
  // The attributes a table of specifications must have for it.
  static constexpr size_t kSpecs = 3;
  static const std::array<AttributeSpec, kSpecs>& specs() noexcept;

  // For so many members. E2BIG (more than kMostOfEach), EINVAL, ERANGE (beyond the last address),
  // EADDRNOTAVAIL.
  static Result<Dressing> parse(const RequestAttributes& attributes, uint64_t members);

  bool empty() const noexcept { return size() == 0; }
  size_t size() const noexcept { return addresses_.size() + routes_.size() + neighbours_.size(); }
  // Routes and neighbours belong to an interface that is up, as with the kernel.
  bool needs_up() const noexcept { return !routes_.empty() || !neighbours_.empty(); }
  // Of one member: EADDRNOTAVAIL when a step led to an address nobody can have.
  Status check(uint64_t member) const;

  // Whether the interface wears it: the addresses that it names are all it has of their family; routes and
  // neighbours may be among others.
  bool worn_by(const Dataplane& dataplane, uint32_t ifindex, uint64_t member) const noexcept;
  // Puts on what is missing, and takes off what addresses there are beside. ENOBUFS.
  Status apply(Dataplane& dataplane, uint32_t ifindex, uint64_t member, RetireList& retired) const;

 private:
  bool names_family(IpFamily family) const noexcept;
  bool names(const IpPrefix& prefix, uint64_t member) const noexcept;
  Status apply_addresses(Dataplane& dataplane, uint32_t ifindex, uint64_t member, RetireList& retired) const;
  Status apply_routes(Dataplane& dataplane, uint32_t ifindex, uint64_t member) const;
  Status apply_neighbours(Dataplane& dataplane, uint32_t ifindex, uint64_t member, RetireList& retired) const;

  std::vector<SteppedAddress> addresses_;
  std::vector<SteppedAddress> routes_;
  std::vector<SteppedNeighbour> neighbours_;
};

}  // namespace mayfly
