// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Why a packet was dropped: one name per reason, everywhere (counters, CLI, docs).
//
// A new reason is one line in drop_reason.cpp and one enumerator here, in the same order.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mayfly {

enum class DropReason : uint8_t {
  truncated,
  port_down,
  unknown_tag,
  interface_down,
  other_host,
  unknown_protocol,
  arp_invalid,
  arp_other_host,
  nd_invalid,
  nd_other_host,
  nd_unwanted,
  ip_header,
  ip_checksum,
  ip_length,
  martian_source,
  martian_destination,
  spoofed_source,
  rp_filter,
  beyond_scope,
  ttl_exceeded,
  no_route,
  blackhole,
  unreachable,
  prohibited,
  multicast,
  icmp_invalid,
  local_unknown,
  mtu_exceeded,
  neighbour_queue_full,
  neighbour_failed,
  neighbour_no_source,
  interface_gone,
  veth_loop,
  no_headroom,
  no_mbuf,
  tx_full,
  shutdown,
  count
};

constexpr size_t kDropReasons = static_cast<size_t>(DropReason::count);

struct DropReasonDescription {
  std::string_view name;
  std::string_view stage;
  std::string_view hint;  // what to look at
};

const DropReasonDescription& describe(DropReason reason) noexcept;

}  // namespace mayfly
