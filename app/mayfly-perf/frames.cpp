// SPDX-License-Identifier: BSD-3-Clause
#include "frames.hpp"

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/units.hpp"
#include "report.hpp"

namespace mayfly::perf {
namespace {

constexpr uint32_t kEthernetBytes = sizeof(rte_ether_hdr) + 2 * kTagBytes;
constexpr uint16_t kPort = 9;  // discard
constexpr Mac kSender = 0x02'00'00'00'00'02;
constexpr uint32_t kMostFrame = 1'518 + 2 * kTagBytes;

struct CaptureHeader {
  uint32_t magic = 0xa1b2c3d4;
  uint16_t major = 2, minor = 4;
  uint32_t zone = 0, accuracy = 0;
  uint32_t most = 65'535;
  uint32_t link_type = 1;
};

struct CapturedFrame {
  uint32_t seconds = 0, microseconds = 0;
  uint32_t captured = 0, length = 0;
};

void put16(uint8_t* at, uint16_t value) {
  at[0] = static_cast<uint8_t>(value >> 8);
  at[1] = static_cast<uint8_t>(value);
}

uint32_t header_bytes(uint32_t family) noexcept {
  return kEthernetBytes + (family == 6 ? sizeof(rte_ipv6_hdr) : sizeof(rte_ipv4_hdr)) + sizeof(rte_udp_hdr);
}

rte_udp_hdr udp_header(uint32_t bytes) {
  return {.src_port = rte_cpu_to_be_16(kPort),
          .dst_port = rte_cpu_to_be_16(kPort),
          .dgram_len = rte_cpu_to_be_16(static_cast<uint16_t>(bytes)),
          .dgram_cksum = 0};
}

void put_ipv4(uint8_t* at, const FlowFrame& flow, uint32_t bytes) {
  rte_ipv4_hdr header{};
  header.version_ihl = RTE_IPV4_VHL_DEF;
  header.total_length = rte_cpu_to_be_16(static_cast<uint16_t>(bytes));
  header.fragment_offset = rte_cpu_to_be_16(RTE_IPV4_HDR_DF_FLAG);
  header.time_to_live = 64;
  header.next_proto_id = IPPROTO_UDP;
  header.src_addr = rte_cpu_to_be_32(flow.source.v4());
  header.dst_addr = rte_cpu_to_be_32(flow.target.v4());
  header.hdr_checksum = rte_ipv4_cksum(&header);
  std::memcpy(at, &header, sizeof header);
  const rte_udp_hdr udp = udp_header(bytes - sizeof header);
  std::memcpy(at + sizeof header, &udp, sizeof udp);
}

void put_ipv6(uint8_t* at, const FlowFrame& flow, uint32_t bytes) {
  rte_ipv6_hdr header{};
  header.vtc_flow = rte_cpu_to_be_32(6u << 28);
  header.payload_len = rte_cpu_to_be_16(static_cast<uint16_t>(bytes - sizeof header));
  header.proto = IPPROTO_UDP;
  header.hop_limits = 64;
  store_ipv6(header.src_addr, flow.source.v6());
  store_ipv6(header.dst_addr, flow.target.v6());
  std::memcpy(at, &header, sizeof header);
  rte_udp_hdr udp = udp_header(bytes - sizeof header);
  std::memcpy(at + sizeof header, &udp, sizeof udp);
  udp.dgram_cksum = rte_ipv6_udptcp_cksum(&header, at + sizeof header);
  std::memcpy(at + sizeof header, &udp, sizeof udp);
}

}  // namespace

Result<std::vector<uint32_t>> parse_sizes(std::string_view text) {
  if (text == "imix") return std::vector<uint32_t>{64, 570, 64, 64, 570, 64, 1'518, 64, 570, 64, 570, 64};
  const auto size = parse_number("--size", text, 64, kMostFrame);
  if (!size) return fail(EINVAL, "{}, or imix", size.error().text);
  return std::vector<uint32_t>{static_cast<uint32_t>(*size)};
}

uint32_t least_frame(uint32_t family) noexcept {
  return std::max<uint32_t>(RTE_ETHER_MIN_LEN, header_bytes(family) + kChecksumBytes);
}

uint32_t payload_offset(uint32_t family) noexcept {
  return header_bytes(family);
}

std::vector<uint8_t> build_frame(const FlowFrame& flow, uint32_t size) {
  const bool v4 = flow.target.is_v4();
  const uint32_t tags = (flow.outer != 0 ? 1 : 0) + (flow.inner != 0 ? 1 : 0);
  const uint32_t least = header_bytes(v4 ? 4 : 6) - (2 - tags) * kTagBytes;
  std::vector<uint8_t> frame(std::max(size - kChecksumBytes, least));
  store_mac(frame.data(), flow.destination);
  store_mac(frame.data() + 6, kSender);
  uint8_t* at = frame.data() + 12;
  const auto put_tag = [&at](uint16_t protocol, uint16_t tag) {
    put16(at, protocol);
    put16(at + 2, tag);
    at += kTagBytes;
  };
  if (flow.outer != 0) put_tag(flow.outer_protocol, flow.outer);
  if (flow.inner != 0) put_tag(RTE_ETHER_TYPE_VLAN, flow.inner);
  put16(at, v4 ? RTE_ETHER_TYPE_IPV4 : RTE_ETHER_TYPE_IPV6);
  at += 2;
  const auto bytes = static_cast<uint32_t>(frame.data() + frame.size() - at);
  if (v4)
    put_ipv4(at, flow, bytes);
  else
    put_ipv6(at, flow, bytes);
  return frame;
}

Status begin_capture(const std::string& path) {
  const CaptureHeader header;
  return write_file(path, {reinterpret_cast<const char*>(&header), sizeof header});
}

Status append_capture(const std::string& path, std::span<const std::vector<uint8_t>> frames) {
  std::ofstream file(path, std::ios::binary | std::ios::app);
  for (const std::vector<uint8_t>& frame : frames) {
    const auto length = static_cast<uint32_t>(frame.size());
    const CapturedFrame captured{.captured = length, .length = length};
    file.write(reinterpret_cast<const char*>(&captured), sizeof captured);
    file.write(reinterpret_cast<const char*>(frame.data()), static_cast<std::streamsize>(frame.size()));
  }
  file.close();
  if (!file) return fail(EIO, "{}: the frames could not be written: {}", path, std::strerror(errno));
  return {};
}

}  // namespace mayfly::perf
