// SPDX-License-Identifier: BSD-3-Clause
#include "link_spec.hpp"

#include <arpa/inet.h>
#include <linux/if_link.h>

namespace mayfly::cli {
namespace {

using Type = KindParameter::Type;

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
