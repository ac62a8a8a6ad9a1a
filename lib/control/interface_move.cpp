// SPDX-License-Identifier: BSD-3-Clause
#include "control/interface_move.hpp"

#include "base/check.hpp"

namespace mayfly {

InterfaceMove::~InterfaceMove() {
  MAYFLY_DEBUG_CHECK(phase_ == Phase::idle, "an interface was left between two namespaces");
}

Status InterfaceMove::begin(uint32_t ifindex) {
  InterfaceTable& table = dataplane_.interfaces;
  if (table.state(ifindex) == InterfaceState::marked)
    return fail(EBUSY, "interface '{}' is being deleted or moved already", table.record(ifindex).name);
  table.mark(ifindex, ++dataplane_.removals);
  table.suspend(ifindex, true);
  ifindex_ = ifindex;
  grace_ = dataplane_.reclaim.barrier();
  phase_ = Phase::grace;
  return {};
}

bool InterfaceMove::ready() noexcept {
  if (phase_ == Phase::grace && dataplane_.reclaim.grace_passed(grace_)) phase_ = Phase::drain;
  return phase_ == Phase::drain && dataplane_.interfaces.unreferenced(ifindex_);
}

Status InterfaceMove::finish(Netns& to, std::string_view name, RetireList& retired) {
  InterfaceTable& table = dataplane_.interfaces;
  MAYFLY_CHECK(phase_ == Phase::drain, "an interface was moved before workers had let go of it");
  if (to.dying) return fail(EBUSY, "netns '{}' is being deleted", to.name);
  if (table.name_taken(&to, name))
    return fail(EEXIST, "name '{}': an interface of this name exists in netns '{}'", name, to.name);
  dataplane_.link_events.going(dataplane_, ifindex_);
  dataplane_.addressing.clear(ifindex_, retired);
  table.move(ifindex_, &to, name);
  table.set_admin_up(ifindex_, false);
  dataplane_.link_events.changed(dataplane_, ifindex_);
  release();
  return {};
}

void InterfaceMove::release() noexcept {
  if (phase_ == Phase::idle) return;
  dataplane_.interfaces.suspend(ifindex_, false);
  dataplane_.interfaces.unmark(ifindex_);
  phase_ = Phase::idle;
}

}  // namespace mayfly
