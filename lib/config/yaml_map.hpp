// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Strict reading of one YAML map: each key known, given once, of its type and in its range.
//
// yaml-cpp keeps the first of two equal keys silently, reads 010 as octal and `no` as false, and throws
// without a line for a key that is missing. So its conversions are not used: the map is walked, and values
// are taken from their text by base/units.hpp.
//
// Errors stick: the first one is kept in the YamlErrors that all maps of a document share, and every call
// after it does nothing. So a caller reads all its keys in a row and looks once at the end. Any thread; not
// shared.

#include <yaml-cpp/yaml.h>

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"
#include "config/config.hpp"
#include "config/ranges.hpp"

namespace mayfly {

class YamlErrors {
 public:
  explicit YamlErrors(std::string_view file) : file_(file) {}

  bool failed() const noexcept { return first_.has_value(); }
  const std::optional<Error>& first() const noexcept { return first_; }
  std::string where(int line) const { return fmt::format("{}:{}", file_, line); }

  // Keeps "FILE:LINE: path: text" unless there is an error already.
  void refuse(int line, std::string_view path, std::string_view text);

 private:
  std::string file_;
  std::optional<Error> first_;
};

class YamlMap {
 public:
  // line is shown when the map itself is at fault. A map without content (a key with nothing behind it) is
  // empty.
  YamlMap(YamlErrors& errors, Origins& origins, const YAML::Node& node, int line, std::string path,
          std::span<const std::string_view> known);

  int line() const noexcept { return line_; }
  int line_of(std::string_view key) const;
  // Refuses the map for what stands at this key.
  void refuse(std::string_view key, std::string_view text) {
    errors_.refuse(line_of(key), path_of(key), text);
  }
  bool has(std::string_view key) const { return entries_.contains(key); }
  // Refuses the map when the key is missing.
  void require(std::string_view key);

  // Each leaves value as it is when the key is absent.
  template <class T>
  void number(std::string_view key, T& value, Range<T> range) {
    read(key, value,
         [&](std::string_view text) { return parse_number("value", text, range.least, range.most); });
  }
  template <class T>
  void bytes(std::string_view key, T& value, Range<uint64_t> range) {
    read(key, value,
         [&](std::string_view text) { return parse_bytes("value", text, range.least, range.most); });
  }
  void duration(std::string_view key, uint64_t& value, Range<uint64_t> range) {
    read(key, value,
         [&](std::string_view text) { return parse_duration("value", text, range.least, range.most); });
  }
  // parse(text) -> Result<something that T can be made of>.
  template <class T, class Parse>
  void read(std::string_view key, T& value, Parse parse) {
    const Entry* entry = take(key);
    if (entry == nullptr) return;
    const auto text = scalar(entry->node, entry->line, path_of(key));
    if (!text) return;
    if (auto parsed = parse(*text); parsed)
      value = static_cast<T>(*parsed);
    else
      errors_.refuse(entry->line, path_of(key), parsed.error().text);
  }

  // Octal digits, as chmod takes them.
  void mode(std::string_view key, uint32_t& value);
  void boolean(std::string_view key, bool& value);
  void text(std::string_view key, std::string& value);

  template <class T>
  using Choice = std::pair<std::string_view, T>;
  template <class T>
  void choice(std::string_view key, T& value, std::span<const Choice<T>> choices) {
    read(key, value, [&](std::string_view text) -> Result<T> {
      std::string names;
      for (const auto& [name, meaning] : choices) {
        if (text == name) return meaning;
        names.append(names.empty() ? "" : ", ").append(name);
      }
      return fail(EINVAL, "value '{}': expected one of {}", text, names);
    });
  }

  // The map behind a key; empty when the key is absent.
  YamlMap section(std::string_view key, std::span<const std::string_view> known);
  bool failed() const noexcept { return errors_.failed(); }

  struct Element {
    YAML::Node node;
    int line;
    std::string path;  // ports[0]
  };
  // The elements of the list behind a key; none when the key is absent.
  std::vector<Element> list(std::string_view key, size_t most);
  // The text of one element of a list; nullopt (and an error) when it has none.
  std::optional<std::string> element_text(const Element& element);
  YamlMap element_map(const Element& element, std::span<const std::string_view> known);

  void refuse_element(const Element& element, std::string_view text) {
    errors_.refuse(element.line, element.path, text);
  }

 private:
  struct Entry {
    YAML::Node node;
    int line;
  };

  void walk(const YAML::Node& node, std::span<const std::string_view> known);
  std::string path_of(std::string_view key) const;
  // The entry of a key, noted as an origin; nullptr when it is absent or something failed before.
  const Entry* take(std::string_view key);
  std::optional<std::string> scalar(const YAML::Node& node, int line, const std::string& path);

  YamlErrors& errors_;
  Origins& origins_;
  int line_;
  std::string path_;
  std::map<std::string, Entry, std::less<>> entries_;
};

// For errors: "a map", "a list", "a value", "nothing".
std::string_view yaml_type(const YAML::Node& node);

}  // namespace mayfly
