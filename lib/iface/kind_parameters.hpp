// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// What an interface of each kind is told when it is created: one row a kind, one row a parameter.
//
// The CLI parses, prints and explains kinds from this table alone ("link add", "link bulk add", "link show"),
// so a new kind or parameter needs a row here and nothing there. Constants only; includes nothing of
// lib/iface.

#include <linux/if_ether.h>
#include <linux/if_link.h>

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace mayfly {

struct KindParameter {
  enum class Type : uint8_t {
    u16,        // host order
    ethertype,  // u16 in network order, written 802.1Q, 802.1ad or 0x88a8
  };
  // The parameter's part in the tags that a packet of the interface carries.
  enum class Role : uint8_t { none, outer, inner };

  std::string_view word;   // on the command line and in JSON
  uint16_t attribute = 0;  // inside IFLA_INFO_DATA
  Type type = Type::u16;
  uint32_t least = 0;  // what the daemon accepts
  uint32_t most = 0;
  bool required = false;
  bool ranged = false;  // "link bulk add" takes FIRST-LAST
  Role role = Role::none;
};

// Beside the kernel's IFLA_VLAN_*; the protocol's kVlanInner.
constexpr uint16_t kVlanInnerAttribute = 64;
constexpr size_t kMostKindParameters = 4;

struct KindDescription {
  std::string_view name;
  std::span<const KindParameter> parameters;
  bool needs_parent = false;
  bool creatable = true;  // by "link add"; a port is configured instead
  bool has_peer = false;  // comes in pairs: "peer name NAME"
};

// In the order they are printed; of the ranged ones the last varies fastest.
inline constexpr std::array kVlanParameters = {
    KindParameter{.word = "protocol",
                  .attribute = IFLA_VLAN_PROTOCOL,
                  .type = KindParameter::Type::ethertype,
                  .least = ETH_P_8021Q,
                  .most = ETH_P_QINQ1},
    KindParameter{.word = "id",
                  .attribute = IFLA_VLAN_ID,
                  .least = 1,
                  .most = 4094,
                  .required = true,
                  .ranged = true,
                  .role = KindParameter::Role::outer},
    KindParameter{.word = "inner",
                  .attribute = kVlanInnerAttribute,
                  .least = 1,
                  .most = 4094,
                  .ranged = true,
                  .role = KindParameter::Role::inner},
};

inline constexpr std::array kKindDescriptions = {
    KindDescription{.name = "vlan", .parameters = kVlanParameters, .needs_parent = true},
    KindDescription{.name = "dummy", .parameters = {}},
    KindDescription{.name = "port", .parameters = {}, .creatable = false},
    KindDescription{.name = "veth", .parameters = {}, .has_peer = true},
};

constexpr std::span<const KindDescription> kind_descriptions() noexcept {
  return kKindDescriptions;
}

constexpr const KindDescription* find_kind_description(std::string_view name) noexcept {
  for (const KindDescription& kind : kKindDescriptions)
    if (kind.name == name) return &kind;
  return nullptr;
}

}  // namespace mayfly
