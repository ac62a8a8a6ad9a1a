// SPDX-License-Identifier: BSD-3-Clause
#include "port/devargs.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/units.hpp"
#include "port/eal.hpp"

namespace mayfly {
namespace {

constexpr std::array<std::string_view, 9> kKnownDrivers = {"net_af_packet", "net_af_xdp", "net_bonding",
                                                           "net_memif",     "net_null",   "net_pcap",
                                                           "net_ring",      "net_tap",    "net_virtio_user"};

// The next comma that stands in no parentheses.
size_t find_comma(std::string_view text) {
  int depth = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '(') ++depth;
    if (text[at] == ')') --depth;
    if (text[at] == ',' && depth <= 0) return at;
  }
  return std::string_view::npos;
}

}  // namespace

Devargs Devargs::parse(std::string_view text) {
  Devargs devargs;
  bool first = true;
  while (!text.empty()) {
    const size_t comma = find_comma(text);
    const std::string_view piece = text.substr(0, comma);
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
    if (first) {
      devargs.device = with_full_pci_address(piece);
    } else if (!piece.empty()) {
      const size_t equals = piece.find('=');
      devargs.add(std::string(piece.substr(0, equals)),
                  equals == std::string_view::npos ? std::string() : std::string(piece.substr(equals + 1)));
    }
    first = false;
  }
  return devargs;
}

std::string Devargs::text() const {
  std::string text = device;
  for (const auto& [name, value] : arguments)
    text += value.empty() ? fmt::format(",{}", name) : fmt::format(",{}={}", name, value);
  return text;
}

const std::string* Devargs::find(std::string_view name) const noexcept {
  const auto found =
      std::ranges::find_if(arguments, [&](const auto& argument) { return argument.first == name; });
  return found == arguments.end() ? nullptr : &found->second;
}

Result<std::optional<uint32_t>> Devargs::number(std::string_view name) const {
  const std::string* value = find(name);
  if (value == nullptr) return std::nullopt;
  const auto number = parse_number(name, *value, 1, INT32_MAX);
  if (!number) return std::unexpected(number.error());
  return static_cast<uint32_t>(*number);
}

bool Devargs::is_of(std::string_view driver) const noexcept {
  return device.starts_with(driver) &&
         std::ranges::all_of(device.substr(driver.size()), [](char c) { return c >= '0' && c <= '9'; });
}

std::string Devargs::kernel_interface() const {
  if (!is_of("net_af_packet") && !is_of("eth_af_packet") && !is_of("net_af_xdp") && !is_of("net_pcap"))
    return {};
  for (const std::string_view name : {"iface", "rx_iface", "rx_iface_in", "tx_iface"})
    if (const std::string* value = find(name); value != nullptr) return *value;
  return {};
}

std::string list_known_drivers() {
  return fmt::format("{}, or a PCI address like 0000:03:00.0", fmt::join(kKnownDrivers, ", "));
}

}  // namespace mayfly
