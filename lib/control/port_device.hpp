// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// `link set` on a port's interface, as far as it means the device: MTU, MAC address, promiscuous mode.
//
// The device is asked, one thing after the other, on the port thread; what it accepted is taken back when it
// refuses the next, or when the client goes before it was asked for all. Only then the rest of the request is
// done. Interfaces that had the port's MAC address get the new one, in slices, and whatever becomes of the
// request they have the port's in the end: without it they would hear nothing. Control thread.

#include <linux/rtnetlink.h>

#include <functional>

#include "control/handlers.hpp"

namespace mayfly {

// Whether the request changes something that only the device can answer.
bool wants_device(const Dataplane& dataplane, uint32_t ifindex, const ifinfomsg& fixed,
                  const RequestAttributes& attributes);

// rest: what remains to be done when the device has accepted, everything but MTU, MAC and promiscuous mode;
// false: the interface is going down (control/link_change).
HandlerResult change_device(Connection& connection, const nlmsghdr& request, uint32_t ifindex,
                            const ifinfomsg& fixed, const RequestAttributes& attributes,
                            std::function<Result<bool>()> rest);

}  // namespace mayfly
