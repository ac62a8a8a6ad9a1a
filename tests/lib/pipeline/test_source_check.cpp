// SPDX-License-Identifier: BSD-3-Clause
// Sources that are our own addresses, and rp_filter strict; proxy ARP and unnumbered interfaces, which the
// same address plans need.
#include <gtest/gtest.h>

#include "world.hpp"

namespace mayfly::testing {
namespace {

constexpr Mac kHost = 0x0a0000000001;
constexpr Mac kPort0 = 0x020000000001;
constexpr Mac kNextHop = 0x0a0000000002;

class SourceCheck : public ::testing::Test {
 protected:
  SourceCheck() {
    world.set_address(world.port(0), "10.0.0.1/24");
    world.set_address(world.port(1), "10.1.0.1/24");
    world.set_neighbour(world.port(1), ip("10.1.0.9"), kNextHop);
  }

  DropReason from(const char* source) {
    const DropReason reason = world.dropped(
        0, ethernet(kPort0, kHost, {}, 0x0800, ipv4({.source = ip(source), .destination = ip("10.1.0.9")})));
    world.take_all(0);
    world.take_all(1);
    return reason;
  }
  DropReason from6(const char* source, const char* to = "2001:db8:1::9") {
    const DropReason reason = world.dropped(
        0, ethernet(kPort0, kHost, {}, 0x86dd, ipv6({.source = ip6(source), .destination = ip6(to)})));
    world.take_all(0);
    world.take_all(1);
    return reason;
  }

  World world;
};

TEST_F(SourceCheck, AddressesOfTheIngressAreForged) {
  EXPECT_EQ(from("10.0.0.1"), DropReason::spoofed_source);
  EXPECT_EQ(from("10.0.0.2"), DropReason::count);
  EXPECT_EQ(world.dropped_by(world.port(0), DropReason::spoofed_source), 1u);
  for (int i = 0; i < 10; ++i) world.add_address(world.port(0), fmt::format("10.9.{}.1/24", i).c_str());
  EXPECT_EQ(from("10.9.9.1"), DropReason::spoofed_source) << "a long list is looked up";
  EXPECT_EQ(from("10.1.0.1"), DropReason::spoofed_source);
  EXPECT_EQ(from("10.9.9.2"), DropReason::count);
}

TEST_F(SourceCheck, StrictAsksWhereTheSourceIsRouted) {
  EXPECT_EQ(from("10.1.0.7"), DropReason::count);
  EXPECT_EQ(from("77.0.0.1"), DropReason::count);
  world.set_flag(world.port(0), Interface::kRpFilterStrict);
  EXPECT_EQ(from("10.0.0.2"), DropReason::count);
  EXPECT_EQ(from("10.1.0.7"), DropReason::rp_filter);
  EXPECT_EQ(from("77.0.0.1"), DropReason::rp_filter);
  EXPECT_EQ(from("10.0.0.255"), DropReason::rp_filter);
  EXPECT_EQ(from("10.1.0.1"), DropReason::spoofed_source);
  world.set_route("77.0.0.0/8", {.oif = world.port(0), .gateway = ip("10.0.0.9")});
  world.set_route("78.0.0.0/8", {.type = RouteType::kBlackhole});
  EXPECT_EQ(from("77.0.0.1"), DropReason::count);
  EXPECT_EQ(from("78.0.0.1"), DropReason::rp_filter);
  EXPECT_EQ(world.totals().icmp_errors_sent, 0u) << "a forger is told nothing";
}

TEST_F(SourceCheck, StrictInIpv6LetsLinkLocalSourcesPass) {
  world.add_address(world.port(0), "2001:db8::1/64");
  world.add_address(world.port(1), "2001:db8:1::1/64");
  world.set_neighbour(world.port(1), ip6("2001:db8:1::9"), kNextHop);
  EXPECT_EQ(from6("2001:db8:1::5"), DropReason::count);
  EXPECT_EQ(from6("2001:db8::1"), DropReason::spoofed_source);
  world.set_flag(world.port(0), Interface::kRpFilterStrict);
  EXPECT_EQ(from6("2001:db8::5"), DropReason::count);
  EXPECT_EQ(from6("2001:db8:1::5"), DropReason::rp_filter);
  EXPECT_EQ(from6("2001:db8:1::1"), DropReason::spoofed_source);
  EXPECT_EQ(from6("fe80::7"), DropReason::beyond_scope);
}

TEST_F(SourceCheck, ManyPacketsOfSeveralNamespaces) {
  Netns& other = world.add_netns();
  const uint32_t vlan = world.add_vlan(0, 5, 0, 0x8100, 0, &other);
  const uint32_t out = world.add_vlan(2, 6, 0, 0x8100, 0, &other);
  world.set_address(out, "10.1.0.1/24");
  world.set_neighbour(out, ip("10.1.0.9"), kNextHop);
  world.set_route("10.0.0.0/24", {.oif = vlan}, &other);
  world.set_flag(vlan, Interface::kRpFilterStrict);
  world.set_flag(world.port(0), Interface::kRpFilterStrict);
  for (uint32_t i = 0; i < 60; ++i)
    world.put(0,
              ethernet(kPort0, kHost, i % 2 != 0 ? std::vector<Tag>{{0x8100, 5}} : std::vector<Tag>{}, 0x0800,
                       ipv4({.source = i % 3 == 0 ? ip("10.1.0.7") : ip("10.0.0.7"),
                             .destination = ip("10.1.0.9")})));
  world.step();
  EXPECT_EQ(world.drops(DropReason::rp_filter), 20u);
  EXPECT_EQ(world.dropped_by(vlan, DropReason::rp_filter), 10u);
  EXPECT_EQ(world.take_all(1).size(), 20u);
  EXPECT_EQ(world.take_all(2).size(), 20u);
}

class Access : public ::testing::Test {
 protected:
  // Two clients, each in a VLAN of its own that borrows the gateway address of a dummy.
  Access() : gateway(world.add_dummy()), left(world.add_vlan(0, 1)), right(world.add_vlan(0, 2)) {
    world.set_address(gateway, "10.0.0.1/24");
    for (const uint32_t vlan : {left, right}) world.set_unnumbered(vlan, gateway);
    world.set_route("10.0.0.5/32", {.oif = left});
    world.set_route("10.0.0.6/32", {.oif = right});
    world.set_flag(left, Interface::kProxyArp);
  }

