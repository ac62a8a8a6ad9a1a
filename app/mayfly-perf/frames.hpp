// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The frames a run sends: VLAN tags, IP, UDP, as long as asked for. Lengths are those of testpmd and RFC
// 2544: the frame with its checksum of 4 bytes, which no DPDK device hands over.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/address.hpp"
#include "base/ip_address.hpp"
#include "base/result.hpp"

namespace mayfly::perf {

constexpr uint32_t kChecksumBytes = 4;
constexpr uint32_t kTagBytes = 4;

struct FlowFrame {
  Mac destination = 0;
  uint16_t outer = 0;  // 0: untagged
  uint16_t inner = 0;  // 0: one tag
  uint16_t outer_protocol = 0x8100;
  IpAddress source;
  IpAddress target;
};

// "64", or "imix": 64, 570 and 1,518 B as 7:4:1, in the order they are sent.
Result<std::vector<uint32_t>> parse_sizes(std::string_view text);
// The shortest frame with two tags that holds an IP and a UDP header.
uint32_t least_frame(uint32_t family) noexcept;
// Where the UDP payload begins.
uint32_t payload_offset(uint32_t family) noexcept;
// The frame without its checksum; one that is too short for its headers is as short as they allow. UDP
// without one over IPv4; IPv6 has it right.
std::vector<uint8_t> build_frame(const FlowFrame& flow, uint32_t size);

// A capture file that net_pcap reads (libpcap's format, Ethernet, microseconds). The header alone makes a
// valid file, to which frames are appended.
Status begin_capture(const std::string& path);
Status append_capture(const std::string& path, std::span<const std::vector<uint8_t>> frames);

}  // namespace mayfly::perf
