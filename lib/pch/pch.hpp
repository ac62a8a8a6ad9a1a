// SPDX-License-Identifier: BSD-3-Clause
#ifndef MAYFLY_PCH_HPP
#define MAYFLY_PCH_HPP
// Precompiled: the standard headers and {fmt} that nearly every source reads, half of the time of a build
// otherwise. No source relies on it: scripts/check-headers compiles every header without.

// An include guard: the compiler warns about #pragma once in a header that it precompiles.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <deque>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#endif  // MAYFLY_PCH_HPP
