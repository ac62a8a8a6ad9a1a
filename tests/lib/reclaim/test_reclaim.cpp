// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>
#include <thread>

#include "../base/seed.hpp"
#include "rcu/rcu.hpp"
#include "reclaim/block_pools.hpp"
#include "reclaim/reclaim.hpp"

namespace mayfly {
namespace {

static_assert(noexcept(std::declval<RetireList&>().retire(std::declval<Retired&>())), "retire cannot fail");
static_assert(noexcept(std::declval<Reclaim&>().submit(std::declval<RetireList&>())), "submit cannot fail");

constexpr uint64_t kTimeoutNs = 60 * kNsPerSecond;

// Numbers that come back, each at most once.
class NumberOwner final : public Returnable {
 public:
  void take_back(uint32_t token) noexcept override { taken.push_back(token); }
  std::vector<uint32_t> taken;
};

struct Thing {
  Retired retired;
  uint32_t number;
  std::atomic<uint32_t> references;
  std::atomic<bool> dismantled;
};

class ThingKind final : public RetiredKind {
 public:
  explicit ThingKind(NumberOwner& owner) : RetiredKind("thing"), owner_(owner) {}
  void dismantle(Retired& object, Returns&) const override {
    EXPECT_FALSE(thing(object).dismantled.exchange(true)) << "dismantled twice";
  }
  bool drained(const Retired& object) const override {
    return reinterpret_cast<const Thing&>(object).references.load() == 0;
  }
  void reclaim(Retired& object, Returns& returns) const override {
    EXPECT_TRUE(thing(object).dismantled.load()) << "reclaimed before it was dismantled";
    EXPECT_EQ(thing(object).references.load(), 0u) << "reclaimed while it was referenced";
    returns.add(owner_, thing(object).number);
  }
  std::string describe(const Retired& object) const override {
    return fmt::format("thing {}", reinterpret_cast<const Thing&>(object).number);
  }
  std::vector<Holder> holders(const Retired& object) const override {
    return {{3, reinterpret_cast<const Thing&>(object).references.load(), "test"}};
  }

 private:
  static Thing& thing(Retired& object) { return reinterpret_cast<Thing&>(object); }
  NumberOwner& owner_;
};

class ReclaimTest : public ::testing::Test {
 protected:
  ReclaimTest() : kind_(owner_), reclaim_(TeardownConfig{}) { EXPECT_TRUE(reclaim_.start()); }
  ~ReclaimTest() override {
    if (!stopped_) {
      EXPECT_TRUE(reclaim_.stop(kTimeoutNs));
    }
  }

  std::unique_ptr<Thing> make(uint32_t number, uint32_t references = 0) {
    auto thing = std::make_unique<Thing>();
    thing->retired.kind = kind_.id();
    thing->retired.bytes = 100;
    thing->number = number;
    thing->references = references;
    return thing;
  }

  void collect_until(auto condition) {
    const Deadline deadline = Deadline::after_ns(kTimeoutNs);
    while (!condition()) {
      ASSERT_FALSE(deadline.over()) << "never happened";
      pollfd ready{reclaim_.completion_fd(), POLLIN, 0};
      poll(&ready, 1, 5);
      reclaim_.collect(Deadline::never());
    }
  }

