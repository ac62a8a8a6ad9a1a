// SPDX-License-Identifier: BSD-3-Clause
#include "control/link_request.hpp"

#include <arpa/inet.h>
#include <linux/if.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>

#include <algorithm>
#include <cstring>

#include "control/protocol.hpp"

static_assert(mayfly::kVlanInnerAttribute == mayfly::protocol::kVlanInner);

namespace mayfly {
namespace {

using namespace protocol;

constexpr uint16_t kMostName = kInterfaceNameBytes - 1;

constexpr AttributeSpec kLinkSpecs[] = {
    {IFLA_IFNAME, AttributeSpec::Type::string, "name", kMostName},
    {IFLA_LINK, AttributeSpec::Type::u32, "link"},
    {IFLA_MTU, AttributeSpec::Type::u32, "mtu"},
    {IFLA_ADDRESS, AttributeSpec::Type::binary, "address", 6},
    {IFLA_GROUP, AttributeSpec::Type::u32, "group"},
    {IFLA_IFALIAS, AttributeSpec::Type::string, "alias", 255},
    {IFLA_LINKINFO, AttributeSpec::Type::nested, "linkinfo"},
    {IFLA_EXT_MASK, AttributeSpec::Type::u32, "ext_mask"},
    {kAttrDevice, AttributeSpec::Type::string, "link", kMostName},
    {kAttrSelector, AttributeSpec::Type::nested, "selector"},
    {kAttrNetns, AttributeSpec::Type::string, "netns", kMostNetnsNameBytes},
    {kAttrRpFilter, AttributeSpec::Type::u8, "rp_filter"},
    {kAttrProxyArp, AttributeSpec::Type::u8, "proxy_arp"},
    {kAttrProxyNd, AttributeSpec::Type::u8, "proxy_nd"},
    {kAttrAddrGenMode, AttributeSpec::Type::u8, "addrgenmode"},
    {kAttrUnnumbered, AttributeSpec::Type::string, "unnumbered", kMostName},
};

constexpr AttributeSpec kPeerDataSpecs[] = {{VETH_INFO_PEER, AttributeSpec::Type::nested, "peer"}};

// A pattern in a bulk request is longer than a name; the kind checks the name that comes of it.
constexpr AttributeSpec kPeerSpecs[] = {
    {IFLA_IFNAME, AttributeSpec::Type::string, "peer name", 64},
    {IFLA_MTU, AttributeSpec::Type::u32, "peer mtu"},
    {IFLA_ADDRESS, AttributeSpec::Type::binary, "peer address", 6},
    {kAttrNetns, AttributeSpec::Type::string, "peer netns", kMostNetnsNameBytes},
};

constexpr LinkSetting kSettings[] = {
    {kAttrRpFilter, Interface::kRpFilterStrict, "rp_filter", "0 (off), 1 (strict)"},
    {kAttrProxyArp, Interface::kProxyArp, "proxy_arp", "0 (off), 1 (on)"},
    {kAttrProxyNd, Interface::kProxyNd, "proxy_nd", "0 (off), 1 (on)"},
    {kAttrAddrGenMode, Interface::kNoLinkLocal, "addrgenmode", "0 (eui64), 1 (none)"},
};

constexpr AttributeSpec kLinkInfoSpecs[] = {
    {IFLA_INFO_KIND, AttributeSpec::Type::string, "kind", 32},
    {IFLA_INFO_DATA, AttributeSpec::Type::nested, "kind data"},
};

constexpr AttributeSpec kSelectorSpecs[] = {
    {kSelectGroup, AttributeSpec::Type::u32, "group"},
    {kSelectParent, AttributeSpec::Type::string, "parent", kMostName},
    {kSelectKind, AttributeSpec::Type::string, "type", 32},
    {kSelectOuterFirst, AttributeSpec::Type::u16, "vlan"},
    {kSelectOuterLast, AttributeSpec::Type::u16, "vlan"},
    {kSelectInnerFirst, AttributeSpec::Type::u16, "inner"},
    {kSelectInnerLast, AttributeSpec::Type::u16, "inner"},
    {kSelectAdminUp, AttributeSpec::Type::u8, "up"},
    {kSelectLimit, AttributeSpec::Type::u64, "limit"},
};

Status parse_range(const RequestAttributes& attributes, uint16_t first, uint16_t last, const char* what,
                   std::optional<TagRange>& range) {
  if (!attributes.has(first) && !attributes.has(last)) return {};
  const uint16_t from = attributes.u16(first).value_or(0);
  const uint16_t to = attributes.u16(last).value_or(0);
  if (from < 1 || to > 4094 || from > to)
    return fail_attribute(first, EINVAL, "{} {}-{}: accepted 1..4094, the first not above the last", what,
                          from, to);
  range = TagRange{from, to};
  return {};
}

Status read_peer(const Dataplane& dataplane, Netns& netns, const nlattr* data, InterfaceSpec& spec) {
  const nlattr* nested = nullptr;
  if (data != nullptr) {
    auto attributes = RequestAttributes::parse_nested(*data, kPeerDataSpecs);
    if (!attributes) return std::unexpected(attributes.error());
    nested = attributes->find(VETH_INFO_PEER);
  }
  if (nested == nullptr)
    return fail_attribute(IFLA_LINKINFO, EINVAL, "peer: missing, accepted a name (1..15 characters)");
  const std::span<const std::byte> bytes = RequestAttributes::bytes(*nested);
  if (bytes.size() < sizeof(ifinfomsg))
    return fail_attribute(IFLA_LINKINFO, EINVAL, "peer: {} bytes, at least {} are needed", bytes.size(),
                          sizeof(ifinfomsg));
  ifinfomsg fixed;
  std::memcpy(&fixed, bytes.data(), sizeof fixed);
  auto attributes = RequestAttributes::parse(bytes.subspan(NLMSG_ALIGN(sizeof(ifinfomsg))), kPeerSpecs);
  if (!attributes) return std::unexpected(attributes.error());
  const auto name = attributes->string(IFLA_IFNAME);
  if (!name) return fail_attribute(IFLA_LINKINFO, EINVAL, "peer name: missing, accepted 1..15 characters");
  auto target = find_target_netns(dataplane, netns, *attributes);
  if (!target) return std::unexpected(target.error());
  PeerSpec& peer = spec.peer.emplace();
  peer.name = *name;
  peer.netns = *target;
  peer.mtu = attributes->u32(IFLA_MTU).value_or(0);
  peer.up = (fixed.ifi_flags & IFF_UP) != 0;
  if (attributes->has(IFLA_ADDRESS))
    peer.mac = load_mac(reinterpret_cast<const uint8_t*>(attributes->binary(IFLA_ADDRESS).data()));
  return {};
}

Status read_kind(const Dataplane& dataplane, Netns& netns, const RequestAttributes& attributes,
                 InterfaceSpec& spec) {
  const nlattr* info = attributes.find(IFLA_LINKINFO);
  if (info == nullptr) return fail(EINVAL, "type: missing, accepted {}", list_kinds());
  auto linkinfo = RequestAttributes::parse_nested(*info, kLinkInfoSpecs);
  if (!linkinfo) return std::unexpected(linkinfo.error());
  const std::string_view name = linkinfo->string(IFLA_INFO_KIND).value_or("");
  const auto kind = find_kind(name);
  if (!kind) return fail_attribute(IFLA_LINKINFO, EOPNOTSUPP, "type '{}': accepted {}", name, list_kinds());
  spec.kind = *kind;
  if (interface_kinds()[*kind]->description().has_peer)
    return read_peer(dataplane, netns, linkinfo->find(IFLA_INFO_DATA), spec);
  auto values = parse_kind_values(interface_kinds()[*kind]->description(), linkinfo->find(IFLA_INFO_DATA));
  if (!values) return std::unexpected(values.error());
  spec.values = *values;
  return {};
}

}  // namespace

std::span<const LinkSetting> link_settings() noexcept {
  return kSettings;
}

std::span<const AttributeSpec> link_attribute_specs() noexcept {
  return kLinkSpecs;
}

Result<uint32_t> find_interface(const Dataplane& dataplane, const Netns& netns, uint32_t ifindex,
                                std::optional<std::string_view> name) {
  const InterfaceTable& table = dataplane.interfaces;
  if (ifindex != 0) {
    if (table.exists(ifindex) && table.interface(ifindex).netns.own() == &netns) return ifindex;
    return fail(ENODEV, "ifindex {}: no interface has it", ifindex);
  }
  if (!name) return fail(EINVAL, "the interface is missing: give its name or its ifindex");
  const uint32_t found = table.find(&netns, *name);
  if (found == kNoInterface) return fail(ENODEV, "interface '{}' does not exist", *name);
  return found;
}

Result<Netns*> find_target_netns(const Dataplane& dataplane, Netns& netns,
                                 const RequestAttributes& attributes) {
  Netns* target = &netns;
  if (const auto name = attributes.string(kAttrNetns)) {
    target = dataplane.netnses.find(*name);
    if (target == nullptr) return fail_attribute(kAttrNetns, ENOENT, "netns '{}' does not exist", *name);
  }
  if (target->dying) return fail_attribute(kAttrNetns, EBUSY, "netns '{}' is being deleted", target->name);
  return target;
}

Result<SettingsChange> parse_settings(const RequestAttributes& attributes) {
  SettingsChange change;
  for (const LinkSetting& setting : kSettings) {
    const auto value = attributes.u8(setting.attribute);
    if (!value) continue;
    if (*value > 1)
      return fail_attribute(setting.attribute, EINVAL, "{} {}: accepted {}", setting.word, *value,
                            setting.values);
    change.named |= setting.flag;
    if (*value == 1) change.on |= setting.flag;
  }
  return change;
}

Result<uint32_t> parse_unnumbered(const Dataplane& dataplane, const Netns& netns,
                                  const RequestAttributes& attributes) {
  const auto name = attributes.string(kAttrUnnumbered);
  if (!name || name->empty()) return kNoInterface;
  const uint32_t lender = dataplane.interfaces.find(&netns, *name);
  if (lender == kNoInterface)
    return fail_attribute(kAttrUnnumbered, ENODEV, "unnumbered: interface '{}' does not exist in netns '{}'",
                          *name, netns.name);
  return lender;
}

Result<KindValues> parse_kind_values(const KindDescription& kind, const nlattr* info_data) {
  std::array<AttributeSpec, kMostKindParameters> specs{};
  for (size_t i = 0; i < kind.parameters.size(); ++i)
    specs[i] = {kind.parameters[i].attribute, AttributeSpec::Type::u16, kind.parameters[i].word.data()};
  auto attributes = RequestAttributes::parse(
      info_data == nullptr ? std::span<const std::byte>{} : RequestAttributes::bytes(*info_data),
      std::span(specs).first(kind.parameters.size()));
  if (!attributes) return std::unexpected(attributes.error());
  KindValues values;
  for (size_t i = 0; i < kind.parameters.size(); ++i) {
    const KindParameter& parameter = kind.parameters[i];
    const auto raw = attributes->u16(parameter.attribute);
    if (!raw) continue;
    const uint16_t value = parameter.type == KindParameter::Type::ethertype ? ntohs(*raw) : *raw;
    if (value < parameter.least || value > parameter.most)
      return fail_attribute(parameter.attribute, ERANGE, "{} {} {}: accepted {}..{}", kind.name,
                            parameter.word, value, parameter.least, parameter.most);
    values.set(i, value);
  }
  return values;
}

Status check_required(const KindDescription& kind, const KindValues& values) {
  for (size_t i = 0; i < kind.parameters.size(); ++i)
    if (kind.parameters[i].required && !values.has(i))
      return fail(EINVAL, "{} {}: missing, accepted {}..{}", kind.name, kind.parameters[i].word,
                  kind.parameters[i].least, kind.parameters[i].most);
  return {};
}

Result<InterfaceSpec> parse_link_spec(const Dataplane& dataplane, Netns& netns,
                                      const RequestAttributes& attributes) {
  auto spec = parse_link_template(dataplane, netns, attributes);
  if (!spec) return spec;
  if (auto complete = check_required(interface_kinds()[spec->kind]->description(), spec->values); !complete)
    return std::unexpected(complete.error());
  return spec;
}

Result<InterfaceSpec> parse_link_template(const Dataplane& dataplane, Netns& netns,
                                          const RequestAttributes& attributes) {
  InterfaceSpec spec;
  auto target = find_target_netns(dataplane, netns, attributes);
  if (!target) return std::unexpected(target.error());
  spec.netns = *target;
  if (auto kind = read_kind(dataplane, netns, attributes, spec); !kind) return std::unexpected(kind.error());
  const KindDescription& kind = interface_kinds()[spec.kind]->description();
  if (!kind.creatable)
    return fail(EOPNOTSUPP, "type {}: comes with its device (mayflyd --port NAME=DEVARGS)", kind.name);
  if (attributes.has(IFLA_LINK) || attributes.has(kAttrDevice)) {
    auto parent = find_interface(dataplane, netns, attributes.u32(IFLA_LINK).value_or(0),
                                 attributes.string(kAttrDevice));
    if (!parent) return fail(ENODEV, "link: {}", parent.error().text);
    spec.parent = *parent;
  }
  spec.group = attributes.u32(IFLA_GROUP).value_or(0);
  if (const auto mtu = attributes.u32(IFLA_MTU)) {
    if (*mtu < kLeastMtu || *mtu > 65'535)
      return fail_attribute(IFLA_MTU, EINVAL, "mtu {}: accepted {}..65535", *mtu, kLeastMtu);
    spec.mtu = *mtu;
  }
  if (attributes.has(IFLA_ADDRESS))
    spec.mac = load_mac(reinterpret_cast<const uint8_t*>(attributes.binary(IFLA_ADDRESS).data()));
  spec.alias = attributes.string(IFLA_IFALIAS).value_or("");
  auto settings = parse_settings(attributes);
  if (!settings) return std::unexpected(settings.error());
  spec.settings = settings->on;
  auto lender = parse_unnumbered(dataplane, **target, attributes);
  if (!lender) return std::unexpected(lender.error());
  spec.unnumbered = *lender;
  return spec;
}

Result<Selector> parse_selector(const Dataplane& dataplane, const Netns& netns, const nlattr* nested,
                                uint64_t* limit) {
  Selector selector;
  selector.netns = &netns;
  if (nested == nullptr) return selector;
  auto attributes = RequestAttributes::parse_nested(*nested, kSelectorSpecs);
  if (!attributes) return std::unexpected(attributes.error());
  selector.group = attributes->u32(kSelectGroup);
  if (const auto parent = attributes->string(kSelectParent)) {
    auto found = find_interface(dataplane, netns, 0, parent);
    if (!found) return fail(ENODEV, "parent: {}", found.error().text);
    selector.parent = *found;
  }
  if (const auto name = attributes->string(kSelectKind)) {
    selector.kind = find_kind(*name);
    if (!selector.kind) return fail(EOPNOTSUPP, "type '{}': accepted {}", *name, list_kinds());
  }
  if (auto read = parse_range(*attributes, kSelectOuterFirst, kSelectOuterLast, "vlan", selector.outer);
      !read)
    return std::unexpected(read.error());
  if (auto read = parse_range(*attributes, kSelectInnerFirst, kSelectInnerLast, "inner", selector.inner);
      !read)
    return std::unexpected(read.error());
  if (const auto up = attributes->u8(kSelectAdminUp)) selector.admin_up = *up != 0;
  if (limit != nullptr) *limit = attributes->u64(kSelectLimit).value_or(UINT64_MAX);
  return selector;
}

std::string describe_selector(const Dataplane& dataplane, const Selector& selector) {
  std::string text;
  const auto add = [&](std::string_view word, const std::string& value) {
    text += fmt::format("{}{}{}{}", text.empty() ? "" : " ", word, value.empty() ? "" : " ", value);
  };
  const auto range = [](const TagRange& tags) {
    return tags.first == tags.last ? fmt::format("{}", tags.first)
                                   : fmt::format("{}-{}", tags.first, tags.last);
  };
  if (selector.group) add("group", fmt::format("{}", *selector.group));
  if (selector.parent) add("parent", dataplane.interfaces.record(*selector.parent).name);
  if (selector.kind) add("type", std::string(interface_kinds()[*selector.kind]->description().name));
  if (selector.outer) add("vlan", range(*selector.outer));
  if (selector.inner) add("inner", range(*selector.inner));
  if (selector.admin_up) add(*selector.admin_up ? "up" : "down", "");
  return text.empty() ? "all" : text;
}

}  // namespace mayfly
