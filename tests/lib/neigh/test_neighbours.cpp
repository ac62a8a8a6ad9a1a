// SPDX-License-Identifier: BSD-3-Clause
#include "neigh/neighbours.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "reclaim/reclaim.hpp"

namespace mayfly {
namespace {

using State = NeighbourState;
using Kind = NeighbourAction::Kind;

constexpr Mac kMac = 0x020000000001;
// Test addresses of both families by number: even ones are IPv4.
constexpr IpAddress host(uint32_t number) {
  if (number % 2 == 0) return IpAddress(Ipv4{0x0a000000 + number});
  return IpAddress(Ipv6{0x2001'0db8'0000'0000ULL + number % 8, number});
}
constexpr IpAddress visitor_of(uint32_t number) {
  return host(0x0100'0000 + number);
}

constexpr NeighbourEvidence kAnswer = NeighbourEvidence::answer();
constexpr NeighbourAdd kAdd = NeighbourAdd::create_exclusive();
constexpr NeighbourAdd kReplace = NeighbourAdd::create_replace();

uint64_t seed_of_this_run() {
  const char* given = std::getenv("MAYFLY_TEST_SEED");
  const uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 0) : std::random_device{}();
  std::printf("MAYFLY_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

// As in the daemon there is one BlockPools.
BlockPools pools(1);

void take_back(Returns& returns) {
  for (const Returns::Group& group : returns.groups())
    for (const uint32_t token : group.tokens) group.owner->take_back(token);
}

class NeighboursTest : public testing::Test {
 protected:
  ~NeighboursTest() override {
    Returns returns;
    for (Neighbours::Table& table : tables) {
      neighbours->detach(table);
      neighbours->dismantle(table, returns);
    }
    take_back(returns);
    EXPECT_EQ(neighbours->count(), 0U);
    EXPECT_EQ(neighbours->next_due_ns(now), UINT64_MAX);
    submit();
    EXPECT_TRUE(reclaim.stop(10 * kNsPerSecond));
    EXPECT_EQ(pools.blocks_in_use(), 0U);
  }
  void SetUp() override { ASSERT_TRUE(reclaim.start().has_value()); }

  void submit() {
    reclaim.submit(retired);
    reclaim.collect(Deadline::never());
  }
  void wait_for_teardown() {
    submit();
    while (reclaim.backlog().objects > 0) {
      reclaim.collect(Deadline::never());
      std::this_thread::yield();
    }
  }

  Result<NeighbourChange> add(uint32_t interface, IpAddress address, State state, NeighbourAdd how,
                              Mac mac = kMac) {
    return neighbours->add(tables[interface], interface, {.address = address, .mac = mac, .state = state},
                           how, now, retired);
  }
  Result<NeighbourChange> learn(IpAddress address, NeighbourEvidence evidence, Mac mac = kMac) {
    return neighbours->learn(tables[1], 1, address, mac, evidence, now, retired);
  }
  Result<NeighbourResolution> resolve(IpAddress address) {
    return neighbours->resolve(tables[1], 1, address, now, retired);
  }
  State state_of(IpAddress address) const {
    const auto info = Neighbours::get(tables[1], address);
    return info ? info->state : State{0};
  }
  const Neighbour* find(IpAddress address) const { return find_neighbour(tables[1].read(), address); }

  std::vector<NeighbourAction> advance(uint64_t ns) {
    std::vector<NeighbourAction> actions;
    now += ns;
    while (neighbours->tick(now, 3, actions, retired)) continue;
    return actions;
  }
  // From one due time to the next, until the given number of actions came.
  std::vector<NeighbourAction> run_until(size_t count) {
    std::vector<NeighbourAction> actions;
    while (actions.size() < count && neighbours->next_due_ns(now) != UINT64_MAX) {
      now = neighbours->next_due_ns(now);
      while (neighbours->tick(now, 100, actions, retired)) continue;
    }
    return actions;
  }
  std::vector<NeighbourInfo> dump(uint32_t interface) const {
    std::vector<NeighbourInfo> infos;
    uint64_t cursor = 0;
    while (Neighbours::dump(tables[interface], cursor, infos)) continue;
    return infos;
  }

  // The millisecond counter of 32 bits wraps during every test that lets a second pass.
  uint64_t now = (uint64_t{1} << 32) * kNsPerMs - kNsPerSecond / 2;
  RetireList retired;
  Reclaim reclaim{TeardownConfig{}};
  std::array<Neighbours::Table, 8> tables;
  std::unique_ptr<Neighbours> neighbours =
      std::make_unique<Neighbours>(pools, NeighbourConfig{.limit = 5'000, .interface_limit = 2'000});
};

TEST_F(NeighboursTest, AddReplaceRemove) {
  EXPECT_EQ(add(1, IpAddress(Ipv4{0}), State::kPermanent, kAdd).error().code, EINVAL);
  EXPECT_EQ(add(1, IpAddress(Ipv4{0xe0000001}), State::kPermanent, kAdd).error().code, EINVAL);
  EXPECT_EQ(add(1, IpAddress{}, State::kPermanent, kAdd).error().code, EINVAL);
  EXPECT_EQ(add(1, IpAddress(Ipv6{0, 1}), State::kPermanent, kAdd).error().code, EINVAL);
  EXPECT_EQ(add(1, IpAddress(Ipv6{0xff02ULL << 48, 1}), State::kPermanent, kAdd).error().code, EINVAL);
  EXPECT_EQ(add(1, host(1), State::kFailed, kAdd).error().code, EINVAL);
  EXPECT_EQ(add(1, host(1), State::kPermanent, kAdd, 0).error().code, EINVAL);
  EXPECT_EQ(add(1, host(1), State::kPermanent, {.replace = true}).error().code, ENOENT);
  EXPECT_EQ(tables[1].own(), nullptr);
  ASSERT_TRUE(add(1, host(1), State::kPermanent, kAdd).has_value());
  const auto twice = add(1, host(1), State::kPermanent, kAdd);
  EXPECT_EQ(twice.error().code, EEXIST);
  EXPECT_EQ(twice.error().text, "neighbour 2001:db8:0:1::1 exists on interface 1");
  EXPECT_TRUE(add(2, host(1), State::kPermanent, kAdd).has_value());
  EXPECT_TRUE(add(1, host(1), State::kStale, kReplace, kMac + 1)->changed);
  EXPECT_EQ(find(host(1))->read().mac(), kMac + 1);
  EXPECT_EQ(neighbours->remove(tables[1], host(1), retired)->state, State::kStale);
  EXPECT_EQ(neighbours->remove(tables[1], host(1), retired).error().code, ENOENT);
  EXPECT_EQ(tables[1].own(), nullptr);
  EXPECT_EQ(neighbours->count(), 1U);
}

TEST_F(NeighboursTest, OneNeighbourIsSmall) {
  ASSERT_TRUE(add(1, host(1), State::kPermanent, kAdd).has_value());
  EXPECT_EQ(tables[1].own()->retired.bytes, 48U);
  ASSERT_TRUE(add(1, host(2), State::kPermanent, kAdd).has_value());
  EXPECT_EQ(tables[1].own()->retired.bytes, 64U);
  ASSERT_TRUE(add(1, host(3), State::kPermanent, kAdd).has_value());
  EXPECT_EQ(tables[1].own()->retired.bytes, 64U);
}

TEST_F(NeighboursTest, LimitsNameThemselves) {
  for (uint32_t i = 0; i < 2'000; ++i) ASSERT_TRUE(add(1, host(i + 1), State::kPermanent, kAdd).has_value());
  const auto over = resolve(host(5'000));
  EXPECT_EQ(over.error().code, ENOBUFS);
  EXPECT_NE(over.error().text.find("all 2000 neighbours of the limit of interface 1"), std::string::npos);
  for (uint32_t i = 0; i < 3'000; ++i)
    ASSERT_TRUE(add(2 + i % 2, host(i + 1), State::kPermanent, kAdd).has_value());
  EXPECT_EQ(add(4, host(1), State::kPermanent, kAdd).error().code, ENOBUFS);
  EXPECT_EQ(neighbours->count(), 5'000U);
}

class CrowdedNeighboursTest : public NeighboursTest {
 protected:
  static constexpr uint32_t kInterfaceLimit = 8;
  static constexpr uint32_t kLimit = 20;

  CrowdedNeighboursTest() {
    neighbours = std::make_unique<Neighbours>(
        pools, NeighbourConfig{.limit = kLimit, .interface_limit = kInterfaceLimit});
  }
  void learn_stale(uint32_t interface, IpAddress address) {
    now += kNsPerMs;
    ASSERT_TRUE(
        neighbours
            ->learn(tables[interface], interface, address, kMac, NeighbourEvidence::other(true), now, retired)
            ->known);
  }
  bool knows(uint32_t interface, IpAddress address) const {
    return Neighbours::get(tables[interface], address).has_value();
  }
};

TEST_F(CrowdedNeighboursTest, TheOldestUnusedOfTheInterfaceMakesRoom) {
  learn_stale(2, host(1));  // older, of another interface
  for (uint32_t i = 1; i <= kInterfaceLimit; ++i) learn_stale(1, host(i));
  EXPECT_EQ(resolve(host(100)).value(), NeighbourResolution::kStarted);
  EXPECT_FALSE(knows(1, host(1)));
  find(host(2))->mark_used();
  learn_stale(1, host(101));
  EXPECT_TRUE(knows(1, host(2)));
  EXPECT_FALSE(knows(1, host(3)));
  EXPECT_TRUE(knows(2, host(1)));
  EXPECT_EQ(Neighbours::count_of(tables[1]), kInterfaceLimit);
}

TEST_F(CrowdedNeighboursTest, TheOldestUnusedOfAllMakesRoom) {
  learn_stale(2, host(1));
  learn_stale(2, host(2));
  for (uint32_t i = 0; i < kLimit - 2; ++i) learn_stale(3 + i % 3, host(i + 1));
  find_neighbour(tables[2].read(), host(1))->mark_used();
  EXPECT_EQ(resolve(host(100)).value(), NeighbourResolution::kStarted);
  EXPECT_EQ(neighbours->count(), kLimit);
  EXPECT_FALSE(knows(2, host(2)));
  EXPECT_EQ(Neighbours::get(tables[2], host(1))->state, State::kDelay) << "in use: asked soon";
}

TEST_F(CrowdedNeighboursTest, WhatIsInUseStays) {
  using Make = std::pair<const char*, std::function<void(IpAddress)>>;
  const std::array<Make, 5> makes = {{
      {"permanent", [&](IpAddress a) { ASSERT_TRUE(add(1, a, State::kPermanent, kAdd).has_value()); }},
      {"reachable", [&](IpAddress a) { ASSERT_TRUE(add(1, a, State::kReachable, kAdd).has_value()); }},
      {"probe", [&](IpAddress a) { ASSERT_TRUE(add(1, a, State::kProbe, kAdd).has_value()); }},
      {"incomplete", [&](IpAddress a) { ASSERT_TRUE(resolve(a).has_value()); }},
      {"used",
       [&](IpAddress a) {
         learn_stale(1, a);
         find(a)->mark_used();
       }},
  }};
  for (const auto& [name, make] : makes) {
    for (uint32_t i = 1; i <= kInterfaceLimit; ++i) make(host(i));
    EXPECT_EQ(resolve(host(100)).error().code, ENOBUFS) << name;
    EXPECT_EQ(Neighbours::count_of(tables[1]), kInterfaceLimit);
    neighbours->flush(tables[1], Neighbours::Flush::kAll, retired);
  }
}

TEST_F(CrowdedNeighboursTest, AFloodOfSendersStopsNobody) {
  for (uint32_t i = 1; i <= 10'000; ++i) {
    learn_stale(1 + i % 6, visitor_of(i));
    if (i % 100 != 0) continue;
    ASSERT_EQ(resolve(host(i)).value(), NeighbourResolution::kStarted);
    ASSERT_TRUE(learn(host(i), kAnswer)->resolved);
    ASSERT_TRUE(neighbours->remove(tables[1], host(i), retired).has_value());
    submit();
  }
  EXPECT_EQ(neighbours->count(), kLimit - 1);
}

// At a limit somebody comes if and only if somebody can go, and only such a one goes.
TEST_F(CrowdedNeighboursTest, RandomComersTakeOnlyUnusedPlaces) {
  std::mt19937_64 random(seed_of_this_run());
  struct Place {
    State state;
    bool used;
    bool free() const { return state == State::kFailed || (state == State::kStale && !used); }
  };
  using Places = std::map<std::pair<uint32_t, IpAddress>, Place>;
  const auto look = [&] {
    Places places;
    for (uint32_t interface = 1; interface <= 4; ++interface)
      for (const NeighbourInfo& info : dump(interface))
        places[{interface, info.address}] = {
            info.state, find_neighbour(tables[interface].read(), info.address)->used.load()};
    return places;
  };
  uint32_t refused = 0;
  uint32_t evicted = 0;
  for (int step = 0; step < 20'000; ++step) {
    const uint32_t interface = 1 + static_cast<uint32_t>(random() % 4);
    const IpAddress address = host(1 + static_cast<uint32_t>(random() % 40));
    Neighbours::Table& table = tables[interface];
    const Places before = look();
    const unsigned what = random() % 100;
    if (what < 3) {
      advance(random() % 2 * kNsPerSecond);
    } else if (what < 20 && !before.empty()) {
      const auto chosen = std::next(before.begin(), static_cast<long>(random() % before.size()))->first;
      if (random() % 4 != 0)
        find_neighbour(tables[chosen.first].read(), chosen.second)->mark_used();
      else
        ASSERT_TRUE(neighbours->remove(tables[chosen.first], chosen.second, retired).has_value());
    } else if (!before.contains({interface, address})) {
      uint32_t here = 0;
      bool free_here = false;
      bool free_anywhere = false;
      for (const auto& [key, place] : before) {
        here += key.first == interface;
        free_here |= key.first == interface && place.free();
        free_anywhere |= place.free();
      }
      const bool full_here = here == kInterfaceLimit;
      const bool comes = full_here ? free_here : before.size() < kLimit || free_anywhere;
      bool came = false;
      if (what < 50)
        came = neighbours->resolve(table, interface, address, now, retired).has_value();
      else if (what < 90)
        came =
            neighbours->learn(table, interface, address, kMac, NeighbourEvidence::other(true), now, retired)
                .has_value();
      else
        came = add(interface, address, State::kPermanent, kAdd).has_value();
      ASSERT_EQ(came, comes) << "step " << step;
      refused += !came;
      const Places after = look();
      for (const auto& [key, place] : before) {
        if (after.contains(key)) continue;
        ASSERT_TRUE(place.free()) << format_address(key.second);
        ASSERT_TRUE(!full_here || key.first == interface);
        ++evicted;
      }
      ASSERT_EQ(after.contains({interface, address}), came);
      ASSERT_LE(after.size(), kLimit);
    }
    if (step % 50 == 0) submit();
  }
  EXPECT_GT(refused, 100U);
  EXPECT_GT(evicted, 100U);
}

TEST_F(NeighboursTest, NobodyAnswers) {
  EXPECT_EQ(resolve(host(1)).value(), NeighbourResolution::kStarted);
  EXPECT_EQ(resolve(host(1)).value(), NeighbourResolution::kRunning);
  EXPECT_FALSE(find(host(1))->read().usable());
  EXPECT_TRUE(advance(kNsPerSecond - kNsPerMs).empty());
  const auto second = advance(kNsPerMs);
  ASSERT_EQ(second.size(), 1U);
  EXPECT_EQ(second[0].kind, Kind::kAskEveryone);
  EXPECT_EQ(second[0].ifindex, 1U);
  EXPECT_EQ(second[0].address, host(1));
  EXPECT_EQ(advance(kNsPerSecond).size(), 1U);
  const auto failed = advance(kNsPerSecond);
  ASSERT_EQ(failed.size(), 1U);
  EXPECT_EQ(failed[0].kind, Kind::kFailed);
  EXPECT_EQ(state_of(host(1)), State::kFailed);
  EXPECT_EQ(advance(kNsPerSecond)[0].kind, Kind::kForgotten);
  EXPECT_EQ(tables[1].own(), nullptr);
  EXPECT_EQ(resolve(host(1)).value(), NeighbourResolution::kStarted);
  run_until(3);
  EXPECT_EQ(state_of(host(1)), State::kFailed);
  EXPECT_EQ(resolve(host(1)).value(), NeighbourResolution::kStarted);
}

TEST_F(NeighboursTest, TheWholeLife) {
  ASSERT_TRUE(resolve(host(1)).has_value());
  const auto answered = learn(host(1), kAnswer);
  EXPECT_TRUE(answered->resolved && answered->changed && answered->known);
  EXPECT_EQ(state_of(host(1)), State::kReachable);
  EXPECT_EQ(resolve(host(1)).value(), NeighbourResolution::kUsable);
  EXPECT_TRUE(advance(30 * kNsPerSecond).empty());
  EXPECT_EQ(state_of(host(1)), State::kStale);
  advance(50 * kNsPerSecond);
  EXPECT_EQ(state_of(host(1)), State::kStale);
  find(host(1))->mark_used();
  EXPECT_TRUE(advance(5 * kNsPerSecond).empty());
  EXPECT_EQ(state_of(host(1)), State::kDelay);
  const auto probes = advance(5 * kNsPerSecond);
  ASSERT_EQ(probes.size(), 1U);
  EXPECT_EQ(probes[0].kind, Kind::kAskDirectly);
  EXPECT_EQ(probes[0].mac, kMac);
  EXPECT_EQ(state_of(host(1)), State::kProbe);
  EXPECT_FALSE(learn(host(1), kAnswer)->resolved);
  EXPECT_EQ(state_of(host(1)), State::kReachable);

  advance(30 * kNsPerSecond);
  find(host(1))->mark_used();
  const auto last = run_until(4);
  ASSERT_EQ(last.size(), 4U);
  EXPECT_EQ(last[2].kind, Kind::kAskDirectly);
  EXPECT_EQ(last[3].kind, Kind::kFailed);
  EXPECT_EQ(find(host(1)), nullptr);
}

TEST_F(NeighboursTest, AnUnusedOneIsForgottenAfterAMinute) {
  EXPECT_FALSE(learn(host(1), NeighbourEvidence::other(false))->known);
  EXPECT_TRUE(learn(host(1), NeighbourEvidence::other(true))->known);
  EXPECT_EQ(state_of(host(1)), State::kStale);
  const uint64_t began = now;
  const auto actions = run_until(1);
  ASSERT_EQ(actions.size(), 1U);
  EXPECT_EQ(actions[0].kind, Kind::kForgotten);
  EXPECT_EQ(now - began, 60 * kNsPerSecond);
}

TEST_F(NeighboursTest, WhatLearningChanges) {
  ASSERT_TRUE(add(1, host(1), State::kPermanent, kAdd).has_value());
  EXPECT_FALSE(learn(host(1), kAnswer, kMac + 1)->known);
  EXPECT_EQ(find(host(1))->read().mac(), kMac);
  ASSERT_TRUE(add(1, host(2), State::kReachable, kAdd).has_value());
  EXPECT_FALSE(learn(host(2), NeighbourEvidence::other(true))->changed);
  EXPECT_EQ(state_of(host(2)), State::kReachable);
  EXPECT_TRUE(learn(host(2), NeighbourEvidence::other(true), kMac + 1)->changed);
  EXPECT_EQ(state_of(host(2)), State::kStale);
  EXPECT_FALSE(learn(host(3), kAnswer, kBroadcastMac)->known);
  EXPECT_FALSE(learn(host(3), kAnswer, 0)->known);
  EXPECT_EQ(find(host(3)), nullptr);
  ASSERT_TRUE(resolve(host(4)).has_value());
  EXPECT_TRUE(add(1, host(4), State::kPermanent, kReplace)->resolved);
}

// RFC 4861 7.2.5.
TEST_F(NeighboursTest, AdvertisementsThatDoNotOverride) {
  const NeighbourEvidence solicited{.solicited = true, .overrides = false, .router = true};
  const NeighbourEvidence unsolicited{.overrides = false, .router = false};
  EXPECT_FALSE(learn(host(1), solicited)->known);
  ASSERT_TRUE(resolve(host(1)).has_value());
  EXPECT_TRUE(learn(host(1), solicited)->resolved);
  EXPECT_EQ(state_of(host(1)), State::kReachable);
  EXPECT_TRUE(Neighbours::get(tables[1], host(1))->router);
  EXPECT_FALSE(learn(host(1), unsolicited, kMac + 1)->known);
  EXPECT_EQ(state_of(host(1)), State::kStale);
  EXPECT_EQ(find(host(1))->read().mac(), kMac);
  EXPECT_TRUE(Neighbours::get(tables[1], host(1))->router) << "nothing but the state changes";
  EXPECT_FALSE(learn(host(1), solicited, kMac + 1)->changed);
  EXPECT_EQ(state_of(host(1)), State::kStale);
  EXPECT_TRUE(learn(host(1), unsolicited)->known);
  EXPECT_FALSE(Neighbours::get(tables[1], host(1))->router);
  EXPECT_TRUE(learn(host(1), solicited)->changed);
  EXPECT_EQ(state_of(host(1)), State::kReachable);
}

TEST_F(NeighboursTest, FlushKeepsWhatItIsToldTo) {
  for (uint32_t i = 1; i <= 900; ++i)
    ASSERT_TRUE(add(1, host(i), i % 90 == 0 ? State::kPermanent : State::kReachable, kAdd).has_value());
  EXPECT_EQ(neighbours->flush(tables[1], Neighbours::Flush::kKeepPermanent, retired), 890U);
  EXPECT_EQ(dump(1).size(), 10U);
  EXPECT_LE(tables[1].own()->retired.bytes, 192U);
  for (uint32_t i = 1; i <= 10; ++i) EXPECT_NE(find(host(90 * i)), nullptr);
  EXPECT_EQ(neighbours->flush(tables[1], Neighbours::Flush::kAll, retired), 10U);
  EXPECT_EQ(tables[1].own(), nullptr);
  EXPECT_EQ(neighbours->flush(tables[1], Neighbours::Flush::kAll, retired), 0U);
  wait_for_teardown();
  EXPECT_EQ(pools.blocks_in_use(), 0U);
}

TEST_F(NeighboursTest, ADumpSurvivesEveryChange) {
  std::mt19937_64 random(seed_of_this_run());
  std::set<IpAddress> stay;
  for (uint32_t i = 1; i <= 300; ++i) {
    ASSERT_TRUE(add(1, host(i), State::kPermanent, kAdd).has_value());
    stay.insert(host(i));
  }
  std::multiset<IpAddress> seen;
  std::vector<NeighbourInfo> part;
  uint64_t cursor = 0;
  for (bool more = true; more;) {
    more = Neighbours::dump(tables[1], cursor, part);
    for (const NeighbourInfo& info : part) seen.insert(info.address);
    part.clear();
    for (int i = 0; i < 100; ++i) {  // the table grows from part to part, others come and go
      const IpAddress other = visitor_of(static_cast<uint32_t>(random() % 1'000));
      if (add(1, other, State::kPermanent, kAdd)) continue;
      ASSERT_TRUE(neighbours->remove(tables[1], other, retired).has_value());
    }
  }
  for (const IpAddress address : stay) EXPECT_EQ(seen.count(address), 1U) << format_address(address);
}

TEST_F(NeighboursTest, WithoutMemoryNothingChanges) {
  std::vector<Retired*> taken;
  for (const size_t bytes : {48, 64})
    while (Retired* block = pools.allocate(bytes)) taken.push_back(block);
  EXPECT_EQ(add(1, host(1), State::kPermanent, kAdd).error().code, ENOBUFS);
  pools.free_unpublished(*taken.back());  // the neighbour has a block now, its table none
  taken.pop_back();
  EXPECT_EQ(add(1, host(1), State::kPermanent, kAdd).error().code, ENOBUFS);
  EXPECT_EQ(tables[1].own(), nullptr);
  EXPECT_EQ(neighbours->count(), 0U);
  for (Retired* block : taken) pools.free_unpublished(*block);
  EXPECT_TRUE(add(1, host(1), State::kPermanent, kAdd).has_value());
}

// A slow and obvious neighbour: what it is and when that ends.
struct ModelNeighbour {
  Mac mac = 0;
  State state = State::kFailed;
  uint64_t since_ns = 0;
  uint32_t tries = 0;
  bool used = false;
};

class Model {
 public:
  void set(IpAddress address, Mac mac, State state, uint64_t now, uint32_t tries = 0) {
    all[address] = {mac, state, now, tries, false};
  }

  void tick(uint64_t now, std::multiset<std::pair<Kind, IpAddress>>& actions) {
    for (auto at = all.begin(); at != all.end();) {
      auto& [address, neighbour] = *at;
      const bool gone = expire(address, neighbour, now, actions);
      at = gone ? all.erase(at) : std::next(at);
    }
  }

  std::map<IpAddress, ModelNeighbour> all;

 private:
  static bool expire(IpAddress address, ModelNeighbour& it, uint64_t now,
                     std::multiset<std::pair<Kind, IpAddress>>& actions) {
    const uint64_t waited_s = (now - it.since_ns) / kNsPerSecond;
    const auto become = [&](State state, uint32_t tries) { it = {it.mac, state, now, tries, false}; };
    if (it.state == State::kIncomplete && waited_s >= 1) {
      actions.insert({it.tries < 3 ? Kind::kAskEveryone : Kind::kFailed, address});
      it.tries < 3 ? become(State::kIncomplete, it.tries + 1) : become(State::kFailed, 0);
    } else if (it.state == State::kReachable && waited_s >= 30) {
      become(State::kStale, 0);
    } else if (it.state == State::kStale && waited_s >= 5) {
      if (it.used) {
        become(State::kDelay, 0);
      } else if (it.tries + 1 < 12) {
        become(State::kStale, it.tries + 1);
      } else {
        actions.insert({Kind::kForgotten, address});
        return true;
      }
    } else if (it.state == State::kDelay && waited_s >= 5) {
      actions.insert({Kind::kAskDirectly, address});
      become(State::kProbe, 1);
    } else if (it.state == State::kProbe && waited_s >= 1) {
      actions.insert({it.tries < 3 ? Kind::kAskDirectly : Kind::kFailed, address});
      if (it.tries == 3) return true;
      become(State::kProbe, it.tries + 1);
    } else if (it.state == State::kFailed && waited_s >= 1) {
      actions.insert({Kind::kForgotten, address});
      return true;
    }
    return false;
  }
};

TEST_F(NeighboursTest, RandomLivesEqualTheModel) {
  std::mt19937_64 random(seed_of_this_run());
  constexpr std::array<State, 5> kGiven = {State::kReachable, State::kStale, State::kDelay, State::kProbe,
                                           State::kPermanent};
  Model model;
  for (int step = 0; step < 60'000; ++step) {
    const IpAddress address = host(1 + static_cast<uint32_t>(random() % 150));
    const Mac mac = kMac + random() % 3;
    const bool known = model.all.contains(address);
    const unsigned what = random() % 100;
    if (what < 15) {
      const NeighbourAdd how{.create = random() % 4 != 0, .replace = random() % 2 != 0};
      const State state = kGiven[random() % kGiven.size()];
      const auto added = add(1, address, state, how, mac);
      ASSERT_EQ(added ? 0 : added.error().code,
                known ? (how.replace ? 0 : EEXIST) : (how.create ? 0 : ENOENT));
      if (added) model.set(address, mac, state, now);
    } else if (what < 25) {
      ASSERT_EQ(neighbours->remove(tables[1], address, retired).has_value(), known);
      model.all.erase(address);
    } else if (what < 45) {
      const NeighbourEvidence evidence{
          .solicited = random() % 2 == 0, .overrides = random() % 2 == 0, .creates = random() % 2 == 0};
      ASSERT_TRUE(learn(address, evidence, mac).has_value());
      const State learned = evidence.solicited ? State::kReachable : State::kStale;
      const ModelNeighbour old = known ? model.all[address] : ModelNeighbour{};
      const bool usable = known && old.state != State::kIncomplete && old.state != State::kFailed;
      if (!known) {
        if (evidence.creates) model.set(address, mac, learned, now);
      } else if (old.state != State::kPermanent) {
        if (usable && old.mac != mac && !evidence.overrides) {
          if (old.state == State::kReachable) model.set(address, old.mac, State::kStale, now);
        } else if (!usable || old.mac != mac || evidence.solicited) {
          model.set(address, mac, learned, now);
        }
      }
    } else if (what < 60) {
      const bool starts = !known || model.all[address].state == State::kFailed;
      ASSERT_EQ(resolve(address).value() == NeighbourResolution::kStarted, starts);
      if (starts) model.set(address, 0, State::kIncomplete, now, 1);
    } else if (what < 75 && known) {
      find(address)->mark_used();
      model.all[address].used = true;
    } else if (what == 75 && random() % 20 == 0) {
      const bool all = random() % 2 == 0;
      neighbours->flush(tables[1], all ? Neighbours::Flush::kAll : Neighbours::Flush::kKeepPermanent,
                        retired);
      std::erase_if(model.all,
                    [&](const auto& each) { return all || each.second.state != State::kPermanent; });
    } else if (what > 75) {
      // Whole seconds, and no step beyond the shortest timeout: every timer ends when a step does.
      std::multiset<std::pair<Kind, IpAddress>> wanted;
      model.tick(now + kNsPerSecond, wanted);
      std::multiset<std::pair<Kind, IpAddress>> actions;
      for (const NeighbourAction& action : advance(kNsPerSecond))
        actions.insert({action.kind, action.address});
      ASSERT_EQ(actions, wanted);
    }
    ASSERT_EQ(neighbours->count(), model.all.size());
    if (step % 50 != 0) continue;
    submit();
    std::map<IpAddress, ModelNeighbour> dumped;
    for (const NeighbourInfo& info : dump(1)) dumped[info.address] = {.mac = info.mac, .state = info.state};
    ASSERT_EQ(dumped.size(), model.all.size());
    for (const auto& [each, wanted] : model.all) {
      ASSERT_EQ(dumped[each].state, wanted.state) << format_address(each);
      ASSERT_EQ(dumped[each].mac, wanted.mac) << format_address(each);
      ASSERT_EQ(find(each)->read().word(), NeighbourWord(wanted.mac, wanted.state).word());
    }
  }
}

// A hundred neighbours stay, others come and go around them and the table is replaced again and again: a
// reader finds the hundred every time, and what it finds is never a block that was given back.
TEST_F(NeighboursTest, ReadersFindWhatIsThere) {
  std::mt19937_64 random(seed_of_this_run());
  for (uint32_t i = 1; i <= 100; ++i)
    ASSERT_TRUE(add(1, host(i), State::kPermanent, kAdd, kMac + i).has_value());
  std::atomic<bool> stop = false;
  std::atomic<uint64_t> wrong = 0;
  std::atomic<uint64_t> rounds = 0;
  std::thread reader([&] {
    rcu_register_worker();
    for (uint32_t turn = 0; !stop.load(std::memory_order_relaxed); ++turn) {
      const NeighbourTable* table = tables[1].read();
      for (uint32_t i = 1; i <= 100; ++i) {
        const Neighbour* neighbour = find_neighbour(table, host(i));
        if (neighbour == nullptr || neighbour->address != host(i) || neighbour->read().mac() != kMac + i)
          ++wrong;
        if (neighbour != nullptr) neighbour->mark_used();
      }
      const uint32_t number = turn % 500;
      const IpAddress visitor = visitor_of(number);
      const Neighbour* neighbour = find_neighbour(table, visitor);
      if (neighbour != nullptr && (neighbour->address != visitor || neighbour->read().mac() != kMac + number))
        ++wrong;
      ++rounds;
      rcu_quiescent_state();
    }
    rcu_unregister_worker();
  });
  for (uint32_t turn = 0; turn < 20'000 || rounds.load() < 1'000; ++turn) {
    // Waves of different height, so that the table grows and shrinks.
    const auto number = static_cast<uint32_t>(random() % (turn / 2'000 % 2 == 0 ? 500 : 5));
    const IpAddress visitor = visitor_of(number);
    if (!add(1, visitor, State::kReachable, kAdd, kMac + number)) {
      EXPECT_TRUE(neighbours->remove(tables[1], visitor, retired).has_value());
    }
    if (turn % 2'000 == 1'999)
      for (uint32_t each = 0; each < 500; ++each)
        (void)neighbours->remove(tables[1], visitor_of(each), retired);
    if (turn % 8 == 0) submit();
  }
  stop = true;
  reader.join();
  EXPECT_EQ(wrong.load(), 0U);
}

}  // namespace
}  // namespace mayfly
