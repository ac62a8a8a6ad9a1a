// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Small blocks that workers read under RCU (FIB nodes, neighbour tables, address lists, demux chunks), by
// size class.
//
// Every block begins with its Retired header. Life: allocate() and fill it, publish a pointer to it; later
// unlink it and retire() it, or, when no worker ever saw it, free_unpublished() it. Blocks that only a
// retired object pointed to are given back from that object's dismantle() with give_back(), without a second
// grace period.
//
// There is one BlockPools for the process. allocate(), retire() and free_unpublished(): control thread;
// give_back(): teardown worker. Size classes are powers of two and one and a half times those, 48 B .. 1 MiB:
// at most a third is wasted.

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "base/slot_space.hpp"
#include "reclaim/retire.hpp"

namespace mayfly {

class BlockPools {
 public:
  // limit_bytes bounds each class.
  explicit BlockPools(size_t limit_bytes = size_t{8} << 30);
  ~BlockPools();
  BlockPools(const BlockPools&) = delete;
  BlockPools& operator=(const BlockPools&) = delete;

  static constexpr size_t kMostBytes = size_t{1} << 20;

  // bytes includes the Retired header, which is filled in; the rest is unspecified. nullptr when the class is
  // at its limit. At most kMostBytes.
  Retired* allocate(size_t bytes) noexcept;

  // T begins with a Retired member; extra_bytes follow it. The content after the header is value-initialised
  // by the caller.
  template <class T>
  T* allocate(size_t extra_bytes = 0) noexcept {
    return reinterpret_cast<T*>(allocate(sizeof(T) + extra_bytes));
  }

  static size_t capacity_of(const Retired& block) noexcept { return block.bytes; }

  // A block as a number among those of its size, half as long as a pointer, and the block of the number that
  // `bytes` bytes were allocated for.
  uint32_t number_of(const Retired& block) const noexcept;
  Retired* at(size_t bytes, uint32_t number) const noexcept;

  void retire(Retired& block, RetireList& list) noexcept { list.retire(block); }
  void free_unpublished(Retired& block) noexcept;
  void give_back(Retired& block, Returns& returns) noexcept;

  uint64_t blocks_in_use() const noexcept;
  size_t committed_bytes() const noexcept;
  // At most max_chunks empty chunks go back to the system; true while there is more.
  bool trim(uint32_t max_chunks) noexcept;

 private:
  class SizeClass;
  SizeClass& class_of(const Retired& block) const noexcept;
  std::vector<std::unique_ptr<SizeClass>> classes_;
};

}  // namespace mayfly
