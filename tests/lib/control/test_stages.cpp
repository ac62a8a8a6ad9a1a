// SPDX-License-Identifier: BSD-3-Clause
// kCmdStages and kCmdStagesSet, as the daemon answers and as clients read it (stage_view.hpp).
#include <gtest/gtest.h>

#include <string>

#include "control/stage_view.hpp"
#include "control_world.hpp"

namespace mayfly {
namespace {

struct Answered {
  StageView view;
  int code = -1;  // of the acknowledgement, or 0 at the end of a dump
  std::string text;
};

class StagesControl : public ::testing::Test {
 protected:
  Answered ask(RequestMessage& message) {
    nlmsghdr& header = *message.header();
    header.nlmsg_flags |= NLM_F_ACK;
    header.nlmsg_seq = ++sequence_;
    const auto answers = client_.exchange({reinterpret_cast<const std::byte*>(&header), header.nlmsg_len});
    Answered answered;
    int left = static_cast<int>(answers.size());
    for (auto* at = reinterpret_cast<const nlmsghdr*>(answers.data()); mnl_nlmsg_ok(at, left);
         at = mnl_nlmsg_next(at, &left)) {
      if (at->nlmsg_seq != sequence_) continue;
      if (at->nlmsg_type == protocol::kGenericFamilyId)
        add_stages(*at, answered.view);
      else if (at->nlmsg_type == NLMSG_DONE)
        answered.code = 0;
      else
        answered = refused(*at);
    }
    return answered;
  }
  Answered refused(const nlmsghdr& message) {
    const auto& error = *static_cast<const nlmsgerr*>(mnl_nlmsg_get_payload(&message));
    const Attributes attributes(message, sizeof error + error.msg.nlmsg_len - sizeof(nlmsghdr));
    const bool capped = (message.nlmsg_flags & NLM_F_CAPPED) != 0;
    const Attributes short_ones(message, sizeof error);
    return {.view = {},
            .code = -error.error,
            .text = std::string((capped ? short_ones : attributes).string(NLMSGERR_ATTR_MSG))};
  }
  StageView show() {
    RequestMessage message;
    begin_stages_show(message);
    Answered answered = ask(message);
    EXPECT_EQ(answered.code, 0);
    EXPECT_EQ(answered.view.workers.size(), 1u);
    return answered.view;
  }
  void turn(bool on) {
    RequestMessage message;
    begin_stages_switch(message, on);
    EXPECT_EQ(ask(message).code, 0);
  }
  void reset() {
    RequestMessage message;
    begin_stages_reset(message);
    EXPECT_EQ(ask(message).code, 0);
  }
  StageCounters& counters() { return world_.dataplane().workers[0].statistics->stages; }
  StageSum shown(Stage stage) { return show().workers.at(0).rows.at(static_cast<size_t>(stage)).sum; }

