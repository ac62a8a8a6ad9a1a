// SPDX-License-Identifier: BSD-3-Clause
#include "iface/kinds/kinds.hpp"

#include <array>

#include "iface/interface_kind.hpp"

namespace mayfly {

// In the order of kKindDescriptions.
std::span<const InterfaceKind* const> interface_kinds() noexcept {
  static const std::array<const InterfaceKind*, 4> kinds = {&vlan_kind(), &dummy_kind(), &port_kind(),
                                                            &veth_kind()};
  static_assert(kinds.size() == std::size(kKindDescriptions));
  return kinds;
}

const KindId kPortKind = 2;
const KindId kVethKind = 3;

static_assert(kKindDescriptions[2].name == "port" && kKindDescriptions[3].name == "veth");

std::optional<KindId> find_kind(std::string_view name) noexcept {
  for (KindId id = 0; id < std::size(kKindDescriptions); ++id)
    if (kKindDescriptions[id].name == name) return id;
  return std::nullopt;
}

std::string list_kinds() {
  std::string text;
  for (const KindDescription& kind : kKindDescriptions)
    text += fmt::format("{}{}", text.empty() ? "" : ", ", kind.name);
  return text;
}

}  // namespace mayfly
