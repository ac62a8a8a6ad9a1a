// SPDX-License-Identifier: BSD-3-Clause
// ARP: answering, asking, learning.
#include <gtest/gtest.h>

#include "world.hpp"

namespace mayfly::testing {
namespace {

constexpr Mac kHost = 0x0a0000000001;
constexpr Mac kPort0 = 0x020000000001;
constexpr uint16_t kRequest = 1;
constexpr uint16_t kReply = 2;

// A QinQ interface of port0 with 10.0.0.1/24.
class ArpTest : public ::testing::Test {
 protected:
  ArpTest() : vlan(world.add_vlan(0, 100, 7, 0x88a8)) { world.set_address(vlan, "10.0.0.1/24"); }

  const std::vector<Tag> tags = {{0x88a8, 100}, {0x8100, 7}};
  Bytes frame(const Bytes& packet, Mac to = kBroadcastMac) {
    return ethernet(to, kHost, tags, 0x0806, packet);
  }
  Bytes request(const char* sender, const char* target) {
    return frame(arp(kRequest, kHost, ip(sender), 0, ip(target)));
  }
  Bytes reply(const char* sender, const char* target, Mac to = kPort0) {
    return frame(arp(kReply, kHost, ip(sender), kPort0, ip(target)), to);
  }
  void expect_told(const char* address, bool solicited) {
    const auto message = world.heard();
    ASSERT_TRUE(message.has_value());
    EXPECT_EQ(message->type, WorkerMessage::Type::neighbour_seen);
    EXPECT_EQ(message->ifindex, vlan);
    EXPECT_EQ(message->id, world.interface(vlan).id);
    EXPECT_EQ(message->mac, kHost);
    EXPECT_EQ(message->address, IpAddress(ip(address)));
    EXPECT_EQ(message->solicited, solicited);
    EXPECT_EQ(message->creates, !solicited);
    EXPECT_TRUE(message->overrides);
  }

