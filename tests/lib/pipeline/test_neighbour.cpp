// SPDX-License-Identifier: BSD-3-Clause
// Packets that wait for a MAC address: parked, sent, dropped, and what teardown sees of them.
#include <gtest/gtest.h>

#include "world.hpp"

namespace mayfly::testing {
namespace {

constexpr Mac kHost = 0x0a0000000001;
constexpr Mac kPort0 = 0x020000000001;
constexpr Mac kPort1 = 0x020000000002;
constexpr Mac kNextHop = 0x0a0000000002;

class NeighbourTest : public ::testing::Test {
 protected:
  explicit NeighbourTest(const WorldSettings& settings = {}) : world(settings), vlan(world.add_vlan(1, 5)) {
    world.set_address(vlan, "10.1.0.1/24");
  }

  Bytes packet(const char* to, uint16_t id = 0) {
    Bytes bytes = ipv4({.source = ip("10.9.9.9"), .destination = ip(to)});
    set(bytes, 4, id, 2);
    fix_ipv4_checksum(bytes);
    return bytes;
  }
  void send(const char* to, uint16_t id = 0) {
    world.put(0, ethernet(kPort0, kHost, {}, 0x0800, packet(to, id)));
    world.step();
  }
  std::string sent(const char* to, uint16_t id = 0) {
    return hex(ethernet(kNextHop, kPort1, {{0x8100, 5}}, 0x0800, one_hop_further(packet(to, id))));
  }
  void expect_wanted(const char* address) {
    const auto message = world.heard();
    ASSERT_TRUE(message.has_value());
    EXPECT_EQ(message->type, WorkerMessage::Type::neighbour_wanted);
    EXPECT_EQ(message->ifindex, vlan);
    EXPECT_EQ(message->id, world.interface(vlan).id);
    EXPECT_EQ(message->address, IpAddress(ip(address)));
  }

