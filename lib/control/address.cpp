// SPDX-License-Identifier: BSD-3-Clause
// ADDR messages.
#include <arpa/inet.h>
#include <linux/rtnetlink.h>

#include "control/family.hpp"
#include "control/handlers.hpp"
#include "control/link_request.hpp"
#include "control/protocol.hpp"

namespace mayfly {
namespace {

using namespace protocol;

constexpr uint8_t kLinkLocalLength = 64;

constexpr AttributeSpec kAddressSpecs[] = {
    {IFA_ADDRESS, AttributeSpec::Type::address, "address"},
    {IFA_LOCAL, AttributeSpec::Type::address, "local"},
    {IFA_BROADCAST, AttributeSpec::Type::u32, "broadcast"},
    {IFA_LABEL, AttributeSpec::Type::string, "label", kInterfaceNameBytes - 1},
    {IFA_FLAGS, AttributeSpec::Type::u32, "flags"},
    {kAttrDevice, AttributeSpec::Type::string, "dev", kInterfaceNameBytes - 1},
};

uint32_t flags_of(const InterfaceAddress& address) {
  uint32_t flags = IFA_F_PERMANENT;
  if ((address.flags & InterfaceAddress::kNoDad) != 0) flags |= IFA_F_NODAD;
  if ((address.flags & InterfaceAddress::kOptimistic) != 0) flags |= IFA_F_TENTATIVE | IFA_F_OPTIMISTIC;
  if ((address.flags & InterfaceAddress::kDuplicate) != 0) flags |= IFA_F_TENTATIVE | IFA_F_DADFAILED;
  return flags;
}

void write_address(Connection& connection, uint32_t ifindex, const InterfaceAddress& entry,
                   uint32_t sequence) {
  const IpPrefix prefix = entry.prefix();
  const char* name = connection.dataplane().interfaces.record(ifindex).name;
  const bool link_scope = !prefix.is_v4() && is_link_local(prefix.address.v6());
  MessageWriter& writer = connection.writer();
  writer.begin(RTM_NEWADDR, NLM_F_MULTI, sequence);
  auto* fixed = writer.header<ifaddrmsg>();
  fixed->ifa_family = family_of(prefix.address);
  fixed->ifa_prefixlen = prefix.length;
  fixed->ifa_flags = static_cast<uint8_t>(flags_of(entry));
  fixed->ifa_scope = link_scope ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE;
  fixed->ifa_index = ifindex;
  writer.put_address(IFA_ADDRESS, prefix.address);
  if (prefix.is_v4()) {
    writer.put_address(IFA_LOCAL, prefix.address);
    if (prefix.length < 31)
      writer.put_u32(IFA_BROADCAST, htonl(prefix.v4().network() | ~prefix_mask(prefix.length)));
    writer.put_string(IFA_LABEL, name);
  }
  writer.put_u32(IFA_FLAGS, flags_of(entry));
  writer.put_string(kAttrDevice, name);
  writer.end();
}

// All addresses, or those of one interface: a cursor over interfaces; a list is written whole (at most 4096),
// IPv4 first, and last the address that follows from the MAC, which an interface has while it is up.
class AddressDump final : public Operation {
 public:
  AddressDump(Connection& connection, const nlmsghdr& request, uint8_t family, uint32_t only)
      : connection_(connection),
        sequence_(request.nlmsg_seq),
        family_(family),
        cursor_(std::max(only, 1u)),
        only_(only) {}

  Progress step(const Deadline& deadline) override {
    const InterfaceTable& table = connection_.dataplane().interfaces;
    for (uint32_t steps = 1; !connection_.writer().over_high_water(); ++steps) {
      const uint32_t ifindex = table.next(cursor_);
      if (ifindex == kNoInterface || (only_ != 0 && ifindex != only_)) {
        connection_.writer().done(sequence_, false);
        return Progress::done;
      }
      cursor_ = ifindex + 1;
      if (table.interface(ifindex).netns.own() == &connection_.netns()) write(table.interface(ifindex));
      if (steps % 64 == 0 && deadline.over()) break;
    }
    return Progress::more;
  }

  bool ends_with_netns() const override { return true; }
  bool cancel() override { return true; }

 private:
  void write(const Interface& interface) {
    const AddressList* list = interface.addresses.own();
    for (const uint8_t family : {AF_INET, AF_INET6}) {
      if (list == nullptr || (family_ != AF_UNSPEC && family_ != family)) continue;
      for (const InterfaceAddress& entry : list->all())
        if (is_wanted(family, entry.address)) write_address(connection_, interface.ifindex, entry, sequence_);
    }
    const InterfaceAddress implicit{IpAddress(link_local_of(interface.mac.load(std::memory_order_relaxed))),
                                    kLinkLocalLength, 0};
    if (!is_wanted(family_, implicit.address) || !has_link_local(interface) || !interface.live_and_up())
      return;
    if (list != nullptr && std::ranges::count(list->all(), implicit.address, &InterfaceAddress::address) != 0)
      return;
    write_address(connection_, interface.ifindex, implicit, sequence_);
  }

