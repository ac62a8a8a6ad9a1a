// SPDX-License-Identifier: BSD-3-Clause
#include "base/ip_address.hpp"

#include <arpa/inet.h>

#include <charconv>

namespace mayfly {
namespace {

constexpr std::string_view kV6Example = "an IPv6 address like 2001:db8::1";

// inet_pton() would not see what follows a NUL.
bool parse_octets(std::string_view text, uint8_t (&octets)[16]) {
  return text.find('\0') == std::string_view::npos &&
         inet_pton(AF_INET6, std::string(text).c_str(), octets) == 1;
}

}  // namespace

std::string format_ipv6(Ipv6 address) {
  uint8_t octets[16];
  store_ipv6(octets, address);
  char text[INET6_ADDRSTRLEN];
  return inet_ntop(AF_INET6, octets, text, sizeof text);
}

std::string format_address(IpAddress address) {
  return address.is_v4() ? format_ipv4(address.v4()) : format_ipv6(address.v6());
}

std::string format_prefix(const Ipv6Prefix& prefix) {
  return fmt::format("{}/{}", format_ipv6(prefix.address), prefix.length);
}

std::string format_prefix(const IpPrefix& prefix) {
  return fmt::format("{}/{}", format_address(prefix.address), prefix.length);
}

Result<Ipv6> parse_ipv6(std::string_view what, std::string_view text) {
  uint8_t octets[16];
  if (!parse_octets(text, octets)) return fail(EINVAL, "{} '{}': expected {}", what, text, kV6Example);
  const Ipv6 address = load_ipv6(octets);
  if (IpAddress(address).is_v4())
    return fail(EINVAL, "{} '{}': an IPv4-mapped address, expected {}", what, text, kV6Example);
  return address;
}

Result<IpAddress> parse_address(std::string_view what, std::string_view text) {
  if (text.find(':') != std::string_view::npos) {
    const auto address = parse_ipv6(what, text);
    if (!address) return std::unexpected(address.error());
    return IpAddress(*address);
  }
  const auto address = parse_ipv4(what, text);
  if (!address) return fail(EINVAL, "{} '{}': expected an address like 192.0.2.1 or 2001:db8::1", what, text);
  return IpAddress(*address);
}

Result<IpPrefix> parse_ip_prefix(std::string_view what, std::string_view text) {
  const size_t slash = text.find('/');
  const auto address = parse_address(what, text.substr(0, slash));
  if (!address)
    return fail(EINVAL, "{} '{}': expected a prefix like 192.0.2.0/24 or 2001:db8::/64", what, text);
  IpPrefix prefix(*address, 0);
  prefix.length = prefix.most_length();
  if (slash == std::string_view::npos) return prefix;
  const std::string_view digits = text.substr(slash + 1);
  unsigned length = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), length);
  if (error != std::errc{} || end != digits.data() + digits.size() || length > prefix.most_length())
    return fail(EINVAL, "{} '{}': prefix length '{}': accepted 0..{}", what, text, digits,
                prefix.most_length());
  prefix.length = static_cast<uint8_t>(length);
  return prefix;
}

}  // namespace mayfly
