// SPDX-License-Identifier: BSD-3-Clause
#include "iface/name_pattern.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/units.hpp"

namespace mayfly {

Result<NamePattern> NamePattern::parse(std::string_view text) {
  NamePattern pattern;
  pattern.text_ = text;
  std::string literal;
  const auto add = [&](Piece piece, uint8_t width) {
    if (!literal.empty()) pattern.parts_.push_back({Piece::literal, 0, std::move(literal)});
    literal.clear();
    pattern.parts_.push_back({piece, width, {}});
  };
  for (size_t at = 0; at < text.size(); ++at) {
    if (text.substr(at, 2) == "%d") {
      add(Piece::number, 0);
      ++at;
      continue;
    }
    if (text[at] != '{') {
      literal += text[at];
      continue;
    }
    const size_t close = text.find('}', at);
    if (close == std::string_view::npos) return fail(EINVAL, "name '{}': a '{{' is not closed", text);
    const std::string_view field = text.substr(at + 1, close - at - 1);
    at = close;
    if (field.empty() || field == "n")
      add(Piece::number, 0);
    else if (field == "parent")
      add(Piece::parent, 0);
    else if (field == "outer")
      add(Piece::outer, 0);
    else if (field == "inner")
      add(Piece::inner, 0);
    else if (field.starts_with("n:0")) {
      auto width = parse_number("the width of {n:0W}", field.substr(3), 1, kInterfaceNameBytes - 1);
      if (!width) return std::unexpected(width.error());
      add(Piece::number, static_cast<uint8_t>(*width));
    } else {
      return fail(EINVAL,
                  "name '{}': unknown field '{{{}}}', accepted {{}}, {{n}}, {{n:06}}, {{parent}}, "
                  "{{outer}}, {{inner}}",
                  text, field);
    }
  }
  if (!literal.empty()) pattern.parts_.push_back({Piece::literal, 0, std::move(literal)});
  return pattern;
}

bool NamePattern::varies() const noexcept {
  return std::ranges::any_of(parts_, [](const Part& part) {
    return part.piece == Piece::number || part.piece == Piece::outer || part.piece == Piece::inner;
  });
}

std::string_view NamePattern::format(const NameFields& fields,
                                     std::array<char, kInterfaceNameBytes>& buffer) const noexcept {
  char* at = buffer.data();
  char* const end = at + kInterfaceNameBytes - 1;
  for (const Part& part : parts_) {
    char digits[24];
    std::string_view text = part.literal;
    if (part.piece == Piece::parent) {
      text = fields.parent;
    } else if (part.piece != Piece::literal) {
      const uint64_t value = part.piece == Piece::number  ? fields.n
                             : part.piece == Piece::outer ? fields.outer
                                                          : fields.inner;
      const auto result = std::to_chars(digits, digits + sizeof digits, value);
      text = {digits, static_cast<size_t>(result.ptr - digits)};
    }
    const size_t zeros = part.width > text.size() ? part.width - text.size() : 0;
    if (static_cast<size_t>(end - at) < zeros + text.size()) return {};
    std::memset(at, '0', zeros);
    std::memcpy(at + zeros, text.data(), text.size());
    at += zeros + text.size();
  }
  *at = '\0';
  return {buffer.data(), static_cast<size_t>(at - buffer.data())};
}

}  // namespace mayfly
