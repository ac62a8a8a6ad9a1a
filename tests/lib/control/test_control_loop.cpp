// SPDX-License-Identifier: BSD-3-Clause
// What the loop makes of messages that have waited: their interface may be another's, down, or elsewhere by
// then.
#include "control/control_loop.hpp"

#include <gtest/gtest.h>

#include <memory>

#include "control/interface_move.hpp"
#include "control/server.hpp"
#include "control_world.hpp"

namespace mayfly {
namespace {

constexpr Mac kHost = 0x0a0000000001;

class ControlLoopTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(world.port_thread().start().has_value());
    loop = std::make_unique<ControlLoop>(world.dataplane(), server);
  }

  uint64_t id() { return world.interfaces().interface(world.port()).id; }
  void seen(uint32_t host, uint64_t id) {
    ASSERT_TRUE(world.from_worker().push({.type = WorkerMessage::Type::neighbour_seen,
                                          .creates = true,
                                          .ifindex = world.port(),
                                          .id = id,
                                          .mac = kHost,
                                          .address = IpAddress(static_cast<Ipv4>(0x0a000000 + host))}));
  }
  void wanted(uint32_t host, uint64_t id) {
    ASSERT_TRUE(world.from_worker().push({.type = WorkerMessage::Type::neighbour_wanted,
                                          .ifindex = world.port(),
                                          .id = id,
                                          .mac = 0,
                                          .address = IpAddress(static_cast<Ipv4>(0x0a000000 + host))}));
  }
  void set_up(bool up) {
    RetireList retired;
    world.interfaces().set_admin_up(world.port(), up);
    if (up)
      EXPECT_TRUE(world.dataplane().addressing.came_up(world.port(), retired).has_value());
    else
      world.dataplane().addressing.went_down(world.port(), retired);
    world.dataplane().commit(retired);
  }
  uint32_t neighbours() { return world.dataplane().neighbours.count(); }

  ControlWorld world;
  ControlServer server{world.dataplane(), {.path = "none", .group = ""}};
  std::unique_ptr<ControlLoop> loop;
};

TEST_F(ControlLoopTest, MessagesMakeNeighbours) {
  seen(1, id());
  wanted(2, id());
  loop->round(0);
  EXPECT_EQ(neighbours(), 2u);
}

TEST_F(ControlLoopTest, NotOfAnInterfaceThatIsAnotherNow) {
  seen(1, id() + 1);
  wanted(2, id() + 1);
  loop->round(0);
  EXPECT_EQ(neighbours(), 0u);
}

TEST_F(ControlLoopTest, NotOfOneThatIsDown) {
  seen(1, id());
  loop->round(0);
  EXPECT_EQ(neighbours(), 1u);
  seen(2, id());
  wanted(3, id());
  set_up(false);
  loop->round(0);
  EXPECT_EQ(neighbours(), 0u);
  set_up(true);
  loop->round(0);
  EXPECT_EQ(neighbours(), 0u) << "they are gone for good";
  seen(4, id());
  loop->round(0);
  EXPECT_EQ(neighbours(), 1u);
}

TEST_F(ControlLoopTest, NotOfOneThatIsMoved) {
  Netns& blue = **world.dataplane().netnses.add("blue");
  InterfaceMove move(world.dataplane());
  ASSERT_TRUE(move.begin(world.port()).has_value());
  seen(1, id());
  loop->round(0);
  EXPECT_EQ(neighbours(), 0u) << "while it waits";
  seen(2, id());
  while (!move.ready()) world.settle();
  RetireList retired;
  ASSERT_TRUE(move.finish(blue, "port0", retired).has_value());
  world.dataplane().commit(retired);
  loop->round(0);
  EXPECT_EQ(neighbours(), 0u) << "when it is there";
}

}  // namespace
}  // namespace mayfly
