// SPDX-License-Identifier: BSD-3-Clause
// Kind port: comes and goes with its ethdev. spec.port, spec.mac and spec.mtu are the device's.
#include "iface/interface_kind.hpp"
#include "iface/interface_table.hpp"
#include "iface/kinds/kinds.hpp"

namespace mayfly {
namespace {

class PortKind final : public InterfaceKind {
 public:
  PortKind() : InterfaceKind(*find_kind_description("port")) {}

  Status claim(InterfaceTable& table, const InterfaceSpec& spec, Interface& interface,
               InterfaceRecord& record) const override {
    if (spec.port >= kMostPorts)
      return fail(EOPNOTSUPP, "a port interface comes with its device: mayflyd --port {}=DEVARGS", spec.name);
    PortDemux& demux = table.port_demux(spec.port);
    if (demux.untagged.load(std::memory_order_relaxed) != kNoInterface)
      return fail(EEXIST, "device {} has an interface already", spec.port);
    interface.port = spec.port;
    interface.tag_bytes = 0;
    interface.mac.store(spec.mac.value_or(0), std::memory_order_relaxed);
    interface.mtu.store(spec.mtu, std::memory_order_relaxed);
    record.mtu_limit = spec.mtu;
    demux.untagged.store(interface.ifindex, std::memory_order_release);
    return {};
  }

  void unlink(InterfaceTable& table, Interface& interface, RetireList&) const override {
    table.port_demux(interface.port).untagged.store(kNoInterface, std::memory_order_release);
  }

  std::optional<uint16_t> parameter(const Interface&, uint16_t) const override { return std::nullopt; }
};

}  // namespace

const InterfaceKind& port_kind() {
  static const PortKind kind;
  return kind;
}

}  // namespace mayfly