  NumberOwner owner_;
  ThingKind kind_;
  Reclaim reclaim_;
  bool stopped_ = false;
};

TEST_F(ReclaimTest, EverythingComesBackOnceAndTheBacklogIsCounted) {
  std::vector<std::unique_ptr<Thing>> things;
  RetireList list;
  for (uint32_t i = 0; i < 10'000; ++i) {
    things.push_back(make(i));
    list.retire(things.back()->retired);
  }
  EXPECT_EQ(list.objects(), 10'000u);
  EXPECT_EQ(list.bytes(), 1'000'000u);
  reclaim_.submit(list);
  EXPECT_EQ(list.objects(), 0u);
  EXPECT_EQ(reclaim_.backlog().objects, 10'000u);
  EXPECT_EQ(reclaim_.backlog().bytes, 1'000'000u);
  collect_until([&] { return reclaim_.backlog().objects == 0; });
  EXPECT_EQ(reclaim_.backlog().bytes, 0u);
  std::ranges::sort(owner_.taken);
  ASSERT_EQ(owner_.taken.size(), 10'000u);
  for (uint32_t i = 0; i < 10'000; ++i) EXPECT_EQ(owner_.taken[i], i);
  EXPECT_EQ(reclaim_.statistics().objects_reclaimed, 10'000u);
}

TEST_F(ReclaimTest, OneSubmissionIsOneBatchWithOneGracePeriod) {
  std::vector<std::unique_ptr<Thing>> things;
  RetireList list;
  for (uint32_t i = 0; i < 5'000; ++i) {
    things.push_back(make(i));
    list.retire(things.back()->retired);
  }
  reclaim_.submit(list);
  collect_until([&] { return reclaim_.backlog().objects == 0; });
  const ReclaimStatistics statistics = reclaim_.statistics();
  EXPECT_EQ(statistics.batches, 1u);
  uint64_t graces = 0;
  for (const uint64_t count : statistics.grace_us) graces += count;
  EXPECT_EQ(graces, 1u);
}

TEST_F(ReclaimTest, NothingIsDismantledWhileAWorkerCanSeeIt) {
  std::atomic<int> phase{0};
  std::thread worker([&] {
    rcu_register_worker();
    phase = 1;
    while (phase != 2) std::this_thread::yield();  // one long loop, without a quiescent state
    rcu_quiescent_state();
    phase = 3;
    rcu_unregister_worker();
  });
  while (phase != 1) std::this_thread::yield();
  auto thing = make(7);
  RetireList list;
  list.retire(thing->retired);
  reclaim_.submit(list);
  // Long enough for everything that does not wait for the worker.
  for (int i = 0; i < 50; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    reclaim_.collect(Deadline::never());
    ASSERT_FALSE(thing->dismantled.load()) << "dismantled before the worker's quiescent state";
  }
  EXPECT_TRUE(reclaim_.statistics().grace_running);
  phase = 2;
  collect_until([&] { return reclaim_.backlog().objects == 0; });
  EXPECT_TRUE(thing->dismantled.load());
  worker.join();
}

TEST_F(ReclaimTest, AReferencedObjectWaitsAndHoldsNobodyUp) {
  auto held = make(1, 2);
  std::vector<std::unique_ptr<Thing>> others;
  RetireList list;
  list.retire(held->retired);
  for (uint32_t i = 2; i < 3'000; ++i) {
    others.push_back(make(i));
    list.retire(others.back()->retired);
  }
  reclaim_.submit(list);
  const uint32_t barrier = reclaim_.barrier();
  collect_until([&] { return reclaim_.backlog().objects == 1; });
  collect_until([&] { return reclaim_.statistics().waiting_objects == 1; });
  EXPECT_FALSE(reclaim_.barrier_passed(barrier));
  const auto waiting = reclaim_.statistics().waiting;
  if (!waiting.empty()) {
    EXPECT_EQ(waiting[0].object, "thing 1");
    EXPECT_EQ(waiting[0].holders[0].references, 2u);
    EXPECT_EQ(waiting[0].holders[0].worker, 3u);
  }
  held->references = 0;
  collect_until([&] { return reclaim_.barrier_passed(barrier); });
  EXPECT_EQ(reclaim_.backlog().objects, 0u);
}

// The grace thread must not sleep through the one wake-up that tells it to end.
TEST_F(ReclaimTest, StopsWhileItIsWokenForSomethingElse) {
  for (int round = 0; round < 100; ++round) {
    Reclaim reclaim{TeardownConfig{}};
    ASSERT_TRUE(reclaim.start());
    // Several chunks, so that both teardown workers ask for the grace period of one that is held.
    std::vector<std::unique_ptr<Thing>> things;
    RetireList list;
    for (uint32_t i = 0; i < 3'000; ++i) {
      things.push_back(make(i, i % 1'000 == 0 ? 1 : 0));
      list.retire(things.back()->retired);
    }
    reclaim.submit(list);
    while (reclaim.statistics().waiting_objects == 0) std::this_thread::yield();
    for (auto& thing : things) thing->references = 0;
    ASSERT_TRUE(reclaim.stop(kTimeoutNs));
  }
}

TEST_F(ReclaimTest, ABarrierCoversWhatWasSubmittedBeforeIt) {
  for (int round = 0; round < 50; ++round) {
    std::vector<std::unique_ptr<Thing>> things;
    RetireList list;
    for (uint32_t i = 0; i < 100; ++i) {
      things.push_back(make(i));
      list.retire(things.back()->retired);
      if (i % 30 == 0) reclaim_.submit(list);
    }
    reclaim_.submit(list);
    const uint32_t barrier = reclaim_.barrier();
    collect_until([&] { return reclaim_.barrier_passed(barrier); });
    ASSERT_EQ(reclaim_.backlog().objects, 0u);
  }
}

TEST_F(ReclaimTest, CollectStopsAtItsDeadlineAndGoesOn) {
  std::vector<std::unique_ptr<Thing>> things;
  RetireList list;
  for (uint32_t i = 0; i < 20'000; ++i) {
    things.push_back(make(i));
    list.retire(things.back()->retired);
  }
  reclaim_.submit(list);
  uint64_t calls = 0;
  const Deadline deadline = Deadline::after_ns(kTimeoutNs);
  while (reclaim_.backlog().objects > 0 && !deadline.over()) {
    reclaim_.collect(Deadline::after_ns(0));
    ++calls;
  }
  EXPECT_EQ(owner_.taken.size(), 20'000u);
  EXPECT_GT(calls, 20u) << "a deadline in the past still took everything at once";
}

TEST_F(ReclaimTest, StopNamesWhatIsStillReferenced) {
  auto held = make(1, 1);
  RetireList list;
  list.retire(held->retired);
  reclaim_.submit(list);
  stopped_ = true;
  EXPECT_FALSE(reclaim_.stop(200 * kNsPerMs));
}

TEST(BacklogMarks, AdmissionCountsTheRequest) {
  NumberOwner owner;
  ThingKind kind(owner);
  TeardownConfig config;
  config.high_objects = 100;
  config.low_objects = 10;
  Reclaim reclaim(config);
  ASSERT_TRUE(reclaim.start());
  EXPECT_TRUE(reclaim.admits(1'000'000)) << "nothing is in teardown: any size may start";
  std::vector<std::unique_ptr<Thing>> things;
  RetireList list;
  for (uint32_t i = 0; i < 50; ++i) {
    things.push_back(std::make_unique<Thing>());
    things.back()->retired.kind = kind.id();
    things.back()->number = i;
    list.retire(things.back()->retired);
  }
  reclaim.submit(list);
  EXPECT_TRUE(reclaim.admits(50));
  EXPECT_FALSE(reclaim.admits(51));
  EXPECT_TRUE(reclaim.stop(kTimeoutNs));
  EXPECT_TRUE(reclaim.admits(51));
}

// Readers follow published pointers to blocks and check what they see, while control replaces and retires
// them: a block that is freed or reused too early shows a wrong stamp (and an AddressSanitizer report).
TEST(ReclaimTorture, ReadersNeverSeeAFreedBlock) {
  struct Block {
    Retired retired;
    uint64_t slot;
    uint64_t stamp;
  };
  constexpr size_t kSlots = 64;
  constexpr int kReaders = 2;
  std::mt19937_64 random = testing::seeded_random();
  const uint64_t seed = random();
  auto pools = std::make_unique<BlockPools>();
  Reclaim reclaim{TeardownConfig{}};
  ASSERT_TRUE(reclaim.start());
  std::array<RcuPointer<Block>, kSlots> published;
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> reads{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < kReaders; ++i)
    readers.emplace_back([&, i] {
      std::mt19937_64 mine(seed + static_cast<uint64_t>(i));
      rcu_register_worker();
      uint64_t done = 0;
      while (!stop) {
        for (int k = 0; k < 32; ++k) {
          const uint64_t slot = mine() % kSlots;
          const Block* block = published[slot].read();
          if (block == nullptr) continue;
          if (block->slot != slot || block->stamp != (slot ^ 0x5eed)) ADD_FAILURE() << "slot " << slot;
          ++done;
        }
        rcu_quiescent_state();
        if (done % 256 == 0) {
          const OfflineScope asleep;
          std::this_thread::yield();
        }
      }
      reads += done;
      rcu_unregister_worker();
    });
  for (int round = 0; round < 20'000; ++round) {
    RetireList list;
    for (uint64_t changes = random() % 8; changes > 0; --changes) {
      const uint64_t slot = random() % kSlots;
      Block* old = published[slot].own();
      Block* next = nullptr;
      if (random() % 4 != 0) {
        next = pools->allocate<Block>(random() % 600);
        ASSERT_NE(next, nullptr);
        next->slot = slot;
        next->stamp = slot ^ 0x5eed;
      }
      published[slot].publish(next);
      if (old != nullptr) pools->retire(old->retired, list);
    }
    reclaim.submit(list);
    reclaim.collect(Deadline::never());
    if (round % 64 == 0) pools->trim(2);
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  RetireList list;
  for (auto& pointer : published)
    if (Block* last = pointer.own(); last != nullptr) pools->retire(last->retired, list);
  reclaim.submit(list);
  EXPECT_TRUE(reclaim.stop(kTimeoutNs));
  EXPECT_EQ(pools->blocks_in_use(), 0u);
  EXPECT_GT(reads.load(), 0u);
}

TEST(BlockPoolsTest, EverySizeGetsABlockThatHoldsIt) {
  BlockPools pools;
  std::vector<Retired*> blocks;
  for (size_t bytes = sizeof(Retired); bytes <= BlockPools::kMostBytes; bytes = bytes * 5 / 4 + 1) {
    Retired* block = pools.allocate(bytes);
    ASSERT_NE(block, nullptr);
    EXPECT_GE(BlockPools::capacity_of(*block), bytes);
    EXPECT_LE(BlockPools::capacity_of(*block), std::max<size_t>(48, bytes * 3 / 2 + 1));
    std::memset(reinterpret_cast<std::byte*>(block) + sizeof(Retired), 0xff, bytes - sizeof(Retired));
    blocks.push_back(block);
  }
  EXPECT_EQ(pools.blocks_in_use(), blocks.size());
  for (Retired* block : blocks) pools.free_unpublished(*block);
  EXPECT_EQ(pools.blocks_in_use(), 0u);
}

}  // namespace
}  // namespace mayfly
