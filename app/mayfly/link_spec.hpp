// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// An interface as it is described on the command line, for "link add" and for "link bulk add", whose kind's
// parameters may be ranges. Kinds and their parameters come from iface/kind_parameters.hpp alone.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/address.hpp"
#include "control/client.hpp"
#include "iface/kind_parameters.hpp"
#include "words.hpp"

namespace mayfly::cli {

// The other end of a pair: "peer name NAME [netns NS] [mtu N] [address MAC] [up]".
struct PeerSpec {
  std::string_view name;
  std::optional<std::string_view> netns;
  std::optional<uint32_t> mtu;
  std::optional<Mac> address;
  bool up = false;
};

struct LinkSpec {
  static constexpr size_t kMaxParameters = 16;

  std::string_view name;
  std::string_view parent;
  std::optional<uint32_t> index;
  std::optional<uint32_t> mtu;
  std::optional<uint32_t> group;
  std::optional<Mac> address;
  std::optional<std::string_view> alias;
  std::optional<bool> up;
  std::optional<std::string_view> netns;
  std::optional<std::string_view> unnumbered;  // empty: none
  std::optional<bool> rp_filter;               // strict
  std::optional<bool> proxy_arp;
  std::optional<bool> proxy_nd;
  std::optional<bool> no_link_local;  // addrgenmode none
  std::optional<PeerSpec> peer;
  const KindDescription* kind = nullptr;
  std::array<std::optional<NumberRange>, kMaxParameters> values;  // of the kind's parameters, in its order

  bool has_range() const noexcept;
  // Something but name, kind and what it is stacked on.
  bool has_settings() const noexcept {
    return up || mtu || group || address || alias || netns || unnumbered || rp_filter || proxy_arp ||
           proxy_nd || no_link_local;
  }
};

// Takes one part of a description; false when the next word begins none. Ranges only where allowed.
bool take_link_word(Words& words, bool ranges_allowed, LinkSpec& spec);
// What every description needs: a kind, its parent and required parameters.
Status check_complete(const LinkSpec& spec);

// Everything that RTM_NEWLINK carries, except name, flags and ranges of more than one value.
void put_link_spec(RequestMessage& message, const LinkSpec& spec);
// "vlan: id 1..4094, [inner 1..4094], [protocol 802.1Q|802.1ad]", a line for each kind.
std::string describe_kinds();
// IFLA_INFO_DATA of an answer: " protocol 802.1Q id 100", and "88a8:100.200".
std::string format_parameters(const KindDescription& kind, const Attributes& data);
std::string format_tags(const KindDescription& kind, const Attributes& data);
std::string format_ethertype(uint16_t ethertype);
// A parameter in an answer, in host order.
std::optional<uint16_t> parameter_value(const KindParameter& parameter, const Attributes& data);

}  // namespace mayfly::cli
