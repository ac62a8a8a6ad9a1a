// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "mayfly-perf/scenario.hpp"

namespace mayfly::perf {
namespace {

constexpr std::string_view kWhole = R"(about: sessions
skipped: [policers]
setup:
  - link add lo100 type dummy up
traffic:
  - {port: port1, protocol: 802.1ad, outer: 100-101, inner: 1-50, source: 10.0.0.1, source_step: 2, target: 192.0.2.1,
     active: 30, zipf: 1.0, frames: 4000, sizes: [{bytes: 128, percent: 70}, {bytes: 1500, percent: 30}]}
flaps:
  - {name: one, after: 1s, every: 4s, times: 3, steps: [link del lo100, pause 500ms, link add lo100 type dummy]}
duration: 15s
expect: {interfaces: 7, lost: 2}
)";

TEST(Scenario, ReadsEveryKey) {
  const auto scenario = parse_scenario(kWhole, "s.yaml");
  ASSERT_TRUE(scenario.has_value()) << scenario.error().text;
  EXPECT_EQ(scenario->about, "sessions");
  EXPECT_EQ(scenario->skipped, std::vector<std::string>{"policers"});
  EXPECT_EQ(scenario->setup.size(), 1u);
  EXPECT_EQ(scenario->duration_ns, 15 * kNsPerSecond);
  EXPECT_EQ(scenario->interfaces, 7u);
  EXPECT_EQ(scenario->most_lost, 2u);
  ASSERT_EQ(scenario->flaps.size(), 1u);
  const Flap& flap = scenario->flaps[0];
  EXPECT_EQ(flap.after_ns, kNsPerSecond);
  EXPECT_EQ(flap.every_ns, 4 * kNsPerSecond);
  EXPECT_EQ(flap.times, 3u);
  ASSERT_EQ(flap.steps.size(), 3u);
  EXPECT_EQ(flap.steps[0].line, "link del lo100");
  EXPECT_EQ(flap.steps[1].pause_ns, 500 * kNsPerMs);
  ASSERT_EQ(scenario->traffic.size(), 1u);
  EXPECT_EQ(scenario->traffic[0].sessions, 100u);
  EXPECT_EQ(scenario->traffic[0].protocol, 0x88a8);
  EXPECT_EQ(scenario->traffic[0].port, 1u);
}

TEST(Scenario, FramesAreThoseOfActiveSessions) {
  const auto scenario = parse_scenario(kWhole, "s.yaml");
  ASSERT_TRUE(scenario.has_value());
  EXPECT_TRUE(scenario_frames(*scenario, 0, 1, 1).empty());
  const auto frames = scenario_frames(*scenario, 1, 1, 1);
  ASSERT_EQ(frames.size(), 4'000u);
  EXPECT_EQ(frames, scenario_frames(*scenario, 1, 1, 1));
  EXPECT_NE(frames, scenario_frames(*scenario, 1, 1, 2));
  const auto word = [](const std::vector<uint8_t>& frame, size_t at) {
    return static_cast<unsigned>(frame[at] << 8 | frame[at + 1]);
  };
  std::map<std::pair<unsigned, unsigned>, unsigned> hits;
  unsigned large = 0;
  for (const auto& frame : frames) {
    EXPECT_EQ(word(frame, 12), 0x88a8u);
    EXPECT_EQ(word(frame, 16), 0x8100u);
    const unsigned outer = word(frame, 14), inner = word(frame, 18);
    ASSERT_TRUE(outer >= 100 && outer <= 101 && inner >= 1 && inner <= 50);
    // The address is that of the session's place.
    const unsigned place = (outer - 100) * 50 + inner - 1;
    EXPECT_EQ(word(frame, 34) << 16 | word(frame, 36), 0x0a000001 + 2 * place);
    ++hits[{outer, inner}];
    large += frame.size() > 1'000 ? 1 : 0;
  }
  EXPECT_LE(hits.size(), 30u);
  EXPECT_GE(hits.size(), 25u);
  // Zipf with exponent 1 over 30: the first has a quarter of all, and 30 % of the frames are large.
  unsigned most = 0;
  for (const auto& [session, count] : hits) most = std::max(most, count);
  EXPECT_NEAR(most, 1'000, 200);
  EXPECT_NEAR(large, 1'200, 200);
}

TEST(Scenario, RefusesWithTheLine) {
  const std::string head = "setup: []\nduration: 1s\n";
  const struct {
    std::string text;
    const char* says;
  } cases[] = {
      {"duration: 1s\n", "setup"},
      {"setup: []\n", "duration"},
      {head + "speed: 5\n", "s.yaml:3: speed"},
      {head + "duration: 2s\n", "duration"},
      {"setup: []\nduration: 5\n", "s.yaml:2: duration"},
      {head + "traffic: [{port: port2, source: 10.0.0.1, target: 10.0.0.2}]\n", "port2"},
      {head + "traffic: [{port: port0, target: 10.0.0.2}]\n", "source"},
      {head + "traffic: [{port: port0, source: 10.0.0.1, target: 'fd00::1'}]\n", "another family"},
      {head + "traffic: [{port: port0, source: 10.0.0.1, target: 10.0.0.2, inner: 1-5}]\n", "no outer tag"},
      {head + "traffic: [{port: port0, source: 10.0.0.1, target: 10.0.0.2, outer: 1-5000}]\n", "outer"},
      {head + "traffic: [{port: port0, source: 10.0.0.1, target: 10.0.0.2, zipf: -1}]\n", "accepted 0 .. 5"},
      {head + "traffic: [{port: port0, source: 10.0.0.1, target: 10.0.0.2, active: 0}]\n", "active"},
      {head + "traffic: [{port: port0, source: 10.0.0.1, target: 10.0.0.2, sizes: [{bytes: 64, percent: "
              "99}]}]\n",
       "99 % in all: accepted 100"},
      {head + "flaps: [{steps: []}]\n", "name"},
      {head + "flaps: [{name: a, steps: [pause soon]}]\n", "pause"},
      {head + "expect: {found: 3}\n", "found"},
      {"[1, 2]", "s.yaml:1"},
      {"a: [", "s.yaml:"},
  };
  for (const auto& [text, says] : cases) {
    const auto scenario = parse_scenario(text, "s.yaml");
    ASSERT_FALSE(scenario.has_value()) << text;
    EXPECT_NE(scenario.error().text.find(says), std::string::npos) << text << ": " << scenario.error().text;
  }
  EXPECT_FALSE(load_scenario("/nowhere/s.yaml").has_value());
  EXPECT_FALSE(load_scenario("/").has_value());
}

TEST(Scenario, TheOnesThatComeWithItAreWellFormed) {
  for (const char* name : {"ipoe-1to1", "lns-flap", "k8s-node", "vpn-hub"}) {
    const auto scenario = load_scenario(fmt::format(MAYFLY_SCENARIOS "/{}.yaml", name));
    EXPECT_TRUE(scenario.has_value()) << scenario.error().text;
  }
}

}  // namespace
}  // namespace mayfly::perf
