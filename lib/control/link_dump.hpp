// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Answers to RTM_GETLINK: one interface, or an incremental dump of what a selector matches. Control thread.

#include <linux/rtnetlink.h>

#include "control/handlers.hpp"

namespace mayfly {

HandlerResult read_links(Connection& connection, const Request& request, const ifinfomsg& fixed,
                         const RequestAttributes& attributes);

// The RTM_NEWLINK message that describes an interface.
void write_link(Connection& connection, uint32_t ifindex, uint32_t sequence, uint16_t flags, bool with_drops);

}  // namespace mayfly
