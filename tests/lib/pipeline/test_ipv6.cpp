// SPDX-License-Identifier: BSD-3-Clause
// IPv6: header checks, forwarding, scopes, echo, and ICMPv6 errors byte by byte.
#include <gtest/gtest.h>

#include "world.hpp"

namespace mayfly::testing {
namespace {

constexpr Mac kHost = 0x0a0000000001;
constexpr Mac kPort0 = 0x020000000001;
constexpr Mac kPort1 = 0x020000000002;
constexpr Mac kNextHop = 0x0a0000000002;

// port0 2001:db8::1/64 with host ::9, port1 2001:db8:1::1/64 with host ::9.
class Ipv6Test : public ::testing::Test {
 protected:
  Ipv6Test() {
    world.add_address(world.port(0), "2001:db8::1/64");
    world.add_address(world.port(1), "2001:db8:1::1/64");
    world.set_neighbour(world.port(0), ip6("2001:db8::9"), kHost);
    world.set_neighbour(world.port(0), link_local_of(kHost), kHost);
    world.set_neighbour(world.port(1), ip6("2001:db8:1::9"), kNextHop);
  }

  Ipv6Fields to(const char* destination, size_t payload = 26) {
    return {.source = ip6("2001:db8::9"), .destination = ip6(destination), .payload = Bytes(payload, 1)};
  }
  Bytes frame(const Bytes& packet, Mac mac = kPort0) { return ethernet(mac, kHost, {}, 0x86dd, packet); }
  DropReason dropped(const Bytes& packet) {
    const DropReason reason = world.dropped(0, frame(packet));
    for (uint16_t port = 0; port < kRingPorts; ++port) world.take_all(port);
    return reason;
  }
  DropReason between(const char* source, const char* destination) {
    return dropped(ipv6({.source = ip6(source), .destination = ip6(destination)}));
  }
  Bytes error(const Bytes& about, uint8_t type, uint8_t code, uint32_t rest, Ipv6 from, Ipv6 receiver) {
    Bytes message;
    put(message, rest, 4);
    message.insert(message.end(), about.begin(),
                   about.begin() + static_cast<long>(std::min<size_t>(about.size(), 1232)));
    return ethernet(kHost, kPort0, {}, 0x86dd,
                    icmpv6({.source = from, .destination = receiver}, type, code, message));
  }
  void expect_error(const Bytes& packet, DropReason reason, uint8_t type, uint8_t code, uint32_t rest = 0,
                    const char* from = "2001:db8::1", Ipv6 receiver = ip6("2001:db8::9")) {
    const uint64_t dropped = world.drops(reason);
    EXPECT_EQ(hex(world.forwarded(0, frame(packet), 0)),
              hex(error(packet, type, code, rest, ip6(from), receiver)));
    EXPECT_EQ(world.drops(reason), dropped + 1);
    world.pass(1000);
  }

