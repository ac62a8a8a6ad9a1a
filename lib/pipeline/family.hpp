// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// What differs between IPv4 and IPv6 in the stages that are written once for both (internal to lib/pipeline).
//
// A family says where the destination and the next hop of a packet stand, which FIB its namespace has for
// them, and which ICMP errors tell what went wrong.

#include "netns/netns.hpp"
#include "pipeline/icmp_error.hpp"
#include "pipeline/packet.hpp"
#include "pipeline/wire.hpp"

namespace mayfly {

struct V4 {
  using Address = Ipv4;
  using Value = RouteValue;
  using Header = Ipv4Header;
  static constexpr uint16_t kProtocol = kProtocolIpv4;
  static constexpr uint32_t kHeaderBytes = kIpv4Bytes;

  static constexpr IcmpError kNoRoute{3, 0};
  static constexpr IcmpError kUnreachable{3, 1};
  static constexpr IcmpError kUnknownProtocol{3, 2};
  static constexpr IcmpError kPortUnreachable{3, 3};
  static constexpr IcmpError kProhibited{3, 13};
  static constexpr IcmpError kNeighbourFailed{3, 1};
  static constexpr IcmpError kTimeExceeded{11, 0};
  static constexpr IcmpError too_big(uint32_t mtu) noexcept { return {3, 4, mtu}; }

  static const Fib& fib(const Netns& netns) noexcept { return netns.fib; }
  static Header& header(const Packet& packet) noexcept { return *reinterpret_cast<Header*>(packet.network); }
  static Address source(const Packet& packet) noexcept { return swap32(header(packet).source); }
  static Address destination(const Packet& packet) noexcept { return packet.address; }
  static const Value* route(const Packet& packet) noexcept { return static_cast<const Value*>(packet.route); }
  static void set_route(Packet& packet, const Value* value) noexcept { packet.route = value; }
  static bool is_scoped(Address) noexcept { return false; }
  static uint32_t bytes(const Packet& packet) noexcept { return swap16(header(packet).total_length); }
  static bool may_not_be_cut(const Packet& packet) noexcept {
    return (header(packet).fragment & swap16(kDontFragment)) != 0;
  }
  static uint8_t ttl(const Packet& packet) noexcept { return header(packet).ttl; }
  static void decrease_ttl(const Packet& packet) noexcept {
    Header& of = header(packet);
    --of.ttl;
    of.checksum = checksum_after_decrease(of.checksum, swap16(0x0100));
  }
  static void take_gateway(Packet& packet) noexcept {
    if (const Ipv4 gateway = route(packet)->gateway; gateway != 0) packet.address = gateway;
  }
  static IpAddress next_hop(const Packet& packet) noexcept { return IpAddress(packet.address); }
};

struct V6 {
  using Address = Ipv6;
  using Value = RouteValue6;
  using Header = Ipv6Header;
  static constexpr uint16_t kProtocol = kProtocolIpv6;
  static constexpr uint32_t kHeaderBytes = kIpv6Bytes;
  static constexpr uint32_t kLeastMtu = 1280;  // of a link (RFC 8200 section 5)

  static constexpr IcmpError kNoRoute{1, 0};
  static constexpr IcmpError kUnreachable{1, 0};
  static constexpr IcmpError kPortUnreachable{1, 4};
  static constexpr IcmpError kProhibited{1, 1};
  static constexpr IcmpError kBeyondScope{1, 2};
  static constexpr IcmpError kNeighbourFailed{1, 3};
  static constexpr IcmpError kTimeExceeded{3, 0};
  static constexpr IcmpError too_big(uint32_t mtu) noexcept {
    return {2, 0, mtu < kLeastMtu ? kLeastMtu : mtu};
  }
  static constexpr IcmpError bad_header(uint32_t at) noexcept { return {4, 0, at}; }
  static constexpr IcmpError unknown_next_header(uint32_t at) noexcept { return {4, 1, at}; }

  static const Fib6& fib(const Netns& netns) noexcept { return netns.fib6; }
  static Header& header(const Packet& packet) noexcept { return *reinterpret_cast<Header*>(packet.network); }
  static Address source(const Packet& packet) noexcept { return load_ipv6(header(packet).source); }
  static Address destination(const Packet& packet) noexcept { return load_ipv6(header(packet).destination); }
  static const Value* route(const Packet& packet) noexcept { return static_cast<const Value*>(packet.route); }
  static void set_route(Packet& packet, const Value* value) noexcept { packet.route = value; }
  static bool is_scoped(Address address) noexcept { return is_link_local(address); }
  static uint32_t bytes(const Packet& packet) noexcept {
    return kIpv6Bytes + swap16(header(packet).payload_length);
  }
  static bool may_not_be_cut(const Packet&) noexcept { return true; }
  static uint8_t ttl(const Packet& packet) noexcept { return header(packet).hop_limit; }
  static void decrease_ttl(const Packet& packet) noexcept { --header(packet).hop_limit; }
  static void take_gateway(Packet&) noexcept {}
  static IpAddress next_hop(const Packet& packet) noexcept {
    const Value* const by = route(packet);
    if (by != nullptr && by->gateway != Ipv6{}) return IpAddress(by->gateway);
    return IpAddress(destination(packet));
  }
};

}  // namespace mayfly
