// SPDX-License-Identifier: BSD-3-Clause
#include "base/address.hpp"

#include <arpa/inet.h>

#include <charconv>

namespace mayfly {

std::string format_mac(Mac mac) {
  uint8_t o[6];
  store_mac(o, mac);
  return fmt::format("{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}", o[0], o[1], o[2], o[3], o[4], o[5]);
}

std::string format_ipv4(Ipv4 address) {
  return fmt::format("{}.{}.{}.{}", address >> 24, address >> 16 & 255, address >> 8 & 255, address & 255);
}

std::string format_prefix(const Ipv4Prefix& prefix) {
  return fmt::format("{}/{}", format_ipv4(prefix.address), prefix.length);
}

Result<Mac> parse_mac(std::string_view what, std::string_view text) {
  Mac mac = 0;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (int octet = 0; octet < 6; ++octet) {
    if (octet > 0) {
      if (at == end || *at != ':')
        return fail(EINVAL, "{} '{}': expected six octets like 02:00:00:00:00:01", what, text);
      ++at;
    }
    unsigned value = 0;
    const auto [next, error] = std::from_chars(at, end, value, 16);
    if (error != std::errc{} || value > 255 || next - at > 2)
      return fail(EINVAL, "{} '{}': expected six octets like 02:00:00:00:00:01", what, text);
    mac = mac << 8 | value;
    at = next;
  }
  if (at != end) return fail(EINVAL, "{} '{}': expected six octets like 02:00:00:00:00:01", what, text);
  return mac;
}

Result<Ipv4> parse_ipv4(std::string_view what, std::string_view text) {
  in_addr address{};
  // inet_pton() would not see what follows a NUL.
  if (text.find('\0') != std::string_view::npos ||
      inet_pton(AF_INET, std::string(text).c_str(), &address) != 1)
    return fail(EINVAL, "{} '{}': expected an IPv4 address like 192.0.2.1", what, text);
  return ntohl(address.s_addr);
}

Result<Ipv4Prefix> parse_prefix(std::string_view what, std::string_view text) {
  Ipv4Prefix prefix;
  const size_t slash = text.find('/');
  auto address = parse_ipv4(what, text.substr(0, slash));
  if (!address) return fail(EINVAL, "{} '{}': expected an IPv4 prefix like 192.0.2.0/24", what, text);
  prefix.address = *address;
  if (slash == std::string_view::npos) return prefix;
  const std::string_view digits = text.substr(slash + 1);
  unsigned length = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), length);
  if (error != std::errc{} || end != digits.data() + digits.size() || length > 32)
    return fail(EINVAL, "{} '{}': prefix length '{}': accepted 0..32", what, text, digits);
  prefix.length = static_cast<uint8_t>(length);
  return prefix;
}

}  // namespace mayfly
