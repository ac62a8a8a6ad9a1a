// SPDX-License-Identifier: BSD-3-Clause
#include "control/link_dump.hpp"

#include <arpa/inet.h>
#include <linux/if.h>
#include <linux/if_arp.h>
#include <linux/if_link.h>

#include <array>
#include <cstring>

#include "control/link_request.hpp"
#include "control/protocol.hpp"

namespace mayfly {
namespace {

using namespace protocol;

// RFC 2863 states, IF_OPER_* of the kernel.
constexpr uint8_t kOperDown = 2;
constexpr uint8_t kOperLowerLayerDown = 3;
constexpr uint8_t kOperUp = 6;

uint8_t oper_state(const InterfaceTable& table, uint32_t ifindex) {
  const InterfaceRecord& record = table.record(ifindex);
  if (!record.admin_up) return kOperDown;
  if (table.oper_up(ifindex)) return kOperUp;
  return record.parent == kNoInterface && table.interface(ifindex).kind != kVethKind ? kOperDown
                                                                                     : kOperLowerLayerDown;
}

void write_statistics(MessageWriter& writer, const InterfaceTable& table, uint32_t ifindex) {
  const InterfaceSums sums = table.sums(ifindex);
  rtnl_link_stats64 statistics{};
  statistics.rx_packets = sums.rx_packets;
  statistics.tx_packets = sums.tx_packets;
  statistics.rx_bytes = sums.rx_bytes;
  statistics.tx_bytes = sums.tx_bytes;
  statistics.rx_dropped = sums.rx_dropped;
  statistics.tx_dropped = sums.tx_dropped;
  writer.put(IFLA_STATS64, &statistics, sizeof statistics);
}

void write_kind(MessageWriter& writer, const Interface& interface) {
  const InterfaceKind& kind = *interface_kinds()[interface.kind];
  nlattr* info = writer.begin_nested(IFLA_LINKINFO);
  writer.put_string(IFLA_INFO_KIND, kind.description().name);
  nlattr* data = writer.begin_nested(IFLA_INFO_DATA);
  for (const KindParameter& parameter : kind.description().parameters)
    if (const auto value = kind.parameter(interface, parameter.attribute))
      writer.put_u16(parameter.attribute,
                     parameter.type == KindParameter::Type::ethertype ? htons(*value) : *value);
  writer.end_nested(data);
  writer.end_nested(info);
}

// What differs from the defaults.
void write_settings(MessageWriter& writer, const Dataplane& dataplane, uint32_t ifindex) {
  const uint32_t flags = dataplane.interfaces.interface(ifindex).flags.load(std::memory_order_relaxed);
  for (const LinkSetting& setting : link_settings())
    if ((flags & setting.flag) != 0) writer.put_u8(setting.attribute, 1);
  if (const uint32_t lender = dataplane.addressing.lender_of(ifindex); lender != kNoInterface)
    writer.put_string(kAttrUnnumbered, dataplane.interfaces.record(lender).name);
}

// Looks through the drop tables of all workers: for a single interface only, not for dumps.
void write_drops(MessageWriter& writer, const Dataplane& dataplane, uint64_t id) {
  std::array<uint64_t, kDropReasons> drops{};
  for (const WorkerLink& worker : dataplane.workers)
    worker.statistics->drops.for_each(
        [&](uint64_t interface_id, uint32_t, DropReason reason, uint64_t packets) {
          if (interface_id == id) drops[static_cast<size_t>(reason)] += packets;
        });
  nlattr* all = writer.begin_nested(kAttrDrops);
  for (size_t reason = 0; reason < kDropReasons; ++reason) {
    if (drops[reason] == 0) continue;
    nlattr* drop = writer.begin_nested(kAttrDrop);
    writer.put_string(kReasonName, describe(static_cast<DropReason>(reason)).name);
    writer.put_u64(kReasonTotal, drops[reason]);
    writer.end_nested(drop);
  }
  writer.end_nested(all);
}

class LinkDump final : public Operation {
 public:
  LinkDump(Connection& connection, const nlmsghdr& request, const Selector& selector, uint64_t limit)
      : connection_(connection),
        sequence_(request.nlmsg_seq),
        table_(connection.dataplane().interfaces),
        changes_(table_.changes()),
        walk_(table_, selector),
        limit_(limit) {}

