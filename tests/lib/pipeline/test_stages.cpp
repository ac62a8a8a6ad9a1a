// SPDX-License-Identifier: BSD-3-Clause
// Stage counters: what each stage was given, against a model that knows the way of every sort of packet.
#include <gtest/gtest.h>
#include <rte_cycles.h>

#include <algorithm>
#include <set>
#include <thread>

#include "../base/seed.hpp"
#include "world.hpp"

namespace mayfly::testing {
namespace {

constexpr Mac kHost = 0x0a0000000001;
constexpr Mac kPort0 = 0x020000000001;
constexpr Mac kNextHop = 0x0a0000000002;

// A stage and in which vector of the loop: what takes the same way is in the same one.
struct Stop {
  Stage stage;
  const char* vector;

  bool operator<(const Stop& other) const {
    return std::pair(stage, std::string_view(vector)) <
           std::pair(other.stage, std::string_view(other.vector));
  }
};

using Way = std::vector<Stop>;

Way joined(std::initializer_list<Way> parts) {
  Way way;
  for (const Way& part : parts) way.insert(way.end(), part.begin(), part.end());
  return way;
}

const Way kIn = {{Stage::rx, ""}, {Stage::loop, ""}, {Stage::classify, ""}};
const Way kIn4 = joined({kIn, {{Stage::input, ""}}});
const Way kIn6 = joined({kIn4, {{Stage::input6, ""}}});
Way routed(const char* vector) {
  return {{Stage::look_up, vector}, {Stage::route, vector}};
}
Way routed6(const char* vector) {
  return {{Stage::look_up6, vector}, {Stage::route6, vector}};
}
Way sent(const char* vector, const char* port) {
  return {{Stage::encapsulate, vector}, {Stage::tx, port}, {Stage::tx_count, port}};
}

struct Sort {
  const char* name;
  Bytes frame;
  Way way;
};

// port0 10.0.0.1/24, 2001:db8::1/64 with hosts .9; the same with 1 on port1; 10.2.0.0/24 across a veth to
// port2's VLAN.
class Stages : public ::testing::Test {
 protected:
  Stages()
      : other(world.add_netns()),
        ends(world.add_veth(nullptr, &other)),
        out(world.add_vlan(2, 5, 0, 0x8100, 0, &other)) {
    world.set_address(world.port(0), "10.0.0.1/24");
    world.set_address(world.port(1), "10.1.0.1/24");
    world.add_address(world.port(0), "2001:db8::1/64");
    world.add_address(world.port(1), "2001:db8:1::1/64");
    world.set_neighbour(world.port(0), ip("10.0.0.9"), kHost);
    world.set_neighbour(world.port(0), ip6("2001:db8::9"), kHost);
    world.set_neighbour(world.port(1), ip("10.1.0.9"), kNextHop);
    world.set_neighbour(world.port(1), ip6("2001:db8:1::9"), kNextHop);
    world.set_address(ends[0], "10.5.0.1/24");
    world.set_address(out, "10.2.0.1/24");
    world.set_route("10.2.0.0/24", {.oif = ends[0], .gateway = ip("10.5.0.2")});
    world.set_route("10.0.0.0/24", {.oif = ends[1], .gateway = ip("10.5.0.1")}, &other);
    world.set_neighbour(ends[0], ip("10.5.0.2"), 0x020000000102);
    world.set_neighbour(out, ip("10.2.0.9"), kNextHop);
    world.set_route("10.66.0.0/16", {.oif = kNoInterface, .type = RouteType::kBlackhole});
  }

  Bytes to4(const char* destination, const std::vector<Tag>& tags = {}) {
    return ethernet(kPort0, kHost, tags, 0x0800,
                    ipv4({.source = ip("10.0.0.9"), .destination = ip(destination)}));
  }
  Bytes to6(const char* destination) {
    return ethernet(kPort0, kHost, {}, 0x86dd,
                    ipv6({.source = ip6("2001:db8::9"), .destination = ip6(destination)}));
  }