  World world;
  const uint32_t vlan;
};

TEST_F(NeighbourTest, ParkedUntilResolved) {
  send("10.1.0.9", 1);
  send("10.1.0.9", 2);
  expect_wanted("10.1.0.9");
  EXPECT_FALSE(world.heard().has_value()) << "asked once is enough";
  EXPECT_EQ(world.totals().parked, 2u);
  EXPECT_EQ(world.references(vlan), 2u);
  EXPECT_TRUE(world.take_all(1).empty());

  world.set_neighbour(vlan, ip("10.1.0.9"), kNextHop);
  world.tell(ControlMessage::Type::neighbour_resolved, vlan, ip("10.1.0.9"));
  world.step();
  const auto frames = world.take_all(1);
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(hex(frames[0]), sent("10.1.0.9", 1));
  EXPECT_EQ(hex(frames[1]), sent("10.1.0.9", 2));
  EXPECT_EQ(world.totals().parked, 0u);
  EXPECT_EQ(world.references(vlan), 0u);
  EXPECT_EQ(world.table().sums(vlan).tx_packets, 2u);
}

TEST_F(NeighbourTest, ParkedWhileIncompleteAndSentWhenTheMessageIsLost) {
  world.set_neighbour(vlan, ip("10.1.0.9"), 0, NeighbourState::kIncomplete);
  send("10.1.0.9", 1);
  EXPECT_EQ(world.totals().parked, 1u);
  world.set_neighbour(vlan, ip("10.1.0.9"), kNextHop, NeighbourState::kReachable);
  world.pass(1);
  EXPECT_EQ(hex(world.take(1).value_or(Bytes{})), sent("10.1.0.9", 1));
}

TEST_F(NeighbourTest, ResolvedTooEarlyWaits) {
  send("10.1.0.9");
  world.tell(ControlMessage::Type::neighbour_resolved, vlan, ip("10.1.0.9"));
  world.tell(ControlMessage::Type::neighbour_resolved, vlan, ip("10.1.0.8"));
  world.step();
  EXPECT_EQ(world.totals().parked, 1u);
}

TEST_F(NeighbourTest, PacketsOfGatewaysWaitTogether) {
  world.set_route("20.0.0.0/8", {.oif = vlan, .gateway = ip("10.1.0.9")});
  send("20.1.1.1", 1);
  send("20.2.2.2", 2);
  expect_wanted("10.1.0.9");
  EXPECT_FALSE(world.heard().has_value());
  world.set_neighbour(vlan, ip("10.1.0.9"), kNextHop);
  world.pass(1);
  EXPECT_EQ(hex(world.take(1).value_or(Bytes{})), sent("20.1.1.1", 1));
  EXPECT_EQ(hex(world.take(1).value_or(Bytes{})), sent("20.2.2.2", 2));
}

TEST_F(NeighbourTest, TheOldestOfFourIsDropped) {
  for (uint16_t id = 1; id <= 5; ++id) send("10.1.0.9", id);
  EXPECT_EQ(world.drops(DropReason::neighbour_queue_full), 2u);
  EXPECT_EQ(world.dropped_by(vlan, DropReason::neighbour_queue_full), 2u);
  EXPECT_EQ(world.references(vlan), 3u);
  world.set_neighbour(vlan, ip("10.1.0.9"), kNextHop);
  world.pass(1);
  const auto frames = world.take_all(1);
  ASSERT_EQ(frames.size(), 3u);
  EXPECT_EQ(hex(frames[0]), sent("10.1.0.9", 3));
  EXPECT_EQ(hex(frames[2]), sent("10.1.0.9", 5));
}

TEST_F(NeighbourTest, FailedNeighbours) {
  send("10.1.0.9");
  send("10.1.0.8");
  world.tell(ControlMessage::Type::neighbour_failed, vlan, ip("10.1.0.9"));
  world.step();
  EXPECT_EQ(world.drops(DropReason::neighbour_failed), 1u);
  EXPECT_EQ(world.table().sums(vlan).tx_dropped, 1u);
  EXPECT_EQ(world.references(vlan), 1u);
}

// Brings the neighbour to FAILED as the control thread's timers do.
void let_fail(World& world) {
  for (int second = 0; second < 4; ++second) {
    std::vector<NeighbourAction> actions;
    RetireList retired;
    world.neighbours().tick(world.now_ns() + static_cast<uint64_t>(second + 1) * 1'100 * kNsPerMs, 100,
                            actions, retired);
    ASSERT_EQ(retired.objects(), 0u);
    for (const NeighbourAction& action : actions)
      if (action.kind == NeighbourAction::Kind::kFailed) return;
  }
  FAIL() << "the neighbour did not fail";
}

TEST_F(NeighbourTest, PacketsForFailedNeighboursAreDropped) {
  world.set_neighbour(vlan, ip("10.1.0.9"), 0, NeighbourState::kIncomplete);
  send("10.1.0.9");
  EXPECT_EQ(world.totals().parked, 1u);
  let_fail(world);
  send("10.1.0.9");
  EXPECT_EQ(world.drops(DropReason::neighbour_failed), 1u);
  world.pass(1);
  EXPECT_EQ(world.drops(DropReason::neighbour_failed), 2u);
  EXPECT_EQ(world.totals().parked, 0u);
}

// Whatever message control sends about a neighbour that has failed by then: the sender is told in that loop.
TEST_F(NeighbourTest, ErrorsLeaveInTheLoopOfTheMessage) {
  world.set_address(world.port(0), "10.9.0.1/16");
  world.set_neighbour(world.port(0), ip("10.9.9.9"), kHost);
  world.set_neighbour(vlan, ip("10.1.0.9"), 0, NeighbourState::kIncomplete);
  using Type = ControlMessage::Type;
  for (const Type type : {Type::neighbour_resolved, Type::neighbour_failed}) {
    send("10.1.0.9");
    ASSERT_EQ(world.totals().parked, 1u);
    if (type == Type::neighbour_resolved) let_fail(world);
    world.tell(type, vlan, ip("10.1.0.9"));
    world.step();
    EXPECT_EQ(world.totals().parked, 0u);
    const auto errors = world.take_all(0);
    ASSERT_EQ(errors.size(), 1u);
    EXPECT_EQ(errors[0].at(34), 3);
    EXPECT_EQ(errors[0].at(35), 1) << "host unreachable";
    if (type == Type::neighbour_resolved)
      world.set_neighbour(vlan, ip("10.1.0.9"), 0, NeighbourState::kIncomplete);
  }
}

TEST_F(NeighbourTest, ThreeSecondsAreEnough) {
  send("10.1.0.9");
  expect_wanted("10.1.0.9");
  world.pass(900);
  EXPECT_FALSE(world.heard().has_value());
  world.pass(200);
  expect_wanted("10.1.0.9");
  send("10.1.0.9");
  world.pass(1800);
  EXPECT_EQ(world.totals().parked, 2u);
  expect_wanted("10.1.0.9");
  world.pass(200);
  EXPECT_EQ(world.drops(DropReason::neighbour_failed), 1u);
  EXPECT_EQ(world.totals().parked, 1u);
  world.pass(1200);
  EXPECT_EQ(world.drops(DropReason::neighbour_failed), 2u);
  EXPECT_EQ(world.references(vlan), 0u);
}

TEST_F(NeighbourTest, AFullRingIsTriedAgain) {
  while (world.to_control().push({})) {
  }
  send("10.1.0.9");
  while (world.heard()) {
  }
  world.pass(1);
  expect_wanted("10.1.0.9");
}

TEST_F(NeighbourTest, NoAddressToAskFrom) {
  const uint32_t bare = world.add_vlan(1, 6);
  world.set_route("30.0.0.0/8", {.oif = bare});
  send("30.1.1.1");
  EXPECT_EQ(world.drops(DropReason::neighbour_no_source), 1u);
  EXPECT_EQ(world.table().sums(bare).tx_dropped, 1u);
  EXPECT_FALSE(world.heard().has_value());
}

TEST_F(NeighbourTest, DeletingTheInterfaceDropsItsPackets) {
  send("10.1.0.9");
  send("10.1.0.8");
  const uint64_t id = world.interface(vlan).id;
  world.retire(vlan);
  world.step();
  EXPECT_EQ(world.references(vlan), 2u) << "only a tick looks at what is parked";
  world.pass(1);
  EXPECT_EQ(world.references(vlan), 0u);
  EXPECT_EQ(world.drops(DropReason::interface_gone), 2u);
  uint64_t counted = 0;
  world.statistics().drops.for_each([&](uint64_t of, uint32_t, DropReason reason, uint64_t packets) {
    if (of == id && reason == DropReason::interface_gone) counted += packets;
  });
  EXPECT_EQ(counted, 2u);
  EXPECT_TRUE(world.reclaimed());
}

TEST_F(NeighbourTest, TheNumbersNextOwnerInheritsNothing) {
  send("10.1.0.9");
  world.retire(vlan);
  const uint64_t old_id = world.interface(vlan).id;
  world.pass(1);
  ASSERT_TRUE(world.reclaimed());
  ASSERT_EQ(world.add_vlan(1, 7), vlan);
  EXPECT_NE(world.interface(vlan).id, old_id);
  EXPECT_EQ(world.references(vlan), 0u);
  EXPECT_EQ(world.table().sums(vlan).tx_dropped, 0u);
}

TEST_F(NeighbourTest, GoingDownDropsToo) {
  send("10.1.0.9");
  world.set_up(vlan, false);
  world.pass(1);
  EXPECT_EQ(world.drops(DropReason::interface_gone), 1u);
  world.set_up(vlan, true);
  send("10.1.0.9");
  world.set_up(world.port(1), false);
  world.pass(1);
  EXPECT_EQ(world.drops(DropReason::interface_gone), 2u);
}

TEST_F(NeighbourTest, StaleOnesAreUsedAndMarked) {
  world.set_neighbour(vlan, ip("10.1.0.9"), kNextHop, NeighbourState::kReachable);
  const Neighbour* neighbour =
      find_neighbour(world.interface(vlan).neighbours.own(), IpAddress(ip("10.1.0.9")));
  send("10.1.0.9");
  EXPECT_EQ(neighbour->used.load(), 0u);
  world.set_neighbour(vlan, ip("10.1.0.9"), kNextHop, NeighbourState::kStale);
  neighbour = find_neighbour(world.interface(vlan).neighbours.own(), IpAddress(ip("10.1.0.9")));
  send("10.1.0.9");
  EXPECT_EQ(neighbour->used.load(), 1u);
  EXPECT_EQ(world.take_all(1).size(), 2u);
}

TEST_F(NeighbourTest, ShutdownDropsWhatWaits) {
  send("10.1.0.9");
  send("10.1.0.8");
  world.stop_worker();
  EXPECT_EQ(world.drops(DropReason::shutdown), 2u);
  EXPECT_EQ(world.totals().parked, 0u);
  EXPECT_EQ(world.references(vlan), 0u);
}

class SmallParking : public NeighbourTest {
 protected:
  SmallParking()
      : NeighbourTest({.parked_limit = 8}), other(world.add_vlan(1, 6)), third(world.add_vlan(1, 7)) {
    world.set_address(other, "10.2.0.1/24");
    world.set_address(third, "10.3.0.1/24");
  }
  void send_many(const char* format, uint32_t count) {
    for (uint32_t host = 2; host < 2 + count; ++host) send(fmt::format(fmt::runtime(format), host).c_str());
  }
  void forget_messages() {
    while (world.heard()) {
    }
  }

