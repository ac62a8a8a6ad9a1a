// SPDX-License-Identifier: BSD-3-Clause
#include "base/sparse_memory.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace mayfly {
namespace {

size_t resident_pages(const std::byte* data, size_t bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> pages((bytes + page - 1) / page);
  EXPECT_EQ(mincore(const_cast<std::byte*>(data), bytes, pages.data()), 0);
  return static_cast<size_t>(std::ranges::count_if(pages, [](unsigned char p) { return (p & 1) != 0; }));
}

TEST(SparseMemory, ReservesWithoutTakingMemory) {
  auto memory = SparseMemory::reserve(size_t{64} << 30);
  ASSERT_TRUE(memory.has_value());
  EXPECT_EQ(memory->size(), size_t{64} << 30);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory->data()) % kHugePageBytes, 0u);
  EXPECT_EQ(resident_pages(memory->data(), 8 * kHugePageBytes), 0u);
  memory->data()[memory->size() - 1] = std::byte{1};
  EXPECT_EQ(memory->data()[memory->size() - 2], std::byte{0});
}

TEST(SparseMemory, RoundsUpToHugePages) {
  EXPECT_EQ(SparseMemory::reserve(1)->size(), kHugePageBytes);
  EXPECT_EQ(SparseMemory::reserve(kHugePageBytes + 1)->size(), 2 * kHugePageBytes);
}

TEST(SparseMemory, RefusesMoreThanThereIs) {
  for (const size_t bytes : {SIZE_MAX, SIZE_MAX - kHugePageBytes, SIZE_MAX / 2, size_t{1} << 60}) {
    auto memory = SparseMemory::reserve(bytes);
    ASSERT_FALSE(memory.has_value()) << bytes;
    EXPECT_EQ(memory.error().code, ENOMEM);
  }
}

TEST(SparseMemory, ReleasedMemoryIsGoneAndReadsAsZeros) {
  auto memory = SparseMemory::reserve(4 * kHugePageBytes);
  ASSERT_TRUE(memory.has_value());
  std::memset(memory->data(), 0xff, memory->size());
  const size_t full = resident_pages(memory->data(), memory->size());
  memory->release(kHugePageBytes, 2 * kHugePageBytes);
  EXPECT_EQ(resident_pages(memory->data(), memory->size()), full / 2);
  EXPECT_EQ(memory->data()[kHugePageBytes - 1], std::byte{0xff});
  EXPECT_EQ(memory->data()[kHugePageBytes], std::byte{0});
  EXPECT_EQ(memory->data()[3 * kHugePageBytes - 1], std::byte{0});
  EXPECT_EQ(memory->data()[3 * kHugePageBytes], std::byte{0xff});
}

TEST(SparseMemory, ReleasesWholePagesInsideTheRangeOnly) {
  auto memory = SparseMemory::reserve(kHugePageBytes);
  ASSERT_TRUE(memory.has_value());
  std::memset(memory->data(), 0xff, 4 * 4'096);
  memory->release(100, 3 * 4'096);
  EXPECT_EQ(memory->data()[100], std::byte{0xff});
  EXPECT_EQ(memory->data()[4'096], std::byte{0});
  EXPECT_EQ(memory->data()[3 * 4'096], std::byte{0xff});
  memory->release(10, 10);
  EXPECT_EQ(memory->data()[10], std::byte{0xff});
}

TEST(SparseMemory, MovesItsMapping) {
  auto first = SparseMemory::reserve(kHugePageBytes);
  ASSERT_TRUE(first.has_value());
  first->data()[0] = std::byte{7};
  SparseMemory second = std::move(*first);
  EXPECT_EQ(second.data()[0], std::byte{7});
  SparseMemory third;
  third = std::move(second);
  EXPECT_EQ(third.data()[0], std::byte{7});
}

TEST(SparseMemoryDeathTest, ReleasingBeyondTheEndAborts) {
  auto memory = SparseMemory::reserve(kHugePageBytes);
  ASSERT_TRUE(memory.has_value());
  EXPECT_DEATH(memory->release(0, 2 * kHugePageBytes), "beyond the end");
}

}  // namespace
}  // namespace mayfly