  World world;
  const uint32_t vlan;
};

TEST_F(ArpTest, RequestsForOurAddressAreAnsweredAndTeach) {
  Bytes padded = request("10.0.0.9", "10.0.0.1");
  padded.resize(68);
  EXPECT_EQ(
      hex(world.forwarded(0, padded, 0)),
      hex(ethernet(kHost, kPort0, tags, 0x0806, arp(kReply, kPort0, ip("10.0.0.1"), kHost, ip("10.0.0.9")))));
  expect_told("10.0.0.9", false);
  EXPECT_EQ(world.totals().tx, 1u);
  EXPECT_EQ(world.totals().punted, 0u);
}

TEST_F(ArpTest, DirectRequestsAreAnswered) {
  EXPECT_FALSE(
      world.forwarded(0, frame(arp(kRequest, kHost, ip("10.0.0.9"), kPort0, ip("10.0.0.1")), kPort0), 0)
          .empty());
}

TEST_F(ArpTest, WhatIsKnownIsNotToldAgain) {
  world.set_neighbour(vlan, ip("10.0.0.9"), kHost, NeighbourState::kStale);
  EXPECT_FALSE(world.forwarded(0, request("10.0.0.9", "10.0.0.1"), 0).empty());
  EXPECT_FALSE(world.heard().has_value());
  world.set_neighbour(vlan, ip("10.0.0.9"), kHost + 5, NeighbourState::kStale);
  EXPECT_FALSE(world.forwarded(0, request("10.0.0.9", "10.0.0.1"), 0).empty());
  expect_told("10.0.0.9", false);
}

TEST_F(ArpTest, ProbesAreAnsweredWithoutLearning) {
  EXPECT_EQ(hex(world.forwarded(0, request("0.0.0.0", "10.0.0.1"), 0)),
            hex(ethernet(kHost, kPort0, tags, 0x0806, arp(kReply, kPort0, ip("10.0.0.1"), kHost, 0))));
  EXPECT_FALSE(world.heard().has_value());
}

TEST_F(ArpTest, RequestsForOthersUpdateWhoIsKnown) {
  EXPECT_EQ(world.dropped(0, request("10.0.0.9", "10.0.0.3")), DropReason::arp_other_host);
  EXPECT_FALSE(world.heard().has_value());
  world.set_neighbour(vlan, ip("10.0.0.9"), kHost, NeighbourState::kReachable);
  EXPECT_EQ(world.dropped(0, request("10.0.0.9", "10.0.0.3")), DropReason::arp_other_host);
  EXPECT_FALSE(world.heard().has_value());
  world.set_neighbour(vlan, ip("10.0.0.9"), kHost + 5, NeighbourState::kReachable);
  EXPECT_EQ(world.dropped(0, request("10.0.0.9", "10.0.0.3")), DropReason::count);
  EXPECT_EQ(world.totals().punted, 1u);
  expect_told("10.0.0.9", false);
}

TEST_F(ArpTest, AnotherInterfacesAddressIsNotAnswered) {
  world.set_address(world.port(1), "10.1.0.1/24");
  EXPECT_EQ(world.dropped(0, request("10.0.0.9", "10.1.0.1")), DropReason::arp_other_host);
  EXPECT_EQ(world.dropped(2, ethernet(kBroadcastMac, kHost, {}, 0x0806,
                                      arp(kRequest, kHost, ip("10.0.0.9"), 0, ip("10.0.0.1")))),
            DropReason::arp_other_host);
}

TEST_F(ArpTest, RepliesConfirmWhoWasAsked) {
  EXPECT_EQ(world.dropped(0, reply("10.0.0.9", "10.0.0.1")), DropReason::arp_other_host);
  world.set_neighbour(vlan, ip("10.0.0.9"), 0, NeighbourState::kIncomplete);
  EXPECT_EQ(world.dropped(0, reply("10.0.0.9", "10.0.0.1")), DropReason::count);
  expect_told("10.0.0.9", true);
  world.set_neighbour(vlan, ip("10.0.0.9"), kHost, NeighbourState::kProbe);
  EXPECT_EQ(world.dropped(0, reply("10.0.0.9", "10.0.0.1")), DropReason::count);
  expect_told("10.0.0.9", true);
  EXPECT_EQ(world.totals().punted, 2u);
}

TEST_F(ArpTest, GratuitousPacketsOnlyUpdate) {
  EXPECT_EQ(world.dropped(0, request("10.0.0.9", "10.0.0.9")), DropReason::arp_other_host);
  EXPECT_EQ(world.dropped(0, reply("10.0.0.9", "10.0.0.9", kBroadcastMac)), DropReason::arp_other_host);
  world.set_neighbour(vlan, ip("10.0.0.9"), kHost + 5, NeighbourState::kReachable);
  EXPECT_EQ(world.dropped(0, request("10.0.0.9", "10.0.0.9")), DropReason::count);
  expect_told("10.0.0.9", false);
  EXPECT_EQ(world.dropped(0, reply("10.0.0.9", "10.0.0.9", kBroadcastMac)), DropReason::count);
  expect_told("10.0.0.9", false);
}

TEST_F(ArpTest, MalformedPackets) {
  const Bytes good = arp(kRequest, kHost, ip("10.0.0.9"), 0, ip("10.0.0.1"));
  for (const auto& [at, value] : std::vector<std::pair<size_t, int>>{{1, 6},
                                                                     {2, 0x86},
                                                                     {4, 8},
                                                                     {5, 16},
                                                                     {7, 3},
                                                                     {7, 0},
                                                                     {8, 0x0b},
                                                                     {14, 224},
                                                                     {14, 127},
                                                                     {24, 239},
                                                                     {24, 127}}) {
    Bytes bad = good;
    bad[at] = static_cast<uint8_t>(value);
    EXPECT_EQ(world.dropped(0, frame(bad)), DropReason::arp_invalid) << at << " " << value;
  }
  EXPECT_EQ(world.dropped(0, frame(arp(kRequest, 0, ip("10.0.0.9"), 0, ip("10.0.0.1")))),
            DropReason::arp_invalid);
  EXPECT_EQ(world.dropped(0, frame(arp(kReply, kHost, 0, kPort0, ip("10.0.0.1")), kPort0)),
            DropReason::arp_invalid);
  EXPECT_EQ(world.dropped(0, frame(Bytes(good.begin(), good.end() - 1))), DropReason::truncated);
  EXPECT_FALSE(world.heard().has_value());
}

TEST_F(ArpTest, WhoUsesOurAddressTeachesNothing) {
  EXPECT_EQ(world.dropped(0, request("10.0.0.1", "10.0.0.1")), DropReason::arp_invalid);
  EXPECT_EQ(world.dropped(0, reply("10.0.0.1", "10.0.0.1")), DropReason::arp_invalid);
  EXPECT_FALSE(world.heard().has_value());
}

TEST_F(ArpTest, RequestsAreSentWhenControlAsks) {
  world.tell(ControlMessage::Type::ask_neighbour, vlan, ip("10.0.0.9"), kBroadcastMac, ip("10.0.0.1"));
  world.tell(ControlMessage::Type::ask_neighbour, vlan, ip("10.0.0.9"), kHost, ip("10.0.0.1"));
  world.step();
  EXPECT_EQ(hex(world.take(0).value_or(Bytes{})),
            hex(ethernet(kBroadcastMac, kPort0, tags, 0x0806,
                         arp(kRequest, kPort0, ip("10.0.0.1"), 0, ip("10.0.0.9")))));
  EXPECT_EQ(hex(world.take(0).value_or(Bytes{})),
            hex(ethernet(kHost, kPort0, tags, 0x0806,
                         arp(kRequest, kPort0, ip("10.0.0.1"), kHost, ip("10.0.0.9")))));
  EXPECT_EQ(world.totals().originated, 2u);
  EXPECT_EQ(world.table().sums(vlan).tx_packets, 2u);
}

TEST_F(ArpTest, NothingIsSentForInterfacesThatAreGoneOrDown) {
  world.set_up(vlan, false);
  world.tell(ControlMessage::Type::ask_neighbour, vlan, ip("10.0.0.9"), kBroadcastMac, ip("10.0.0.1"));
  world.step();
  world.set_up(vlan, true);
  world.tell(ControlMessage::Type::ask_neighbour, vlan, ip("10.0.0.9"), kBroadcastMac, ip("10.0.0.1"));
  world.retire(vlan);
  world.step();
  EXPECT_TRUE(world.take_all(0).empty());
  EXPECT_EQ(world.totals().originated, 0u);
}

TEST(ArpPool, AnEmptyPoolIsCounted) {
  World world({.originate_mbufs = 7});
  for (int i = 0; i < 9; ++i)
    world.tell(ControlMessage::Type::ask_neighbour, world.port(0), ip("10.0.0.9"), kBroadcastMac,
               ip("10.0.0.1"));
  world.step();
  EXPECT_EQ(world.drops(DropReason::no_mbuf), 2u);
  EXPECT_EQ(world.totals().originated, 9u);
  EXPECT_EQ(world.take_all(0).size(), 7u);
}

}  // namespace
}  // namespace mayfly::testing
