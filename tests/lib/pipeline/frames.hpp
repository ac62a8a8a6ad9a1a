// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Frames written out byte by byte, independently of the headers and checksums of lib/pipeline.

#include <cstdint>
#include <string>
#include <vector>

#include "base/address.hpp"

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
