// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Setting an interface up or down with what follows from it, for LINK messages and bulk changes. Control
// thread.
//
// Going down takes the routes through it away. Where these are very many (a full table by one core port) that
// takes slices; the interface is down at once, but marked until they are gone: nobody else changes, moves or
// deletes it.

#include "base/clock.hpp"
#include "control/dataplane.hpp"

namespace mayfly {

// Nothing happens when it is so already. ENOBUFS: it is down as before. False: it is going down, and
// finish_link_down() is to be called until that is over.
Result<bool> set_link_up(Dataplane& dataplane, uint32_t ifindex, bool up, RetireList& retired);

// A slice; true when it is down and not marked any more.
bool finish_link_down(Dataplane& dataplane, uint32_t ifindex, RetireList& retired, const Deadline& deadline);

}  // namespace mayfly
