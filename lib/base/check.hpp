// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Broken invariants.
//
// MAYFLY_CHECK(condition, "sentence") stays in every build: for what would corrupt state if it went on, off
// the packet path. MAYFLY_DEBUG_CHECK is for debug and sanitizer builds (NDEBUG not defined): programming
// errors abort there. Both print file, line and the sentence, then abort.

namespace mayfly {

[[noreturn]] void check_failed(const char* file, int line, const char* sentence) noexcept;

}  // namespace mayfly

#define MAYFLY_CHECK(condition, sentence) \
  (__builtin_expect(!!(condition), 1) ? (void)0 : ::mayfly::check_failed(__FILE__, __LINE__, sentence))

#ifdef NDEBUG
#define MAYFLY_DEBUG_CHECK(condition, sentence) ((void)0)
#else
#define MAYFLY_DEBUG_CHECK(condition, sentence) MAYFLY_CHECK(condition, sentence)
#endif
