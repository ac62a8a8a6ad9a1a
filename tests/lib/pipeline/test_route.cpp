// SPDX-License-Identifier: BSD-3-Clause
// Forwarding: routes, TTL, MTU, and the exact frames that leave by each kind of interface.
#include <gtest/gtest.h>

#include "world.hpp"

namespace mayfly::testing {
namespace {

constexpr Mac kHost = 0x0a0000000001;
constexpr Mac kPort0 = 0x020000000001;
constexpr Mac kPort1 = 0x020000000002;
constexpr Mac kNextHop = 0x0a0000000002;

class RouteTest : public ::testing::Test {
 protected:
  RouteTest() {
    world.set_address(world.port(1), "10.1.0.1/24");
    world.set_neighbour(world.port(1), ip("10.1.0.9"), kNextHop);
  }

  Bytes packet(const char* to, uint8_t ttl = 64, size_t payload = 26) {
    return ipv4({.source = ip("10.9.9.9"), .destination = ip(to), .ttl = ttl, .payload = Bytes(payload, 1)});
  }
  Bytes frame(const Bytes& packet, const std::vector<Tag>& tags = {}) {
    return ethernet(kPort0, kHost, tags, 0x0800, packet);
  }
  DropReason dropped(const char* to) { return world.dropped(0, frame(packet(to))); }

