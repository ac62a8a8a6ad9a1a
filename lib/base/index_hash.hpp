// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// A hash index over the elements of a table that are known by number, for the control thread alone.
//
// Linear hashing: the table grows by one bucket per insert and shrinks by two per erase, so no call ever
// rehashes everything (a million names would stall control for 50 ms), and its memory follows the number of
// elements. The chains run through a uint32_t in the elements themselves; the index costs 4 bytes an element,
// 8 while the table shrinks.
//
// Traits supply three calls:
//   uint32_t& next(uint32_t number)        the chain link inside element number
//   uint64_t hash(uint32_t number)         the hash of its key
// and find() takes the hash and a predicate that compares the key.

#include <bit>
#include <cstdint>

#include "base/check.hpp"
#include "base/slot_space.hpp"
#include "base/sparse_memory.hpp"

namespace mayfly {

// Mixes an integer key (the finaliser of MurmurHash3, which every bit of the input reaches).
constexpr uint64_t mix_hash(uint64_t key) noexcept {
  key ^= key >> 33;
  key *= 0xff51afd7ed558ccdULL;
  key ^= key >> 33;
  key *= 0xc4ceb9fe1a85ec53ULL;
  return key ^ (key >> 33);
}

template <class Traits>
class IndexHash {
 public:
  // limit: the most elements that will ever be in it.
  IndexHash(uint32_t limit, Traits traits) : traits_(traits) {
    const size_t most_buckets = std::bit_ceil(uint64_t{limit} + kFewestBuckets);
    auto memory = SparseMemory::reserve(most_buckets * sizeof(uint32_t));
    MAYFLY_CHECK(memory.has_value(), "no address space for a hash index");
    memory_ = std::move(*memory);
    buckets_ = reinterpret_cast<uint32_t*>(memory_.data());
  }

  uint32_t size() const noexcept { return size_; }

  template <class Equal>
  uint32_t find(uint64_t hash, Equal equal) const noexcept {
    for (uint32_t link = buckets_[bucket_of(hash)]; link != 0; link = traits_.next(link - 1))
      if (equal(link - 1)) return link - 1;
    return kNoSlot;
  }

  // Fetches the bucket of a key that will be looked up soon.
  void prefetch(uint64_t hash) const noexcept { __builtin_prefetch(&buckets_[bucket_of(hash)], 1); }

  // The element must not be in the index, and its key must not change while it is.
  void insert(uint32_t number) noexcept {
    if (size_ >= bucket_count()) split();
    uint32_t& bucket = buckets_[bucket_of(traits_.hash(number))];
    traits_.next(number) = bucket;
    bucket = number + 1;
    ++size_;
  }

  void erase(uint32_t number) noexcept {
    uint32_t* link = &buckets_[bucket_of(traits_.hash(number))];
    while (*link != number + 1) {
      MAYFLY_CHECK(*link != 0, "an element was erased from a hash index that does not hold it");
      link = &traits_.next(*link - 1);
    }
    *link = traits_.next(number);
    --size_;
    // Two at a time, or the buckets would shrink more slowly than the elements and most would stay.
    for (int i = 0; i < 2 && bucket_count() > kFewestBuckets && size_ < bucket_count() / 2; ++i) merge();
  }

 private:
  static constexpr uint32_t kFewestBuckets = 1024;
  static constexpr uint32_t kBucketsPerHugePage = kHugePageBytes / sizeof(uint32_t);

  uint32_t bucket_count() const noexcept { return half_ + split_; }

  uint32_t bucket_of(uint64_t hash) const noexcept {
    const auto low = static_cast<uint32_t>(hash) & (half_ - 1);
    return low < split_ ? static_cast<uint32_t>(hash) & (2 * half_ - 1) : low;
  }

  // Buckets 0 .. split_ - 1 are already addressed with one bit more than the others.
  void split() noexcept {
    uint32_t link = buckets_[split_];
    uint32_t* stays = &buckets_[split_];
    uint32_t* moves = &buckets_[half_ + split_];
    while (link != 0) {
      uint32_t& next = traits_.next(link - 1);
      uint32_t*& tail = (traits_.hash(link - 1) & half_) != 0 ? moves : stays;
      *tail = link;
      tail = &next;
      link = next;
    }
    *stays = 0;
    *moves = 0;
    if (++split_ == half_) {
      half_ *= 2;
      split_ = 0;
    }
  }

  void merge() noexcept {
    if (split_ == 0) {
      half_ /= 2;
      split_ = half_;
    }
    --split_;
    uint32_t* tail = &buckets_[split_];
    while (*tail != 0) tail = &traits_.next(*tail - 1);
    *tail = buckets_[half_ + split_];
    buckets_[half_ + split_] = 0;
    const uint32_t last = bucket_count();
    if (last % kBucketsPerHugePage == 0) memory_.release(size_t{last} * sizeof(uint32_t), kHugePageBytes);
  }

  Traits traits_;
  SparseMemory memory_;
  uint32_t* buckets_;
  uint32_t half_ = kFewestBuckets;
  uint32_t split_ = 0;
  uint32_t size_ = 0;
};

}  // namespace mayfly
