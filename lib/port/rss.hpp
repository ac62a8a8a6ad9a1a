// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Receive-side scaling: which fields of a packet choose its receive queue. Pure.
//
// Wanted are addresses and ports of IPv4 and IPv6, and the VLAN tags where a device offers them, since a
// subscriber is a pair of tags: a device that sees only the outer one puts a whole access switch on one
// worker.

#include <cstdint>
#include <string>
#include <vector>

namespace mayfly {

struct RssTypes {
  uint64_t all = 0;           // RTE_ETH_RSS_*: what is wanted and offered
  uint64_t without_tags = 0;  // for devices that refuse the combination with VLAN tags
};

RssTypes choose_rss(uint64_t offered) noexcept;
// "ipv4", "ipv4-tcp", "s-vlan" ...; what has no name here as one number.
std::vector<std::string> rss_names(uint64_t types);

}  // namespace mayfly
