// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// IPv6 addresses, and addresses and prefixes of either family.
//
// Tables of workers that hold one family (a FIB) use Ipv4 and Ipv6; everything that holds both (neighbours,
// interface addresses, routes as users see them) uses IpAddress, 16 bytes, so that there is one table and one
// code for both families. An IPv4 address is held in it as ::ffff:a.b.c.d (RFC 4291 section 2.5.5.2): no IPv6
// packet may carry such an address, so the two families never meet. The all-zero value is no address at all,
// which is what "::" means in a packet.

#include <bit>
#include <compare>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/address.hpp"

namespace mayfly {

// Host order: the first eight octets of the wire are `high`.
struct Ipv6 {
  uint64_t high = 0;
  uint64_t low = 0;

  auto operator<=>(const Ipv6&) const = default;
};

// From and to the sixteen octets of the wire, at any alignment.
inline Ipv6 load_ipv6(const uint8_t* octets) noexcept {
  Ipv6 address;
  std::memcpy(&address, octets, sizeof address);
  if constexpr (std::endian::native == std::endian::little)
    return {__builtin_bswap64(address.high), __builtin_bswap64(address.low)};
  return address;
}

inline void store_ipv6(uint8_t* octets, Ipv6 address) noexcept {
  if constexpr (std::endian::native == std::endian::little)
    address = {__builtin_bswap64(address.high), __builtin_bswap64(address.low)};
  std::memcpy(octets, &address, sizeof address);
}

constexpr Ipv6 prefix_mask6(uint8_t length) noexcept {
  if (length == 0) return {};
  if (length <= 64) return {~uint64_t{0} << (64 - length), 0};
  return {~uint64_t{0}, ~uint64_t{0} << (128 - length)};
}

struct Ipv6Prefix {
  Ipv6 address;
  uint8_t length = 128;

  bool operator==(const Ipv6Prefix&) const = default;
  constexpr Ipv6 network() const noexcept {
    const Ipv6 mask = prefix_mask6(length);
    return {address.high & mask.high, address.low & mask.low};
  }
  constexpr bool contains(Ipv6 other) const noexcept {
    const Ipv6 mask = prefix_mask6(length);
    return ((address.high ^ other.high) & mask.high) == 0 && ((address.low ^ other.low) & mask.low) == 0;
  }
};

constexpr bool is_multicast(Ipv6 address) noexcept {
  return address.high >> 56 == 0xff;
}
constexpr bool is_link_local(Ipv6 address) noexcept {
  return address.high >> 54 == 0xfe80 >> 6;
}

// fe80:: with the modified EUI-64 of the MAC (RFC 4291 appendix A): the link-local address every interface
// has without being given one.
constexpr Ipv6 link_local_of(Mac mac) noexcept {
  const uint64_t flipped = mac ^ 0x0200'0000'0000ULL;
  return {0xfe80'0000'0000'0000ULL, (flipped >> 24) << 40 | 0xff'fe00'0000ULL | (flipped & 0xff'ffff)};
}
// ff02::1:ffXX:XXXX (RFC 4291 section 2.7.1), and the MAC it is sent to (RFC 2464 section 7).
constexpr Ipv6 solicited_node_of(Ipv6 address) noexcept {
  return {0xff02'0000'0000'0000ULL, 0x1'ff00'0000ULL | (address.low & 0xff'ffff)};
}
constexpr Mac multicast_mac_of(Ipv6 group) noexcept {
  return 0x3333'0000'0000ULL | (group.low & 0xffff'ffff);
}

enum class IpFamily : uint8_t { v4, v6 };

class IpAddress {
 public:
  constexpr IpAddress() noexcept = default;
  constexpr explicit IpAddress(Ipv4 address) noexcept : value_{0, kMapped | address} {}
  constexpr explicit IpAddress(Ipv6 address) noexcept : value_(address) {}

  // No address: not even 0.0.0.0.
  constexpr bool none() const noexcept { return value_ == Ipv6{}; }
  constexpr bool is_v4() const noexcept { return value_.high == 0 && value_.low >> 32 == kMapped >> 32; }
  constexpr IpFamily family() const noexcept { return is_v4() ? IpFamily::v4 : IpFamily::v6; }
  // Only where is_v4() says so.
  constexpr Ipv4 v4() const noexcept { return static_cast<Ipv4>(value_.low); }
  constexpr Ipv6 v6() const noexcept { return value_; }

  auto operator<=>(const IpAddress&) const = default;

 private:
  static constexpr uint64_t kMapped = 0xffffULL << 32;
  Ipv6 value_;
};
static_assert(sizeof(IpAddress) == 16);

// The length counts bits of the address's own family.
struct IpPrefix {
  IpAddress address;
  uint8_t length = 0;

  constexpr IpPrefix() noexcept = default;
  constexpr IpPrefix(IpAddress of, uint8_t bits) noexcept : address(of), length(bits) {}
  constexpr explicit IpPrefix(Ipv4Prefix prefix) noexcept : address(prefix.address), length(prefix.length) {}
  constexpr explicit IpPrefix(Ipv6Prefix prefix) noexcept : address(prefix.address), length(prefix.length) {}

  bool operator==(const IpPrefix&) const = default;
  constexpr bool is_v4() const noexcept { return address.is_v4(); }
  constexpr Ipv4Prefix v4() const noexcept { return {address.v4(), length}; }
  constexpr Ipv6Prefix v6() const noexcept { return {address.v6(), length}; }
  // 32 or 128.
  constexpr uint8_t most_length() const noexcept { return is_v4() ? 32 : 128; }
  constexpr IpAddress network() const noexcept {
    return is_v4() ? IpAddress(v4().network()) : IpAddress(v6().network());
  }
  // False for an address of the other family.
  constexpr bool contains(IpAddress other) const noexcept {
    if (is_v4() != other.is_v4()) return false;
    return is_v4() ? v4().contains(other.v4()) : v6().contains(other.v6());
  }
};

// RFC 5952 text: "2001:db8::1".
std::string format_ipv6(Ipv6 address);
std::string format_address(IpAddress address);
std::string format_prefix(const Ipv6Prefix& prefix);
std::string format_prefix(const IpPrefix& prefix);

// EINVAL with the text "what 'value': expected ..." when it is none. An IPv4-mapped IPv6 address is refused.
Result<Ipv6> parse_ipv6(std::string_view what, std::string_view text);
Result<IpAddress> parse_address(std::string_view what, std::string_view text);
// "10.0.0.1/24", "2001:db8::1/64"; without a length that of one address.
Result<IpPrefix> parse_ip_prefix(std::string_view what, std::string_view text);

}  // namespace mayfly
