// SPDX-License-Identifier: BSD-3-Clause
#include "base/log.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "base/clock.hpp"

namespace mayfly {
namespace {

TEST(Log, OneLineARecordWithTimeLevelAndModule) {
  ::testing::internal::CaptureStderr();
  log(LogLevel::warning, "control", "client {} connected", 7);
  const std::string line = ::testing::internal::GetCapturedStderr();
  // 2026-11-30T14:49:43.123Z warn  control: ...
  ASSERT_GT(line.size(), 25u);
  EXPECT_EQ(line[10], 'T');
  EXPECT_EQ(line[23], 'Z');
  EXPECT_EQ(line.substr(24), " warn  control: client 7 connected\n");
}

TEST(Log, ControlCharactersCannotForgeARecord) {
  ::testing::internal::CaptureStderr();
  log(LogLevel::info, "control", "client '{}'", "x\n2026-11-30 forged\x1b[2J");
  const std::string line = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::ranges::count(line, '\n'), 1);
  EXPECT_NE(line.find("'x?2026-11-30 forged?[2J'\n"), std::string::npos);
}

TEST(Log, LevelsBelowTheChosenOneAreSilent) {
  set_log_level(LogLevel::error);
  ::testing::internal::CaptureStderr();
  log(LogLevel::warning, "test", "not shown");
  log(LogLevel::error, "test", "shown");
  const std::string text = ::testing::internal::GetCapturedStderr();
  set_log_level(LogLevel::info);
  EXPECT_EQ(text.find("not shown"), std::string::npos);
  EXPECT_NE(text.find("shown"), std::string::npos);
}

TEST(LogLimit, FirstRecordThenSilenceThenTheCount) {
  LogLimit limit;
  uint64_t repeats = 99;
  const uint64_t start = 5 * kNsPerSecond;
  EXPECT_TRUE(limit.admit(start, &repeats));
  EXPECT_EQ(repeats, 0u);
  for (int i = 0; i < 4'113; ++i) EXPECT_FALSE(limit.admit(start + 9 * kNsPerSecond, &repeats));
  EXPECT_TRUE(limit.admit(start + 10 * kNsPerSecond, &repeats));
  EXPECT_EQ(repeats, 4'113u);
  EXPECT_FALSE(limit.admit(start + 19 * kNsPerSecond, &repeats));
  EXPECT_TRUE(limit.admit(start + 60 * kNsPerSecond, &repeats));
  EXPECT_EQ(repeats, 1u);
}

TEST(LogLimit, CountsEveryRecordOfEveryThread) {
  LogLimit limit;
  std::atomic<uint64_t> admitted{0}, swallowed{0};
  constexpr uint64_t kRecords = 20'000;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (uint64_t i = 0; i < kRecords; ++i) {
        uint64_t repeats = 0;
        if (limit.admit((1 + i / 1'000) * 20 * kNsPerSecond, &repeats)) {
          ++admitted;
          swallowed += repeats;
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  uint64_t repeats = 0;
  EXPECT_TRUE(limit.admit(10'000 * kNsPerSecond, &repeats));
  EXPECT_EQ(admitted + swallowed + repeats, 4 * kRecords);
}

}  // namespace
}  // namespace mayfly
