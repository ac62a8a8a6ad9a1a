// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// An interface as somebody asks for it, on the command line or in the configuration file, and the messages
// that create or change it. Kinds and their parameters come from iface/kind_parameters.hpp alone; in a bulk
// create those parameters may be ranges.
//
// Plain data and pure functions: any thread. What the daemon accepts is decided by the daemon.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/address.hpp"
#include "control/client.hpp"
#include "iface/kind_parameters.hpp"

namespace mayfly {

struct NumberRange {
  uint32_t first = 0;
  uint32_t last = 0;

  bool operator==(const NumberRange&) const = default;
  bool single() const noexcept { return first == last; }
};

// The other end of a pair.
struct PeerDescription {
  std::string name;  // a pattern in a bulk create
  std::optional<std::string> netns;
  std::optional<uint32_t> mtu;
  std::optional<Mac> address;
  bool up = false;

  bool operator==(const PeerDescription&) const = default;
};

struct LinkDescription {
  std::string name;  // a pattern in a bulk create
  std::string parent;
  std::optional<uint32_t> index;
  std::optional<uint32_t> mtu;
  std::optional<uint32_t> group;
  std::optional<Mac> address;
  std::optional<std::string> alias;
  std::optional<bool> up;
  std::optional<std::string> netns;       // absent: that of the connection
  std::optional<std::string> unnumbered;  // empty: none
  std::optional<bool> rp_filter;          // strict
  std::optional<bool> proxy_arp;
  std::optional<bool> proxy_nd;
  std::optional<bool> no_link_local;  // addrgenmode none
  std::optional<PeerDescription> peer;
  const KindDescription* kind = nullptr;
  std::array<std::optional<NumberRange>, kMostKindParameters>
      values;  // of the kind's parameters, in its order

  bool operator==(const LinkDescription&) const = default;
  bool has_range() const noexcept;
  // Something but name, kind and what it is stacked on.
  bool has_settings() const noexcept {
    return up || mtu || group || address || alias || netns || unnumbered || rp_filter || proxy_arp ||
           proxy_nd || no_link_local;
  }
};

// "vlan, dummy, veth".
std::string creatable_kinds();
// What every description of a new interface needs: a kind, its parent and required parameters.
Status check_complete(const LinkDescription& link);

// RTM_NEWLINK that creates it, or that changes the interface of this name (no kind, no parent).
void begin_link_add(RequestMessage& message, const LinkDescription& link);
void begin_link_set(RequestMessage& message, const LinkDescription& link);
// kCmdLinkBulkAdd: the name is a pattern; an empty one stands for {parent}.{outer}.{inner} as far as there
// are such. count may be absent where a range gives it.
void begin_link_bulk_add(RequestMessage& message, const LinkDescription& link, std::optional<uint64_t> count);
std::string name_pattern_of(const LinkDescription& link);

// Everything that RTM_NEWLINK carries, except name, flags and ranges of more than one value.
void put_link(RequestMessage& message, const LinkDescription& link);
// The same in words, as "link add" takes them: " link port0 mtu 1500 up type vlan id 5".
std::string link_words(const LinkDescription& link);
// "802.1Q", "802.1ad", "0x9100".
std::string format_ethertype(uint16_t ethertype);
Result<uint16_t> parse_ethertype(std::string_view what, std::string_view text);
// "5" or "1-4000".
Result<NumberRange> parse_range(std::string_view what, std::string_view text, uint32_t most);

}  // namespace mayfly
