// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "mayfly-perf/options.hpp"

namespace mayfly::perf {
namespace {

Result<PerfOptions> parse(std::string_view line) {
  std::vector<std::string> words{"mayfly-perf"};
  for (size_t at = 0; at < line.size();) {
    const size_t end = std::min(line.find(' ', at), line.size());
    words.emplace_back(line.substr(at, end - at));
    at = end + 1;
  }
  std::vector<const char*> pointers;
  for (const std::string& word : words) pointers.push_back(word.c_str());
  return parse_perf_options(pointers);
}

TEST(PerfOptions, DefaultsOfEachRun) {
  EXPECT_EQ(parse("churn")->interfaces, 100'000u);
  EXPECT_EQ(parse("forward")->interfaces, 2u);
  EXPECT_EQ(parse("survive")->interfaces, 1'000u);
  EXPECT_EQ(parse("survive")->churn, 50'000u);
  EXPECT_TRUE(parse("")->help);
  EXPECT_TRUE(parse("--help")->help);
  EXPECT_TRUE(parse("churn -h")->help);
  EXPECT_TRUE(parse("--version")->version);
}

TEST(PerfOptions, ReadsEveryWord) {
  const auto options = parse(
      "survive --interfaces 10 --churn 7 --probe-rate 5 --duration 2s --stats-period 0s --seed 9 --size imix "
      "--order random --family 6 --json f --report d --no-stages --dressed -l 3,0-1 -a net_null0 -a "
      "0000:03:00.0 "
      "--hugepages");
  ASSERT_FALSE(options.has_value());
  EXPECT_NE(options.error().text.find("least 74 B"), std::string::npos) << options.error().text;
  const auto larger = parse(
      "survive --interfaces 10 --churn 7 --probe-rate 5 --duration 2s --stats-period 0s --seed 9 --size 200 "
      "--order random --family 6 --json f --report d --no-stages --dressed -l 3,0-1 -a net_null0 -a "
      "0000:03:00.0 "
      "--hugepages");
  ASSERT_TRUE(larger.has_value()) << larger.error().text;
  EXPECT_EQ(larger->interfaces, 10u);
  EXPECT_EQ(larger->churn, 7u);
  EXPECT_EQ(larger->probe_rate, 5u);
  EXPECT_EQ(larger->duration_ns, 2 * kNsPerSecond);
  EXPECT_EQ(larger->period_ns, 0u);
  EXPECT_EQ(larger->seed, 9u);
  EXPECT_EQ(larger->order, Order::random);
  EXPECT_EQ(larger->family, 6u);
  EXPECT_EQ(larger->json, "f");
  EXPECT_EQ(larger->report, "d");
  EXPECT_FALSE(larger->stages);
  EXPECT_TRUE(larger->dressed && !larger->bare && larger->hugepages);
  EXPECT_EQ(larger->cpus, (std::vector<uint32_t>{3, 0, 1}));
  EXPECT_EQ(larger->devices, (std::vector<std::string>{"net_null0", "0000:03:00.0"}));
  const auto ways = parse("churn --ways single,bulk --kind veth --rounds 3 --socket /s --link p1");
  ASSERT_TRUE(ways.has_value()) << ways.error().text;
  EXPECT_EQ(ways->ways, (std::vector<Way>{Way::single, Way::bulk}));
  EXPECT_EQ(ways->kind, "veth");
  EXPECT_EQ(ways->rounds, 3u);
  EXPECT_EQ(ways->socket, "/s");
  EXPECT_EQ(ways->link, "p1");
}

TEST(PerfOptions, RefusesWithASentence) {
  const struct {
    const char* line;
    const char* says;
  } cases[] = {
      {"fly", "unknown run 'fly': expected one of churn, forward, survive, scenario"},
      {"--seed 1", "which run?"},
      {"churn --interfaces", "--interfaces: a value must follow"},
      {"churn --interfaces 0", "--interfaces"},
      {"churn --interfaces many", "--interfaces"},
      {"churn --interfaces 5000000", "--interfaces"},
      {"churn more", "unknown word 'more'"},
      {"churn --frobnicate", "unknown word '--frobnicate'"},
      {"churn --kind bridge", "accepted vlan, dummy, veth, netns"},
      {"churn --ways slow", "accepted bulk, batch, single"},
      {"churn --ways ,", "accepted bulk, batch, single"},
      {"churn --link p0", "--socket must name it"},
      {"churn -a net_null0 -a net_null1", "churn needs no device"},
      {"churn --socket /s -l 0,1", "those of the daemon that runs"},
      {"forward --socket /s", "only churn"},
      {"forward --interfaces 3", "an even number"},
      {"forward --interfaces 1", "an even number"},
      {"forward -a net_null0", "two are needed"},
      {"forward -l 1", "one CPU for control and at least one for a worker"},
      {"forward -l 3-1", "-l"},
      {"forward -l 0,x", "-l"},
      {"forward --size 63", "--size"},
      {"forward --size 9000", "--size"},
      {"forward --size huge", "or imix"},
      {"forward --size 64 --family 6", "at least 74 B"},
      {"forward --order backwards", "accepted sequential, random"},
      {"forward --family 5", "accepted 4, 6"},
      {"forward --idle never", "accepted adaptive, poll"},
      {"forward --duration 10", "--duration"},
      {"scenario", "which file?"},
      {"scenario a b", "unknown word 'b'"},
  };
  for (const auto& [line, says] : cases) {
    const auto options = parse(line);
    ASSERT_FALSE(options.has_value()) << line;
    EXPECT_NE(options.error().text.find(says), std::string::npos) << line << ": " << options.error().text;
  }
}

}  // namespace
}  // namespace mayfly::perf
