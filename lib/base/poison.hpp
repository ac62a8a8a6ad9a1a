// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Freed memory of our own pools, made to fail loudly: filled with 0xdb in debug builds, and an
// AddressSanitizer report on any touch where that is built in. Costs nothing in release builds.

#include <cstddef>
#include <cstring>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace mayfly {

inline void poison_memory([[maybe_unused]] void* memory, [[maybe_unused]] size_t bytes) noexcept {
#ifndef NDEBUG
  std::memset(memory, 0xdb, bytes);
#endif
#if defined(__SANITIZE_ADDRESS__)
  ASAN_POISON_MEMORY_REGION(memory, bytes);
#endif
}

inline void unpoison_memory([[maybe_unused]] const void* memory, [[maybe_unused]] size_t bytes) noexcept {
#if defined(__SANITIZE_ADDRESS__)
  ASAN_UNPOISON_MEMORY_REGION(memory, bytes);
#endif
}

}  // namespace mayfly
