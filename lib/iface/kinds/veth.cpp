// SPDX-License-Identifier: BSD-3-Clause
// Kind veth: two interfaces, in one namespace or in two, of which each receives what is sent to the other.
// They are created together and die together: whoever removes one removes its peer
// (lib/control/interface_removal).
#include "iface/interface_kind.hpp"
#include "iface/interface_table.hpp"
#include "iface/kinds/kinds.hpp"
#include "iface/random_mac.hpp"

namespace mayfly {
namespace {

constexpr uint32_t kVethMtu = 1500;
constexpr uint32_t kVethMostMtu = 65'535;

class VethKind final : public InterfaceKind {
 public:
  VethKind() : InterfaceKind(*find_kind_description("veth")) {}

  Status claim(InterfaceTable& table, const InterfaceSpec& spec, Interface& interface,
               InterfaceRecord& record) const override {
    uint32_t peer = spec.peer_of;
    if (peer == kNoInterface) {
      auto claimed = claim_peer(table, spec, interface.ifindex);
      if (!claimed) return std::unexpected(claimed.error());
      peer = *claimed;
    }
    interface.port = kNoPort;
    interface.tag_bytes = 0;
    interface.mac.store(spec.mac ? *spec.mac : random_mac(), std::memory_order_relaxed);
    interface.mtu.store(spec.mtu != 0 ? spec.mtu : kVethMtu, std::memory_order_relaxed);
    interface.peer.store(peer, std::memory_order_relaxed);
    record.mtu_limit = kVethMostMtu;
    return {};
  }

  void unlink(InterfaceTable& table, Interface& interface, RetireList&) const override {
    const uint32_t peer = interface.peer.load(std::memory_order_relaxed);
    if (peer == kNoInterface) return;
    interface.peer.store(kNoInterface, std::memory_order_release);
    table.interface(peer).peer.store(kNoInterface, std::memory_order_release);
  }

  // The key of one end is the other end's name.
  bool has_key_of(const InterfaceTable& table, const InterfaceSpec& spec,
                  const Interface& interface) const override {
    const uint32_t peer = interface.peer.load(std::memory_order_relaxed);
    return spec.peer && peer != kNoInterface && table.record(peer).name == spec.peer->name &&
           table.interface(peer).netns.own() == spec.peer->netns;
  }

  std::optional<uint16_t> parameter(const Interface&, uint16_t) const override { return std::nullopt; }

 private:
  static Result<uint32_t> claim_peer(InterfaceTable& table, const InterfaceSpec& spec, uint32_t ifindex) {
    if (!spec.peer) return fail(EINVAL, "veth: the peer's name is missing");
    if (spec.peer->name == spec.name && spec.peer->netns == spec.netns)
      return fail(EEXIST, "peer name '{}': both ends have the same name", spec.name);
    InterfaceSpec other;
    other.name = spec.peer->name;
    other.kind = spec.kind;
    other.netns = spec.peer->netns;
    other.mtu = spec.peer->mtu;
    other.mac = spec.peer->mac;
    other.up = spec.peer->up;
    other.group = spec.group;
    other.peer_of = ifindex;
    auto claimed = table.claim(other);
    if (!claimed) return fail(claimed.error().code, "peer: {}", claimed.error().text);
    return claimed;
  }
};

}  // namespace

const InterfaceKind& veth_kind() {
  static const VethKind kind;
  return kind;
}

}  // namespace mayfly
