// SPDX-License-Identifier: BSD-3-Clause
#include "config/nearest.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace mayfly {
namespace {

constexpr size_t kMostShown = 4;
constexpr size_t kMostShownBytes = 64;

bool is_control(char c) noexcept {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

// Levenshtein's, one row at a time.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string nearest_words(std::string_view word, std::span<const std::string_view> known) {
  const std::string_view compared = word.substr(0, kMostShownBytes);
  std::vector<std::pair<size_t, std::string_view>> ranked;
  for (const std::string_view candidate : known)
    ranked.emplace_back(edit_distance(compared, candidate), candidate);
  std::ranges::sort(ranked);
  std::string text;
  for (size_t i = 0; i < std::min(ranked.size(), kMostShown); ++i)
    text.append(i == 0 ? "" : ", ").append(ranked[i].second);
  return text;
}

std::string shown(std::string_view text) {
  std::string copy(text.substr(0, kMostShownBytes));
  std::ranges::replace_if(copy, is_control, '?');
  if (text.size() > kMostShownBytes) copy += "...";
  return copy;
}

bool has_control_character(std::string_view text) noexcept {
  return std::ranges::any_of(text, is_control);
}

}  // namespace mayfly
