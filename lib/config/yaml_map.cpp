// SPDX-License-Identifier: BSD-3-Clause
#include "config/yaml_map.hpp"

#include <algorithm>
#include <charconv>

#include "config/nearest.hpp"

namespace mayfly {

std::string_view yaml_type(const YAML::Node& node) {
  if (node.IsMap()) return "a map";
  if (node.IsSequence()) return "a list";
  return node.IsScalar() ? "a value" : "nothing";
}

void YamlErrors::refuse(int line, std::string_view path, std::string_view text) {
  if (!first_)
    first_ = Error{EINVAL, fmt::format("{}: {}{}{}", where(line), path, path.empty() ? "" : ": ", text)};
}

YamlMap::YamlMap(YamlErrors& errors, Origins& origins, const YAML::Node& node, int line, std::string path,
                 std::span<const std::string_view> known)
    : errors_(errors), origins_(origins), line_(line), path_(std::move(path)) {
  if (errors_.failed() || !node.IsDefined() || node.IsNull()) return;
  if (!node.IsMap())
    errors_.refuse(
        line_, path_,
        fmt::format("{} here: expected a map with keys like {}", yaml_type(node), nearest_words("", known)));
  else
    walk(node, known);
}

void YamlMap::walk(const YAML::Node& node, std::span<const std::string_view> known) {
  for (const auto& pair : node) {
    const int line = pair.first.Mark().line + 1;
    if (!pair.first.IsScalar())
      return errors_.refuse(line, path_, fmt::format("{} as a key: expected a word", yaml_type(pair.first)));
    const std::string& key = pair.first.Scalar();
    if (std::ranges::find(known, key) == known.end())
      return errors_.refuse(line, path_of(shown(key)),
                            fmt::format("unknown key; the nearest known: {}", nearest_words(key, known)));
    const auto [entry, added] = entries_.try_emplace(key, Entry{pair.second, line});
    if (!added)
      return errors_.refuse(line, path_of(key),
                            fmt::format("given twice, first at {}", errors_.where(entry->second.line)));
  }
}

void YamlMap::require(std::string_view key) {
  if (!has(key)) errors_.refuse(line_, path_of(key), "missing: this key is mandatory");
}

int YamlMap::line_of(std::string_view key) const {
  const auto entry = entries_.find(key);
  return entry == entries_.end() ? line_ : entry->second.line;
}

std::string YamlMap::path_of(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

const YamlMap::Entry* YamlMap::take(std::string_view key) {
  if (errors_.failed()) return nullptr;
  const auto entry = entries_.find(key);
  if (entry == entries_.end()) return nullptr;
  origins_[path_of(key)] = errors_.where(entry->second.line);
  return &entry->second;
}

std::optional<std::string> YamlMap::scalar(const YAML::Node& node, int line, const std::string& path) {
  if (!node.IsScalar()) {
    errors_.refuse(line, path, fmt::format("{} here: expected a value", yaml_type(node)));
    return std::nullopt;
  }
  const std::string& text = node.Scalar();
  if (text.size() > kMostTextBytes) {
    errors_.refuse(
        line, path,
        fmt::format("value '{}': {} bytes: accepted at most {}", shown(text), text.size(), kMostTextBytes));
    return std::nullopt;
  }
  if (has_control_character(text)) {
    errors_.refuse(line, path, fmt::format("value '{}': expected no control characters", shown(text)));
    return std::nullopt;
  }
  return text;
}

void YamlMap::mode(std::string_view key, uint32_t& value) {
  read(key, value, [](std::string_view text) -> Result<uint32_t> {
    uint32_t mode = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), mode, 8);
    if (error != std::errc{} || end != text.data() + text.size() || mode > 0777)
      return fail(EINVAL, "value '{}': expected octal digits, accepted 0000..0777", text);
    return mode;
  });
}

void YamlMap::boolean(std::string_view key, bool& value) {
  static constexpr Choice<bool> kBooleans[] = {{"true", true}, {"false", false}};
  choice<bool>(key, value, kBooleans);
}

void YamlMap::text(std::string_view key, std::string& value) {
  read(key, value, [](std::string_view text) -> Result<std::string> { return std::string(text); });
}

YamlMap YamlMap::section(std::string_view key, std::span<const std::string_view> known) {
  const Entry* entry = take(key);
  return YamlMap(errors_, origins_, entry != nullptr ? entry->node : YAML::Node(),
                 entry != nullptr ? entry->line : line_, path_of(key), known);
}

std::vector<YamlMap::Element> YamlMap::list(std::string_view key, size_t most) {
  std::vector<Element> elements;
  const Entry* entry = take(key);
  if (entry == nullptr || entry->node.IsNull()) return elements;
  if (!entry->node.IsSequence()) {
    errors_.refuse(entry->line, path_of(key),
                   fmt::format("{} here: expected a list", yaml_type(entry->node)));
    return elements;
  }
  if (entry->node.size() > most) {
    errors_.refuse(entry->line, path_of(key),
                   fmt::format("a list of {}: accepted at most {}", entry->node.size(), most));
    return elements;
  }
  for (const auto& node : entry->node) {
    Element element{node, node.Mark().line + 1, fmt::format("{}[{}]", path_of(key), elements.size())};
    origins_[element.path] = errors_.where(element.line);
    elements.push_back(std::move(element));
  }
  return elements;
}

std::optional<std::string> YamlMap::element_text(const Element& element) {
  if (errors_.failed()) return std::nullopt;
  return scalar(element.node, element.line, element.path);
}

YamlMap YamlMap::element_map(const Element& element, std::span<const std::string_view> known) {
  return YamlMap(errors_, origins_, element.node, element.line, element.path, known);
}

}  // namespace mayfly
