// SPDX-License-Identifier: BSD-3-Clause
// veth pairs: frames that cross within a loop, between namespaces, and in circles.
#include <gtest/gtest.h>

#include "world.hpp"

namespace mayfly::testing {
namespace {

constexpr Mac kHost = 0x0a0000000001;
constexpr Mac kPort0 = 0x020000000001;
constexpr Mac kPort1 = 0x020000000002;
constexpr Mac kNextHop = 0x0a0000000002;

// port0 10.0.0.1/24 -- veth 10.5.0.1/24 | 10.5.0.2/24 in another namespace -- VLAN 5 of port1, 10.1.0.1/24
class Veth : public ::testing::Test {
 protected:
  Veth()
      : other(world.add_netns()),
        ends(world.add_veth(nullptr, &other)),
        out(world.add_vlan(1, 5, 0, 0x8100, 0, &other)) {
    world.set_address(world.port(0), "10.0.0.1/24");
    world.set_address(ends[0], "10.5.0.1/24");
    world.set_address(ends[1], "10.5.0.2/24");
    world.set_address(out, "10.1.0.1/24");
    world.set_route("10.1.0.0/24", {.oif = ends[0], .gateway = ip("10.5.0.2")});
    world.set_route("10.0.0.0/24", {.oif = ends[1], .gateway = ip("10.5.0.1")}, &other);
    world.set_neighbour(world.port(0), ip("10.0.0.9"), kHost);
    world.set_neighbour(out, ip("10.1.0.9"), kNextHop);
  }
  void know_each_other() {
    world.set_neighbour(ends[0], ip("10.5.0.2"), 0x020000000102);
    world.set_neighbour(ends[1], ip("10.5.0.1"), 0x020000000101);
  }
  Bytes packet(uint8_t ttl = 64) {
    return ipv4({.source = ip("10.0.0.9"), .destination = ip("10.1.0.9"), .ttl = ttl});
  }
  Bytes frame(const Bytes& packet) { return ethernet(kPort0, kHost, {}, 0x0800, packet); }