  World world;
};

TEST_F(Ipv6Test, ForwardsByLongestPrefix) {
  const Bytes sent = ipv6(to("2001:db8:1::9"));
  EXPECT_EQ(hex(world.forwarded(0, frame(sent), 1)),
            hex(ethernet(kNextHop, kPort1, {}, 0x86dd, one_hop_further6(sent))));
  const uint32_t vlan = world.add_vlan(1, 5, 7, 0x88a8);
  const Ipv6 gateway = ip6("fe80::9");
  world.set_neighbour(vlan, gateway, kNextHop + 1);
  world.set_route6("::/0", {.oif = world.port(1), .gateway = ip6("2001:db8:1::9")});
  world.set_route6("2001:db8:7::/48", {.oif = vlan, .gateway = gateway});
  const Bytes far = ipv6(to("2001:db8:7::77"));
  EXPECT_EQ(hex(world.forwarded(0, frame(far), 1)),
            hex(ethernet(kNextHop + 1, kPort1, {{0x88a8, 5}, {0x8100, 7}}, 0x86dd, one_hop_further6(far))));
  const Bytes by_default = ipv6(to("2001:db8:8::77"));
  EXPECT_EQ(hex(world.forwarded(0, frame(by_default), 1)),
            hex(ethernet(kNextHop, kPort1, {}, 0x86dd, one_hop_further6(by_default))));
}

TEST_F(Ipv6Test, BothFamiliesInOneVector) {
  world.set_address(world.port(2), "10.2.0.1/24");
  world.set_neighbour(world.port(2), ip("10.2.0.9"), kNextHop);
  for (int i = 0; i < 64; ++i)
    world.put(0, i % 3 == 0 ? frame(ipv6(to("2001:db8:1::9")))
                            : ethernet(kPort0, kHost, {}, 0x0800,
                                       ipv4({.source = ip("10.0.0.9"), .destination = ip("10.2.0.9")})));
  world.step();
  EXPECT_EQ(world.take_all(1).size(), 22u);
  EXPECT_EQ(world.take_all(2).size(), 42u);
}

TEST_F(Ipv6Test, PaddingIsCutOffAndLengthsAreChecked) {
  const Bytes sent = ipv6(to("2001:db8:1::9", 3));
  Bytes padded = frame(sent);
  padded.resize(80);
  EXPECT_EQ(hex(world.forwarded(0, padded, 1)),
            hex(ethernet(kNextHop, kPort1, {}, 0x86dd, one_hop_further6(sent))));
  Bytes beyond = sent;
  set(beyond, 4, 4, 2);
  EXPECT_EQ(dropped(beyond), DropReason::ip_length);
  EXPECT_EQ(dropped(Bytes(sent.begin(), sent.begin() + 39)), DropReason::truncated);
  Bytes version = sent;
  version[0] = 0x40;
  EXPECT_EQ(dropped(version), DropReason::ip_header);
}

TEST_F(Ipv6Test, Martians) {
  world.set_route6("::/0", {.oif = world.port(1), .gateway = ip6("2001:db8:1::9")});
  for (const char* source : {"::", "::1", "ff02::1", "ff0e::7"})
    EXPECT_EQ(between(source, "2001:db8:1::9"), DropReason::martian_source) << source;
  Ipv6Fields mapped = to("2001:db8:1::9");
  mapped.source = {0, 0xffff'0a00'0001};
  EXPECT_EQ(dropped(ipv6(mapped)), DropReason::martian_source);
  std::swap(mapped.source, mapped.destination);
  mapped.source = ip6("2001:db8::9");
  EXPECT_EQ(dropped(ipv6(mapped)), DropReason::martian_destination);
  for (const char* destination : {"::", "::1"})
    EXPECT_EQ(between("2001:db8::9", destination), DropReason::martian_destination) << destination;
  for (const char* destination : {"ff02::5", "ff0e::1", "ff01::1", "ff02::16", "ff05::2"})
    EXPECT_EQ(between("2001:db8::9", destination), DropReason::multicast) << destination;
  EXPECT_EQ(world.dropped(0, frame(ipv6(to("2001:db8:1::9")), 0x333300000001)), DropReason::multicast);
  EXPECT_EQ(world.totals().icmp_errors_sent, 0u);
}

TEST_F(Ipv6Test, LinkLocalAddressesAreNotRouted) {
  world.set_route6("::/0", {.oif = world.port(1), .gateway = ip6("2001:db8:1::9")});
  EXPECT_EQ(between("2001:db8::9", "fe80::77"), DropReason::beyond_scope);
  EXPECT_EQ(world.totals().icmp_errors_sent, 0u);
  const Ipv6 sender = link_local_of(kHost);
  const Bytes sent = ipv6({.source = sender, .destination = ip6("2001:db8:1::9")});
  expect_error(sent, DropReason::beyond_scope, 1, 2, 0, format_ipv6(link_local_of(kPort0)).c_str(), sender);
}

TEST_F(Ipv6Test, WhatEachDropSays) {
  world.set_route6("2001:db8:a::/48", {.type = RouteType::kBlackhole, .gateway = {}});
  world.set_route6("2001:db8:b::/48", {.type = RouteType::kUnreachable, .gateway = {}});
  world.set_route6("2001:db8:c::/48", {.type = RouteType::kProhibit, .gateway = {}});
  Ipv6Fields last = to("2001:db8:1::9");
  last.hop_limit = 1;
  expect_error(ipv6(last), DropReason::ttl_exceeded, 3, 0);
  expect_error(ipv6(to("2001:db9::1")), DropReason::no_route, 1, 0);
  expect_error(ipv6(to("2001:db8:b::1")), DropReason::unreachable, 1, 0);
  expect_error(ipv6(to("2001:db8:c::1")), DropReason::prohibited, 1, 1);
  ASSERT_TRUE(world.table().set_mtu(world.port(1), 1300).has_value());
  expect_error(ipv6(to("2001:db8:1::9", 1261)), DropReason::mtu_exceeded, 2, 0, 1300);
  EXPECT_EQ(dropped(ipv6(to("2001:db8:1::9", 1260))), DropReason::count);
  ASSERT_TRUE(world.table().set_mtu(world.port(1), 1000).has_value());
  expect_error(ipv6(to("2001:db8:1::9", 1261)), DropReason::mtu_exceeded, 2, 0, 1280);
  const uint64_t said = world.totals().icmp_errors_sent;
  EXPECT_EQ(dropped(ipv6(to("2001:db8:a::1"))), DropReason::blackhole);
  EXPECT_EQ(world.totals().icmp_errors_sent, said);
}

TEST_F(Ipv6Test, OurOwnAddresses) {
  const auto with = [&](uint8_t next_header, const Bytes& payload) {
    return ipv6({.source = ip6("2001:db8::9"),
                 .destination = ip6("2001:db8:1::1"),
                 .hop_limit = 1,
                 .next_header = next_header,
                 .payload = payload});
  };
  const char* from = "2001:db8:1::1";
  expect_error(with(17, Bytes(8, 0)), DropReason::local_unknown, 1, 4, 0, from);
  expect_error(with(6, Bytes(20, 0)), DropReason::local_unknown, 1, 4, 0, from);
  expect_error(with(47, Bytes(20, 0)), DropReason::local_unknown, 4, 1, 6, from);
  // Behind hop-by-hop and destination options.
  const Bytes options = {60, 0, 1, 4, 0, 0, 0, 0, 132, 0, 1, 4, 0, 0, 0, 0};
  expect_error(with(0, options), DropReason::local_unknown, 4, 1, 48, from);
  // A source route that is not at its end (RFC 5095).
  expect_error(with(43, {17, 0, 0, 1, 0, 0, 0, 0}), DropReason::local_unknown, 4, 0, 42, from);
  const uint64_t said = world.totals().icmp_errors_sent;
  EXPECT_EQ(dropped(with(59, {})), DropReason::local_unknown);
  EXPECT_EQ(dropped(with(44, {17, 0, 0, 1, 0, 0, 0, 1})), DropReason::local_unknown) << "a first fragment";
  EXPECT_EQ(dropped(with(44, {17, 0, 0, 9, 0, 0, 0, 1})), DropReason::local_unknown) << "a later one";
  EXPECT_EQ(dropped(with(0, {17, 7, 0, 0, 0, 0, 0, 0})), DropReason::local_unknown) << "beyond the packet";
  EXPECT_EQ(dropped(with(60, {17, 0})), DropReason::truncated);
  Bytes endless;
  for (int i = 0; i < 9; ++i) put(endless, Bytes{60, 0, 1, 4, 0, 0, 0, 0});
  EXPECT_EQ(dropped(with(60, endless)), DropReason::truncated) << "more headers than are followed";
  EXPECT_LE(world.totals().icmp_errors_sent, said + 1);
}

TEST_F(Ipv6Test, NothingIsSaidAboutErrorsAndGroups) {
  for (const uint8_t type : {1, 2, 3, 4, 127, 137})
    EXPECT_EQ(dropped(icmpv6(to("2001:db9::1"), type, 0, Bytes(20, 0))), DropReason::no_route);
  // An error behind extension headers, and one that is in another fragment.
  Bytes hidden = {58, 0, 1, 4, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0};
  Ipv6Fields fields = to("2001:db9::1");
  fields.next_header = 60;
  fields.payload = hidden;
  EXPECT_EQ(dropped(ipv6(fields)), DropReason::no_route);
  fields.next_header = 44;
  fields.payload = {58, 0, 0, 8, 0, 0, 0, 1, 128, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(dropped(ipv6(fields)), DropReason::no_route);
  EXPECT_EQ(world.totals().icmp_errors_sent, 0u);
  fields.payload[0] = 17;
  expect_error(ipv6(fields), DropReason::no_route, 1, 0);
  expect_error(echo6(to("2001:db9::1"), 128, 1), DropReason::no_route, 1, 0);
}

TEST_F(Ipv6Test, Echo) {
  for (const char* own : {"2001:db8::1", "2001:db8:1::1"}) {
    Ipv6Fields fields = to(own);
    fields.hop_limit = 1;
    const Bytes reply = echo6({.source = ip6(own), .destination = ip6("2001:db8::9")}, 129, 7);
    EXPECT_EQ(hex(world.forwarded(0, frame(echo6(fields, 128, 7)), 0)),
              hex(ethernet(kHost, kPort0, {}, 0x86dd, reply)));
  }
  for (uint32_t sequence = 0; sequence < 0x10000; sequence += 771) {
    const auto number = static_cast<uint16_t>(sequence);
    const Bytes reply = echo6({.source = ip6("2001:db8::1"), .destination = ip6("2001:db8::9")}, 129, number);
    ASSERT_EQ(hex(world.forwarded(0, frame(echo6(to("2001:db8::1"), 128, number)), 0)),
              hex(ethernet(kHost, kPort0, {}, 0x86dd, reply)));
  }
  Bytes wrong = echo6(to("2001:db8::1"), 128, 1);
  wrong.back() ^= 1;
  EXPECT_EQ(dropped(wrong), DropReason::icmp_invalid);
  EXPECT_EQ(dropped(icmpv6(to("2001:db8::1"), 128, 0, {})), DropReason::icmp_invalid);
  EXPECT_EQ(dropped(echo6(to("2001:db8::1"), 129, 1)), DropReason::local_unknown);
}

TEST_F(Ipv6Test, EchoBetweenLinkLocalAddressesAndToEveryone) {
  const Ipv6 sender = link_local_of(kHost);
  const Ipv6 own = link_local_of(kPort0);
  const Bytes reply =
      ethernet(kHost, kPort0, {}, 0x86dd, echo6({.source = own, .destination = sender}, 129, 3));
  EXPECT_EQ(hex(world.forwarded(0, frame(echo6({.source = sender, .destination = own}, 128, 3)), 0)),
            hex(reply));
  for (const char* everyone : {"ff02::1", "ff02::2"}) {
    const Bytes request = echo6({.source = sender, .destination = ip6(everyone)}, 128, 3);
    EXPECT_EQ(hex(world.forwarded(0, frame(request, multicast_mac_of(ip6(everyone))), 0)), hex(reply));
  }
  const Bytes global = echo6({.source = ip6("2001:db8::9"), .destination = ip6("ff02::1")}, 128, 4);
  EXPECT_EQ(hex(world.forwarded(0, frame(global, 0x333300000001), 0)),
            hex(ethernet(kHost, kPort0, {}, 0x86dd,
                         echo6({.source = ip6("2001:db8::1"), .destination = ip6("2001:db8::9")}, 129, 4))));
  world.set_flag(world.port(0), Interface::kNoLinkLocal);
  EXPECT_EQ(dropped(echo6({.source = sender, .destination = own}, 128, 3)), DropReason::beyond_scope);
  world.add_address(world.port(0), "fe80::1/64");
  EXPECT_EQ(
      hex(world.forwarded(0, frame(echo6({.source = sender, .destination = ip6("fe80::1")}, 128, 3)), 0)),
      hex(ethernet(kHost, kPort0, {}, 0x86dd,
                   echo6({.source = ip6("fe80::1"), .destination = sender}, 129, 3))));
}

TEST_F(Ipv6Test, ParkedUntilResolvedOrReported) {
  const Bytes sent = ipv6(to("2001:db8:1::8"));
  world.put(0, frame(sent));
  world.step();
  EXPECT_EQ(world.totals().parked, 1u);
  const auto wanted = world.heard();
  ASSERT_TRUE(wanted.has_value());
  EXPECT_EQ(wanted->address, IpAddress(ip6("2001:db8:1::8")));
  world.set_neighbour(world.port(1), ip6("2001:db8:1::8"), kNextHop + 8);
  world.pass(1);
  EXPECT_EQ(hex(world.take(1).value_or(Bytes{})),
            hex(ethernet(kNextHop + 8, kPort1, {}, 0x86dd, one_hop_further6(sent))));
  const Bytes lost = ipv6(to("2001:db8:1::7"));
  world.put(0, frame(lost));
  world.step();
  world.tell(ControlMessage::Type::neighbour_failed, world.port(1), IpAddress(ip6("2001:db8:1::7")), 0, {});
  world.step();
  EXPECT_EQ(hex(world.take(0).value_or(Bytes{})),
            hex(error(one_hop_further6(lost), 1, 3, 0, ip6("2001:db8::1"), ip6("2001:db8::9"))));
}

}  // namespace
}  // namespace mayfly::testing
