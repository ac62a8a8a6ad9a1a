// SPDX-License-Identifier: BSD-3-Clause
// Which interface a frame belongs to, and what happens to frames that belong to none.
#include <gtest/gtest.h>

#include "world.hpp"

namespace mayfly::testing {
namespace {

constexpr Mac kHost = 0x0a0000000001;
constexpr Mac kPort0 = 0x020000000001;
constexpr Mac kPort1 = 0x020000000002;
constexpr Mac kNextHop = 0x0a0000000002;

Bytes packet() {
  return ipv4({.source = ip("10.9.9.9"), .destination = ip("10.1.0.9")});
}

// Everything is routed to a host behind port1, so that what is accepted leaves there.
class Classify : public ::testing::Test {
 protected:
  Classify() {
    world.set_address(world.port(1), "10.1.0.1/24");
    world.set_neighbour(world.port(1), ip("10.1.0.9"), kNextHop);
  }

  Bytes frame(const std::vector<Tag>& tags, Mac to = kPort0) {
    return ethernet(to, kHost, tags, 0x0800, packet());
  }
  Bytes accepted() { return ethernet(kNextHop, kPort1, {}, 0x0800, one_hop_further(packet())); }
  void expect_accepted(const Bytes& in, uint32_t ifindex) {
    const uint64_t before = world.table().sums(ifindex).rx_packets;
    EXPECT_EQ(hex(world.forwarded(0, in, 1)), hex(accepted()));
    EXPECT_EQ(world.table().sums(ifindex).rx_packets, before + 1);
    EXPECT_EQ(world.table().sums(ifindex).last_rx_ns, world.now_ns());
  }

