// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Numbers as people write and read them: sizes, durations, counts.
//
// Parsing is strict: decimal digits only (no octal, no sign), and where a unit exists it is mandatory ("2ms",
// "64MiB"). Every failure says what, value and accepted range.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace mayfly {

// "4095", within [least, most]; hexadecimal with 0x.
Result<uint64_t> parse_number(std::string_view what, std::string_view text, uint64_t least, uint64_t most);
// B, KiB, MiB, GiB -> bytes.
Result<uint64_t> parse_bytes(std::string_view what, std::string_view text, uint64_t least, uint64_t most);
// ns, us, ms, s, min, h -> nanoseconds.
Result<uint64_t> parse_duration(std::string_view what, std::string_view text, uint64_t least_ns,
                                uint64_t most_ns);

// 9.8 MiB, 512 B
std::string format_bytes(uint64_t bytes);
// 9 ms, 1.34 s, 120 us
std::string format_duration(uint64_t ns);
// 1,234,567
std::string format_count(uint64_t count);

}  // namespace mayfly