  ControlWorld world_;
  TestClient client_{world_, NETLINK_GENERIC};
  uint32_t sequence_ = 100;
};

TEST_F(StagesControl, TheSwitchReachesTheWorkers) {
  EXPECT_FALSE(show().on);
  EXPECT_FALSE(counters().on());
  turn(true);
  EXPECT_TRUE(show().on);
  EXPECT_TRUE(counters().on());
  turn(false);
  EXPECT_FALSE(show().on);
  EXPECT_FALSE(counters().on());
}

TEST_F(StagesControl, CountsAreThoseSinceItWasTurnedOnOrReset) {
  counters().add(Stage::route, 1'000, 1'000);
  turn(true);
  EXPECT_EQ(shown(Stage::route), StageSum{});
  counters().add(Stage::route, 10, 250);
  turn(true);
  EXPECT_EQ(shown(Stage::route), (StageSum{.vectors = 1, .packets = 10, .clocks = 250})) << "it was on";
  turn(false);
  EXPECT_EQ(shown(Stage::route), (StageSum{.vectors = 1, .packets = 10, .clocks = 250}));
  turn(true);
  EXPECT_EQ(shown(Stage::route), StageSum{});
  counters().add(Stage::route, 3, 30);
  reset();
  EXPECT_TRUE(show().on);
  EXPECT_EQ(shown(Stage::route), StageSum{});
  counters().add(Stage::route, 4, 40);
  EXPECT_EQ(shown(Stage::route), (StageSum{.vectors = 1, .packets = 4, .clocks = 40}));
  turn(false);
  reset();
  EXPECT_FALSE(counters().on());
  EXPECT_EQ(shown(Stage::route), StageSum{});
}

TEST_F(StagesControl, TimeIsCountedWhileItIsOn) {
  EXPECT_EQ(show().counted_ns, 0u);
  turn(true);
  const uint64_t first = show().counted_ns;
  EXPECT_GT(show().counted_ns, first);
  turn(false);
  const uint64_t last = show().counted_ns;
  EXPECT_GT(last, first);
  EXPECT_EQ(show().counted_ns, last);
  reset();
  EXPECT_EQ(show().counted_ns, 0u);
}

TEST_F(StagesControl, WhatAClientMakesOfIt) {
  turn(true);
  counters().add(Stage::rx, 40, 400);
  counters().add(Stage::rx, 60, 600);
  counters().add(Stage::classify, 100, 2'000);
  counters().add(Stage::tx, 100, 1'500);
  counters().add(Stage::loop, 100, 500);
  counters().add(Stage::messages, 0, 7'000);
  counters().add(Stage::idle, 0, 12'000);
  const StageView view = show();
  const WorkerStages& worker = view.workers.at(0);
  EXPECT_EQ(worker.worker, 0u);
  ASSERT_EQ(worker.rows.size(), kStages);
  for (size_t i = 0; i < kStages; ++i) {
    EXPECT_EQ(worker.rows[i].name, kStageDescriptions[i].name);
    EXPECT_EQ(worker.rows[i].kind, kStageDescriptions[i].kind);
  }
  const StageRow& rx = worker.rows[static_cast<size_t>(Stage::rx)];
  EXPECT_EQ(rx.packets_per_vector(), 50.0);
  EXPECT_EQ(rx.clocks_per_packet(), 10.0);
  EXPECT_EQ(rx.clocks_per_vector(), 500.0);
  const StageRow& messages = worker.rows[static_cast<size_t>(Stage::messages)];
  EXPECT_EQ(messages.packets_per_vector(), std::nullopt);
  EXPECT_EQ(messages.clocks_per_packet(), std::nullopt);
  EXPECT_EQ(messages.clocks_per_vector(), 7'000.0);
  EXPECT_EQ(worker.rows[static_cast<size_t>(Stage::local6)].clocks_per_vector(), std::nullopt);
  EXPECT_EQ(worker.received(), 100u);
  EXPECT_EQ(worker.clocks_per_packet(), 50.0);
  EXPECT_EQ(worker.clocks_outside_bursts(), 25.0);
  EXPECT_EQ(worker.busy_clocks(), 12'000u);
  EXPECT_EQ(worker.counted_clocks(), 24'000u);

  StageView two = view;
  two.workers.push_back(worker);
  two.workers[1].rows[static_cast<size_t>(Stage::rx)].sum.packets = 300;
  EXPECT_EQ(two.all().received(), 400u);
  EXPECT_EQ(two.all().counted_clocks(), 48'000u);
  EXPECT_EQ(two.all().clocks_per_packet(), 25.0);
  EXPECT_EQ(StageView{}.all().received(), 0u);
  EXPECT_EQ(StageView{}.all().clocks_per_packet(), std::nullopt);
}

TEST_F(StagesControl, RefusesWhatMeansNothing) {
  RequestMessage message;
  message.begin_generic(protocol::kCmdStagesSet);
  Answered answered = ask(message);
  EXPECT_EQ(answered.code, EINVAL);
  EXPECT_NE(answered.text.find("neither 'on' nor 'reset'"), std::string::npos) << answered.text;
  message.put_u8(protocol::kStagesOn, 2);
  answered = ask(message);
  EXPECT_EQ(answered.code, EINVAL);
  EXPECT_NE(answered.text.find("on 2: accepted 0 and 1"), std::string::npos) << answered.text;
  message.begin_generic(protocol::kCmdStagesSet);
  message.put_u32(protocol::kStagesOn, 1);
  EXPECT_EQ(ask(message).code, EINVAL);
  message.begin_generic(protocol::kCmdStagesSet);
  message.put_flag(protocol::kStagesReset);
  message.put_u64(protocol::kStagesCounted, 1);
  EXPECT_EQ(ask(message).code, EINVAL);
  EXPECT_FALSE(counters().on());
}

}  // namespace
}  // namespace mayfly
