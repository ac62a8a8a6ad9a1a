// SPDX-License-Identifier: BSD-3-Clause
// ICMP errors, byte by byte: what each drop says to the sender, when nothing is said, and how often.
#include <gtest/gtest.h>

#include "world.hpp"

namespace mayfly::testing {
namespace {

constexpr Mac kHost = 0x0a0000000001;
constexpr Mac kPort0 = 0x020000000001;
constexpr Mac kNextHop = 0x0a0000000002;

// port0 10.0.0.1/24 with host .9, port1 10.1.0.1/24 with host .9.
class IcmpErrorTest : public ::testing::Test {
 protected:
  explicit IcmpErrorTest(const WorldSettings& settings = {}) : world(settings) {
    world.set_address(world.port(0), "10.0.0.1/24");
    world.set_address(world.port(1), "10.1.0.1/24");
    world.set_neighbour(world.port(0), ip("10.0.0.9"), kHost);
    world.set_neighbour(world.port(1), ip("10.1.0.9"), kNextHop);
  }

  Bytes packet(const char* to, uint8_t ttl = 64, size_t payload = 26, uint16_t fragment = 0x4000,
               uint8_t protocol = 17) {
    return ipv4({.source = ip("10.0.0.9"),
                 .destination = ip(to),
                 .ttl = ttl,
                 .protocol = protocol,
                 .fragment = fragment,
                 .payload = Bytes(payload, 1)});
  }
  Bytes frame(const Bytes& packet) { return ethernet(kPort0, kHost, {}, 0x0800, packet); }
  // The error as it leaves port0, its id as it is.
  Bytes error(const Bytes& about, uint8_t type, uint8_t code, uint32_t rest, Ipv4 from, uint64_t id) {
    Bytes message = {type, code, 0, 0};
    put(message, rest, 4);
    message.insert(message.end(), about.begin(),
                   about.begin() + static_cast<long>(std::min<size_t>(about.size(), 548)));
    set(message, 2, checksum(message, 0, message.size()), 2);
    Bytes packet =
        ipv4({.source = from, .destination = ip("10.0.0.9"), .ttl = 64, .protocol = 1, .payload = message});
    packet[1] = static_cast<uint8_t>(0xc0 | (about[1] & 0x1e));
    set(packet, 4, id, 2);
    fix_ipv4_checksum(packet);
    return ethernet(kHost, kPort0, {}, 0x0800, packet);
  }
  void expect_error(const Bytes& packet, DropReason reason, uint8_t type, uint8_t code, uint32_t rest = 0,
                    Ipv4 from = ip("10.0.0.1")) {
    const uint64_t dropped = world.drops(reason);
    const Bytes said = world.forwarded(0, frame(packet), 0);
    EXPECT_EQ(world.drops(reason), dropped + 1);
    ASSERT_GE(said.size(), 14u + 28);
    EXPECT_EQ(hex(said), hex(error(packet, type, code, rest, from, get(said, 18, 2))));
    world.pass(1000);
  }
  void expect_silence(const Bytes& packet, DropReason reason) {
    EXPECT_EQ(world.dropped(0, frame(packet)), reason);
    for (uint16_t port = 0; port < kRingPorts; ++port) EXPECT_TRUE(world.take_all(port).empty());
    EXPECT_EQ(world.totals().icmp_errors_sent, 0u);
  }