  std::vector<Sort> sorts() {
    const Way checked = joined({kIn4, {{Stage::check_sources, ""}}});
    const Way checked6 = joined({kIn6, {{Stage::check_sources6, ""}}});
    Bytes torn = to4("10.1.0.9");
    torn[24] ^= 1;
    const Bytes ping = ethernet(kPort0, kHost, {}, 0x0800,
                                ipv4({.source = ip("10.0.0.9"),
                                      .destination = ip("10.0.0.1"),
                                      .protocol = 1,
                                      .payload = icmp_echo(8, 3)}));
    const Bytes ping6 =
        ethernet(kPort0, kHost, {}, 0x86dd,
                 echo6({.source = ip6("2001:db8::9"), .destination = ip6("2001:db8::1")}, 128, 3));
    return {
        {"forwarded", to4("10.1.0.9"),
         joined({checked, routed(""), {{Stage::neighbour, ""}}, sent("", "1")})},
        {"forwarded, IPv6", to6("2001:db8:1::9"),
         joined({checked6, routed6(""), {{Stage::neighbour6, ""}}, sent("6", "1")})},
        {"nobody's tag", to4("10.1.0.9", {{0x8100, 77}}), kIn},
        {"wrong checksum", torn, kIn4},
        {"blackhole", to4("10.66.0.1"), joined({checked, routed("")})},
        {"ARP request",
         ethernet(kBroadcastMac, kHost, {}, 0x0806, arp(1, kHost, ip("10.0.0.9"), 0, ip("10.0.0.1"))),
         joined({kIn4, sent("answers", "0")})},
        {"echo request", ping,
         joined({checked,
                 routed(""),
                 {{Stage::local, ""}},
                 routed("own"),
                 {{Stage::neighbour, "own"}},
                 sent("own", "0")})},
        {"echo request, IPv6", ping6,
         joined({checked6,
                 routed6(""),
                 {{Stage::local6, ""}},
                 routed6("own"),
                 {{Stage::neighbour6, "own"}},
                 sent("own6", "0")})},
        {"across a veth", to4("10.2.0.9"),
         joined({checked,
                 routed(""),
                 {{Stage::neighbour, ""}, {Stage::encapsulate, ""}},
                 {{Stage::arrive, "veth"}, {Stage::input, "veth"}, {Stage::check_sources, "veth"}},
                 routed("veth"),
                 {{Stage::neighbour, "veth"}},
                 sent("veth", "2")})},
    };
  }

  void drain() {
    for (uint16_t port = 0; port < kRingPorts; ++port) world.take_all(port);
    while (world.heard()) {
    }
  }
  StageSums read() { return world.statistics().stages.read(); }
  void turn(bool on) { world.statistics().stages.set_on(on); }

