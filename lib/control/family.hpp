// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The address family that a message of rtnetlink names in its fixed header, and the addresses in it. Control
// thread.

#include <sys/socket.h>

#include <cstdint>

#include "base/ip_address.hpp"
#include "control/request_attributes.hpp"

namespace mayfly {

constexpr uint8_t family_of(IpAddress address) noexcept {
  return address.is_v4() ? AF_INET : AF_INET6;
}
// AF_UNSPEC, in a dump, stands for both.
constexpr bool is_wanted(uint8_t family, IpAddress address) noexcept {
  return family == AF_UNSPEC || family == family_of(address);
}

// EAFNOSUPPORT unless it is IPv4, IPv6 or, where a message only reads, AF_UNSPEC.
Status check_family(uint8_t family, bool reads);

// The address of an attribute that must be of the family; none when it is absent or 0.0.0.0, which ends up as
// the same. EINVAL for another family's.
Result<IpAddress> read_address(const RequestAttributes& attributes, uint16_t number, const char* name,
                               uint8_t family);

}  // namespace mayfly
