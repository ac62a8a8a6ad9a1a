// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "../base/seed.hpp"
#include "stats/stage_laps.hpp"

namespace mayfly {
namespace {

TEST(StageNames, EachHasOneOfItsOwn) {
  std::set<std::string_view> names;
  for (const StageDescription& description : kStageDescriptions) {
    EXPECT_FALSE(description.name.empty());
    EXPECT_TRUE(names.insert(description.name).second) << description.name;
  }
  EXPECT_EQ(describe(Stage::rx).name, "rx");
  EXPECT_EQ(describe(Stage::look_up6).name, "look_up6");
  EXPECT_EQ(describe(Stage::tx).kind, StageKind::burst);
  EXPECT_EQ(describe(Stage::messages).kind, StageKind::upkeep);
  EXPECT_EQ(describe(Stage::idle).name, "idle");
}

TEST(StageCountersTest, OffAtFirstAndOnItsOwnLines) {
  StageCounters counters;
  EXPECT_FALSE(counters.on());
  EXPECT_EQ(counters.read(), StageSums{});
  EXPECT_GE(alignof(StageCounters), 64u);
  counters.set_on(true);
  EXPECT_TRUE(counters.on());
  counters.add(Stage::route, 5, 100);
  counters.add(Stage::route, 7, 20);
  counters.add_idle(9);
  StageSums expected{};
  expected[static_cast<size_t>(Stage::route)] = {.vectors = 2, .packets = 12, .clocks = 120};
  expected[static_cast<size_t>(Stage::idle)] = {.clocks = 9};
  EXPECT_EQ(counters.read(), expected);
  EXPECT_EQ(counters.read() - expected, StageSums{});
}

// Every clock by itself: a stack of those whose stage is not known yet.
class Model {
 public:
  void pass(uint64_t clocks) { stack_.back().insert(stack_.back().end(), clocks, 1); }
  void end(Stage stage, uint64_t packets) {
    StageSum& sum = sums[static_cast<size_t>(stage)];
    sum = {sum.vectors + 1, sum.packets + packets, sum.clocks + stack_.back().size()};
    stack_.back().clear();
  }
  void begin_inner() { stack_.emplace_back(); }
  void end_inner(Stage stage, uint64_t packets) {
    end(stage, packets);
    stack_.pop_back();
  }
  void set_aside() {
    aside_ += stack_.back().size();
    stack_.back().clear();
  }
  void end_loop(uint64_t packets) {
    set_aside();
    StageSum& sum = sums[static_cast<size_t>(packets != 0 ? Stage::loop : Stage::idle)];
    if (packets != 0) sum = {sum.vectors + 1, sum.packets + packets, sum.clocks};
    sum.clocks += aside_;
    aside_ = 0;
  }
  size_t depth() const { return stack_.size(); }

  StageSums sums{};

 private:
  std::vector<std::vector<char>> stack_{1};
  uint64_t aside_ = 0;
};

TEST(StageLapsTest, DivideAllTimeAsTheModelDoes) {
  std::mt19937_64 random = testing::seeded_random();
  StageCounters counters;
  StageLaps laps(counters);
  Model model;
  std::vector<uint64_t> outers;
  uint64_t now = random();
  laps.restart(now);
  const uint64_t start = now;
  for (int i = 0; i < 50'000; ++i) {
    const uint64_t clocks = random() % 20;
    now += clocks;
    model.pass(clocks);
    const auto stage = static_cast<Stage>(random() % kStages);
    const uint64_t packets = random() % 65;
    switch (random() % 5) {
      case 0:
        laps.end(now, stage, packets);
        model.end(stage, packets);
        break;
      case 1:
        if (model.depth() == 4) break;
        outers.push_back(laps.begin_inner(now));
        model.begin_inner();
        break;
      case 2:
        if (outers.empty()) break;
        laps.end_inner(now, outers.back(), stage, packets);
        outers.pop_back();
        model.end_inner(stage, packets);
        break;
      case 3:
        if (!outers.empty()) break;
        laps.set_aside(now);
        model.set_aside();
        break;
      case 4:
        if (!outers.empty()) break;
        laps.end_loop(now, packets);
        model.end_loop(packets);
        break;
    }
  }
  while (!outers.empty()) {
    laps.end_inner(now, outers.back(), Stage::tx, 1);
    outers.pop_back();
    model.end_inner(Stage::tx, 1);
  }
  laps.end_loop(now, 1);
  model.end_loop(1);
  EXPECT_EQ(counters.read(), model.sums);
  uint64_t all = 0;
  for (const StageSum& sum : counters.read()) all += sum.clocks;
  EXPECT_EQ(all, now - start);
}

TEST(StageLapsTest, WhatWasBeforeARestartIsForgotten) {
  StageCounters counters;
  StageLaps laps(counters);
  laps.restart(100);
  laps.set_aside(150);
  laps.begin_inner(170);
  laps.restart(1'000);
  laps.end(1'010, Stage::rx, 1);
  laps.end_loop(1'015, 1);
  const StageSums sums = counters.read();
  EXPECT_EQ(sums[static_cast<size_t>(Stage::rx)].clocks, 10u);
  EXPECT_EQ(sums[static_cast<size_t>(Stage::loop)].clocks, 5u);
}

}  // namespace
}  // namespace mayfly