  World world;
  Netns& other;
  const std::array<uint32_t, 2> ends;
  const uint32_t out;
};

void expect_counts(const StageSums& counted, const StageSums& model) {
  for (size_t i = 0; i < kStages; ++i) {
    EXPECT_EQ(counted[i].packets, model[i].packets) << describe(static_cast<Stage>(i)).name;
    EXPECT_EQ(counted[i].vectors, model[i].vectors) << describe(static_cast<Stage>(i)).name;
  }
}

void add_loop(StageSums& model, const std::vector<Way>& ways) {
  std::set<Stop> vectors;
  for (const Way& way : ways)
    for (const Stop& stop : way) {
      ++model[static_cast<size_t>(stop.stage)].packets;
      vectors.insert(stop);
    }
  for (const Stop& stop : vectors) ++model[static_cast<size_t>(stop.stage)].vectors;
  model[static_cast<size_t>(Stage::idle)].vectors += ways.empty() ? kRingPorts : kRingPorts - 1;
}

TEST_F(Stages, EachSortOfPacketByItself) {
  turn(true);
  for (const Sort& sort : sorts()) {
    SCOPED_TRACE(sort.name);
    const StageSums before = read();
    world.put(0, sort.frame);
    world.step();
    StageSums model{};
    add_loop(model, {sort.way});
    expect_counts(read() - before, model);
    drain();
  }
}

TEST_F(Stages, MixedVectorsOfAnyLength) {
  std::mt19937_64 random = seeded_random();
  const std::vector<Sort> all = sorts();
  turn(true);
  StageSums model{};
  for (int loop = 0; loop < 300; ++loop) {
    std::vector<Way> ways;
    for (uint64_t left = random() % (kVectorSize + 1); left != 0; --left) {
      const Sort& sort = all[random() % all.size()];
      world.put(0, sort.frame);
      ways.push_back(sort.way);
    }
    world.step();
    add_loop(model, ways);
    drain();
  }
  expect_counts(read(), model);
}

TEST_F(Stages, OffCountsNothingAndKeepsWhatThereIs) {
  const auto three_packets = [this] {
    for (int i = 0; i < 3; ++i) world.put(0, to4("10.1.0.9"));
    world.step();
    EXPECT_EQ(world.take_all(1).size(), 3u);
  };
  three_packets();
  EXPECT_EQ(read(), StageSums{});
  turn(true);
  three_packets();
  const StageSums once = read();
  EXPECT_EQ(once[static_cast<size_t>(Stage::encapsulate)].packets, 3u);
  turn(false);
  three_packets();
  EXPECT_EQ(read(), once);
  turn(true);
  three_packets();
  expect_counts(read() - once, once);
}

TEST_F(Stages, LoopsWithoutPacketsAreIdle) {
  turn(true);
  for (int i = 0; i < 10; ++i) world.step();
  StageSums model{};
  model[static_cast<size_t>(Stage::idle)].vectors = 10 * kRingPorts;
  const StageSums idle = read();
  expect_counts(idle, model);
  for (size_t i = 0; i < static_cast<size_t>(Stage::idle); ++i)
    EXPECT_EQ(idle[i].clocks, 0u) << describe(static_cast<Stage>(i)).name;
  world.pass(1);
  EXPECT_EQ(read()[static_cast<size_t>(Stage::housekeeping)].vectors, 1u);
}

// A worker's time is divided without gap or overlap: its stages' clocks are all of it.
TEST_F(Stages, ClocksAddUpToTheTime) {
  const auto all_clocks = [this] {
    uint64_t sum = 0;
    for (const StageSum& stage : read()) sum += stage.clocks;
    return sum;
  };
  turn(true);
  const uint64_t first = rte_rdtsc();
  world.step();
  const uint64_t begun = rte_rdtsc();
  const uint64_t before = all_clocks();
  for (int loop = 0; loop < 50; ++loop) {
    for (const Sort& sort : sorts()) world.put(0, sort.frame);
    world.pass(1);
    drain();
  }
  const uint64_t counted_until = rte_rdtsc();
  world.step();
  const uint64_t ended = rte_rdtsc();
  EXPECT_GE(all_clocks() - before, counted_until - begun);
  EXPECT_LE(all_clocks(), ended - first);
}

// What waits for its neighbour leaves in the middle of a message; what it is told fails is an error of ours.
TEST_F(Stages, PacketsThatWaitAndMessages) {
  turn(true);
  world.put(0, to4("10.1.0.77"));
  world.put(0, to4("10.1.0.78"));
  world.step();
  ASSERT_EQ(world.totals().parked, 2u);
  StageSums before = read();
  EXPECT_EQ(before[static_cast<size_t>(Stage::neighbour)].packets, 2u);
  EXPECT_EQ(before[static_cast<size_t>(Stage::encapsulate)], StageSum{});

  world.set_neighbour(world.port(1), ip("10.1.0.77"), kNextHop);
  world.tell(ControlMessage::Type::neighbour_resolved, world.port(1), ip("10.1.0.77"));
  world.tell(ControlMessage::Type::ask_neighbour, world.port(1), ip("10.1.0.78"), kBroadcastMac,
             ip("10.1.0.1"));
  world.step();
  EXPECT_EQ(world.take_all(1).size(), 2u);
  StageSums model{};
  add_loop(model, {});
  model[static_cast<size_t>(Stage::messages)].vectors = 2;
  model[static_cast<size_t>(Stage::encapsulate)] = {.vectors = 2, .packets = 2};
  model[static_cast<size_t>(Stage::tx)] =
      model[static_cast<size_t>(Stage::tx_count)] = {.vectors = 1, .packets = 2};
  expect_counts(read() - before, model);

  before = read();
  world.tell(ControlMessage::Type::neighbour_failed, world.port(1), ip("10.1.0.78"));
  world.step();
  EXPECT_EQ(world.take_all(0).size(), 1u);
  model = {};
  add_loop(model, {});
  model[static_cast<size_t>(Stage::messages)].vectors = 1;
  for (const Stop& stop : joined({routed(""), {{Stage::neighbour, ""}}, sent("", "0")}))
    model[static_cast<size_t>(stop.stage)] = {.vectors = 1, .packets = 1};
  expect_counts(read() - before, model);
}

// A buffer that gets full is sent in the middle of encapsulate, and the rest at the end of the loop.
TEST_F(Stages, AFullBufferIsSentAtOnce) {
  turn(true);
  for (uint32_t i = 0; i < kVectorSize; ++i) world.put(0, to4("10.1.0.9"));
  for (uint32_t i = 0; i < 3; ++i)
    world.put(1, ethernet(0x020000000002, kNextHop, {}, 0x0806,
                          arp(1, kNextHop, ip("10.1.0.9"), 0, ip("10.1.0.1"))));
  world.step();
  EXPECT_EQ(world.take_all(1).size(), kVectorSize + 3);
  const StageSums sums = read();
  EXPECT_EQ(sums[static_cast<size_t>(Stage::tx)].vectors, 2u);
  EXPECT_EQ(sums[static_cast<size_t>(Stage::tx)].packets, kVectorSize + 3);
  EXPECT_EQ(sums[static_cast<size_t>(Stage::encapsulate)].vectors, 2u);
  EXPECT_EQ(sums[static_cast<size_t>(Stage::loop)].vectors, 1u);
  EXPECT_EQ(sums[static_cast<size_t>(Stage::loop)].packets, kVectorSize + 3);
}

TEST_F(Stages, AThreadFollowsTheSwitchAndSleepsUncounted) {
  turn(true);
  world.start_thread();
  const Deadline limit = Deadline::after_ns(60 * kNsPerSecond);
  const auto comes = [&limit](auto condition) {
    while (!condition() && !limit.over()) std::this_thread::yield();
    return condition();
  };
  const auto sleeps_more = [&] {
    const uint64_t sleeps = world.published().sleeps;
    return comes([&] { return world.published().sleeps > sleeps + 3; });
  };
  const uint64_t start = rte_rdtsc();
  world.put(0, to4("10.1.0.9"));
  EXPECT_TRUE(comes([this] { return read()[static_cast<size_t>(Stage::loop)].packets == 1; }));
  EXPECT_TRUE(sleeps_more());
  turn(false);
  EXPECT_TRUE(sleeps_more());
  const StageSums before = read();
  world.put(0, to4("10.1.0.9"));
  EXPECT_TRUE(comes([this] { return world.published().rx == 2; }));
  world.stop_worker();
  EXPECT_EQ(world.take_all(1).size(), 2u);
  EXPECT_EQ(read(), before);
  uint64_t clocks = 0;
  for (const StageSum& sum : before) clocks += sum.clocks;
  EXPECT_LT(clocks, rte_rdtsc() - start) << "sleeping was counted";
}

}  // namespace
}  // namespace mayfly::testing