  Progress step(const Deadline& deadline) override {
    while (limit_ > 0 && !connection_.writer().over_high_water()) {
      const uint32_t ifindex = walk_.next(deadline);
      if (ifindex == kNoInterface) {
        if (!walk_.done()) return Progress::more;
        break;
      }
      write_link(connection_, ifindex, sequence_, NLM_F_MULTI, false);
      --limit_;
      if (++written_ % 32 == 0 && deadline.over()) return Progress::more;
    }
    if (limit_ > 0 && !walk_.done()) return Progress::more;
    connection_.writer().done(sequence_, table_.changes() != changes_);
    return Progress::done;
  }

  bool ends_with_netns() const override { return true; }
  bool cancel() override { return true; }

 private:
  Connection& connection_;
  uint32_t sequence_;
  const InterfaceTable& table_;
  uint64_t changes_;
  SelectorWalk walk_;
  uint64_t limit_;
  uint64_t written_ = 0;
};

}  // namespace

void write_link(Connection& connection, uint32_t ifindex, uint32_t sequence, uint16_t flags,
                bool with_drops) {
  Dataplane& dataplane = connection.dataplane();
  MessageWriter& writer = connection.writer();
  const InterfaceTable& table = dataplane.interfaces;
  const Interface& interface = table.interface(ifindex);
  const InterfaceRecord& record = table.record(ifindex);
  writer.begin(RTM_NEWLINK, flags, sequence);
  auto* fixed = writer.header<ifinfomsg>();
  const bool oper_up = table.oper_up(ifindex);
  fixed->ifi_type = ARPHRD_ETHER;
  fixed->ifi_index = static_cast<int>(ifindex);
  fixed->ifi_flags = IFF_MULTICAST | IFF_BROADCAST | (record.admin_up ? unsigned{IFF_UP} : 0u) |
                     (oper_up ? unsigned{IFF_RUNNING} | IFF_LOWER_UP : 0u);
  if (interface.kind == kPortKind) {
    const Port* port = dataplane.ports.find_ethdev(interface.port);
    if (port != nullptr && port->info.promiscuous_wanted) fixed->ifi_flags |= IFF_PROMISC;
  }
  writer.put_string(IFLA_IFNAME, record.name);
  writer.put_u32(IFLA_MTU, interface.mtu.load(std::memory_order_relaxed));
  writer.put_u8(IFLA_OPERSTATE, oper_state(table, ifindex));
  writer.put_u32(IFLA_GROUP, record.group);
  uint8_t mac[6];
  store_mac(mac, interface.mac.load(std::memory_order_relaxed));
  writer.put(IFLA_ADDRESS, mac, sizeof mac);
  if (record.parent != kNoInterface) {
    writer.put_u32(IFLA_LINK, record.parent);
    writer.put_string(kAttrDevice, table.record(record.parent).name);
    if (const Netns* of_parent = table.interface(record.parent).netns.own();
        of_parent != interface.netns.own())
      writer.put_string(kAttrLinkNetns, of_parent->name);
  }
  if (const uint32_t peer = table.peer(ifindex); peer != kNoInterface) {
    writer.put_u32(IFLA_LINK, peer);
    writer.put_string(kAttrPeer, table.record(peer).name);
    writer.put_string(kAttrPeerNetns, table.interface(peer).netns.own()->name);
  }
  write_settings(writer, dataplane, ifindex);
  if (record.alias != nullptr) writer.put_string(IFLA_IFALIAS, record.alias);
  write_kind(writer, interface);
  write_statistics(writer, table, ifindex);
  writer.put_u64(kAttrId, interface.id);
  writer.put_u64(kAttrCreated, record.created_ns);
  writer.put_string(kAttrNetns, interface.netns.own()->name);
  if (record.children != 0) writer.put_u32(kAttrChildren, record.children);
  if (with_drops) write_drops(writer, dataplane, interface.id);
  writer.end();
}

HandlerResult read_links(Connection& connection, const Request& request, const ifinfomsg& fixed,
                         const RequestAttributes& attributes) {
  const Dataplane& dataplane = connection.dataplane();
  if (!request.dump()) {
    auto ifindex =
        find_interface(dataplane, connection.netns(), static_cast<uint32_t>(std::max(fixed.ifi_index, 0)),
                       attributes.string(IFLA_IFNAME));
    if (!ifindex) return std::unexpected(ifindex.error());
    write_link(connection, *ifindex, request.header.nlmsg_seq, 0, true);
    return Handled::acknowledge;
  }
  uint64_t limit = UINT64_MAX;
  auto selector = parse_selector(dataplane, connection.netns(), attributes.find(kAttrSelector), &limit);
  if (!selector) return std::unexpected(selector.error());
  connection.start(std::make_unique<LinkDump>(connection, request.header, *selector, limit));
  return Handled::operation;
}

}  // namespace mayfly
