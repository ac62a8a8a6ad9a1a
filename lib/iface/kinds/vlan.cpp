// SPDX-License-Identifier: BSD-3-Clause
// Kind vlan: the frames of a port that carry one tag, or an outer and an inner one (QinQ). The parent is the
// port, with `inner` for two tags, or a one-tag VLAN of the port, whose child then has two.
#include <algorithm>

#include "iface/interface_kind.hpp"
#include "iface/interface_table.hpp"
#include "iface/kinds/kinds.hpp"

namespace mayfly {
namespace {

constexpr uint16_t kCTagEthertype = ethertype_of(TagProtocol::c_tag);
// In the order of kVlanParameters.
enum Parameter : size_t { kProtocol, kId, kInner };

TagKey key_of(const Interface& interface) {
  TagKey key;
  key.protocol = tag_protocol_of(interface.outer_protocol());
  key.outer = interface.outer_tag();
  key.inner = interface.tag_bytes == 8 ? interface.inner_tag() : 0;
  return key;
}

std::string describe_key(const TagKey& key) {
  return key.inner == 0 ? fmt::format("vlan id {}", key.outer)
                        : fmt::format("vlan id {} inner {}", key.outer, key.inner);
}

void write_tag(uint8_t* at, uint16_t ethertype, uint16_t vid) {
  at[0] = static_cast<uint8_t>(ethertype >> 8);
  at[1] = static_cast<uint8_t>(ethertype);
  at[2] = static_cast<uint8_t>(vid >> 8);
  at[3] = static_cast<uint8_t>(vid);
}

class VlanKind final : public InterfaceKind {
 public:
  VlanKind() : InterfaceKind(*find_kind_description("vlan")) {}

  Status claim(InterfaceTable& table, const InterfaceSpec& spec, Interface& interface,
               InterfaceRecord& record) const override {
    const Interface& parent = table.interface(spec.parent);
    auto key = key_for(spec, parent);
    if (!key) return std::unexpected(key.error());
    const uint32_t parent_mtu = parent.mtu.load(std::memory_order_relaxed);
    if (spec.mtu > parent_mtu)
      return fail(EINVAL, "mtu {}: accepted {}..{} (the parent's)", spec.mtu, kLeastMtu, parent_mtu);
    VlanDemux& demux = table.port_demux(parent.port).vlans;
    if (const uint32_t owner = demux.find(*key); owner != kNoInterface)
      return fail(EEXIST, "{} on {} belongs to interface '{}'", describe_key(*key),
                  table.record(spec.parent).name, table.record(owner).name);
    if (auto inserted = demux.insert(*key, interface.ifindex, table.blocks()); !inserted) return inserted;
    interface.port = parent.port;
    interface.tag_bytes = key->inner == 0 ? 4 : 8;
    write_tag(interface.tags, ethertype_of(key->protocol), key->outer);
    write_tag(interface.tags + 4, kCTagEthertype, key->inner);
    interface.mac.store(spec.mac.value_or(parent.mac.load(std::memory_order_relaxed)),
                        std::memory_order_relaxed);
    interface.mtu.store(spec.mtu != 0 ? spec.mtu : parent_mtu, std::memory_order_relaxed);
    record.mtu_limit = parent_mtu;
    return {};
  }

  void unlink(InterfaceTable& table, Interface& interface, RetireList& list) const override {
    table.port_demux(interface.port).vlans.erase(key_of(interface), table.blocks(), list);
  }

  bool has_key_of(const InterfaceTable& table, const InterfaceSpec& spec,
                  const Interface& interface) const override {
    const auto key = key_for(spec, table.interface(spec.parent));
    return key && *key == key_of(interface);
  }

  std::optional<uint16_t> parameter(const Interface& interface, uint16_t attribute) const override {
    switch (attribute) {
      case IFLA_VLAN_ID:
        return interface.outer_tag();
      case IFLA_VLAN_PROTOCOL:
        return interface.outer_protocol();
      case kVlanInnerAttribute:
        if (interface.tag_bytes == 8) return interface.inner_tag();
        return std::nullopt;
      default:
        return std::nullopt;
    }
  }

 private:
  static Result<TagKey> key_for(const InterfaceSpec& spec, const Interface& parent) {
    if (!spec.values.has(kId)) return fail(EINVAL, "vlan id: missing, accepted 1..4094");
    if (parent.port == kNoPort)
      return fail(EOPNOTSUPP, "a vlan's parent must be a port or a vlan with one tag");
    const uint16_t protocol = spec.values.has(kProtocol) ? spec.values.value[kProtocol] : kCTagEthertype;
    if (!is_tag(protocol))
      return fail(EPROTONOSUPPORT,
                  "vlan protocol {:#06x}: accepted 802.1Q (0x8100), 802.1ad (0x88a8), 0x9100", protocol);
    TagKey key;
    if (parent.tag_bytes == 0) {
      key.protocol = tag_protocol_of(protocol);
      key.outer = spec.values.value[kId];
      key.inner = spec.values.has(kInner) ? spec.values.value[kInner] : 0;
      return key;
    }
    if (parent.tag_bytes == 8)
      return fail(EOPNOTSUPP, "the parent has two tags already: at most two are supported");
    if (spec.values.has(kInner))
      return fail(EINVAL, "vlan inner {}: the parent is a vlan, so id is the inner tag",
                  spec.values.value[kInner]);
    if (protocol != kCTagEthertype)
      return fail(EPROTONOSUPPORT, "vlan protocol {:#06x}: the inner tag of a vlan on a vlan is 802.1Q",
                  protocol);
    key.protocol = tag_protocol_of(parent.outer_protocol());
    key.outer = parent.outer_tag();
    key.inner = spec.values.value[kId];
    return key;
  }
};

}  // namespace

const InterfaceKind& vlan_kind() {
  static const VlanKind kind;
  return kind;
}

}  // namespace mayfly
