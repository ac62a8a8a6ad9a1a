// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Moving an interface to another namespace, as the kernel's dev_change_net_namespace does: it goes down and
// loses its addresses, routes and neighbours; what is stacked on it stays where it is.
//
// No packet may cross with it. So it goes down for workers first; a grace period later no worker has a packet
// of it in hand, and those that wait for a neighbour are dropped by their workers within milliseconds, since
// it is down; then it moves. Until then nothing is lost but time: release() brings it up again as it was.
//
//   InterfaceMove move(dataplane);
//   move.begin(ifindex);                   marks it: nobody else deletes, changes or moves it
//   while (!move.ready()) ...              looked at once a round; a few milliseconds
//   while (!move.shed()) ...               its routes, a step a call; release() comes too late from here on
//   move.finish(netns, name, retired);     or release(), instead of shed()
//
// Control thread; no call waits. The caller commits what was retired.

#include <cstdint>
#include <string_view>

#include "control/dataplane.hpp"

namespace mayfly {

class InterfaceMove {
 public:
  explicit InterfaceMove(Dataplane& dataplane) noexcept : dataplane_(dataplane) {}
  ~InterfaceMove();
  InterfaceMove(const InterfaceMove&) = delete;
  InterfaceMove& operator=(const InterfaceMove&) = delete;

  // EBUSY when it is being deleted or moved already.
  Status begin(uint32_t ifindex);
  bool ready() noexcept;
  // After ready(): takes routes through it away, as Addressing::shed_routes; true when finish() has little to
  // do. Optional where there are few.
  bool shed() noexcept { return dataplane_.addressing.shed_routes(ifindex_); }
  // After ready(). EEXIST when the name is taken there by now: nothing has changed, call release().
  Status finish(Netns& to, std::string_view name, RetireList& retired);
  void release() noexcept;

 private:
  enum class Phase : uint8_t { idle, grace, drain };

  Dataplane& dataplane_;
  Phase phase_ = Phase::idle;
  uint32_t ifindex_ = kNoInterface;
  uint32_t grace_ = 0;
};

}  // namespace mayfly