  World world;
};

TEST_F(Classify, UntaggedFramesArePort) {
  expect_accepted(frame({}), world.port(0));
  EXPECT_EQ(world.table().sums(world.port(0)).rx_bytes, frame({}).size());
}

TEST_F(Classify, TagsSelectTheInterface) {
  const uint32_t c_tag = world.add_vlan(0, 100);
  const uint32_t s_tag = world.add_vlan(0, 100, 0, 0x88a8);
  const uint32_t old_s_tag = world.add_vlan(0, 100, 0, 0x9100);
  const uint32_t two_c = world.add_vlan(0, 100, 7);
  const uint32_t two_s = world.add_vlan(0, 100, 7, 0x88a8);
  expect_accepted(frame({{0x8100, 100}}), c_tag);
  expect_accepted(frame({{0x88a8, 100}}), s_tag);
  expect_accepted(frame({{0x9100, 100}}), old_s_tag);
  expect_accepted(frame({{0x8100, 100}, {0x8100, 7}}), two_c);
  expect_accepted(frame({{0x88a8, 100}, {0x8100, 7}}), two_s);
  EXPECT_EQ(world.table().sums(two_s).rx_bytes, frame({}).size() + 8);
}

TEST_F(Classify, PriorityBitsAreIgnored) {
  const uint32_t vlan = world.add_vlan(0, 100);
  const uint32_t inner = world.add_vlan(0, 100, 7);
  expect_accepted(frame({{0x8100, 0xf000 | 100}}), vlan);
  expect_accepted(frame({{0x8100, 0x3000 | 100}, {0x8100, 0xe000 | 7}}), inner);
}

TEST_F(Classify, PriorityTagsAreSkipped) {
  const uint32_t vlan = world.add_vlan(0, 100);
  const uint32_t inner = world.add_vlan(0, 100, 7);
  expect_accepted(frame({{0x8100, 0xa000}}), world.port(0));
  expect_accepted(frame({{0x88a8, 0}}), world.port(0));
  expect_accepted(frame({{0x8100, 0xa000}, {0x8100, 100}}), vlan);
  expect_accepted(frame({{0x8100, 100}, {0x8100, 0x2000}}), vlan);
  expect_accepted(frame({{0x8100, 0}, {0x8100, 100}, {0x8100, 0}, {0x8100, 7}}), inner);
}

TEST_F(Classify, UnknownTagsAreThePortsDrops) {
  world.add_vlan(0, 100);
  world.add_vlan(0, 200, 7);
  const std::vector<std::vector<Tag>> unknown = {
      {{0x8100, 101}},
      {{0x88a8, 100}},
      {{0x8100, 4095}},
      {{0x8100, 200}},
      {{0x8100, 100}, {0x8100, 7}},
      {{0x8100, 200}, {0x8100, 8}},
      {{0x8100, 200}, {0x88a8, 7}},
      {{0x8100, 200}, {0x8100, 7}, {0x8100, 9}},
      {{0x8100, 0}, {0x8100, 0}, {0x8100, 0}, {0x8100, 0}, {0x8100, 0}},
  };
  for (const auto& tags : unknown) EXPECT_EQ(world.dropped(0, frame(tags)), DropReason::unknown_tag);
  EXPECT_EQ(world.dropped_by(world.port(0), DropReason::unknown_tag), unknown.size());
  EXPECT_EQ(world.table().sums(world.port(0)).rx_dropped, unknown.size());
}

TEST_F(Classify, TheSameTagsOnAnotherPortAreAnotherInterface) {
  world.add_vlan(0, 100);
  EXPECT_EQ(world.dropped(2, ethernet(0x020000000003, kHost, {{0x8100, 100}}, 0x0800, packet())),
            DropReason::unknown_tag);
}

TEST_F(Classify, DeletedInterfacesReceiveNothing) {
  const uint32_t vlan = world.add_vlan(0, 100);
  world.retire(vlan);
  EXPECT_EQ(world.dropped(0, frame({{0x8100, 100}})), DropReason::unknown_tag);
  EXPECT_TRUE(world.reclaimed());
  EXPECT_EQ(world.add_vlan(0, 100), vlan);
  expect_accepted(frame({{0x8100, 100}}), vlan);
}

TEST_F(Classify, DownInterfacesDrop) {
  const uint32_t vlan = world.add_vlan(0, 100);
  world.set_up(vlan, false);
  EXPECT_EQ(world.dropped(0, frame({{0x8100, 100}})), DropReason::interface_down);
  EXPECT_EQ(world.table().sums(vlan).rx_dropped, 1u);
  world.set_up(vlan, true);
  world.set_up(world.port(0), false);
  EXPECT_EQ(world.dropped(0, frame({{0x8100, 100}})), DropReason::port_down);
  EXPECT_EQ(world.dropped(0, frame({})), DropReason::port_down);
  EXPECT_EQ(world.table().sums(world.port(0)).rx_dropped, 2u);
}

TEST_F(Classify, OtherHostsFramesAreDropped) {
  EXPECT_EQ(world.dropped(0, frame({}, kPort1)), DropReason::other_host);
  EXPECT_EQ(world.dropped(0, frame({}, kBroadcastMac)), DropReason::multicast);
  EXPECT_EQ(world.dropped(0, frame({}, 0x01005e000001)), DropReason::multicast);
}

TEST_F(Classify, OtherProtocolsAreDropped) {
  EXPECT_EQ(world.dropped(0, ethernet(kPort0, kHost, {}, 0x0026, packet())), DropReason::unknown_protocol);
}

TEST_F(Classify, ShortFramesAreTruncated) {
  const uint32_t vlan = world.add_vlan(0, 100);
  const Bytes whole = frame({{0x8100, 100}});
  for (size_t length = 1; length < 18; ++length)
    EXPECT_EQ(world.dropped(0, Bytes(whole.begin(), whole.begin() + static_cast<long>(length))),
              DropReason::truncated)
        << length;
  for (size_t length = 18; length < 38; ++length)
    EXPECT_EQ(world.dropped(0, Bytes(whole.begin(), whole.begin() + static_cast<long>(length))),
              DropReason::truncated)
        << length;
  EXPECT_EQ(world.table().sums(world.port(0)).rx_dropped, 17u);
  EXPECT_EQ(world.table().sums(vlan).rx_dropped, 20u);
}

TEST_F(Classify, HeadersInLaterSegmentsAreTruncated) {
  const Bytes whole = frame({});
  for (const long cut : {10, 14, 20, 33}) {
    const uint64_t before = world.drops(DropReason::truncated);
    world.put_segments(0,
                       {Bytes(whole.begin(), whole.begin() + cut), Bytes(whole.begin() + cut, whole.end())});
    world.step();
    EXPECT_EQ(world.drops(DropReason::truncated), before + 1) << cut;
  }
}

TEST_F(Classify, AFullVectorOfMixedFrames) {
  const uint32_t vlan = world.add_vlan(0, 100);
  for (uint32_t i = 0; i < 100; ++i) {
    if (i % 3 == 0)
      world.put(0, frame({}));
    else if (i % 3 == 1)
      world.put(0, frame({{0x8100, 100}}));
    else
      world.put(0, frame({{0x8100, 999}}));
  }
  world.step();
  EXPECT_EQ(world.totals().rx, 64u);
  world.step();
  EXPECT_EQ(world.totals().rx, 100u);
  EXPECT_EQ(world.take_all(1).size(), 67u);
  EXPECT_EQ(world.table().sums(vlan).rx_packets, 33u);
  EXPECT_EQ(world.table().sums(world.port(0)).rx_packets, 67u);
  EXPECT_EQ(world.drops(DropReason::unknown_tag), 33u);
}

}  // namespace
}  // namespace mayfly::testing
