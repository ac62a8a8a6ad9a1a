// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// What addresses, routes and neighbours have in common: they belong to a device, which messages name by
// kAttrDevice, and they can be flushed: listed, then deleted in pipelined messages.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/address.hpp"
#include "control/client.hpp"
#include "output.hpp"
#include "session.hpp"

namespace mayfly::cli {

// The device's name in an answer; "if7" when the daemon gave only its ifindex; empty when neither.
std::string device_name(const Attributes& attributes, uint64_t ifindex);

void put_device(RequestMessage& message, std::string_view device);
void put_ipv4(RequestMessage& message, uint16_t attribute, Ipv4 address);
// nullopt when absent or not four bytes long.
std::optional<Ipv4> ipv4_of(const Attributes& attributes, uint16_t attribute);

// Builds the message that deletes what an answer describes; leaves it empty to keep that.
using Deletion = std::function<void(const nlmsghdr& answer, RequestMessage& deletion)>;
// Dumps with the plan's message and deletes. What vanished meanwhile (ESRCH, EADDRNOTAVAIL, ENOENT) is no
// failure.
Result<int> flush_listed(Session& session, Plan& plan, const Deletion& build);

}  // namespace mayfly::cli
