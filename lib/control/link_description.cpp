// SPDX-License-Identifier: BSD-3-Clause
#include "control/link_description.hpp"

#include <arpa/inet.h>
#include <linux/if.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <strings.h>

#include "base/units.hpp"

namespace mayfly {
namespace {

using Type = KindParameter::Type;

constexpr bool tables_fit() {
  for (const KindDescription& kind : kKindDescriptions)
    if (kind.parameters.size() > kMostKindParameters) return false;
  return true;
}
static_assert(tables_fit(), "LinkDescription::values holds every kind's parameters");

void put_mac(RequestMessage& message, Mac mac) {
  uint8_t octets[6];
  store_mac(octets, mac);
  message.put(IFLA_ADDRESS, octets, sizeof octets);
}

void put_peer(RequestMessage& message, const PeerDescription& peer) {
  const RequestMessage::Nest data(message, IFLA_INFO_DATA);
  const RequestMessage::Nest nest(message, VETH_INFO_PEER);
  ifinfomsg fixed{};
  if (peer.up) fixed.ifi_flags = fixed.ifi_change = IFF_UP;
  message.put_raw(&fixed, sizeof fixed);
  message.put_string(IFLA_IFNAME, peer.name);
  if (peer.netns) message.put_string(protocol::kAttrNetns, *peer.netns);
  if (peer.mtu) message.put_u32(IFLA_MTU, *peer.mtu);
  if (peer.address) put_mac(message, *peer.address);
}

void put_settings(RequestMessage& message, const LinkDescription& link) {
  if (link.netns) message.put_string(protocol::kAttrNetns, *link.netns);
  if (link.unnumbered) message.put_string(protocol::kAttrUnnumbered, *link.unnumbered);
  if (link.rp_filter) message.put_u8(protocol::kAttrRpFilter, *link.rp_filter ? 1 : 0);
  if (link.proxy_arp) message.put_u8(protocol::kAttrProxyArp, *link.proxy_arp ? 1 : 0);
  if (link.proxy_nd) message.put_u8(protocol::kAttrProxyNd, *link.proxy_nd ? 1 : 0);
  if (link.no_link_local) message.put_u8(protocol::kAttrAddrGenMode, *link.no_link_local ? 1 : 0);
}

ifinfomsg fixed_link(const LinkDescription& link) {
  ifinfomsg fixed{};
  fixed.ifi_family = AF_UNSPEC;
  if (link.index) fixed.ifi_index = static_cast<int>(*link.index);
  if (link.up) {
    fixed.ifi_flags = *link.up ? IFF_UP : 0;
    fixed.ifi_change = IFF_UP;
  }
  return fixed;
}

void put_ranges(RequestMessage& message, const LinkDescription& link) {
  for (size_t at = 0; at < link.kind->parameters.size(); ++at) {
    const std::optional<NumberRange>& value = link.values[at];
    if (!value || value->single()) continue;
    const RequestMessage::Nest range(message, protocol::kBulkRange);
    message.put_u16(protocol::kRangeParameter, link.kind->parameters[at].attribute);
    message.put_u32(protocol::kRangeFirst, value->first);
    message.put_u32(protocol::kRangeLast, value->last);
  }
}

std::string setting_words(const LinkDescription& link) {
  std::string words;
  if (link.mtu) words += fmt::format(" mtu {}", *link.mtu);
  if (link.address) words += fmt::format(" address {}", format_mac(*link.address));
  if (link.group) words += fmt::format(" group {}", *link.group);
  if (link.alias) words += fmt::format(" alias '{}'", *link.alias);
  if (link.unnumbered)
    words += fmt::format(" unnumbered {}", link.unnumbered->empty() ? "none" : *link.unnumbered);
  if (link.rp_filter) words += *link.rp_filter ? " rp_filter strict" : " rp_filter off";
  if (link.proxy_arp) words += *link.proxy_arp ? " proxy_arp on" : " proxy_arp off";
  if (link.proxy_nd) words += *link.proxy_nd ? " proxy_nd on" : " proxy_nd off";
  if (link.no_link_local) words += *link.no_link_local ? " addrgenmode none" : " addrgenmode eui64";
  if (link.up) words += *link.up ? " up" : " down";
  return words;
}

std::string peer_words(const PeerDescription& peer) {
  std::string words = fmt::format(" peer name {}", peer.name);
  if (peer.netns) words += fmt::format(" netns {}", *peer.netns);
  if (peer.mtu) words += fmt::format(" mtu {}", *peer.mtu);
  if (peer.address) words += fmt::format(" address {}", format_mac(*peer.address));
  if (peer.up) words += " up";
  return words;
}

std::string value_word(const KindParameter& parameter, NumberRange value) {
  if (parameter.type == Type::ethertype) return format_ethertype(static_cast<uint16_t>(value.first));
  return value.single() ? fmt::format("{}", value.first) : fmt::format("{}-{}", value.first, value.last);
}

}  // namespace

bool LinkDescription::has_range() const noexcept {
  for (const auto& value : values)
    if (value && !value->single()) return true;
  return false;
}

std::string creatable_kinds() {
  std::string names;
  for (const KindDescription& kind : kind_descriptions())
    if (kind.creatable) names += fmt::format("{}{}", names.empty() ? "" : ", ", kind.name);
  return names;
}

Status check_complete(const LinkDescription& link) {
  if (link.kind == nullptr) return fail(EINVAL, "'type' is missing: expected one of {}", creatable_kinds());
  if (link.kind->needs_parent && link.parent.empty())
    return fail(EINVAL, "type {} needs 'link PARENT'", link.kind->name);
  if (link.kind->has_peer && (!link.peer || link.peer->name.empty()))
    return fail(EINVAL, "type {} needs 'peer name NAME'", link.kind->name);
  for (size_t at = 0; at < link.kind->parameters.size(); ++at) {
    const KindParameter& parameter = link.kind->parameters[at];
    if (parameter.required && !link.values[at])
      return fail(EINVAL, "type {} needs '{}' ({}..{})", link.kind->name, parameter.word, parameter.least,
                  parameter.most);
  }
  return {};
}

void put_link(RequestMessage& message, const LinkDescription& link) {
  if (!link.parent.empty()) message.put_string(protocol::kAttrDevice, link.parent);
  if (link.mtu) message.put_u32(IFLA_MTU, *link.mtu);
  if (link.group) message.put_u32(IFLA_GROUP, *link.group);
  if (link.alias) message.put_string(IFLA_IFALIAS, *link.alias);
  if (link.address) put_mac(message, *link.address);
  put_settings(message, link);
  if (link.kind == nullptr) return;
  const RequestMessage::Nest info(message, IFLA_LINKINFO);
  message.put_string(IFLA_INFO_KIND, link.kind->name);
  if (link.peer) put_peer(message, *link.peer);
  if (link.kind->parameters.empty()) return;
  const RequestMessage::Nest data(message, IFLA_INFO_DATA);
  for (size_t at = 0; at < link.kind->parameters.size(); ++at) {
    const std::optional<NumberRange>& value = link.values[at];
    if (!value || !value->single()) continue;
    const auto number = static_cast<uint16_t>(value->first);
    const KindParameter& parameter = link.kind->parameters[at];
    message.put_u16(parameter.attribute, parameter.type == Type::ethertype ? htons(number) : number);
  }
}

void begin_link_add(RequestMessage& message, const LinkDescription& link) {
  message.begin_route(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, fixed_link(link));
  message.put_string(IFLA_IFNAME, link.name);
  put_link(message, link);
}

void begin_link_set(RequestMessage& message, const LinkDescription& link) {
  message.begin_route(RTM_NEWLINK, 0, fixed_link(link));
  message.put_string(IFLA_IFNAME, link.name);
  put_link(message, link);
}

std::string name_pattern_of(const LinkDescription& link) {
  if (!link.name.empty()) return link.name;
  if (!link.kind->needs_parent) return fmt::format("{}{{}}", link.kind->name);
  std::string pattern = "{parent}";
  for (size_t at = 0; at < link.kind->parameters.size(); ++at) {
    if (!link.values[at]) continue;
    if (link.kind->parameters[at].role == KindParameter::Role::outer) pattern += ".{outer}";
    if (link.kind->parameters[at].role == KindParameter::Role::inner) pattern += ".{inner}";
  }
  return pattern;
}

void begin_link_bulk_add(RequestMessage& message, const LinkDescription& link,
                         std::optional<uint64_t> count) {
  message.begin_generic(protocol::kCmdLinkBulkAdd);
  message.put_string(protocol::kBulkName, name_pattern_of(link));
  if (count) message.put_u64(protocol::kBulkCount, *count);
  {
    const RequestMessage::Nest shared(message, protocol::kBulkTemplate);
    put_link(message, link);
  }
  put_ranges(message, link);
  if (link.up) message.put_flag(*link.up ? protocol::kBulkUp : protocol::kBulkDown);
}

std::string link_words(const LinkDescription& link) {
  std::string words;
  if (!link.parent.empty()) words += fmt::format(" link {}", link.parent);
  words += setting_words(link);
  if (link.kind == nullptr) return words;
  words += fmt::format(" type {}", link.kind->name);
  for (size_t at = 0; at < link.kind->parameters.size(); ++at)
    if (link.values[at])
      words += fmt::format(" {} {}", link.kind->parameters[at].word,
                           value_word(link.kind->parameters[at], *link.values[at]));
  if (link.peer) words += peer_words(*link.peer);
  return words;
}

std::string format_ethertype(uint16_t ethertype) {
  if (ethertype == ETH_P_8021Q) return "802.1Q";
  if (ethertype == ETH_P_8021AD) return "802.1ad";
  return fmt::format("0x{:04x}", ethertype);
}

Result<uint16_t> parse_ethertype(std::string_view what, std::string_view text) {
  const auto is = [text](std::string_view name) {
    return text.size() == name.size() && strncasecmp(text.data(), name.data(), name.size()) == 0;
  };
  if (is("802.1q")) return ETH_P_8021Q;
  if (is("802.1ad")) return ETH_P_8021AD;
  const auto number = parse_number(what, text, 0, UINT16_MAX);
  if (number) return static_cast<uint16_t>(*number);
  return fail(EINVAL, "{} '{}': expected 802.1Q, 802.1ad or a number like 0x88a8", what, text);
}

Result<NumberRange> parse_range(std::string_view what, std::string_view text, uint32_t most) {
  const size_t dash = text.find('-');
  const auto first = parse_number(what, text.substr(0, dash), 0, most);
  if (!first) return std::unexpected(first.error());
  NumberRange range{static_cast<uint32_t>(*first), static_cast<uint32_t>(*first)};
  if (dash != std::string_view::npos) {
    const auto last = parse_number(what, text.substr(dash + 1), 0, most);
    if (!last) return std::unexpected(last.error());
    range.last = static_cast<uint32_t>(*last);
  }
  if (range.first > range.last) return fail(EINVAL, "{} {}: the range is upside down", what, text);
  return range;
}

}  // namespace mayfly
