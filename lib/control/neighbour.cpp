// SPDX-License-Identifier: BSD-3-Clause
// NEIGH messages.
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>

#include "control/family.hpp"
#include "control/handlers.hpp"
#include "control/link_request.hpp"
#include "control/protocol.hpp"

namespace mayfly {
namespace {

using namespace protocol;

constexpr AttributeSpec kNeighbourSpecs[] = {
    {NDA_DST, AttributeSpec::Type::address, "dst"},
    {NDA_LLADDR, AttributeSpec::Type::binary, "lladdr", 6},
    {NDA_PROTOCOL, AttributeSpec::Type::u8, "protocol"},
    {NDA_IFINDEX, AttributeSpec::Type::u32, "ifindex"},
    {kAttrDevice, AttributeSpec::Type::string, "dev", kInterfaceNameBytes - 1},
};

void write_neighbour(Connection& connection, uint32_t ifindex, const NeighbourInfo& neighbour,
                     uint32_t sequence, uint16_t flags) {
  MessageWriter& writer = connection.writer();
  writer.begin(RTM_NEWNEIGH, flags, sequence);
  auto* fixed = writer.header<ndmsg>();
  fixed->ndm_family = family_of(neighbour.address);
  fixed->ndm_ifindex = static_cast<int>(ifindex);
  fixed->ndm_state = static_cast<uint16_t>(neighbour.state);
  fixed->ndm_flags = neighbour.router ? NTF_ROUTER : 0;
  fixed->ndm_type = RTN_UNICAST;
  writer.put_address(NDA_DST, neighbour.address);
  if (NeighbourWord(neighbour.mac, neighbour.state).usable()) {
    uint8_t mac[6];
    store_mac(mac, neighbour.mac);
    writer.put(NDA_LLADDR, mac, sizeof mac);
  }
  if (neighbour.protocol != 0) writer.put_u8(NDA_PROTOCOL, neighbour.protocol);
  writer.put_string(kAttrDevice, connection.dataplane().interfaces.record(ifindex).name);
  writer.end();
}

class NeighbourDump final : public Operation {
 public:
  NeighbourDump(Connection& connection, const nlmsghdr& request, uint8_t family, uint32_t only)
      : connection_(connection),
        sequence_(request.nlmsg_seq),
        family_(family),
        ifindex_(std::max(only, 1u)),
        only_(only) {}

  Progress step(const Deadline& deadline) override {
    const InterfaceTable& table = connection_.dataplane().interfaces;
    for (uint32_t steps = 1; !connection_.writer().over_high_water(); ++steps) {
      const uint32_t ifindex = table.next(ifindex_);
      if (ifindex == kNoInterface || (only_ != 0 && ifindex != only_)) {
        connection_.writer().done(sequence_, false);
        return Progress::done;
      }
      if (ifindex != ifindex_) cursor_ = 0;
      ifindex_ = ifindex;
      if (!write_some(ifindex)) {
        ++ifindex_;
        cursor_ = 0;
      }
      if (steps % 32 == 0 && deadline.over()) break;
    }
    return Progress::more;
  }

  bool ends_with_netns() const override { return true; }
  bool cancel() override { return true; }

 private:
  // False when the interface has no more.
  bool write_some(uint32_t ifindex) {
    const Interface& interface = connection_.dataplane().interfaces.interface(ifindex);
    if (interface.netns.own() != &connection_.netns() || interface.neighbours.own() == nullptr) return false;
    std::vector<NeighbourInfo> neighbours;
    const bool more = Neighbours::dump(interface.neighbours, cursor_, neighbours);
    for (const NeighbourInfo& neighbour : neighbours)
      if (is_wanted(family_, neighbour.address))
        write_neighbour(connection_, ifindex, neighbour, sequence_, NLM_F_MULTI);
    return more;
  }

