// SPDX-License-Identifier: BSD-3-Clause
#include "control/family.hpp"

namespace mayfly {

Status check_family(uint8_t family, bool reads) {
  if (family == AF_INET || family == AF_INET6 || (reads && family == AF_UNSPEC)) return {};
  return fail(EAFNOSUPPORT, "address family {}: accepted {} (IPv4), {} (IPv6)", family, AF_INET, AF_INET6);
}

Result<IpAddress> read_address(const RequestAttributes& attributes, uint16_t number, const char* name,
                               uint8_t family) {
  const auto address = attributes.address(number);
  if (!address || *address == IpAddress(Ipv4{0})) return IpAddress{};
  if (!is_wanted(family, *address))
    return fail_attribute(number, EINVAL, "{}: {} bytes, accepted {} for address family {}", name,
                          address->is_v4() ? sizeof(Ipv4) : sizeof(Ipv6),
                          family == AF_INET ? sizeof(Ipv4) : sizeof(Ipv6), family);
  return *address;
}

}  // namespace mayfly
