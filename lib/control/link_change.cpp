// SPDX-License-Identifier: BSD-3-Clause
#include "control/link_change.hpp"

namespace mayfly {

Result<bool> set_link_up(Dataplane& dataplane, uint32_t ifindex, bool up, RetireList& retired) {
  if (dataplane.interfaces.record(ifindex).admin_up == up) return true;
  dataplane.interfaces.set_admin_up(ifindex, up);
  if (!up && dataplane.addressing.has_many_routes(ifindex)) {
    dataplane.interfaces.mark(ifindex, ++dataplane.removals);
    return false;
  }
  if (!up) {
    dataplane.addressing.went_down(ifindex, retired);
    return true;
  }
  if (auto routes = dataplane.addressing.came_up(ifindex, retired); !routes) {
    dataplane.interfaces.set_admin_up(ifindex, false);
    dataplane.addressing.went_down(ifindex, retired);
    return std::unexpected(routes.error());
  }
  return true;
}

bool finish_link_down(Dataplane& dataplane, uint32_t ifindex, RetireList& retired, const Deadline& deadline) {
  while (!dataplane.addressing.shed_routes(ifindex))
    if (deadline.over()) return false;
  dataplane.addressing.went_down(ifindex, retired);
  dataplane.interfaces.unmark(ifindex);
  return true;
}

}  // namespace mayfly