  Connection& connection_;
  uint32_t sequence_;
  uint8_t family_;
  uint32_t ifindex_;
  uint32_t only_;
  uint64_t cursor_ = 0;
};

Result<uint32_t> read_device(Connection& connection, const ndmsg& fixed,
                             const RequestAttributes& attributes) {
  return find_interface(connection.dataplane(), connection.netns(),
                        static_cast<uint32_t>(std::max(fixed.ndm_ifindex, 0)),
                        attributes.string(kAttrDevice));
}

HandlerResult read_neighbours(Connection& connection, const Request& request, const ndmsg& fixed,
                              const RequestAttributes& attributes) {
  const bool named = fixed.ndm_ifindex != 0 || attributes.has(kAttrDevice);
  uint32_t only = 0;
  if (named) {
    auto ifindex = read_device(connection, fixed, attributes);
    if (!ifindex) return std::unexpected(ifindex.error());
    only = *ifindex;
  }
  if (request.dump()) {
    connection.start(std::make_unique<NeighbourDump>(connection, request.header, fixed.ndm_family, only));
    return Handled::operation;
  }
  const auto address = attributes.address(NDA_DST);
  if (!address || !named) return fail(EINVAL, "dst and dev are needed to read one neighbour");
  const auto info = Neighbours::get(connection.dataplane().interfaces.interface(only).neighbours, *address);
  if (!info) return fail(ENOENT, "neighbour {}: not known", format_address(*address));
  write_neighbour(connection, only, *info, request.header.nlmsg_seq, 0);
  return Handled::acknowledge;
}

HandlerResult add_neighbour(Connection& connection, const Request& request, const ndmsg& fixed,
                            const RequestAttributes& attributes, uint32_t ifindex, IpAddress address) {
  Dataplane& dataplane = connection.dataplane();
  const InterfaceRecord& record = dataplane.interfaces.record(ifindex);
  NeighbourInfo neighbour;
  neighbour.address = address;
  if (!attributes.has(NDA_LLADDR)) return fail(EINVAL, "lladdr: missing, expected a MAC address");
  neighbour.mac = load_mac(reinterpret_cast<const uint8_t*>(attributes.binary(NDA_LLADDR).data()));
  neighbour.state =
      fixed.ndm_state == 0 ? NeighbourState::kPermanent : static_cast<NeighbourState>(fixed.ndm_state);
  if (const unsigned unknown = fixed.ndm_flags & ~unsigned{NTF_ROUTER}; unknown != 0)
    return fail(EOPNOTSUPP, "neighbour flags {:#x}: accepted router ({:#x})", unknown, NTF_ROUTER);
  neighbour.router = fixed.ndm_flags == NTF_ROUTER;
  if (neighbour.router && address.is_v4())
    return fail(EINVAL, "neighbour {}: router is a flag of IPv6 neighbours", format_address(address));
  neighbour.protocol = attributes.u8(NDA_PROTOCOL).value_or(RTPROT_STATIC);
  if (dataplane.interfaces.state(ifindex) == InterfaceState::marked)
    return fail(EBUSY, "interface '{}' is being deleted", record.name);
  if (!record.admin_up) return fail(ENETDOWN, "dev '{}' is down", record.name);
  Interface& interface = dataplane.interfaces.interface(ifindex);
  const NeighbourAdd how{.create = request.has_flags(NLM_F_CREATE),
                         .replace = !request.has_flags(NLM_F_EXCL)};
  if (auto added = dataplane.neighbours.add(interface.neighbours, ifindex, neighbour, how, monotonic_ns(),
                                            connection.retired());
      !added)
    return std::unexpected(added.error());
  ControlMessage message{};
  message.type = ControlMessage::Type::neighbour_resolved;
  message.ifindex = ifindex;
  message.id = interface.id;
  message.address = neighbour.address;
  message.mac = neighbour.mac;
  dataplane.tell_workers(message);
  return Handled::acknowledge;
}

}  // namespace

HandlerResult handle_neighbour(Connection& connection, const Request& request) {
  auto fixed = request.fixed<ndmsg>();
  if (!fixed) return std::unexpected(fixed.error());
  auto attributes = request.attributes<ndmsg>(kNeighbourSpecs);
  if (!attributes) return std::unexpected(attributes.error());
  const uint8_t family = (*fixed)->ndm_family;
  const bool reads = request.header.nlmsg_type == RTM_GETNEIGH;
  if (auto known = check_family(family, reads); !known) return std::unexpected(known.error());
  if (reads) return read_neighbours(connection, request, **fixed, *attributes);
  auto ifindex = read_device(connection, **fixed, *attributes);
  if (!ifindex) return std::unexpected(ifindex.error());
  if (!attributes->has(NDA_DST)) return fail(EINVAL, "dst: the neighbour's address is missing");
  auto address = read_address(*attributes, NDA_DST, "dst", family);
  if (!address) return std::unexpected(address.error());
  if (request.header.nlmsg_type == RTM_NEWNEIGH)
    return add_neighbour(connection, request, **fixed, *attributes, *ifindex, *address);
  Dataplane& dataplane = connection.dataplane();
  auto removed = dataplane.neighbours.remove(dataplane.interfaces.interface(*ifindex).neighbours, *address,
                                             connection.retired());
  if (!removed) return std::unexpected(removed.error());
  return Handled::acknowledge;
}

}  // namespace mayfly
