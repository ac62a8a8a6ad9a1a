// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// A JSON document that is only ever written: the CLI builds its answers in the order `ip -j` has them and
// never looks into one again. So it is kept as its text, and what a member costs is what it adds to the text.
//
// nlohmann/json does the escaping, and reads where we read JSON (bulk_file.cpp). It stays out of this header:
// its templates would make up half of the build.

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <ranges>
#include <string>
#include <string_view>

namespace mayfly::cli {

class Json {
 public:
  struct Member;

  Json() : text_("null") {}
  Json(std::nullptr_t) : Json() {}
  Json(bool value) : text_(value ? "true" : "false") {}
  Json(std::integral auto value) : text_(std::to_string(value)) {}
  // What JSON has no number for (NaN, infinity) is null.
  Json(double value);
  // Bytes that are no UTF-8 become U+FFFD.
  Json(std::string_view value);
  Json(const std::string& value) : Json(std::string_view(value)) {}
  Json(const char* value) : Json(std::string_view(value)) {}
  template <std::ranges::input_range Range>
  requires(!std::convertible_to<Range, std::string_view>) Json(const Range& values) : text_("[]") {
    for (const auto& value : values) push_back(value);
  }
  // An object.
  Json(std::initializer_list<Member> members);

  static Json array() { return Json(Text{"[]"}); }
  static Json object() { return Json(Text{"{}"}); }

  // To an object; the caller gives each key once.
  void set(std::string_view key, const Json& value);
  void update(std::initializer_list<Member> members);
  // To an array.
  void push_back(const Json& value) { append(value.text_, ']'); }

  // An object or array without members.
  bool empty() const noexcept { return text_.size() == 2; }
  const std::string& text() const noexcept { return text_; }
  // The same on many lines, each level indented by kIndent: for people.
  std::string pretty() const;
  static constexpr int kIndent = 4;

 private:
  struct Text {
    std::string_view text;
  };
  explicit Json(Text text) : text_(text.text) {}
  void append(std::string_view member, char end);

  std::string text_;
};

struct Json::Member {
  std::string_view key;
  Json value;
};

}  // namespace mayfly::cli