  World world;
};

TEST_F(IcmpErrorTest, WhatEachDropSays) {
  world.set_route("99.1.0.0/16", {.type = RouteType::kBlackhole});
  world.set_route("99.2.0.0/16", {.type = RouteType::kUnreachable});
  world.set_route("99.3.0.0/16", {.type = RouteType::kProhibit});
  expect_error(packet("10.1.0.9", 1), DropReason::ttl_exceeded, 11, 0);
  expect_error(packet("10.1.0.9", 0), DropReason::ttl_exceeded, 11, 0);
  expect_error(packet("98.1.0.9"), DropReason::no_route, 3, 0);
  expect_error(packet("98.1.0.9", 1), DropReason::no_route, 3, 0);
  expect_error(packet("99.2.0.9"), DropReason::unreachable, 3, 1);
  expect_error(packet("99.3.0.9"), DropReason::prohibited, 3, 13);
  ASSERT_TRUE(world.table().set_mtu(world.port(1), 1000).has_value());
  expect_error(packet("10.1.0.9", 64, 981), DropReason::mtu_exceeded, 3, 4, 1000);
  EXPECT_EQ(world.totals().originated, 7u);
  EXPECT_EQ(world.totals().icmp_errors_sent, 7u);
  EXPECT_EQ(world.dropped(0, frame(packet("99.1.0.9"))), DropReason::blackhole);
  EXPECT_EQ(world.dropped(0, frame(packet("10.1.0.9", 64, 981, 0))), DropReason::mtu_exceeded);
  EXPECT_EQ(world.totals().originated, 7u);
}

TEST_F(IcmpErrorTest, OurOwnAddresses) {
  expect_error(packet("10.0.0.1"), DropReason::local_unknown, 3, 3);
  expect_error(packet("10.1.0.1", 64, 26, 0, 6), DropReason::local_unknown, 3, 3, 0, ip("10.1.0.1"));
  expect_error(packet("10.1.0.1", 1, 26, 0, 47), DropReason::local_unknown, 3, 2, 0, ip("10.1.0.1"));
}

TEST_F(IcmpErrorTest, QuotesAsMuchAsFits) {
  for (const size_t payload : {0u, 1u, 527u, 528u, 529u, 1400u})
    expect_error(packet("98.1.0.9", 64, payload), DropReason::no_route, 3, 0);
  const Bytes whole = frame(packet("98.1.0.9", 64, 300));
  const auto part = [&](long from, long to) { return Bytes(whole.begin() + from, whole.begin() + to); };
  world.put_segments(0, {part(0, 40), part(40, 47), part(47, static_cast<long>(whole.size()))});
  world.step();
  const Bytes said = world.take(0).value_or(Bytes(64));
  EXPECT_EQ(hex(said), hex(error(packet("98.1.0.9", 64, 300), 3, 0, 0, ip("10.0.0.1"), get(said, 18, 2))));
}

TEST_F(IcmpErrorTest, NothingIsSaidAboutErrorsFragmentsGroupsAndWhoIsNotOneHost) {
  const auto message = [&](uint8_t type) {
    return ipv4({.source = ip("10.0.0.9"),
                 .destination = ip("98.1.0.9"),
                 .protocol = 1,
                 .payload = icmp_echo(type, 1)});
  };
  for (const uint8_t type : {3, 4, 5, 11, 12, 40}) expect_silence(message(type), DropReason::no_route);
  expect_silence(packet("98.1.0.9", 64, 26, 0x2001), DropReason::no_route);
  expect_silence(packet("98.1.0.9", 64, 26, 0x1fff), DropReason::no_route);
  expect_silence(packet("10.1.0.255"), DropReason::multicast);
  Bytes from_nowhere = packet("98.1.0.9");
  set(from_nowhere, 12, ip("97.0.0.1"), 4);
  fix_ipv4_checksum(from_nowhere);
  expect_silence(from_nowhere, DropReason::no_route);
  set(from_nowhere, 12, ip("10.0.0.255"), 4);
  fix_ipv4_checksum(from_nowhere);
  expect_silence(from_nowhere, DropReason::no_route);
  EXPECT_EQ(world.totals().icmp_errors_unsent, 2u);
  // Queries and first fragments are reported.
  expect_error(message(8), DropReason::no_route, 3, 0);
  expect_error(packet("98.1.0.9", 64, 26, 0x2000), DropReason::no_route, 3, 0);
}

TEST_F(IcmpErrorTest, TheSourceIsOnTheWayBack) {
  // The sender's network is behind another interface: an unnumbered one falls back to where it was met.
  const uint32_t vlan = world.add_vlan(2, 5);
  world.set_route("30.0.0.0/8", {.oif = vlan, .gateway = ip("10.2.0.9")});
  world.set_neighbour(vlan, ip("10.2.0.9"), kNextHop);
  Bytes sent = packet("98.1.0.9");
  set(sent, 12, ip("30.1.1.1"), 4);
  fix_ipv4_checksum(sent);
  Bytes said = world.forwarded(0, frame(sent), 2);
  ASSERT_GT(said.size(), 38u);
  EXPECT_EQ(get(said, 30, 4), ip("10.0.0.1"));
  world.add_address(vlan, "10.2.0.1/24");
  said = world.forwarded(0, frame(sent), 2);
  ASSERT_GT(said.size(), 38u);
  EXPECT_EQ(get(said, 30, 4), ip("10.2.0.1"));
  EXPECT_EQ(get(said, 34, 4), ip("30.1.1.1"));
}

TEST_F(IcmpErrorTest, NeighboursThatDoNotAnswer) {
  const Bytes sent = packet("10.1.0.8");
  world.put(0, frame(sent));
  world.step();
  EXPECT_EQ(world.totals().parked, 1u);
  world.tell(ControlMessage::Type::neighbour_failed, world.port(1), ip("10.1.0.8"));
  world.step();
  const Bytes said = world.take(0).value_or(Bytes(64));
  EXPECT_EQ(hex(said), hex(error(one_hop_further(sent), 3, 1, 0, ip("10.0.0.1"), get(said, 18, 2))));
  // Our own echo reply whose receiver cannot be found is nobody's to hear of.
  world.put(0, frame(ipv4({.source = ip("10.1.0.7"),
                           .destination = ip("10.0.0.1"),
                           .protocol = 1,
                           .payload = icmp_echo(8, 1)})));
  world.step();
  EXPECT_EQ(world.totals().parked, 1u);
  world.tell(ControlMessage::Type::neighbour_failed, world.port(1), ip("10.1.0.7"));
  world.step();
  EXPECT_EQ(world.drops(DropReason::neighbour_failed), 2u);
  EXPECT_EQ(world.totals().icmp_errors_sent, 1u);
}

TEST_F(IcmpErrorTest, RatesOfOneInterfaceAndOfAll) {
  for (int i = 0; i < 64; ++i) world.put(0, frame(packet("98.1.0.9")));
  world.step();
  EXPECT_EQ(world.take_all(0).size(), ErrorLimit::kInterfaceBurst);
  EXPECT_EQ(world.totals().icmp_errors_limited, 64 - ErrorLimit::kInterfaceBurst);
  EXPECT_EQ(world.drops(DropReason::no_route), 64u);
  world.pass(9);
  EXPECT_EQ(world.dropped(0, frame(packet("98.1.0.9"))), DropReason::no_route);
  EXPECT_TRUE(world.take_all(0).empty());
  world.pass(1);
  EXPECT_EQ(world.forwarded(0, frame(packet("98.1.0.9")), 0).size(), 14u + 28 + 46);
  world.pass(5000);
  // Seven interfaces would have 70, all of them have 50.
  for (uint16_t vid = 1; vid <= 7; ++vid) world.add_vlan(0, vid);
  for (uint16_t vid = 1; vid <= 7; ++vid)
    for (int i = 0; i < 9; ++i)
      world.put(0, ethernet(kPort0, kHost, {{0x8100, vid}}, 0x0800, packet("98.1.0.9")));
  world.step();
  EXPECT_EQ(world.take_all(0).size(), ErrorLimit::kBurst);
}

class NoMbufs : public IcmpErrorTest {
 protected:
  NoMbufs() : IcmpErrorTest({.originate_mbufs = 3}) {}
};

TEST_F(NoMbufs, AreCountedOnce) {
  for (int i = 0; i < 5; ++i) world.put(0, frame(packet("98.1.0.9")));
  world.step();
  EXPECT_EQ(world.drops(DropReason::no_route), 5u);
  EXPECT_EQ(world.drops(DropReason::no_mbuf), 0u);
  EXPECT_EQ(world.totals().icmp_errors_sent, 3u);
  EXPECT_EQ(world.totals().icmp_errors_unsent, 2u);
}

}  // namespace
}  // namespace mayfly::testing