  World world;
};

TEST_F(RouteTest, BetweenAllKindsOfTags) {
  const std::vector<std::vector<Tag>> ways = {
      {}, {{0x8100, 5}}, {{0x88a8, 5}}, {{0x8100, 5}, {0x8100, 9}}, {{0x88a8, 5}, {0x8100, 9}}};
  std::vector<uint32_t> interfaces;
  for (size_t way = 0; way < ways.size(); ++way) {
    const auto& tags = ways[way];
    if (!tags.empty())
      for (const uint16_t port : {0, 1}) {
        const uint16_t inner = tags.size() == 2 ? tags[1].control : 0;
        const uint32_t ifindex = world.add_vlan(port, tags[0].control, inner, tags[0].protocol);
        if (port == 1) interfaces.push_back(ifindex);
      }
    else
      interfaces.push_back(world.port(1));
    const std::string subnet = fmt::format("10.{}.0.1/24", 1 + way);
    if (way != 0) world.set_address(interfaces.back(), subnet.c_str());
    world.set_neighbour(interfaces.back(), ip("10.1.0.9") + (static_cast<uint32_t>(way) << 16),
                        kNextHop + way);
  }
  for (const auto& in : ways)
    for (size_t way = 0; way < ways.size(); ++way) {
      const Bytes sent = packet(fmt::format("10.{}.0.9", 1 + way).c_str());
      EXPECT_EQ(hex(world.forwarded(0, frame(sent, in), 1)),
                hex(ethernet(kNextHop + way, kPort1, ways[way], 0x0800, one_hop_further(sent))));
    }
  for (size_t way = 0; way < ways.size(); ++way) {
    EXPECT_EQ(world.table().sums(interfaces[way]).tx_packets, ways.size());
    EXPECT_EQ(world.table().sums(interfaces[way]).tx_bytes, ways.size() * (14 + 46 + 4 * ways[way].size()));
  }
}

TEST_F(RouteTest, GatewaysAndLongestPrefix) {
  world.set_neighbour(world.port(1), ip("10.1.0.254"), kNextHop + 7);
  world.set_route("0.0.0.0/0", {.oif = world.port(1), .gateway = ip("10.1.0.254")});
  world.set_route("20.0.0.0/8", {.oif = world.port(1), .gateway = ip("10.1.0.9")});
  const Bytes by_default = packet("8.8.8.8");
  EXPECT_EQ(hex(world.forwarded(0, frame(by_default), 1)),
            hex(ethernet(kNextHop + 7, kPort1, {}, 0x0800, one_hop_further(by_default))));
  const Bytes by_prefix = packet("20.8.8.8");
  EXPECT_EQ(hex(world.forwarded(0, frame(by_prefix), 1)),
            hex(ethernet(kNextHop, kPort1, {}, 0x0800, one_hop_further(by_prefix))));
}

TEST_F(RouteTest, ChecksumAfterEveryTtlAndId) {
  for (uint32_t i = 0; i < 0x10000; i += 129) {
    Bytes sent = packet("10.1.0.9", static_cast<uint8_t>(2 + i % 254));
    set(sent, 4, i, 2);
    fix_ipv4_checksum(sent);
    ASSERT_EQ(hex(world.forwarded(0, frame(sent), 1)),
              hex(ethernet(kNextHop, kPort1, {}, 0x0800, one_hop_further(sent))));
  }
}

TEST_F(RouteTest, TtlRunsOut) {
  EXPECT_EQ(world.dropped(0, frame(packet("10.1.0.9", 1))), DropReason::ttl_exceeded);
  EXPECT_EQ(world.dropped(0, frame(packet("10.1.0.9", 0))), DropReason::ttl_exceeded);
  EXPECT_EQ(world.dropped(0, frame(packet("10.1.0.9", 2))), DropReason::count);
  EXPECT_EQ(world.dropped_by(world.port(0), DropReason::ttl_exceeded), 2u);
}

TEST_F(RouteTest, RoutesThatGoNowhere) {
  EXPECT_EQ(dropped("99.0.0.1"), DropReason::no_route);
  world.set_route("99.1.0.0/16", {.type = RouteType::kBlackhole});
  world.set_route("99.2.0.0/16", {.type = RouteType::kUnreachable});
  world.set_route("99.3.0.0/16", {.type = RouteType::kProhibit});
  EXPECT_EQ(dropped("99.1.0.1"), DropReason::blackhole);
  EXPECT_EQ(dropped("99.2.0.1"), DropReason::unreachable);
  EXPECT_EQ(dropped("99.3.0.1"), DropReason::prohibited);
  EXPECT_EQ(dropped("10.1.0.255"), DropReason::multicast);
  world.erase_route("99.1.0.0/16");
  EXPECT_EQ(dropped("99.1.0.1"), DropReason::no_route);
}

TEST_F(RouteTest, MtuOfTheInterfaceAndOfItsPort) {
  const uint32_t vlan = world.add_vlan(1, 5, 0, 0x8100, 1000);
  world.set_address(vlan, "10.2.0.1/24");
  world.set_neighbour(vlan, ip("10.2.0.9"), kNextHop);
  EXPECT_EQ(world.dropped(0, frame(packet("10.2.0.9", 64, 980))), DropReason::count);
  EXPECT_EQ(world.dropped(0, frame(packet("10.2.0.9", 64, 981))), DropReason::mtu_exceeded);
  EXPECT_EQ(world.dropped_by(vlan, DropReason::mtu_exceeded), 1u);
  EXPECT_EQ(world.table().sums(vlan).tx_dropped, 1u);
  ASSERT_TRUE(world.table().set_mtu(world.port(1), 900).has_value());
  EXPECT_EQ(world.dropped(0, frame(packet("10.2.0.9", 64, 880))), DropReason::count);
  EXPECT_EQ(world.dropped(0, frame(packet("10.2.0.9", 64, 881))), DropReason::mtu_exceeded);
  EXPECT_EQ(world.dropped(0, frame(packet("10.1.0.9", 64, 1481))), DropReason::mtu_exceeded);
}

TEST_F(RouteTest, EgressDown) {
  const uint32_t vlan = world.add_vlan(1, 5);
  world.set_address(vlan, "10.2.0.1/24");
  world.set_neighbour(vlan, ip("10.2.0.9"), kNextHop);
  world.set_up(vlan, false);
  EXPECT_EQ(dropped("10.2.0.9"), DropReason::interface_down);
  EXPECT_EQ(world.table().sums(vlan).tx_dropped, 1u);
  world.set_up(vlan, true);
  EXPECT_EQ(dropped("10.2.0.9"), DropReason::count);
  world.set_up(world.port(1), false);
  EXPECT_EQ(dropped("10.2.0.9"), DropReason::interface_down);
  world.set_up(world.port(1), true);
  world.withdraw_port(1);
  EXPECT_EQ(dropped("10.2.0.9"), DropReason::interface_down);
  world.retire(vlan, false);
  EXPECT_EQ(dropped("10.2.0.9"), DropReason::interface_down);
  EXPECT_EQ(world.dropped_by(world.port(0), DropReason::interface_down), 1u);
}

TEST_F(RouteTest, DummiesSwallow) {
  const uint32_t dummy = world.add_dummy();
  world.set_address(dummy, "10.3.0.1/24");
  world.set_route("30.0.0.0/8", {.oif = dummy});
  EXPECT_EQ(dropped("30.1.1.1"), DropReason::count);
  EXPECT_EQ(dropped("10.3.0.77"), DropReason::count);
  EXPECT_EQ(world.totals().tx, 2u);
  EXPECT_EQ(world.table().sums(dummy).tx_packets, 2u);
  EXPECT_EQ(world.table().sums(dummy).tx_bytes, 120u);
}

TEST_F(RouteTest, NamespacesHaveRoutesOfTheirOwn) {
  Netns& other = world.add_netns();
  const uint32_t in = world.add_vlan(0, 5, 0, 0x8100, 0, &other);
  const uint32_t out = world.add_vlan(2, 6, 0, 0x8100, 0, &other);
  world.set_address(out, "10.1.0.1/24");
  world.set_neighbour(out, ip("10.1.0.9"), kNextHop + 3);
  const Bytes sent = packet("10.1.0.9");
  for (int i = 0; i < 32; ++i) {
    world.put(0, frame(sent));
    world.put(0, frame(sent, {{0x8100, 5}}));
  }
  world.put(0, frame(packet("99.9.9.9"), {{0x8100, 5}}));
  world.step();
  world.step();
  const auto here = world.take_all(1);
  const auto there = world.take_all(2);
  ASSERT_EQ(here.size(), 32u);
  ASSERT_EQ(there.size(), 32u);
  EXPECT_EQ(hex(here[31]), hex(ethernet(kNextHop, kPort1, {}, 0x0800, one_hop_further(sent))));
  EXPECT_EQ(hex(there[31]),
            hex(ethernet(kNextHop + 3, 0x020000000003, {{0x8100, 6}}, 0x0800, one_hop_further(sent))));
  EXPECT_EQ(world.table().sums(in).rx_packets, 33u);
  EXPECT_EQ(world.drops(DropReason::no_route), 1u);
}

TEST_F(RouteTest, NoHeadroom) {
  const uint32_t vlan = world.add_vlan(1, 5, 7);
  world.set_address(vlan, "10.2.0.1/24");
  world.set_neighbour(vlan, ip("10.2.0.9"), kNextHop);
  world.put_segments(0, {frame(packet("10.2.0.9"))}, 7);
  world.step();
  EXPECT_EQ(world.drops(DropReason::no_headroom), 1u);
  world.put_segments(0, {frame(packet("10.2.0.9"))}, 8);
  world.put_segments(0, {frame(packet("10.1.0.9"))}, 0);
  world.step();
  EXPECT_EQ(world.take_all(1).size(), 2u);
}

TEST_F(RouteTest, AFullDeviceDrops) {
  for (uint32_t i = 0; i < kRingFrames + 20; ++i) {
    world.put(0, frame(packet("10.1.0.9")));
    if (i % 50 == 49) world.step();
  }
  world.step();
  EXPECT_EQ(world.drops(DropReason::tx_full), 20u);
  EXPECT_EQ(world.dropped_by(world.port(1), DropReason::tx_full), 20u);
  EXPECT_EQ(world.table().sums(world.port(1)).tx_dropped, 20u);
  EXPECT_EQ(world.table().sums(world.port(1)).tx_packets, kRingFrames);
  EXPECT_EQ(world.take_all(1).size(), kRingFrames);
}

TEST_F(RouteTest, OrderIsKept) {
  for (uint16_t i = 0; i < 100; ++i) {
    Bytes sent = packet(i % 7 == 3 ? "99.9.9.9" : "10.1.0.9");
    set(sent, 4, i, 2);
    fix_ipv4_checksum(sent);
    world.put(0, frame(sent));
  }
  world.step();
  world.step();
  uint64_t last = 0;
  for (const Bytes& out : world.take_all(1)) {
    EXPECT_TRUE(last == 0 || get(out, 18, 2) > last);
    last = get(out, 18, 2);
  }
  EXPECT_EQ(last, 99u);
}

}  // namespace
}  // namespace mayfly::testing
