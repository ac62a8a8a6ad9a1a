// SPDX-License-Identifier: BSD-3-Clause
#include "base/sparse_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <utility>

#include "base/check.hpp"

namespace mayfly {
namespace {

size_t round_up(size_t value, size_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

SparseMemory::SparseMemory(SparseMemory&& other) noexcept {
  *this = std::move(other);
}

SparseMemory& SparseMemory::operator=(SparseMemory&& other) noexcept {
  std::swap(mapping_, other.mapping_);
  std::swap(mapping_bytes_, other.mapping_bytes_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

SparseMemory::~SparseMemory() {
  if (mapping_ != nullptr) munmap(mapping_, mapping_bytes_);
}

Result<SparseMemory> SparseMemory::reserve(size_t bytes) {
  if (bytes > SIZE_MAX / 2) return fail(ENOMEM, "cannot reserve {} bytes of address space", bytes);
  SparseMemory memory;
  memory.size_ = round_up(bytes, kHugePageBytes);
  memory.mapping_bytes_ = memory.size_ + kHugePageBytes;
  void* mapping = mmap(nullptr, memory.mapping_bytes_, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED)
    return fail(ENOMEM, "cannot reserve {} bytes of address space: raise RLIMIT_AS", memory.mapping_bytes_);
  memory.mapping_ = mapping;
  const auto address = reinterpret_cast<uintptr_t>(mapping);
  memory.data_ = reinterpret_cast<std::byte*>(round_up(address, kHugePageBytes));
  // A table smaller than a huge page would only waste one; without huge pages the call fails and 4 KiB do.
  if (bytes >= kHugePageBytes) madvise(memory.data_, memory.size_, MADV_HUGEPAGE);
  madvise(memory.data_, memory.size_, MADV_DONTDUMP);
  return memory;
}

void SparseMemory::release(size_t offset, size_t bytes) noexcept {
  static const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t begin = round_up(offset, page);
  const size_t end = (offset + bytes) / page * page;
  MAYFLY_CHECK(end <= size_, "a range beyond the end of sparse memory was released");
  if (begin < end) madvise(data_ + begin, end - begin, MADV_DONTNEED);
}

}  // namespace mayfly
