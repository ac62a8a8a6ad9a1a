// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Names of a bulk request: a pattern and what it becomes for each member.
//
//   sub{}  sub%d             counts from 0
//   {n} {n:06}               the same, with at least so many digits
//   {parent}.{outer}.{inner} the parent's name and the tags
//
// Control thread; next() does no allocation, because a bulk create calls it a million times.

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "iface/interface.hpp"

namespace mayfly {

struct NameFields {
  uint64_t n = 0;
  std::string_view parent;
  uint16_t outer = 0;
  uint16_t inner = 0;
};

class NamePattern {
 public:
  // EINVAL for an unknown field or a brace that is not closed.
  static Result<NamePattern> parse(std::string_view text);

  // The name, in the caller's buffer; empty when it would be longer than 15 characters.
  std::string_view format(const NameFields& fields,
                          std::array<char, kInterfaceNameBytes>& buffer) const noexcept;

  // Whether two members can have different names at all.
  bool varies() const noexcept;
  const std::string& text() const noexcept { return text_; }

 private:
  enum class Piece : uint8_t { literal, number, parent, outer, inner };
  struct Part {
    Piece piece;
    uint8_t width = 0;
    std::string literal;
  };
  std::string text_;
  std::vector<Part> parts_;
};

}  // namespace mayfly
