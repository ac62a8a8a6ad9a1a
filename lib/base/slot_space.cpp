// SPDX-License-Identifier: BSD-3-Clause
#include "base/slot_space.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.hpp"
#include "base/poison.hpp"

namespace mayfly {
namespace {

constexpr uint32_t kBits = 64;
// The first chunk is never given back: the lowest numbers are used first, so a table with a handful of
// elements that come and go would otherwise clear a huge page for each.
constexpr uint32_t kKeptChunk = 0;
constexpr uint64_t kFull = ~uint64_t{0};

uint32_t words_for(uint32_t bits) {
  return (bits + kBits - 1) / kBits;
}

// Whole huge pages a chunk, so that giving one back splits none: two or three for sizes like 96 bytes.
uint32_t chunk_slots(size_t block_bytes) {
  for (size_t pages = 1; pages <= 3; ++pages)
    if (pages * kHugePageBytes % block_bytes == 0)
      return static_cast<uint32_t>(pages * kHugePageBytes / block_bytes);
  return static_cast<uint32_t>(std::max<size_t>(1, kHugePageBytes / block_bytes));
}

}  // namespace

SlotSpace::SlotSpace(uint32_t limit, uint32_t slots_per_chunk)
    : limit_(limit), slots_per_chunk_(slots_per_chunk) {
  MAYFLY_CHECK(limit > 0 && limit < kNoSlot && slots_per_chunk > 0,
               "a slot space needs a limit and a chunk size");
  size_t total = 0;
  uint32_t bits = limit;
  for (uint32_t& words : words_) {
    words = words_for(bits);
    total += words;
    bits = words;
  }
  auto memory = SparseMemory::reserve(total * sizeof(uint64_t));
  MAYFLY_CHECK(memory.has_value(), "no address space for the bitmap of a slot space");
  bitmap_memory_ = std::move(*memory);
  auto* next = reinterpret_cast<uint64_t*>(bitmap_memory_.data());
  for (int level = 0; level < 4; ++level) {
    levels_[level] = next;
    next += words_[level];
  }
  const uint32_t chunks = (limit + slots_per_chunk - 1) / slots_per_chunk;
  chunk_used_.resize(chunks);
  chunk_committed_.resize(chunks);
  chunk_queued_.resize(chunks);
}

// The address space will be somebody else's.
SlotSpace::~SlotSpace() {
  for (uint32_t chunk = 0; chunk < chunk_committed_.size(); ++chunk)
    if (chunk_committed_[chunk])
      for (Array& array : arrays_) unpoison_chunk(array, chunk);
}

void SlotSpace::unpoison_chunk(Array& array, uint32_t chunk) noexcept {
  const size_t bytes = array.element_bytes * slots_per_chunk_;
  const size_t offset = bytes * chunk;
  unpoison_memory(array.memory.data() + offset, std::min(bytes, array.memory.size() - offset));
}

Result<std::byte*> SlotSpace::attach(size_t element_bytes) {
  auto memory = SparseMemory::reserve(element_bytes * limit_);
  if (!memory) return std::unexpected(memory.error());
  std::byte* data = memory->data();
  arrays_.push_back({std::move(*memory), element_bytes});
  return data;
}

uint32_t SlotSpace::allocate() noexcept {
  // The top level is one word for up to 16 million slots; beyond that it is scanned.
  uint32_t word = 0;
  while (word < words_[3] && levels_[3][word] == kFull) ++word;
  if (word == words_[3]) return kNoSlot;
  for (int level = 3; level >= 0; --level) {
    word = word * kBits + static_cast<uint32_t>(std::countr_one(levels_[level][word]));
    const uint32_t bound = level == 0 ? limit_ : words_[level - 1];
    if (word >= bound) return kNoSlot;
  }
  mark_used(word);
  return word;
}

bool SlotSpace::claim(uint32_t slot) noexcept {
  if (slot >= limit_ || used(slot)) return false;
  mark_used(slot);
  return true;
}

void SlotSpace::mark_used(uint32_t slot) noexcept {
  uint32_t bit = slot;
  for (int level = 0; level < 4; ++level) {
    uint64_t& word = levels_[level][bit / kBits];
    word |= uint64_t{1} << (bit % kBits);
    if (word != kFull) break;
    bit /= kBits;
  }
  ++in_use_;
  const uint32_t chunk = slot / slots_per_chunk_;
  ++chunk_used_[chunk];
  chunk_committed_[chunk] = true;
}

void SlotSpace::free(uint32_t slot) noexcept {
  MAYFLY_CHECK(used(slot), "a number was freed twice");
  uint32_t bit = slot;
  for (int level = 0; level < 4; ++level) {
    uint64_t& word = levels_[level][bit / kBits];
    const bool was_full = word == kFull;
    word &= ~(uint64_t{1} << (bit % kBits));
    if (!was_full) break;
    bit /= kBits;
  }
  --in_use_;
  const uint32_t chunk = slot / slots_per_chunk_;
  if (--chunk_used_[chunk] == 0 && !chunk_queued_[chunk] && chunk != kKeptChunk) {
    chunk_queued_[chunk] = true;
    empty_chunks_.push_back(chunk);
  }
}

bool SlotSpace::used(uint32_t slot) const noexcept {
  return slot < limit_ && (levels_[0][slot / kBits] >> (slot % kBits) & 1) != 0;
}

uint32_t SlotSpace::next_used(uint32_t from) const noexcept {
  if (from >= limit_) return kNoSlot;
  uint32_t word = from / kBits;
  uint64_t bits = levels_[0][word] & (kFull << (from % kBits));
  while (bits == 0) {
    if (++word == words_[0]) return kNoSlot;
    // A chunk that nobody uses is skipped up to its last whole word: the word after may have bits of the next
    // chunk.
    if (const uint32_t chunk = word * kBits / slots_per_chunk_; chunk_used_[chunk] == 0) {
      const uint64_t skip_to = (uint64_t{chunk} + 1) * slots_per_chunk_ / kBits;
      if (skip_to >= words_[0]) return kNoSlot;
      word = std::max(word, static_cast<uint32_t>(skip_to));
    }
    bits = levels_[0][word];
  }
  return word * kBits + static_cast<uint32_t>(std::countr_zero(bits));
}

bool SlotSpace::trim(uint32_t max_chunks) noexcept {
  while (!empty_chunks_.empty() && max_chunks > 0) {
    const uint32_t chunk = empty_chunks_.front();
    empty_chunks_.pop_front();
    chunk_queued_[chunk] = false;
    if (chunk_used_[chunk] != 0 || !chunk_committed_[chunk]) continue;
    for (Array& array : arrays_) {
      const size_t bytes = array.element_bytes * slots_per_chunk_;
      const size_t offset = bytes * chunk;
      unpoison_chunk(array, chunk);
      array.memory.release(offset, std::min(bytes, array.memory.size() - offset));
    }
    chunk_committed_[chunk] = false;
    --max_chunks;
  }
  return !empty_chunks_.empty();
}

size_t SlotSpace::committed_bytes() const noexcept {
  size_t slot_bytes = 0;
  for (const Array& array : arrays_) slot_bytes += array.element_bytes;
  size_t chunks = 0;
  for (const bool committed : chunk_committed_) chunks += committed ? 1 : 0;
  return chunks * slots_per_chunk_ * slot_bytes;
}

Pool::Pool(std::string name, size_t block_bytes, uint32_t max_blocks)
    : name_(std::move(name)), block_bytes_(block_bytes), slots_(max_blocks, chunk_slots(block_bytes)) {
  MAYFLY_CHECK(block_bytes % 16 == 0, "a pool's blocks are a multiple of 16 bytes");
  auto base = slots_.attach(block_bytes);
  MAYFLY_CHECK(base.has_value(), "no address space for a pool");
  base_ = *base;
}

void* Pool::allocate() noexcept {
  const uint32_t slot = slots_.allocate();
  if (slot == kNoSlot) return nullptr;
  std::byte* block = base_ + size_t{slot} * block_bytes_;
  unpoison_memory(block, block_bytes_);
  return block;
}

void Pool::free(void* block) noexcept {
  const uint32_t index = index_of(block);
  poison_memory(block, block_bytes_);
  slots_.free(index);
}

uint32_t Pool::index_of(const void* block) const noexcept {
  const auto offset = static_cast<size_t>(static_cast<const std::byte*>(block) - base_);
  MAYFLY_DEBUG_CHECK(offset % block_bytes_ == 0 && offset / block_bytes_ < slots_.limit(),
                     "a pointer that is no block of this pool");
  return static_cast<uint32_t>(offset / block_bytes_);
}

void* Pool::at(uint32_t index) const noexcept {
  return base_ + size_t{index} * block_bytes_;
}

}  // namespace mayfly
