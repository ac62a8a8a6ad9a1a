// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Deleting interfaces, one or very many, with everything stacked on them.
//
// InterfaceRemoval is claim and commit of architecture.md: add() marks a victim, and walk() its VLANs, slice
// by slice; nothing is changed yet and release() forgets it all. commit() retires children before parents and
// cannot fail.

#include <cstdint>
#include <unordered_set>
#include <vector>

#include "base/clock.hpp"
#include "control/handlers.hpp"

namespace mayfly {

class InterfaceRemoval {
 public:
  explicit InterfaceRemoval(Dataplane& dataplane) : dataplane_(dataplane), number_(++dataplane.removals) {}
  ~InterfaceRemoval();
  InterfaceRemoval(const InterfaceRemoval&) = delete;
  InterfaceRemoval& operator=(const InterfaceRemoval&) = delete;

  // EBUSY when it is being deleted or moved already (twice in one list, too); EOPNOTSUPP for a port's own
  // interface, which goes with its device; port_too: it does now. Of a pair both ends are taken.
  Status add(uint32_t ifindex, bool port_too = false);
  // Marks the children of what was added; true when all are marked, false when the deadline came first. EBUSY
  // when another request is creating or deleting some.
  Result<bool> walk(const Deadline& deadline);
  // Unmarks a slice; true when nothing is marked any more.
  bool release(const Deadline& deadline) noexcept;
  // After walk() said true. Retires a slice; true when everything is retired.
  bool commit(RetireList& retired, const Deadline& deadline) noexcept;

  uint32_t number() const noexcept { return number_; }
  uint64_t victims() const noexcept { return marked_ + committed_; }
  uint64_t committed() const noexcept { return committed_; }

 private:
  void take(uint32_t ifindex);
  uint32_t top() noexcept;
  uint32_t pop() noexcept;

  Dataplane& dataplane_;
  uint32_t number_;
  // Victims by how many interfaces they stand on: the deepest are retired first, so children before parents
  // whatever the order they were added in.
  std::vector<std::vector<uint32_t>> levels_;
  size_t walked_level_ = 0;
  size_t walked_ = 0;  // victims of that level whose children are marked
  uint32_t last_child_ = kNoInterface;
  std::unordered_set<uint32_t> ends_;  // taken because their peers were added
  uint64_t marked_ = 0;
  uint64_t committed_ = 0;
};

// One interface and what is stacked on it, as a request of its own: at once when it has no children and not
// very many routes, otherwise as an operation.
HandlerResult remove_interface(Connection& connection, const nlmsghdr& request, uint32_t ifindex);

}  // namespace mayfly
