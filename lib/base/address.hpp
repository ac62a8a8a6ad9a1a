// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// MAC and IPv4 addresses, prefixes, and their text.
//
// A MAC is one uint64_t (the six octets in the low 48 bits, first octet highest), so that it changes with one
// aligned store. An IPv4 address is a uint32_t in host byte order; the wire and netlink carry network order.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace mayfly {

using Mac = uint64_t;
using Ipv4 = uint32_t;

constexpr Mac kBroadcastMac = 0xffff'ffff'ffffULL;

constexpr bool is_multicast(Mac mac) noexcept {
  return (mac >> 40 & 1) != 0;
}

inline Mac load_mac(const uint8_t* octets) noexcept {
  Mac mac = 0;
  for (int i = 0; i < 6; ++i) mac = mac << 8 | octets[i];
  return mac;
}

inline void store_mac(uint8_t* octets, Mac mac) noexcept {
  for (int i = 5; i >= 0; --i, mac >>= 8) octets[i] = static_cast<uint8_t>(mac);
}

constexpr Ipv4 prefix_mask(uint8_t length) noexcept {
  return length == 0 ? 0 : ~uint32_t{0} << (32 - length);
}

struct Ipv4Prefix {
  Ipv4 address = 0;
  uint8_t length = 32;

  bool operator==(const Ipv4Prefix&) const = default;
  constexpr Ipv4 network() const noexcept { return address & prefix_mask(length); }
  constexpr bool contains(Ipv4 other) const noexcept {
    return ((address ^ other) & prefix_mask(length)) == 0;
  }
};

std::string format_mac(Mac mac);
std::string format_ipv4(Ipv4 address);
std::string format_prefix(const Ipv4Prefix& prefix);

// EINVAL with the text "what 'value': expected ..." when it is none.
Result<Mac> parse_mac(std::string_view what, std::string_view text);
Result<Ipv4> parse_ipv4(std::string_view what, std::string_view text);
// "10.0.0.1/24", or without a length (/32).
Result<Ipv4Prefix> parse_prefix(std::string_view what, std::string_view text);

}  // namespace mayfly
