// SPDX-License-Identifier: BSD-3-Clause
#include "link_spec.hpp"

#include <arpa/inet.h>
#include <linux/if.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>

namespace mayfly::cli {
namespace {

using Type = KindParameter::Type;

constexpr bool tables_fit() {
  for (const KindDescription& kind : kKindDescriptions)
    if (kind.parameters.size() > LinkSpec::kMaxParameters) return false;
  return true;
}
static_assert(tables_fit(), "LinkSpec::values holds every kind's parameters");

std::string creatable_kinds() {
  std::string names;
  for (const KindDescription& kind : kind_descriptions())
    if (kind.creatable) names += fmt::format("{}{}", names.empty() ? "" : ", ", kind.name);
  return names;
}

void take_kind(Words& words, LinkSpec& spec) {
  const std::string_view name = words.text();
  if (words.status().has_value() && spec.kind != nullptr) return words.fail(EINVAL, "'type' given twice");
  spec.kind = find_kind_description(name);
  if (!words.status()) return;
  if (spec.kind == nullptr)
    return words.fail(EINVAL, "type '{}': expected one of {}", name, creatable_kinds());
  if (!spec.kind->creatable)
    words.fail(EINVAL, "type '{}' is not created here: expected one of {}", name, creatable_kinds());
}

NumberRange take_value(Words& words, bool ranges_allowed, const KindParameter& parameter) {
  if (parameter.type == Type::ethertype) {
    const uint16_t ethertype = words.ethertype();
    return {ethertype, ethertype};
  }
  const NumberRange range = words.range(UINT32_MAX);
  if (range.first != range.last && !(ranges_allowed && parameter.ranged))
    words.fail(EINVAL, "{} {}-{}: a single number is expected here", parameter.word, range.first, range.last);
  if (range.last > UINT16_MAX)
    words.fail(ERANGE, "{} {}: accepted {}..{}", parameter.word, range.last, parameter.least, parameter.most);
  return range;
}

bool take_parameter(Words& words, bool ranges_allowed, LinkSpec& spec) {
  if (spec.kind == nullptr) return false;
  for (size_t at = 0; at < spec.kind->parameters.size(); ++at) {
    const KindParameter& parameter = spec.kind->parameters[at];
    if (!words.take(parameter.word)) continue;
    spec.values[at] = take_value(words, ranges_allowed, parameter);
    return true;
  }
  return false;
}

}  // namespace

bool LinkSpec::has_range() const noexcept {
  for (const auto& value : values)
    if (value && value->first != value->last) return true;
  return false;
}

namespace {

bool take_setting(Words& words, LinkSpec& spec) {
  if (words.take("netns")) {
    spec.netns = words.text();
  } else if (words.take("unnumbered")) {
    const std::string_view lender = words.text();
    spec.unnumbered = lender == "none" ? std::string_view{} : lender;
  } else if (words.take("rp_filter")) {
    spec.rp_filter = words.choice("off", "strict");
  } else if (words.take("proxy_arp")) {
    spec.proxy_arp = words.choice("off", "on");
  } else if (words.take("proxy_nd")) {
    spec.proxy_nd = words.choice("off", "on");
  } else if (words.take("addrgenmode")) {
    spec.no_link_local = words.choice("eui64", "none");
  } else {
    return false;
  }
  return true;
}

// What follows "peer" belongs to the other end, as with ip.
void take_peer(Words& words, LinkSpec& spec) {
  PeerSpec& peer = spec.peer.emplace();
  while (!words.done()) {
    if (words.take("name")) {
      peer.name = words.text();
    } else if (words.take("netns")) {
      peer.netns = words.text();
    } else if (words.take("mtu")) {
      peer.mtu = static_cast<uint32_t>(words.number(0, UINT32_MAX));
    } else if (words.take("address")) {
      peer.address = words.mac();
    } else if (words.take("up")) {
      peer.up = true;
    } else if (peer.name.empty()) {
      peer.name = words.next();
    } else {
      return;
    }
  }
}

void put_mac(RequestMessage& message, Mac mac) {
  uint8_t octets[6];
  store_mac(octets, mac);
  message.put(IFLA_ADDRESS, octets, sizeof octets);
}

void put_peer(RequestMessage& message, const PeerSpec& peer) {
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

void put_settings(RequestMessage& message, const LinkSpec& spec) {
  if (spec.netns) message.put_string(protocol::kAttrNetns, *spec.netns);
  if (spec.unnumbered) message.put_string(protocol::kAttrUnnumbered, *spec.unnumbered);
  if (spec.rp_filter) message.put_u8(protocol::kAttrRpFilter, *spec.rp_filter ? 1 : 0);
  if (spec.proxy_arp) message.put_u8(protocol::kAttrProxyArp, *spec.proxy_arp ? 1 : 0);
  if (spec.proxy_nd) message.put_u8(protocol::kAttrProxyNd, *spec.proxy_nd ? 1 : 0);
  if (spec.no_link_local) message.put_u8(protocol::kAttrAddrGenMode, *spec.no_link_local ? 1 : 0);
}

}  // namespace

bool take_link_word(Words& words, bool ranges_allowed, LinkSpec& spec) {
  if (take_parameter(words, ranges_allowed, spec) || take_setting(words, spec)) return true;
  if (spec.kind != nullptr && spec.kind->has_peer && words.take("peer")) {
    take_peer(words, spec);
  } else if (words.take("type")) {
    take_kind(words, spec);
  } else if (words.take({"link", "parent"})) {
    spec.parent = words.text();
  } else if (words.take("mtu")) {
    spec.mtu = static_cast<uint32_t>(words.number(0, UINT32_MAX));
  } else if (words.take("group")) {
    spec.group = words.take("default") ? 0 : static_cast<uint32_t>(words.number(0, UINT32_MAX));
  } else if (words.take("address")) {
    spec.address = words.mac();
  } else if (words.take({"alias", "ifalias"})) {
    spec.alias = words.text();
  } else if (words.take("up")) {
    spec.up = true;
  } else if (words.take("down")) {
    spec.up = false;
  } else {
    return false;
  }
  return true;
}

Status check_complete(const LinkSpec& spec) {
  if (spec.kind == nullptr) return fail(EINVAL, "'type' is missing: expected one of {}", creatable_kinds());
  if (spec.kind->needs_parent && spec.parent.empty())
    return fail(EINVAL, "type {} needs 'link PARENT'", spec.kind->name);
  if (spec.kind->has_peer && (!spec.peer || spec.peer->name.empty()))
    return fail(EINVAL, "type {} needs 'peer name NAME'", spec.kind->name);
  for (size_t at = 0; at < spec.kind->parameters.size(); ++at) {
    const KindParameter& parameter = spec.kind->parameters[at];
    if (parameter.required && !spec.values[at])
      return fail(EINVAL, "type {} needs '{}' ({}..{})", spec.kind->name, parameter.word, parameter.least,
                  parameter.most);
  }
  return {};
}

void put_link_spec(RequestMessage& message, const LinkSpec& spec) {
  if (!spec.parent.empty()) message.put_string(protocol::kAttrDevice, spec.parent);
  if (spec.mtu) message.put_u32(IFLA_MTU, *spec.mtu);
  if (spec.group) message.put_u32(IFLA_GROUP, *spec.group);
  if (spec.alias) message.put_string(IFLA_IFALIAS, *spec.alias);
  if (spec.address) put_mac(message, *spec.address);
  put_settings(message, spec);
  if (spec.kind == nullptr) return;
  const RequestMessage::Nest info(message, IFLA_LINKINFO);
  message.put_string(IFLA_INFO_KIND, spec.kind->name);
  if (spec.peer) put_peer(message, *spec.peer);
  if (spec.kind->parameters.empty()) return;
  const RequestMessage::Nest data(message, IFLA_INFO_DATA);
  for (size_t at = 0; at < spec.kind->parameters.size(); ++at) {
    const std::optional<NumberRange>& value = spec.values[at];
    if (!value || value->first != value->last) continue;
    const auto number = static_cast<uint16_t>(value->first);
    const KindParameter& parameter = spec.kind->parameters[at];
    message.put_u16(parameter.attribute, parameter.type == Type::ethertype ? htons(number) : number);
  }
}

std::string describe_kinds() {
  std::string text;
  for (const KindDescription& kind : kind_descriptions()) {
    if (!kind.creatable) continue;
    text += fmt::format("          type {}", kind.name);
    for (const KindParameter& parameter : kind.parameters) {
      const std::string values = parameter.type == Type::ethertype
                                     ? "802.1Q|802.1ad|0x9100"
                                     : fmt::format("{}..{}", parameter.least, parameter.most);
      text += parameter.required ? fmt::format(" {} {}", parameter.word, values)
                                 : fmt::format(" [{} {}]", parameter.word, values);
    }
    if (kind.has_peer) text += " peer [name] NAME [netns NETNS] [mtu N] [address MAC] [up]";
    text += kind.needs_parent ? "   (needs link PARENT)\n" : "\n";
  }
  return text;
}

std::optional<uint16_t> parameter_value(const KindParameter& parameter, const Attributes& data) {
  const auto value = data.number(parameter.attribute);
  if (!value) return std::nullopt;
  const auto number = static_cast<uint16_t>(*value);
  return parameter.type == Type::ethertype ? ntohs(number) : number;
}

std::string format_ethertype(uint16_t ethertype) {
  if (ethertype == ETH_P_8021Q) return "802.1Q";
  if (ethertype == ETH_P_8021AD) return "802.1ad";
  return fmt::format("0x{:04x}", ethertype);
}

std::string format_parameters(const KindDescription& kind, const Attributes& data) {
  std::string text;
  for (const KindParameter& parameter : kind.parameters)
    if (const auto value = parameter_value(parameter, data))
      text += fmt::format(
          " {} {}", parameter.word,
          parameter.type == Type::ethertype ? format_ethertype(*value) : fmt::format("{}", *value));
  return text;
}

std::string format_tags(const KindDescription& kind, const Attributes& data) {
  std::string text;
  for (const KindParameter& parameter : kind.parameters) {
    const auto value = parameter_value(parameter, data);
    if (!value) continue;
    if (parameter.type == Type::ethertype) {
      if (*value != ETH_P_8021Q) text += fmt::format("{:04x}:", *value);
    } else if (parameter.role == KindParameter::Role::outer) {
      text += fmt::format("{}", *value);
    } else if (parameter.role == KindParameter::Role::inner) {
      text += fmt::format(".{}", *value);
    }
  }
  return text;
}

}  // namespace mayfly::cli
