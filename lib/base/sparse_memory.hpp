// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// A range of address space as large as a table may ever become, with memory only where the table has content.
//
// The segmented array of the architecture, without a directory: element i of a table is base + i * size, so a
// worker finds it by arithmetic instead of by one more dependent load, and a segment needs no publication.
// Physical memory appears at first touch (always by the control thread, before anything is published) in 2
// MiB pages where the system has them, and goes back with release().
//
// A released range reads as zeros; it never faults. Reserving costs address space only (MAP_NORESERVE).

#include <cstddef>
#include <cstdint>

#include "base/result.hpp"

namespace mayfly {

constexpr size_t kHugePageBytes = size_t{2} << 20;

class SparseMemory {
 public:
  SparseMemory() = default;
  SparseMemory(SparseMemory&& other) noexcept;
  SparseMemory& operator=(SparseMemory&& other) noexcept;
  ~SparseMemory();

  // Rounds up to whole huge pages; the base is aligned to one. Fails with ENOMEM when the address space or
  // its rlimit (RLIMIT_AS) is too small.
  static Result<SparseMemory> reserve(size_t bytes);

  std::byte* data() const noexcept { return data_; }
  size_t size() const noexcept { return size_; }

  // Gives the memory behind [offset, offset + bytes) back to the system: whole pages only. Costs about
  // 50 us per 2 MiB and interrupts the other CPUs of this process once; no worker may touch the range.
  void release(size_t offset, size_t bytes) noexcept;

 private:
  void* mapping_ = nullptr;
  size_t mapping_bytes_ = 0;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace mayfly
