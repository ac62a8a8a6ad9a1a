// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <thread>

#include "../base/seed.hpp"
#include "stats/worker_balance.hpp"
#include "stats/worker_statistics.hpp"

namespace mayfly {
namespace {

TEST(DropReasons, EachHasANameOfItsOwnAStageAndAHint) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < kDropReasons; ++i) {
    const auto& description = describe(static_cast<DropReason>(i));
    EXPECT_TRUE(names.insert(description.name).second) << description.name;
    EXPECT_FALSE(description.name.empty());
    EXPECT_FALSE(description.stage.empty());
    EXPECT_FALSE(description.hint.empty());
  }
  EXPECT_EQ(describe(DropReason::unknown_tag).name, "unknown_tag");
  EXPECT_EQ(describe(DropReason::shutdown).name, "shutdown");
}

TEST(DropTableTest, SplitsExactlyWhileThereIsRoom) {
  std::mt19937_64 random = testing::seeded_random();
  DropTable table;
  std::map<std::pair<uint64_t, DropReason>, uint64_t> model;
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t id = 1 + random() % 100;
    const auto reason = static_cast<DropReason>(random() % 3);
    const uint64_t packets = 1 + random() % 64;
    table.add(id, static_cast<uint32_t>(id * 10), reason, packets);
    model[{id, reason}] += packets;
  }
  std::map<std::pair<uint64_t, DropReason>, uint64_t> found;
  table.for_each([&](uint64_t id, uint32_t ifindex, DropReason reason, uint64_t packets) {
    EXPECT_EQ(ifindex, id * 10);
    EXPECT_TRUE(found.emplace(std::pair{id, reason}, packets).second);
  });
  EXPECT_EQ(found, model);
}

TEST(DropTableTest, AnOverrunKeepsTheLargest) {
  DropTable table;
  table.add(1, 1, DropReason::no_route, 1'000'000);
  for (uint64_t id = 2; id < 100'000; ++id) table.add(id, 2, DropReason::no_route, 1);
  uint64_t largest = 0;
  table.for_each([&](uint64_t id, uint32_t, DropReason, uint64_t packets) {
    if (id == 1) largest = packets;
  });
  EXPECT_EQ(largest, 1'000'000u);
}

// A reader never gets a mixture of two loops: the writer keeps the balance in each, and only in each.
TEST(PublishedTotalsTest, ACopyIsOneLoopsTotals) {
  PublishedTotals published;
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    Totals totals;
    while (!stop) {
      totals.rx += 7;
      totals.tx += 3;
      totals.drops[5] += 4;
      totals.drop_last_ns[5] = totals.rx;
      published.publish(totals);
    }
  });
  int consistent = 0;
  uint64_t last = 0;
  // The writer may not have run yet.
  for (int i = 0; i < 20'000 || last == 0; ++i) {
    Totals copy;
    if (!published.read(&copy)) continue;
    ++consistent;
    ASSERT_EQ(copy.difference(), 0);
    ASSERT_EQ(copy.drop_last_ns[5], copy.rx);
    ASSERT_GE(copy.rx, last);
    last = copy.rx;
  }
  stop = true;
  writer.join();
  EXPECT_GT(consistent, 0);
  EXPECT_GT(last, 0u);
}

TEST(WorkerStatisticsTest, ReferencesBelongToTheWorker) {
  WorkerStatistics statistics;
  std::vector<References> references(4);
  statistics.references = references.data();
  statistics.hold(2);
  statistics.hold(2);
  statistics.release(2);
  EXPECT_EQ(references[2].load(), 1u);
  EXPECT_EQ(references[1].load(), 0u);
}

std::optional<WorkerImbalance> after(std::vector<uint64_t> rates) {
  WorkerBalance balance;
  std::vector<uint64_t> received(rates.size());
  for (size_t second = 0; second <= WorkerBalance::kSeconds; ++second) {
    EXPECT_FALSE(balance.imbalance()) << "before it has seen enough";
    balance.sample(received);
    for (size_t worker = 0; worker < rates.size(); ++worker) received[worker] += rates[worker];
  }
  return balance.imbalance();
}

TEST(WorkerBalanceTest, NamesTheBusiestAboveTwiceTheMeanOfTheOthers) {
  EXPECT_FALSE(after({100'000}));
  EXPECT_FALSE(after({20'000, 10'000})) << "twice is not more than twice";
  const auto two = after({10'000, 42'000});
  ASSERT_TRUE(two);
  EXPECT_EQ(two->busiest, 1u);
  EXPECT_EQ(two->busiest_rate, 42'000u);
  EXPECT_EQ(two->others_rate, 10'000u);
  EXPECT_TRUE(two->describe().starts_with("worker 1 handles 4.2x the packets of worker 0: "))
      << two->describe();
  EXPECT_FALSE(after({0, 9'999})) << "too little to say";
  EXPECT_TRUE(
      after({0, 10'000})->describe().starts_with("worker 1 handles 10000 packets/s, worker 0 none: "));
  EXPECT_FALSE(after({20'000, 10'000, 10'000, 10'000}));
  EXPECT_TRUE(after({20'003, 10'000, 10'000, 10'000})
                  ->describe()
                  .starts_with("worker 0 handles 2.0x the packets of the mean of the other 3: "));
}

TEST(WorkerBalanceTest, ForgetsWhatIsOver) {
  WorkerBalance balance;
  uint64_t busy = 0, quiet = 0;
  const auto second = [&](uint64_t of_busy, uint64_t of_quiet) {
    busy += of_busy;
    quiet += of_quiet;
    balance.sample(std::array{busy, quiet});
  };
  for (size_t i = 0; i <= WorkerBalance::kSeconds; ++i) second(50'000, 1'000);
  EXPECT_TRUE(balance.imbalance());
  for (size_t i = 0; i < WorkerBalance::kSeconds; ++i) second(50'000, 49'000);
  EXPECT_FALSE(balance.imbalance());
}

}  // namespace
}  // namespace mayfly
