// SPDX-License-Identifier: BSD-3-Clause
// ADDR messages.
#include <arpa/inet.h>
#include <linux/rtnetlink.h>

#include "control/handlers.hpp"
#include "control/link_request.hpp"
#include "control/protocol.hpp"

namespace mayfly {
namespace {

using namespace protocol;

constexpr AttributeSpec kAddressSpecs[] = {
    {IFA_ADDRESS, AttributeSpec::Type::u32, "address"},
    {IFA_LOCAL, AttributeSpec::Type::u32, "local"},
    {IFA_BROADCAST, AttributeSpec::Type::u32, "broadcast"},
    {IFA_LABEL, AttributeSpec::Type::string, "label", kInterfaceNameBytes - 1},
    {IFA_FLAGS, AttributeSpec::Type::u32, "flags"},
    {kAttrDevice, AttributeSpec::Type::string, "dev", kInterfaceNameBytes - 1},
};

void write_address(Connection& connection, uint32_t ifindex, const Ipv4Prefix& prefix, uint32_t sequence) {
  MessageWriter& writer = connection.writer();
  writer.begin(RTM_NEWADDR, NLM_F_MULTI, sequence);
  auto* fixed = writer.header<ifaddrmsg>();
  fixed->ifa_family = AF_INET;
  fixed->ifa_prefixlen = prefix.length;
  fixed->ifa_flags = IFA_F_PERMANENT;
  fixed->ifa_scope = RT_SCOPE_UNIVERSE;
  fixed->ifa_index = ifindex;
  writer.put_u32(IFA_ADDRESS, htonl(prefix.address));
  writer.put_u32(IFA_LOCAL, htonl(prefix.address));
  if (prefix.length < 31)
    writer.put_u32(IFA_BROADCAST, htonl(prefix.network() | ~prefix_mask(prefix.length)));
  const char* name = connection.dataplane().interfaces.record(ifindex).name;
  writer.put_string(IFA_LABEL, name);
  writer.put_string(kAttrDevice, name);
  writer.end();
}

// All addresses, or those of one interface: a cursor over interfaces; a list is written whole (at most 4096).
class AddressDump final : public Operation {
 public:
  AddressDump(Connection& connection, const nlmsghdr& request, uint32_t only)
      : connection_(connection), sequence_(request.nlmsg_seq), cursor_(std::max(only, 1u)), only_(only) {}

  Progress step(const Deadline& deadline) override {
    const InterfaceTable& table = connection_.dataplane().interfaces;
    for (uint32_t steps = 1; !connection_.writer().over_high_water(); ++steps) {
      const uint32_t ifindex = table.next(cursor_);
      if (ifindex == kNoInterface || (only_ != 0 && ifindex != only_)) {
        connection_.writer().done(sequence_, false);
        return Progress::done;
      }
      cursor_ = ifindex + 1;
      const Interface& interface = table.interface(ifindex);
      if (interface.netns.own() == &connection_.netns())
        if (const AddressList* list = interface.addresses.own(); list != nullptr)
          for (const Ipv4Prefix& prefix : list->all()) write_address(connection_, ifindex, prefix, sequence_);
      if (steps % 64 == 0 && deadline.over()) break;
    }
    return Progress::more;
  }

  bool ends_with_netns() const override { return true; }
  bool cancel() override { return true; }

 private:
  Connection& connection_;
  uint32_t sequence_;
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
  connection.start(std::make_unique<AddressDump>(connection, request.header, only));
  return Handled::operation;
}

Result<Ipv4Prefix> prefix_of(const ifaddrmsg& fixed, const RequestAttributes& attributes) {
  const auto local = attributes.u32(attributes.has(IFA_LOCAL) ? IFA_LOCAL : IFA_ADDRESS);
  if (!local) return fail(EINVAL, "local: the address is missing");
  if (const auto peer = attributes.u32(IFA_ADDRESS); peer && *peer != *local)
    return fail_attribute(IFA_ADDRESS, EOPNOTSUPP, "peer addresses are not supported");
  if (fixed.ifa_prefixlen > 32) return fail(EINVAL, "prefix length {}: accepted 0..32", fixed.ifa_prefixlen);
  return Ipv4Prefix{ntohl(*local), fixed.ifa_prefixlen};
}

}  // namespace

HandlerResult handle_address(Connection& connection, const Request& request) {
  auto fixed = request.fixed<ifaddrmsg>();
  if (!fixed) return std::unexpected(fixed.error());
  auto attributes = request.attributes<ifaddrmsg>(kAddressSpecs);
  if (!attributes) return std::unexpected(attributes.error());
  const uint8_t family = (*fixed)->ifa_family;
  if (family != AF_INET && !(request.header.nlmsg_type == RTM_GETADDR && family == AF_UNSPEC))
    return fail(EAFNOSUPPORT, "address family {}: accepted {} (IPv4)", family, AF_INET);
  if (request.header.nlmsg_type == RTM_GETADDR)
    return read_addresses(connection, request, **fixed, *attributes);
  auto prefix = prefix_of(**fixed, *attributes);
  if (!prefix) return std::unexpected(prefix.error());
  Dataplane& dataplane = connection.dataplane();
  auto ifindex =
      find_interface(dataplane, connection.netns(), (*fixed)->ifa_index, attributes->string(kAttrDevice));
  if (!ifindex) return std::unexpected(ifindex.error());
  if (request.header.nlmsg_type == RTM_NEWADDR &&
      dataplane.interfaces.state(*ifindex) == InterfaceState::marked)
    return fail(EBUSY, "interface '{}' is being deleted", dataplane.interfaces.record(*ifindex).name);
  auto done = request.header.nlmsg_type == RTM_NEWADDR
                  ? dataplane.addressing.add(*ifindex, *prefix, connection.retired())
                  : dataplane.addressing.remove(*ifindex, *prefix, connection.retired());
  // `replace` of an address that is there already changes nothing.
  if (!done && done.error().code == EEXIST && request.has_flags(NLM_F_REPLACE)) return Handled::acknowledge;
  if (!done) return std::unexpected(done.error());
  return Handled::acknowledge;
}

}  // namespace mayfly
