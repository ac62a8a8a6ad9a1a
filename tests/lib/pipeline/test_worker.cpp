// SPDX-License-Identifier: BSD-3-Clause
// A worker on a thread of its own: idling, and interfaces that come and go beside traffic.
#include <gtest/gtest.h>

#include <thread>

#include "pipeline/tsc_clock.hpp"
#include "world.hpp"

namespace mayfly::testing {
namespace {

constexpr Mac kHost = 0x0a0000000001;
constexpr Mac kNextHop = 0x0a0000000002;
constexpr uint16_t kBatch = 50;
constexpr int kRounds = 200;

// Waits for what must come; the limit is only there to end a broken test.
template <class Condition>
bool comes(Condition condition) {
  const Deadline limit = Deadline::after_ns(60 * kNsPerSecond);
  while (!condition()) {
    if (limit.over()) return false;
    std::this_thread::yield();
  }
  return true;
}

Bytes numbered(uint32_t number, const std::vector<Tag>& tags) {
  Bytes payload;
  put(payload, number, 4);
  return ethernet(0x020000000001, kHost, tags, 0x0800,
                  ipv4({.source = ip("10.9.9.9"), .destination = ip("10.1.0.9"), .payload = payload}));
}

class WorkerThread : public ::testing::Test {
 protected:
  WorkerThread() {
    world.set_address(world.port(1), "10.1.0.1/24");
    world.set_neighbour(world.port(1), ip("10.1.0.9"), kNextHop);
    survivor = world.add_vlan(0, 1);
  }

  bool forwards(uint32_t number) {
    world.put(0, numbered(number, {{0x8100, 1}}));
    std::optional<Bytes> frame;
    return comes([&] { return (frame = world.take(1)).has_value(); }) && get(*frame, 34, 4) == number;
  }

  World world;
  uint32_t survivor = 0;
};

TEST_F(WorkerThread, SleepsWhenIdleAndWakesForPackets) {
  world.start_thread();
  for (uint32_t i = 1; i <= 3; ++i) {
    const uint64_t sleeps = world.published().sleeps;
    EXPECT_TRUE(comes([&] { return world.published().sleeps > sleeps + 10; }));
    EXPECT_TRUE(forwards(i));
    EXPECT_TRUE(comes([&] { return world.published().rx == i; }));
  }
}

TEST_F(WorkerThread, GracePeriodsDoNotWaitForASleeper) {
  world.start_thread();
  for (uint16_t i = 0; i < 20; ++i) {
    world.retire(world.add_vlan(0, 100));
    ASSERT_TRUE(world.reclaimed());
  }
}

TEST_F(WorkerThread, SurvivorsLoseNothingWhileOthersComeAndGo) {
  world.start_thread();
  uint32_t sent = 0;
  uint32_t received = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<uint32_t> interfaces;
    for (uint16_t outer = 100; outer < 120; ++outer) interfaces.push_back(world.add_vlan(0, outer, outer));
    world.set_address(interfaces[0], "10.77.0.1/24");
    for (uint16_t i = 0; i < kBatch; ++i) {
      world.put(0, numbered(sent++, {{0x8100, 1}}));
      // To interfaces that may be gone by then; some of it is parked behind one.
      if (i < 20) {
        const auto vid = static_cast<uint16_t>(100 + i);
        world.put(0, ethernet(0x020000000001, kHost, {{0x8100, vid}, {0x8100, vid}}, 0x0800,
                              ipv4({.source = ip("10.9.9.9"), .destination = ip("10.77.0.5") + i})));
      }
    }
    for (const uint32_t ifindex : interfaces) world.retire(ifindex);
    ASSERT_TRUE(comes([&] {
      while (const auto frame = world.take(1)) EXPECT_EQ(get(*frame, 34, 4), received++);
      return received == sent;
    }));
    while (world.heard()) {
    }
    ASSERT_TRUE(world.reclaimed());
  }
  world.stop_worker();
  EXPECT_EQ(world.totals().difference(), 0);
  EXPECT_EQ(world.table().sums(survivor).rx_packets, sent);
}

TEST(TscClockTest, FollowsTheSystemAndNeverGoesBack) {
  ring_ports();
  TscClock clock;
  const uint64_t before = monotonic_ns();
  clock.start();
  uint64_t last = clock.now_ns();
  EXPECT_GE(last, before);
  for (int i = 0; i < 100'000; ++i) {
    clock.adjust();
    const uint64_t now = clock.now_ns();
    ASSERT_GE(now, last);
    last = now;
  }
}

}  // namespace
}  // namespace mayfly::testing
