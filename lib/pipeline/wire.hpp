// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Headers as they are on the wire (internal to lib/pipeline): network byte order, any alignment.

#include <bit>
#include <cstdint>
#include <cstring>

#include "base/ip_address.hpp"

namespace mayfly {

static_assert(std::endian::native == std::endian::little,
              "the wire format is written for little-endian machines");

constexpr uint16_t kProtocolIpv4 = 0x0800;
constexpr uint16_t kProtocolArp = 0x0806;
constexpr uint16_t kProtocolCTag = 0x8100;
constexpr uint16_t kProtocolIpv6 = 0x86dd;

// Protocols of IPv4, next headers of IPv6.
constexpr uint8_t kProtocolHopByHop = 0;
constexpr uint8_t kProtocolIcmp = 1;
constexpr uint8_t kProtocolTcp = 6;
constexpr uint8_t kProtocolUdp = 17;
constexpr uint8_t kProtocolRouting = 43;
constexpr uint8_t kProtocolFragment = 44;
constexpr uint8_t kProtocolIcmpv6 = 58;
constexpr uint8_t kProtocolNone = 59;
constexpr uint8_t kProtocolDestinationOptions = 60;

constexpr uint32_t kMacBytes = 6;
constexpr uint32_t kEthernetBytes = 14;
constexpr uint32_t kTagBytes = 4;
constexpr uint32_t kIpv4Bytes = 20;
constexpr uint32_t kIpv6Bytes = 40;
constexpr uint32_t kIcmpBytes = 8;

struct [[gnu::packed]] Ipv4Header {
  uint8_t version_words;  // version, header length in 32-bit words
  uint8_t service;
  uint16_t total_length;
  uint16_t id;
  uint16_t fragment;
  uint8_t ttl;
  uint8_t protocol;
  uint16_t checksum;
  uint32_t source;
  uint32_t destination;
};
static_assert(sizeof(Ipv4Header) == kIpv4Bytes);

constexpr uint16_t kFragmentMask = 0x3fff;  // more fragments, or an offset
constexpr uint16_t kFragmentOffsetMask = 0x1fff;
constexpr uint16_t kDontFragment = 0x4000;

struct [[gnu::packed]] Ipv6Header {
  uint32_t version_class_flow;
  uint16_t payload_length;
  uint8_t next_header;
  uint8_t hop_limit;
  uint8_t source[16];
  uint8_t destination[16];
};
static_assert(sizeof(Ipv6Header) == kIpv6Bytes);

constexpr uint32_t kIpv6Version = 0x6000'0000;

struct [[gnu::packed]] IcmpHeader {
  uint8_t type;
  uint8_t code;
  uint16_t checksum;
  uint32_t rest;
};
static_assert(sizeof(IcmpHeader) == kIcmpBytes);

constexpr uint8_t kEchoReply = 0;
constexpr uint8_t kEchoRequest = 8;
constexpr uint8_t kEchoRequest6 = 128;
constexpr uint8_t kEchoReply6 = 129;

// What we make ourselves is sent with this TTL or hop limit.
constexpr uint8_t kOwnTtl = 64;

// Neighbour discovery (RFC 4861 section 4).
constexpr uint8_t kRouterSolicitation = 133;
constexpr uint8_t kNeighbourSolicitation = 135;
constexpr uint8_t kNeighbourAdvertisement = 136;
constexpr uint8_t kRedirect = 137;
constexpr uint8_t kNdHopLimit = 255;  // who has been forwarded has less

// A solicitation or an advertisement, without its options.
struct [[gnu::packed]] NdMessage {
  uint8_t type;
  uint8_t code;
  uint16_t checksum;
  uint32_t flags;  // of an advertisement
  uint8_t target[16];
};
static_assert(sizeof(NdMessage) == 24);

constexpr uint32_t kNdRouter = 0x8000'0000;
constexpr uint32_t kNdSolicited = 0x4000'0000;
constexpr uint32_t kNdOverride = 0x2000'0000;

constexpr uint8_t kOptionSourceLinkLayer = 1;
constexpr uint8_t kOptionTargetLinkLayer = 2;
constexpr uint32_t kLinkLayerOptionBytes = 8;  // type, length in eights of bytes, MAC

struct [[gnu::packed]] ArpPacket {
  uint16_t hardware;
  uint16_t protocol;
  uint8_t hardware_bytes;
  uint8_t protocol_bytes;
  uint16_t operation;
  uint8_t sender_mac[6];
  uint32_t sender;
  uint8_t target_mac[6];
  uint32_t target;
};
static_assert(sizeof(ArpPacket) == 28);

constexpr uint16_t kArpEthernet = 1;
constexpr uint16_t kArpRequest = 1;
constexpr uint16_t kArpReply = 2;

constexpr uint16_t swap16(uint16_t value) noexcept {
  return __builtin_bswap16(value);
}
constexpr uint32_t swap32(uint32_t value) noexcept {
  return __builtin_bswap32(value);
}

inline uint16_t load_be16(const uint8_t* at) noexcept {
  uint16_t value;
  std::memcpy(&value, at, sizeof value);
  return swap16(value);
}

inline void store_be16(uint8_t* at, uint16_t value) noexcept {
  value = swap16(value);
  std::memcpy(at, &value, sizeof value);
}

// The destination of a frame: one load, reads two bytes beyond the address.
inline Mac load_frame_mac(const uint8_t* frame) noexcept {
  uint64_t value;
  std::memcpy(&value, frame, sizeof value);
  return __builtin_bswap64(value) >> 16;
}

// The Internet checksum's sum of a header of `words` 32-bit words, folded, not complemented: 0xffff when the
// checksum in it is right. Sums are the same in either byte order, so the result is in network order.
inline uint16_t sum_header(const uint8_t* header, uint32_t words) noexcept {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < words; ++i) {
    uint32_t word;
    std::memcpy(&word, header + 4 * i, sizeof word);
    sum += word;
  }
  sum = (sum & 0xffffffff) + (sum >> 32);
  sum = (sum & 0xffffffff) + (sum >> 32);
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(sum);
}

// The sum of what ICMPv6 checksums cover beside the message (RFC 8200 section 8.1), in network order, not
// folded.
inline uint32_t sum_pseudo_header(const Ipv6Header& header, uint32_t bytes, uint8_t protocol) noexcept {
  uint32_t sum =
      swap16(static_cast<uint16_t>(bytes >> 16)) + swap16(static_cast<uint16_t>(bytes)) + swap16(protocol);
  for (uint32_t at = 0; at < 2 * sizeof header.source; at += 2) {
    uint16_t word;
    std::memcpy(&word, header.source + at, sizeof word);
    sum += word;
  }
  return sum;
}

constexpr uint16_t fold_sum(uint32_t sum) noexcept {
  sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(sum + (sum >> 16));
}

// A checksum (network order) after a 16-bit word it covers went down by `decrease` (network order; RFC 1624).
constexpr uint16_t checksum_after_decrease(uint16_t checksum, uint16_t decrease) noexcept {
  const uint32_t sum = uint32_t{checksum} + decrease;
  return static_cast<uint16_t>(sum + (sum >= 0xffff));
}

constexpr uint16_t checksum_after_increase(uint16_t checksum, uint16_t increase) noexcept {
  return checksum_after_decrease(checksum, static_cast<uint16_t>(~increase));
}

}  // namespace mayfly
