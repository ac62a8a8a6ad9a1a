// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Numbers and the memory they index.
//
// SlotSpace hands out the lowest free number below a limit (a three-level bitmap: three loads), claims a
// number somebody asks for by name, walks the numbers in use, and knows which chunks of neighbouring numbers
// are entirely free, so that the memory of every array attached to it goes back to the system (trim()). The
// lowest number first keeps tables dense: after a peak the high chunks empty.
//
// Pool is a SlotSpace with one array: fixed-size blocks of our own, because the heap neither returns memory
// after a peak nor tells how much of it is in use.
//
// All calls: control thread only. Nothing here synchronises with workers; a number is freed only once its
// object has come back from teardown (lib/reclaim). In debug builds freed blocks are filled with 0xdb, and
// under AddressSanitizer they are poisoned.

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/sparse_memory.hpp"

namespace mayfly {

constexpr uint32_t kNoSlot = UINT32_MAX;

class SlotSpace {
 public:
  // Numbers 0 .. limit - 1; a chunk is what trim() gives back at once.
  SlotSpace(uint32_t limit, uint32_t slots_per_chunk);
  ~SlotSpace();
  SlotSpace(const SlotSpace&) = delete;
  SlotSpace& operator=(const SlotSpace&) = delete;

  // An array of limit elements, indexed by the numbers. The memory belongs to this object.
  Result<std::byte*> attach(size_t element_bytes);

  // The lowest free number, kNoSlot when there is none.
  uint32_t allocate() noexcept;
  // Takes this very number; false when it is in use or beyond the limit.
  bool claim(uint32_t slot) noexcept;
  void free(uint32_t slot) noexcept;

  bool used(uint32_t slot) const noexcept;
  // The lowest number in use that is >= from, kNoSlot at the end: a cursor that survives any change.
  uint32_t next_used(uint32_t from) const noexcept;
  uint32_t in_use() const noexcept { return in_use_; }
  uint32_t limit() const noexcept { return limit_; }

  // Gives the memory of at most max_chunks empty chunks back to the system (about 50 us per 2 MiB page);
  // true while there is more to give. The first chunk is kept.
  bool trim(uint32_t max_chunks) noexcept;
  // Chunks whose memory is held, times what one chunk holds.
  size_t committed_bytes() const noexcept;

 private:
  struct Array {
    SparseMemory memory;
    size_t element_bytes;
  };

  void mark_used(uint32_t slot) noexcept;
  void unpoison_chunk(Array& array, uint32_t chunk) noexcept;

  uint32_t limit_;
  uint32_t slots_per_chunk_;
  uint32_t in_use_ = 0;
  SparseMemory bitmap_memory_;
  uint64_t* levels_[4];  // levels_[0]: one bit a slot, set = used; levels_[k]: set = the word below is full
  uint32_t words_[4];
  std::vector<uint32_t> chunk_used_;
  std::vector<bool> chunk_committed_;
  std::vector<bool> chunk_queued_;
  std::deque<uint32_t> empty_chunks_;
  std::vector<Array> arrays_;
};

class Pool {
 public:
  // block_bytes: a multiple of 16. max_blocks bounds the pool; address space for all is reserved at once.
  Pool(std::string name, size_t block_bytes, uint32_t max_blocks);

  // A block with unspecified content; nullptr when all max_blocks are in use.
  void* allocate() noexcept;
  void free(void* block) noexcept;

  uint32_t index_of(const void* block) const noexcept;
  void* at(uint32_t index) const noexcept;
  void free_index(uint32_t index) noexcept { free(at(index)); }

  const std::string& name() const noexcept { return name_; }
  size_t block_bytes() const noexcept { return block_bytes_; }
  uint32_t in_use() const noexcept { return slots_.in_use(); }
  bool trim(uint32_t max_chunks) noexcept { return slots_.trim(max_chunks); }
  size_t committed_bytes() const noexcept { return slots_.committed_bytes(); }

 private:
  std::string name_;
  size_t block_bytes_;
  SlotSpace slots_;
  std::byte* base_;
};

}  // namespace mayfly
