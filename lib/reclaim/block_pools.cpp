// SPDX-License-Identifier: BSD-3-Clause
#include "reclaim/block_pools.hpp"

#include <algorithm>
#include <bit>

#include "base/check.hpp"
#include "base/poison.hpp"

namespace mayfly {
namespace {

constexpr size_t kLeastBytes = 48;

// 48, 64, 96, 128, 192 ...: class 2k is 48 << k, class 2k + 1 is 64 << k.
constexpr size_t class_bytes(size_t index) {
  return (index % 2 == 0 ? size_t{48} : size_t{64}) << (index / 2);
}

constexpr size_t class_index(size_t bytes) {
  if (bytes <= kLeastBytes) return 0;
  const auto shift = static_cast<size_t>(std::bit_width((bytes - 1) / 64));  // 64 << shift is the power above
  const size_t index = 2 * shift;
  return bytes <= class_bytes(index) ? index : index + 1;
}

static_assert(class_bytes(class_index(48)) == 48 && class_bytes(class_index(49)) == 64);
static_assert(class_bytes(class_index(64)) == 64 && class_bytes(class_index(65)) == 96);
static_assert(class_bytes(class_index(97)) == 128 && class_bytes(class_index(129)) == 192);
static_assert(class_bytes(class_index(BlockPools::kMostBytes)) == BlockPools::kMostBytes);

}  // namespace

class BlockPools::SizeClass final : public Returnable, public RetiredKind {
 public:
  SizeClass(size_t bytes, size_t limit_bytes)
      : RetiredKind("block"), pool_("blocks", bytes, static_cast<uint32_t>(limit_bytes / bytes)) {}

  Pool& pool() noexcept { return pool_; }

  void take_back(uint32_t token) noexcept override { pool_.free_index(token); }
  void dismantle(Retired&, Returns&) const override {}
  void reclaim(Retired& block, Returns& returns) const override {
    returns.add(const_cast<SizeClass&>(*this), pool_.index_of(&block));
  }

 private:
  Pool pool_;
};

BlockPools::BlockPools(size_t limit_bytes) {
  for (size_t index = 0; index <= class_index(kMostBytes); ++index)
    classes_.push_back(
        std::make_unique<SizeClass>(class_bytes(index), std::max(limit_bytes, 16 * kMostBytes)));
}

BlockPools::~BlockPools() = default;

Retired* BlockPools::allocate(size_t bytes) noexcept {
  MAYFLY_CHECK(bytes >= sizeof(Retired) && bytes <= kMostBytes, "a block of a size no class has");
  SizeClass& size_class = *classes_[class_index(bytes)];
  auto* block = static_cast<Retired*>(size_class.pool().allocate());
  if (block == nullptr) return nullptr;
  block->bytes = static_cast<uint32_t>(size_class.pool().block_bytes());
  block->kind = size_class.id();
  return block;
}

BlockPools::SizeClass& BlockPools::class_of(const Retired& block) const noexcept {
  return *classes_[class_index(block.bytes)];
}

uint32_t BlockPools::number_of(const Retired& block) const noexcept {
  return class_of(block).pool().index_of(&block);
}

Retired* BlockPools::at(size_t bytes, uint32_t number) const noexcept {
  return static_cast<Retired*>(classes_[class_index(bytes)]->pool().at(number));
}

void BlockPools::free_unpublished(Retired& block) noexcept {
  class_of(block).pool().free(&block);
}

void BlockPools::give_back(Retired& block, Returns& returns) noexcept {
  class_of(block).reclaim(block, returns);
}

uint64_t BlockPools::blocks_in_use() const noexcept {
  uint64_t blocks = 0;
  for (const auto& size_class : classes_) blocks += size_class->pool().in_use();
  return blocks;
}

size_t BlockPools::committed_bytes() const noexcept {
  size_t bytes = 0;
  for (const auto& size_class : classes_) bytes += size_class->pool().committed_bytes();
  return bytes;
}

bool BlockPools::trim(uint32_t max_chunks) noexcept {
  bool more = false;
  for (const auto& size_class : classes_) more |= size_class->pool().trim(max_chunks);
  return more;
}

}  // namespace mayfly