  World world;
  Netns& other;
  const std::array<uint32_t, 2> ends;
  const uint32_t out;
};

TEST_F(Veth, PacketsCrossInOneLoop) {
  know_each_other();
  EXPECT_EQ(
      hex(world.forwarded(0, frame(packet()), 1)),
      hex(ethernet(kNextHop, kPort1, {{0x8100, 5}}, 0x0800, one_hop_further(one_hop_further(packet())))));
  const InterfaceSums left = world.table().sums(ends[0]);
  const InterfaceSums right = world.table().sums(ends[1]);
  EXPECT_EQ(left.tx_packets, 1u);
  EXPECT_EQ(left.tx_bytes, 60u);
  EXPECT_EQ(right.rx_packets, 1u);
  EXPECT_EQ(right.rx_bytes, 60u);
  EXPECT_EQ(world.totals().veth_crossings, 1u);
  EXPECT_EQ(world.totals().rx, 2u);
  EXPECT_EQ(world.totals().tx, 2u);
}

TEST_F(Veth, ErrorsComeBack) {
  know_each_other();
  const Bytes said = world.forwarded(0, frame(packet(2)), 0);
  ASSERT_GT(said.size(), 42u);
  EXPECT_EQ(get(said, 26, 4), ip("10.5.0.2"));
  EXPECT_EQ(said[34], 11);
  EXPECT_EQ(said[22], 63) << "it crossed back";
  EXPECT_EQ(world.totals().veth_crossings, 2u);
}

TEST_F(Veth, ArpAcross) {
  world.put(0, frame(packet()));
  world.step();
  EXPECT_EQ(world.totals().parked, 1u);
  const auto wanted = world.heard();
  ASSERT_TRUE(wanted.has_value());
  EXPECT_EQ(wanted->address, IpAddress(ip("10.5.0.2")));
  world.tell(ControlMessage::Type::ask_neighbour, ends[0], ip("10.5.0.2"), kBroadcastMac, ip("10.5.0.1"));
  world.set_neighbour(ends[0], ip("10.5.0.2"), 0, NeighbourState::kIncomplete);
  world.step();
  // The other end learns who asks, we learn the answer: request and reply crossed in one loop.
  const auto asker = world.heard();
  ASSERT_TRUE(asker.has_value());
  EXPECT_EQ(asker->ifindex, ends[1]);
  EXPECT_EQ(asker->mac, 0x020000000101u);
  const auto answer = world.heard();
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->ifindex, ends[0]);
  EXPECT_EQ(answer->mac, 0x020000000102u);
  EXPECT_TRUE(answer->solicited);
  know_each_other();
  world.tell(ControlMessage::Type::neighbour_resolved, ends[0], ip("10.5.0.2"));
  world.step();
  EXPECT_EQ(world.take_all(1).size(), 1u);
}

// Every message about them was lost: one tick finds all neighbours at once.
TEST(VethBurst, ATickSendsAllThatIsParked) {
  constexpr uint32_t kNeighbours = 200;
  constexpr uint32_t kPackets = kNeighbours * Parking::kPacketsPerNeighbour;
  World world({.parked_limit = 2 * kPackets + 2});
  Netns& other = world.add_netns();
  const auto ends = world.add_veth(nullptr, &other);
  world.set_address(ends[0], "10.5.0.1/16");
  world.set_address(ends[1], "10.5.255.1/16");
  world.set_route("10.5.1.0/24", {.type = RouteType::kBlackhole}, &other);
  const auto neighbour = [](uint32_t n) { return ip("10.5.1.1") + n; };
  for (uint32_t n = 0; n < kPackets; ++n) {
    const Bytes packet = ipv4({.source = ip("10.0.0.9"), .destination = neighbour(n % kNeighbours)});
    world.put(0, ethernet(kPort0, kHost, {}, 0x0800, packet));
    world.step();
  }
  ASSERT_EQ(world.totals().parked, kPackets);
  for (uint32_t n = 0; n < kNeighbours; ++n) world.set_neighbour(ends[0], neighbour(n), 0x020000000102);
  world.pass(1);
  EXPECT_EQ(world.totals().parked, 0u);
  EXPECT_EQ(world.totals().veth_crossings, kPackets);
  EXPECT_EQ(world.drops(DropReason::tx_full), 0u);
  EXPECT_EQ(world.drops(DropReason::blackhole), kPackets);
}

TEST_F(Veth, TheOtherEndIsDownOrAnotherStation) {
  know_each_other();
  world.set_up(ends[1], false);
  EXPECT_EQ(world.dropped(0, frame(packet())), DropReason::interface_down);
  EXPECT_EQ(world.table().sums(ends[0]).tx_dropped, 1u);
  EXPECT_EQ(world.table().sums(ends[0]).tx_packets, 0u);
  world.set_up(ends[1], true);
  world.set_neighbour(ends[0], ip("10.5.0.2"), 0x020000000177);
  EXPECT_EQ(world.dropped(0, frame(packet())), DropReason::other_host);
  EXPECT_EQ(world.table().sums(ends[1]).rx_dropped, 1u);
}

TEST_F(Veth, CirclesEnd) {
  // Both ends route the destination to each other.
  know_each_other();
  world.set_route("66.0.0.0/8", {.oif = ends[0], .gateway = ip("10.5.0.2")});
  world.set_route("66.0.0.0/8", {.oif = ends[1], .gateway = ip("10.5.0.1")}, &other);
  const Bytes lost = ipv4({.source = ip("10.0.0.9"), .destination = ip("66.0.0.9")});
  EXPECT_EQ(world.dropped(0, frame(lost)), DropReason::veth_loop);
  EXPECT_EQ(world.totals().veth_crossings, 8u);
  EXPECT_EQ(world.table().sums(ends[0]).tx_packets, 4u);
  EXPECT_EQ(world.dropped_by(ends[0], DropReason::veth_loop), 1u);
  for (int i = 0; i < 64; ++i) world.put(0, frame(i % 2 == 0 ? lost : packet()));
  world.step();
  EXPECT_EQ(world.drops(DropReason::veth_loop), 33u);
  EXPECT_EQ(world.take_all(1).size(), 32u);
}

TEST_F(Veth, Ipv6AndNeighbourDiscoveryAcross) {
  world.add_address(world.port(0), "2001:db8::1/64");
  world.add_address(out, "2001:db8:1::1/64");
  const Ipv6 far = link_local_of(0x020000000102);
  world.set_route6("2001:db8:1::/64", {.oif = ends[0], .gateway = far});
  world.set_neighbour(out, ip6("2001:db8:1::9"), kNextHop);
  const Bytes sent = ipv6({.source = ip6("2001:db8::9"), .destination = ip6("2001:db8:1::9")});
  world.put(0, ethernet(kPort0, kHost, {}, 0x86dd, sent));
  world.step();
  ASSERT_EQ(world.totals().parked, 1u);
  while (world.heard()) {
  }
  world.set_neighbour(ends[0], far, 0, NeighbourState::kIncomplete);
  world.tell(ControlMessage::Type::ask_neighbour, ends[0], IpAddress(far), kBroadcastMac,
             IpAddress(link_local_of(0x020000000101)));
  world.step();
  const auto asker = world.heard();
  ASSERT_TRUE(asker.has_value());
  EXPECT_EQ(asker->ifindex, ends[1]);
  EXPECT_EQ(asker->address, IpAddress(link_local_of(0x020000000101)));
  const auto answer = world.heard();
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->address, IpAddress(far));
  EXPECT_EQ(answer->mac, 0x020000000102u);
  world.set_neighbour(ends[0], far, 0x020000000102);
  world.pass(1);
  EXPECT_EQ(hex(world.take(1).value_or(Bytes{})),
            hex(ethernet(kNextHop, kPort1, {{0x8100, 5}}, 0x86dd, one_hop_further6(one_hop_further6(sent)))));
}

}  // namespace
}  // namespace mayfly::testing
