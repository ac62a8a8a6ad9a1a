// SPDX-License-Identifier: BSD-3-Clause
#include "base/units.hpp"

#include <charconv>
#include <span>

#include "base/clock.hpp"

namespace mayfly {
namespace {

struct Unit {
  std::string_view suffix;
  uint64_t factor;
};

constexpr Unit kByteUnits[] = {{"B", 1}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}};
constexpr Unit kTimeUnits[] = {{"ns", 1},           {"us", kNsPerUs},           {"ms", kNsPerMs},
                               {"s", kNsPerSecond}, {"min", 60 * kNsPerSecond}, {"h", 3600 * kNsPerSecond}};

std::string join(std::span<const Unit> units) {
  std::string text;
  for (const Unit& unit : units) text += fmt::format("{}{}", text.empty() ? "" : ", ", unit.suffix);
  return text;
}

Result<uint64_t> parse_with_unit(std::string_view what, std::string_view text, std::span<const Unit> units,
                                 uint64_t least, uint64_t most, std::string (*show)(uint64_t)) {
  uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc::invalid_argument)
    return fail(EINVAL, "{} '{}': expected a number and a unit ({})", what, text, join(units));
  const std::string_view suffix(rest, static_cast<size_t>(end - rest));
  for (const Unit& unit : units) {
    if (suffix != unit.suffix) continue;
    uint64_t scaled = 0;
    if (error == std::errc::result_out_of_range || __builtin_mul_overflow(value, unit.factor, &scaled) ||
        scaled < least || scaled > most)
      return fail(ERANGE, "{} '{}': accepted {}..{}", what, text, show(least), show(most));
    return scaled;
  }
  return fail(EINVAL, "{} '{}': {} ({})", what, text, suffix.empty() ? "the unit is missing" : "unknown unit",
              join(units));
}

}  // namespace

Result<uint64_t> parse_number(std::string_view what, std::string_view text, uint64_t least, uint64_t most) {
  std::string_view digits = text;
  int base = 10;
  if (digits.starts_with("0x")) {
    digits.remove_prefix(2);
    base = 16;
  }
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error == std::errc::invalid_argument || end != digits.data() + digits.size())
    return fail(EINVAL, "{} '{}': expected a number, accepted {}..{}", what, text, least, most);
  if (error == std::errc::result_out_of_range || value < least || value > most)
    return fail(ERANGE, "{} {}: accepted {}..{}", what, text, least, most);
  return value;
}

Result<uint64_t> parse_bytes(std::string_view what, std::string_view text, uint64_t least, uint64_t most) {
  return parse_with_unit(what, text, kByteUnits, least, most, format_bytes);
}

Result<uint64_t> parse_duration(std::string_view what, std::string_view text, uint64_t least_ns,
                                uint64_t most_ns) {
  return parse_with_unit(what, text, kTimeUnits, least_ns, most_ns, format_duration);
}

std::string format_bytes(uint64_t bytes) {
  constexpr const char* names[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  auto value = static_cast<double>(bytes);
  // Not 1024.0 KiB: what rounds up to the next unit is shown in it.
  while (value >= 1023.95 && unit < 4) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 || value == static_cast<double>(static_cast<uint64_t>(value))
             ? fmt::format("{} {}", static_cast<uint64_t>(value), names[unit])
             : fmt::format("{:.1f} {}", value, names[unit]);
}

std::string format_duration(uint64_t ns) {
  if (ns < kNsPerUs) return fmt::format("{} ns", ns);
  if (ns < kNsPerMs - kNsPerUs / 2) return fmt::format("{} us", (ns + kNsPerUs / 2) / kNsPerUs);
  if (ns < 10 * kNsPerMs - kNsPerMs / 20) return fmt::format("{:.1f} ms", static_cast<double>(ns) / 1e6);
  if (ns < kNsPerSecond - kNsPerMs / 2) return fmt::format("{} ms", (ns + kNsPerMs / 2) / kNsPerMs);
  return fmt::format("{:.2f} s", static_cast<double>(ns) / 1e9);
}

std::string format_count(uint64_t count) {
  std::string digits = fmt::format("{}", count);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<size_t>(at), 1, ',');
  return digits;
}

}  // namespace mayfly
