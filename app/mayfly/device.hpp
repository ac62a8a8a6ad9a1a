// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// What addresses, routes and neighbours have in common: they belong to a device, which messages name by
// kAttrDevice, and they can be flushed: listed, then deleted in pipelined messages.

#include <linux/rtnetlink.h>

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/ip_address.hpp"
#include "control/client.hpp"
#include "options.hpp"
#include "output.hpp"
#include "session.hpp"

namespace mayfly::cli {

// The device's name in an answer; "if7" when the daemon gave only its ifindex; empty when neither.
std::string device_name(const Attributes& attributes, uint64_t ifindex);

void put_device(RequestMessage& message, std::string_view device);
// The number of a family, as fixed headers carry it.
constexpr uint8_t family_of(IpAddress address) noexcept {
  return address.is_v4() ? AF_INET : AF_INET6;
}
// EINVAL when the option -4 or -6 asks for the other family.
Status check_family(const Options& options, IpAddress address);

void put_address(RequestMessage& message, uint16_t attribute, IpAddress address);
// nullopt when absent or not the length of an address.
std::optional<IpAddress> address_of(const Attributes& attributes, uint16_t attribute);

struct Named {
  std::string_view name;
  uint32_t number;
};
inline constexpr std::array kScopes = {Named{"global", RT_SCOPE_UNIVERSE}, Named{"link", RT_SCOPE_LINK},
                                       Named{"host", RT_SCOPE_HOST}};
// The number itself where it has no name.
std::string name_of(std::span<const Named> names, uint32_t number);
const Named* find_name(std::span<const Named> names, std::string_view word);

// Builds the message that deletes what an answer describes; leaves it empty to keep that.
using Deletion = std::function<void(const nlmsghdr& answer, RequestMessage& deletion)>;
// Dumps with the plan's message and deletes. What vanished meanwhile (ESRCH, EADDRNOTAVAIL, ENOENT) is no
// failure.
Result<int> flush_listed(Session& session, Plan& plan, const Deletion& build);

}  // namespace mayfly::cli
