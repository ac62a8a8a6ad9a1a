// SPDX-License-Identifier: BSD-3-Clause
#include "base/slot_space.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <vector>

#include "seed.hpp"

namespace mayfly {
namespace {

using testing::seeded_random;

uint32_t lowest_free(const std::set<uint32_t>& used, uint32_t limit) {
  uint32_t expected = 0;
  for (const uint32_t slot : used) {
    if (slot != expected) break;
    ++expected;
  }
  return expected < limit ? expected : kNoSlot;
}

std::vector<uint32_t> walk(const SlotSpace& slots) {
  std::vector<uint32_t> found;
  for (uint32_t at = slots.next_used(0); at != kNoSlot; at = slots.next_used(at + 1)) found.push_back(at);
  return found;
}

TEST(SlotSpace, HandsOutEveryNumberOnceLowestFirst) {
  for (const uint32_t limit : {1u, 63u, 64u, 65u, 4'095u, 4'096u, 4'097u, 300'000u}) {
    SlotSpace slots(limit, 64);
    for (uint32_t expected = 0; expected < limit; ++expected) ASSERT_EQ(slots.allocate(), expected) << limit;
    EXPECT_EQ(slots.allocate(), kNoSlot);
    EXPECT_EQ(slots.in_use(), limit);
    slots.free(limit / 2);
    EXPECT_EQ(slots.allocate(), limit / 2);
  }
}

TEST(SlotSpace, ClaimsANumberOnce) {
  SlotSpace slots(1'000, 64);
  EXPECT_TRUE(slots.claim(999));
  EXPECT_FALSE(slots.claim(999));
  EXPECT_FALSE(slots.claim(1'000));
  EXPECT_FALSE(slots.claim(kNoSlot));
  EXPECT_TRUE(slots.used(999));
  EXPECT_FALSE(slots.used(1'000));
  slots.free(999);
  EXPECT_TRUE(slots.claim(999));
}

TEST(SlotSpaceDeathTest, FreeingTwiceAborts) {
  SlotSpace slots(10, 64);
  EXPECT_DEATH(slots.free(3), "freed twice");
}

TEST(SlotSpace, AgreesWithASet) {
  auto random = seeded_random();
  for (const uint32_t chunk : {1u, 3u, 64u, 96u, 100u, 1'000u, 4'096u}) {
    const auto limit = static_cast<uint32_t>(1 + random() % 20'000);
    SlotSpace slots(limit, chunk);
    ASSERT_TRUE(slots.attach(8).has_value());
    std::set<uint32_t> model;
    for (int step = 0; step < 4'000; ++step) {
      const auto any = static_cast<uint32_t>(random() % (limit + 10));
      // Phases that grow and phases that shrink, so that chunks empty.
      const bool grow = step / 500 % 2 == 0;
      const uint64_t choice = random() % 10;
      if (choice < (grow ? 6u : 2u)) {
        const uint32_t expected = lowest_free(model, limit);
        ASSERT_EQ(slots.allocate(), expected);
        if (expected != kNoSlot) model.insert(expected);
      } else if (choice < (grow ? 8u : 3u)) {
        ASSERT_EQ(slots.claim(any), any < limit && model.insert(any).second);
      } else if (const auto victim = model.lower_bound(any); victim != model.end()) {
        slots.free(*victim);
        model.erase(victim);
      }
      ASSERT_EQ(slots.used(any), model.contains(any));
      const auto next = model.lower_bound(any);
      ASSERT_EQ(slots.next_used(any), next == model.end() ? kNoSlot : *next)
          << "limit " << limit << " chunk " << chunk;
      if (step % 100 == 0) slots.trim(3);
    }
    EXPECT_EQ(slots.in_use(), model.size());
    EXPECT_EQ(walk(slots), std::vector<uint32_t>(model.begin(), model.end()));
  }
}

// The case that a walk by whole chunks loses: the word in which an empty chunk ends and a used one begins.
TEST(SlotSpace, WalkSeesChunksThatShareAWord) {
  SlotSpace slots(1'000, 96);
  ASSERT_TRUE(slots.claim(100));
  EXPECT_EQ(slots.next_used(0), 100u);
  EXPECT_EQ(slots.next_used(100), 100u);
  EXPECT_EQ(slots.next_used(101), kNoSlot);
}

TEST(SlotSpace, TrimGivesBackEmptyChunksOnly) {
  constexpr uint32_t kChunk = 4'096;
  SlotSpace slots(10 * kChunk, kChunk);
  auto array = slots.attach(512);
  ASSERT_TRUE(array.has_value());
  for (uint32_t i = 0; i < 10 * kChunk; ++i) std::memset(*array + size_t{slots.allocate()} * 512, 0xaa, 512);
  EXPECT_EQ(slots.committed_bytes(), size_t{10} * kChunk * 512);
  for (uint32_t i = 2 * kChunk; i < 10 * kChunk; ++i) slots.free(i);
  slots.free(0);

  int calls = 1;
  while (slots.trim(1)) ++calls;
  EXPECT_GE(calls, 8);
  EXPECT_EQ(slots.committed_bytes(), size_t{2} * kChunk * 512);
  const auto zero = [](std::byte b) { return b == std::byte{0}; };
  EXPECT_TRUE(std::all_of(*array + size_t{2} * kChunk * 512, *array + size_t{10} * kChunk * 512, zero));
  EXPECT_EQ((*array)[512], std::byte{0xaa});

  EXPECT_EQ(slots.allocate(), 0u);
  EXPECT_TRUE(slots.claim(9 * kChunk));
  EXPECT_EQ(slots.committed_bytes(), size_t{3} * kChunk * 512);
}

TEST(SlotSpace, TrimKeepsAChunkThatIsInUseAgain) {
  SlotSpace slots(1'000, 100);
  ASSERT_TRUE(slots.attach(4'096).has_value());
  ASSERT_TRUE(slots.claim(250));
  slots.free(250);
  ASSERT_TRUE(slots.claim(251));
  EXPECT_FALSE(slots.trim(100));
  EXPECT_EQ(slots.committed_bytes(), size_t{100} * 4'096);
  slots.free(251);
  slots.trim(100);
  EXPECT_EQ(slots.committed_bytes(), 0u);
}

TEST(SlotSpace, TheFirstChunkIsKept) {
  SlotSpace slots(1'000, 100);
  ASSERT_TRUE(slots.attach(4'096).has_value());
  ASSERT_EQ(slots.allocate(), 0u);
  slots.free(0);
  EXPECT_FALSE(slots.trim(100));
  EXPECT_EQ(slots.committed_bytes(), size_t{100} * 4'096);
}

TEST(Pool, BlocksAreDistinctAndComeBack) {
  Pool pool("test", 96, 1'000);
  std::set<void*> blocks;
  for (int i = 0; i < 1'000; ++i) {
    void* block = pool.allocate();
    ASSERT_NE(block, nullptr);
    std::memset(block, i, 96);
    ASSERT_TRUE(blocks.insert(block).second);
    ASSERT_EQ(pool.at(pool.index_of(block)), block);
  }
  EXPECT_EQ(pool.allocate(), nullptr);
  EXPECT_EQ(pool.in_use(), 1'000u);
  for (void* block : blocks) pool.free(block);
  EXPECT_EQ(pool.in_use(), 0u);
  while (pool.trim(1)) {
  }
  // The first chunk is kept, the rest would be given back.
  EXPECT_LE(pool.committed_bytes(), 3 * kHugePageBytes);
  EXPECT_EQ(pool.index_of(pool.allocate()), 0u);
}

// Address space of a destroyed pool is used again by the next one: nothing of the old poison may stay on it.
TEST(Pool, ADestroyedPoolLeavesCleanAddressSpace) {
  for (int round = 0; round < 20; ++round) {
    Pool pool("test", 1'024, 4'096);
    std::vector<void*> blocks;
    for (int i = 0; i < 100; ++i) blocks.push_back(pool.allocate());
    for (void* block : blocks) pool.free(block);
    auto memory = SparseMemory::reserve(kHugePageBytes);
    ASSERT_TRUE(memory.has_value());
    std::memset(memory->data(), 1, memory->size());
  }
}

}  // namespace
}  // namespace mayfly
