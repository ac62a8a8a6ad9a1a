// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Frames written out byte by byte, independently of the headers and checksums of lib/pipeline.

#include <cstdint>
#include <string>
#include <vector>

#include "base/ip_address.hpp"

namespace mayfly::testing {

using Bytes = std::vector<uint8_t>;

inline Ipv4 ip(const char* text) {
  return *parse_ipv4("test", text);
}
inline Mac mac(const char* text) {
  return *parse_mac("test", text);
}

inline void put(Bytes& bytes, uint64_t value, int octets) {
  for (int i = octets - 1; i >= 0; --i) bytes.push_back(static_cast<uint8_t>(value >> 8 * i));
}
inline void put(Bytes& bytes, const Bytes& more) {
  bytes.insert(bytes.end(), more.begin(), more.end());
}
inline uint64_t get(const Bytes& bytes, size_t at, int octets) {
  uint64_t value = 0;
  for (int i = 0; i < octets; ++i) value = value << 8 | bytes.at(at + static_cast<size_t>(i));
  return value;
}
inline void set(Bytes& bytes, size_t at, uint64_t value, int octets) {
  for (int i = octets - 1; i >= 0; --i, value >>= 8)
    bytes.at(at + static_cast<size_t>(i)) = static_cast<uint8_t>(value);
}

// The Internet checksum as RFC 1071 words it: 16 bits at a time.
inline uint16_t checksum(const Bytes& bytes, size_t from, size_t count) {
  uint32_t sum = 0;
  for (size_t i = 0; i < count; ++i) sum += uint32_t{bytes.at(from + i)} << (i % 2 == 0 ? 8 : 0);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}

struct Tag {
  uint16_t protocol = 0x8100;
  uint16_t control = 0;  // priority and VID
};

inline Bytes ethernet(Mac to, Mac from, const std::vector<Tag>& tags, uint16_t protocol,
                      const Bytes& payload) {
  Bytes frame;
  put(frame, to, 6);
  put(frame, from, 6);
  for (const Tag& tag : tags) {
    put(frame, tag.protocol, 2);
    put(frame, tag.control, 2);
  }
  put(frame, protocol, 2);
  put(frame, payload);
  return frame;
}

struct Ipv4Fields {
  Ipv4 source = 0;
  Ipv4 destination = 0;
  uint8_t ttl = 64;
  uint8_t protocol = 17;
  uint16_t fragment = 0;
  Bytes options{};
  Bytes payload = Bytes(26, 0x5a);
};

inline void fix_ipv4_checksum(Bytes& packet, size_t at = 0) {
  set(packet, at + 10, 0, 2);
  set(packet, at + 10, checksum(packet, at, (packet[at] & 0xfu) * 4u), 2);
}

inline Bytes ipv4(const Ipv4Fields& fields) {
  Bytes packet;
  put(packet, 0x40 + 5 + fields.options.size() / 4, 1);
  put(packet, 0, 1);
  put(packet, 20 + fields.options.size() + fields.payload.size(), 2);
  put(packet, 0x1234, 2);
  put(packet, fields.fragment, 2);
  put(packet, fields.ttl, 1);
  put(packet, fields.protocol, 1);
  put(packet, 0, 2);
  put(packet, fields.source, 4);
  put(packet, fields.destination, 4);
  put(packet, fields.options);
  put(packet, fields.payload);
  fix_ipv4_checksum(packet);
  return packet;
}

inline Bytes icmp_echo(uint8_t type, uint16_t sequence, const Bytes& data = Bytes(13, 0x61)) {
  Bytes message;
  put(message, type, 1);
  put(message, 0, 1);
  put(message, 0, 2);
  put(message, 0x4242, 2);
  put(message, sequence, 2);
  put(message, data);
  set(message, 2, checksum(message, 0, message.size()), 2);
  return message;
}

inline Bytes arp(uint16_t operation, Mac sender_mac, Ipv4 sender, Mac target_mac, Ipv4 target) {
  Bytes packet;
  put(packet, 1, 2);
  put(packet, 0x0800, 2);
  put(packet, 6, 1);
  put(packet, 4, 1);
  put(packet, operation, 2);
  put(packet, sender_mac, 6);
  put(packet, sender, 4);
  put(packet, target_mac, 6);
  put(packet, target, 4);
  return packet;
}

inline Ipv6 ip6(const char* text) {
  return *parse_ipv6("test", text);
}
inline void put(Bytes& bytes, Ipv6 address) {
  put(bytes, address.high, 8);
  put(bytes, address.low, 8);
}

struct Ipv6Fields {
  Ipv6 source{};
  Ipv6 destination{};
  uint8_t hop_limit = 64;
  uint8_t next_header = 17;
  Bytes payload = Bytes(26, 0x5a);
};

inline Bytes ipv6(const Ipv6Fields& fields) {
  Bytes packet;
  put(packet, 0x60000000, 4);
  put(packet, fields.payload.size(), 2);
  put(packet, fields.next_header, 1);
  put(packet, fields.hop_limit, 1);
  put(packet, fields.source);
  put(packet, fields.destination);
  put(packet, fields.payload);
  return packet;
}

// Puts the checksum of the ICMPv6 message behind the packet's IPv6 header, or further, right.
inline Bytes with_icmpv6_checksum(Bytes packet, size_t at = 40) {
  set(packet, at + 2, 0, 2);
  Bytes covered(packet.begin() + 8, packet.begin() + 40);
  put(covered, packet.size() - at, 4);
  put(covered, 58, 4);
  covered.insert(covered.end(), packet.begin() + static_cast<long>(at), packet.end());
  set(packet, at + 2, checksum(covered, 0, covered.size()), 2);
  return packet;
}

inline Bytes icmpv6(const Ipv6Fields& fields, uint8_t type, uint8_t code, const Bytes& rest) {
  Ipv6Fields whole = fields;
  whole.next_header = 58;
  whole.payload = {type, code, 0, 0};
  put(whole.payload, rest);
  return with_icmpv6_checksum(ipv6(whole));
}

inline Bytes echo6(const Ipv6Fields& fields, uint8_t type, uint16_t sequence) {
  Bytes rest;
  put(rest, 0x4242, 2);
  put(rest, sequence, 2);
  put(rest, Bytes(13, 0x61));
  return icmpv6(fields, type, 0, rest);
}

// A neighbour solicitation (135) or advertisement (136), with the option of its sort unless the MAC is 0.
inline Bytes nd(uint8_t type, Ipv6 source, Ipv6 destination, Ipv6 target, Mac mac, uint32_t flags = 0) {
  Bytes rest;
  put(rest, flags, 4);
  put(rest, target);
  if (mac != 0) {
    put(rest, type == 135 ? 1 : 2, 1);
    put(rest, 1, 1);
    put(rest, mac, 6);
  }
  return icmpv6({.source = source, .destination = destination, .hop_limit = 255}, type, 0, rest);
}

inline Bytes one_hop_further6(Bytes packet) {
  --packet[7];
  return packet;
}

// What a router makes of an IPv4 packet.
inline Bytes one_hop_further(Bytes packet) {
  --packet[8];
  fix_ipv4_checksum(packet);
  return packet;
}

inline std::string hex(const Bytes& bytes) {
  std::string text;
  for (const uint8_t byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace mayfly::testing