  Connection& connection_;
  uint32_t sequence_;
  uint8_t family_;
  uint32_t cursor_;
  uint32_t only_;
};

HandlerResult read_addresses(Connection& connection, const Request& request, const ifaddrmsg& fixed,
                             const RequestAttributes& attributes) {
  if (!request.dump()) return fail(EOPNOTSUPP, "addresses are read by a dump");
  uint32_t only = 0;
  if (fixed.ifa_index != 0 || attributes.has(kAttrDevice)) {
    auto ifindex = find_interface(connection.dataplane(), connection.netns(), fixed.ifa_index,
                                  attributes.string(kAttrDevice));
    if (!ifindex) return std::unexpected(ifindex.error());
    only = *ifindex;
  }
  connection.start(std::make_unique<AddressDump>(connection, request.header, fixed.ifa_family, only));
  return Handled::operation;
}

Result<IpPrefix> prefix_of(const ifaddrmsg& fixed, const RequestAttributes& attributes) {
  auto local = read_address(attributes, attributes.has(IFA_LOCAL) ? IFA_LOCAL : IFA_ADDRESS, "local",
                            fixed.ifa_family);
  if (!local) return std::unexpected(local.error());
  if (local->none() && !attributes.has(IFA_LOCAL) && !attributes.has(IFA_ADDRESS))
    return fail(EINVAL, "local: the address is missing");
  if (const auto peer = attributes.address(IFA_ADDRESS); peer && *peer != *local && !local->none())
    return fail_attribute(IFA_ADDRESS, EOPNOTSUPP, "peer addresses are not supported");
  if (local->none() && fixed.ifa_family == AF_INET) local = IpAddress(Ipv4{0});
  const IpPrefix prefix(*local, fixed.ifa_prefixlen);
  if (prefix.length > prefix.most_length())
    return fail(EINVAL, "prefix length {}: accepted 0..{}", fixed.ifa_prefixlen, prefix.most_length());
  return prefix;
}

Result<uint8_t> read_flags(const ifaddrmsg& fixed, const RequestAttributes& attributes) {
  const uint32_t flags = attributes.u32(IFA_FLAGS).value_or(fixed.ifa_flags);
  if (const uint32_t unknown = flags & ~uint32_t{IFA_F_PERMANENT | IFA_F_NODAD}; unknown != 0)
    return fail_attribute(IFA_FLAGS, EOPNOTSUPP,
                          "address flags {:#x}: accepted nodad ({:#x}), permanent ({:#x})", unknown,
                          IFA_F_NODAD, IFA_F_PERMANENT);
  return (flags & IFA_F_NODAD) != 0 && fixed.ifa_family == AF_INET6 ? InterfaceAddress::kNoDad : uint8_t{0};
}

Status change_addresses(Connection& connection, const Request& request, const ifaddrmsg& fixed,
                        const RequestAttributes& attributes) {
  auto prefix = prefix_of(fixed, attributes);
  if (!prefix) return std::unexpected(prefix.error());
  Dataplane& dataplane = connection.dataplane();
  auto ifindex =
      find_interface(dataplane, connection.netns(), fixed.ifa_index, attributes.string(kAttrDevice));
  if (!ifindex) return std::unexpected(ifindex.error());
  if (request.header.nlmsg_type == RTM_DELADDR)
    return dataplane.addressing.remove(*ifindex, *prefix, connection.retired());
  auto flags = read_flags(fixed, attributes);
  if (!flags) return std::unexpected(flags.error());
  if (dataplane.interfaces.state(*ifindex) == InterfaceState::marked)
    return fail(EBUSY, "interface '{}' is being deleted", dataplane.interfaces.record(*ifindex).name);
  return dataplane.addressing.add(*ifindex, *prefix, *flags, connection.retired());
}

}  // namespace

HandlerResult handle_address(Connection& connection, const Request& request) {
  auto fixed = request.fixed<ifaddrmsg>();
  if (!fixed) return std::unexpected(fixed.error());
  auto attributes = request.attributes<ifaddrmsg>(kAddressSpecs);
  if (!attributes) return std::unexpected(attributes.error());
  const bool reads = request.header.nlmsg_type == RTM_GETADDR;
  if (auto known = check_family((*fixed)->ifa_family, reads); !known) return std::unexpected(known.error());
  if (reads) return read_addresses(connection, request, **fixed, *attributes);
  auto done = change_addresses(connection, request, **fixed, *attributes);
  // `replace` of an address that is there already changes nothing.
  if (!done && done.error().code == EEXIST && request.has_flags(NLM_F_REPLACE)) return Handled::acknowledge;
  if (!done) return std::unexpected(done.error());
  return Handled::acknowledge;
}

}  // namespace mayfly