  Bytes request(const char* sender, const char* target) {
    return ethernet(kBroadcastMac, kHost, {{0x8100, 1}}, 0x0806, arp(1, kHost, ip(sender), 0, ip(target)));
  }
  std::string reply(const char* sender, const char* target) {
    return hex(ethernet(kHost, kPort0, {{0x8100, 1}}, 0x0806, arp(2, kPort0, ip(target), kHost, ip(sender))));
  }

  World world;
  const uint32_t gateway, left, right;
};

TEST_F(Access, TheBorrowedAddressAndWhatIsElsewhereAreAnswered) {
  EXPECT_EQ(hex(world.forwarded(0, request("10.0.0.5", "10.0.0.1"), 0)), reply("10.0.0.5", "10.0.0.1"));
  EXPECT_EQ(hex(world.forwarded(0, request("10.0.0.5", "10.0.0.6"), 0)), reply("10.0.0.5", "10.0.0.6"));
  EXPECT_EQ(hex(world.forwarded(0, request("10.0.0.5", "10.0.0.77"), 0)), reply("10.0.0.5", "10.0.0.77"));
  const auto learned = world.heard();
  ASSERT_TRUE(learned.has_value());
  EXPECT_EQ(learned->address, IpAddress(ip("10.0.0.5")));
  EXPECT_TRUE(learned->creates);
}

TEST_F(Access, WhoIsOnTheLinkItselfAndWhoProbesAreNot) {
  EXPECT_EQ(world.dropped(0, request("10.0.0.6", "10.0.0.5")), DropReason::arp_other_host)
      << "same interface";
  EXPECT_EQ(world.dropped(0, request("10.0.0.6", "10.0.0.6")), DropReason::arp_other_host) << "gratuitous";
  EXPECT_EQ(world.dropped(0, request("0.0.0.0", "10.0.0.6")), DropReason::arp_other_host) << "a probe";
  EXPECT_EQ(world.dropped(0, request("10.0.0.5", "99.0.0.1")), DropReason::arp_other_host) << "no route";
  world.set_flag(left, Interface::kProxyArp, false);
  EXPECT_EQ(world.dropped(0, request("10.0.0.5", "10.0.0.6")), DropReason::arp_other_host);
}

TEST_F(Access, StrictHoldsForWhoAsks) {
  world.set_flag(left, Interface::kRpFilterStrict);
  EXPECT_EQ(world.dropped(0, request("10.0.0.6", "10.0.0.1")), DropReason::rp_filter);
  EXPECT_EQ(hex(world.forwarded(0, request("10.0.0.5", "10.0.0.1"), 0)), reply("10.0.0.5", "10.0.0.1"));
}

TEST_F(Access, ClientsReachEachOther) {
  const Bytes sent = ipv4({.source = ip("10.0.0.5"), .destination = ip("10.0.0.6")});
  world.put(0, ethernet(kPort0, kHost, {{0x8100, 1}}, 0x0800, sent));
  world.step();
  EXPECT_EQ(world.totals().parked, 1u) << "the borrowed address is one to ask from";
  world.set_neighbour(right, ip("10.0.0.6"), kNextHop);
  world.pass(1);
  EXPECT_EQ(hex(world.take(0).value_or(Bytes{})),
            hex(ethernet(kNextHop, kPort0, {{0x8100, 2}}, 0x0800, one_hop_further(sent))));
}

}  // namespace
}  // namespace mayfly::testing