  const uint32_t other;
  const uint32_t third;
};

TEST_F(SmallParking, AnInterfaceAloneGetsHalf) {
  send_many("10.1.0.{}", 20);
  EXPECT_EQ(world.totals().parked, 4u);
  EXPECT_EQ(world.drops(DropReason::neighbour_queue_full), 16u);
  world.set_neighbour(vlan, ip("10.1.0.3"), kNextHop);
  world.pass(1);
  EXPECT_EQ(world.totals().parked, 3u);
  send("10.1.0.30");
  EXPECT_EQ(world.totals().parked, 4u);
}

TEST_F(SmallParking, AScanLeavesRoomForOthers) {
  send_many("10.1.0.{}", 100);
  send_many("10.2.0.{}", 100);
  forget_messages();
  send("10.3.0.2", 1);
  const auto wanted = world.heard();
  ASSERT_TRUE(wanted.has_value());
  EXPECT_EQ(wanted->ifindex, third);
  EXPECT_EQ(wanted->address, IpAddress(ip("10.3.0.2")));
  EXPECT_EQ(world.references(third), 1u);
  world.set_neighbour(third, ip("10.3.0.2"), kNextHop);
  world.pass(1);
  EXPECT_EQ(world.take_all(1).size(), 1u);
}

TEST_F(SmallParking, AQueueAtItsEndGetsTheLatestWhoeverScans) {
  for (uint16_t id = 1; id <= 3; ++id) send("10.1.0.9", id);
  send_many("10.2.0.{}", 100);
  for (uint16_t id = 4; id <= 9; ++id) send("10.1.0.9", id);
  EXPECT_EQ(world.references(vlan), 3u);
  world.set_neighbour(vlan, ip("10.1.0.9"), kNextHop);
  world.pass(1);
  const auto frames = world.take_all(1);
  ASSERT_EQ(frames.size(), 3u);
  EXPECT_EQ(hex(frames[0]), sent("10.1.0.9", 7));
  EXPECT_EQ(hex(frames[2]), sent("10.1.0.9", 9));
}

TEST_F(SmallParking, NeighboursAreAskedForWhilePacketsCannotWait) {
  send_many("10.1.0.{}", 4);
  forget_messages();
  send("10.1.0.100");
  EXPECT_EQ(world.totals().parked, 4u);
  expect_wanted("10.1.0.100");
  world.set_neighbour(vlan, ip("10.1.0.100"), 0, NeighbourState::kIncomplete);
  send("10.1.0.100");
  EXPECT_FALSE(world.heard().has_value()) << "asked already";
  world.set_neighbour(vlan, ip("10.1.0.100"), kNextHop);
  send("10.1.0.100");
  EXPECT_EQ(world.take_all(1).size(), 1u);
}

// The packets of one destination each, cut into five mbufs.
TEST_F(SmallParking, LongPacketsCountByTheirMbufs) {
  uint32_t most = 0;
  for (uint32_t round = 0; round < 20; ++round) {
    const std::string to = fmt::format("10.{}.0.{}", 1 + round % 3, 2 + round);
    const Bytes frame = ethernet(kPort0, kHost, {}, 0x0800, packet(to.c_str()));
    std::vector<Bytes> segments(5);
    for (size_t i = 0; i < frame.size(); ++i) segments[i < 34 ? 0 : 1 + i % 4].push_back(frame[i]);
    world.put_segments(0, segments);
    world.step();
    most = std::max(most, world.mbufs_in_use());
  }
  EXPECT_EQ(world.totals().parked, 1u);
  EXPECT_EQ(most, 5u);
  EXPECT_EQ(world.drops(DropReason::neighbour_queue_full), 19u);
  world.pass(3001);
  EXPECT_EQ(world.mbufs_in_use(), 0u);
}

TEST_F(SmallParking, AScanAsksOnlyAFewTimes) {
  send_many("10.1.0.{}", 4);
  forget_messages();
  world.pass(1);
  for (uint32_t host = 100; host < 164; ++host)
    world.put(0, ethernet(kPort0, kHost, {}, 0x0800, packet(fmt::format("10.1.0.{}", host).c_str())));
  world.step();
  uint32_t messages = 0;
  while (world.heard()) ++messages;
  EXPECT_EQ(messages, 8u);
  world.pass(1);
  send("10.1.0.200");
  expect_wanted("10.1.0.200");
}

}  // namespace
}  // namespace mayfly::testing
