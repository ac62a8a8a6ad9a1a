// SPDX-License-Identifier: BSD-3-Clause
// Kind dummy: no device behind it. What is sent to it is counted and gone; its addresses are the daemon's
// own.
#include "iface/interface_kind.hpp"
#include "iface/interface_table.hpp"
#include "iface/kinds/kinds.hpp"
#include "iface/random_mac.hpp"

namespace mayfly {
namespace {

constexpr uint32_t kDummyMtu = 1500;
constexpr uint32_t kDummyMostMtu = 65'535;

class DummyKind final : public InterfaceKind {
 public:
  DummyKind() : InterfaceKind(*find_kind_description("dummy")) {}

  Status claim(InterfaceTable&, const InterfaceSpec& spec, Interface& interface,
               InterfaceRecord& record) const override {
    interface.port = kNoPort;
    interface.tag_bytes = 0;
    interface.mac.store(spec.mac ? *spec.mac : random_mac(), std::memory_order_relaxed);
    interface.mtu.store(spec.mtu != 0 ? spec.mtu : kDummyMtu, std::memory_order_relaxed);
    record.mtu_limit = kDummyMostMtu;
    return {};
  }

  void unlink(InterfaceTable&, Interface&, RetireList&) const override {}
  std::optional<uint16_t> parameter(const Interface&, uint16_t) const override { return std::nullopt; }
};

}  // namespace

const InterfaceKind& dummy_kind() {
  static const DummyKind kind;
  return kind;
}

}  // namespace mayfly
