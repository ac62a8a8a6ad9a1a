// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Setting an interface up or down with what follows from it, for LINK messages and bulk changes. Control
// thread.

#include "control/dataplane.hpp"

namespace mayfly {

// Nothing happens when it is so already. ENOBUFS: it is down as before.
Status set_link_up(Dataplane& dataplane, uint32_t ifindex, bool up, RetireList& retired);

}  // namespace mayfly
