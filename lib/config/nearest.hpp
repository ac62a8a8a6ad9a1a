// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// "Did you mean": the known words that look most like one that is not known. Any thread; for error texts
// only.

#include <span>
#include <string>
#include <string_view>

namespace mayfly {

// At most four of the known words, the most alike first, joined by ", ".
std::string nearest_words(std::string_view word, std::span<const std::string_view> known);

// Text for a message: control characters become '?', and what is over 64 bytes is cut.
std::string shown(std::string_view text);

// Whether text has a byte below 0x20, or 0x7f.
bool has_control_character(std::string_view text) noexcept;

}  // namespace mayfly
