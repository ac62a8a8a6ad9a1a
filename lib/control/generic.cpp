// SPDX-License-Identifier: BSD-3-Clause
// The generic family: which handler a command has, and the small ones (count, which, batch).
#include <linux/genetlink.h>
#include <linux/rtnetlink.h>

#include "control/generic_writer.hpp"
#include "control/handlers.hpp"
#include "control/link_request.hpp"
#include "control/protocol.hpp"
#include "stats/drop_reason.hpp"

namespace mayfly {
namespace {

using namespace protocol;

constexpr AttributeSpec kCountSpecs[] = {{kBulkSelector, AttributeSpec::Type::nested, "selector"}};

constexpr AttributeSpec kWhichSpecs[] = {
    {kWhichPort, AttributeSpec::Type::string, "port", kInterfaceNameBytes - 1},
    {kWhichProtocol, AttributeSpec::Type::u16, "protocol"},
    {kWhichOuter, AttributeSpec::Type::u16, "outer tag"},
    {kWhichInner, AttributeSpec::Type::u16, "inner tag"},
};

class LinkCount final : public Operation {
 public:
  LinkCount(Connection& connection, const nlmsghdr& request, const Selector& selector)
      : connection_(connection), request_(request), walk_(connection.dataplane().interfaces, selector) {}

  Progress step(const Deadline& deadline) override {
    for (uint64_t steps = 1; walk_.next(deadline) != kNoInterface; ++steps) {
      ++count_;
      if (steps % 64 == 0 && deadline.over()) return Progress::more;
    }
    if (!walk_.done()) return Progress::more;
    answer_count(connection_, request_, count_);
    return Progress::done;
  }
  bool ends_with_netns() const override { return true; }
  bool cancel() override { return true; }

  static void answer_count(Connection& connection, const nlmsghdr& request, uint64_t count) {
    begin_generic(connection.writer(), request.nlmsg_seq, kCmdLinkCount, 0);
    connection.writer().put_u64(kValueCount, count);
    connection.writer().end();
    if ((request.nlmsg_flags & NLM_F_ACK) != 0) connection.writer().acknowledge(request, nullptr);
  }

 private:
  Connection& connection_;
  nlmsghdr request_;
  SelectorWalk walk_;
  uint64_t count_ = 0;
};

Result<TagKey> read_tags(const RequestAttributes& attributes) {
  TagKey key;
  const auto inner = attributes.u16(kWhichInner);
  key.outer = *attributes.u16(kWhichOuter);
  key.inner = inner.value_or(0);
  for (const uint16_t tag : {key.outer, inner.value_or(1)})
    if (tag < 1 || tag > 4094) return fail(ERANGE, "tag {}: accepted 1..4094", tag);
  return key;
}

// Who a frame with these tags belongs to, by the tables workers use.
Result<uint32_t> find_owner(const VlanDemux& demux, const RequestAttributes& attributes) {
  auto key = read_tags(attributes);
  if (!key) return std::unexpected(key.error());
  const auto protocol = attributes.u16(kWhichProtocol);
  if (protocol && !is_tag(*protocol))
    return fail(EPROTONOSUPPORT, "protocol {:#06x}: accepted 0x8100, 0x88a8, 0x9100", *protocol);
  for (const TagProtocol tried : {TagProtocol::c_tag, TagProtocol::s_tag, TagProtocol::s_tag_9100}) {
    if (protocol && tag_protocol_of(*protocol) != tried) continue;
    key->protocol = tried;
    if (const uint32_t owner = demux.find(*key); owner != kNoInterface) return owner;
  }
  return kNoInterface;
}

using GenericHandler = HandlerResult (*)(Connection&, const Request&);

HandlerResult begin_batch(Connection& connection, const Request&) {
  if (connection.batch_open()) return fail(EALREADY, "a batch is open on this connection already");
  connection.begin_batch();
  return Handled::acknowledge;
}

HandlerResult end_batch(Connection& connection, const Request&) {
  if (!connection.batch_open()) return fail(EINVAL, "no batch is open on this connection");
  connection.end_batch();
  return Handled::acknowledge;
}

GenericHandler handler_of(uint8_t command) {
  switch (command) {
    case kCmdBatchBegin:
      return begin_batch;
    case kCmdBatchEnd:
      return end_batch;
    case kCmdLinkBulkAdd:
      return handle_bulk_add;
    case kCmdLinkBulkNames:
      return handle_bulk_names;
    case kCmdLinkBulkItems:
      return handle_bulk_items;
    case kCmdLinkBulkDel:
      return handle_bulk_delete;
    case kCmdLinkCount:
      return handle_link_count;
    case kCmdLinkWhich:
      return handle_link_which;
    case kCmdPortShow:
      return handle_ports;
    case kCmdPortAdd:
      return handle_port_add;
    case kCmdPortDel:
      return handle_port_del;
    case kCmdPortXstats:
      return handle_port_xstats;
    case kCmdReclaimShow:
      return handle_reclaim_show;
    case kCmdReclaimWait:
      return handle_reclaim_wait;
    case kCmdStats:
      return handle_statistics;
    case kCmdDrops:
      return handle_drops;
    case kCmdStages:
      return handle_stages;
    case kCmdStagesSet:
      return handle_stages_set;
    case kCmdStatus:
      return handle_status;
    case kCmdNetnsAdd:
      return handle_netns_add;
    case kCmdNetnsDel:
      return handle_netns_delete;
    case kCmdNetnsRename:
      return handle_netns_rename;
    case kCmdNetnsShow:
      return handle_netns_show;
    case kCmdConfigShow:
      return handle_config_show;
    case kCmdConfigBegin:
      return handle_config_begin;
    case kCmdConfigChange:
      return handle_config_change;
    case kCmdConfigText:
      return handle_config_text;
    case kCmdConfigApply:
      return handle_config_apply;
    default:
      return nullptr;
  }
}

}  // namespace

void begin_generic(MessageWriter& writer, uint32_t sequence, protocol::Command command, uint16_t flags) {
  writer.begin(kGenericFamilyId, flags, sequence);
  auto* header = writer.header<genlmsghdr>();
  header->cmd = command;
  header->version = kGenericVersion;
}

HandlerResult handle_generic(Connection& connection, const Request& request) {
  auto fixed = request.fixed<genlmsghdr>();
  if (!fixed) return std::unexpected(fixed.error());
  if ((*fixed)->version != kGenericVersion)
    return fail(EPROTONOSUPPORT, "family version {}: this daemon speaks {}", (*fixed)->version,
                kGenericVersion);
  const GenericHandler handler = handler_of((*fixed)->cmd);
  if (handler == nullptr) return fail(EOPNOTSUPP, "command {}: unknown to family mayfly", (*fixed)->cmd);
  return handler(connection, request);
}

HandlerResult handle_link_count(Connection& connection, const Request& request) {
  auto attributes = request.attributes<genlmsghdr>(kCountSpecs);
  if (!attributes) return std::unexpected(attributes.error());
  const Dataplane& dataplane = connection.dataplane();
  auto selector = parse_selector(dataplane, connection.netns(), attributes->find(kBulkSelector));
  if (!selector) return std::unexpected(selector.error());
  connection.start(std::make_unique<LinkCount>(connection, request.header, *selector));
  return Handled::operation;
}

HandlerResult handle_link_which(Connection& connection, const Request& request) {
  auto attributes = request.attributes<genlmsghdr>(kWhichSpecs);
  if (!attributes) return std::unexpected(attributes.error());
  Dataplane& dataplane = connection.dataplane();
  auto port = find_interface(dataplane, connection.netns(), 0, attributes->string(kWhichPort));
  if (!port) return std::unexpected(port.error());
  const Interface& interface = dataplane.interfaces.interface(*port);
  if (interface.kind != kPortKind)
    return fail(EINVAL, "'{}' is no port: tags are told apart on ports",
                dataplane.interfaces.record(*port).name);
  PortDemux& demux = dataplane.interfaces.port_demux(interface.port);
  Result<uint32_t> owner = attributes->has(kWhichOuter)
                               ? find_owner(demux.vlans, *attributes)
                               : Result<uint32_t>(demux.untagged.load(std::memory_order_relaxed));
  if (!owner) return std::unexpected(owner.error());
  MessageWriter& writer = connection.writer();
  begin_generic(writer, request.header.nlmsg_seq, kCmdLinkWhich, 0);
  if (dataplane.interfaces.exists(*owner)) {
    writer.put_string(kWhichName, dataplane.interfaces.record(*owner).name);
    writer.put_u32(kWhichIfindex, *owner);
    if (!dataplane.interfaces.oper_up(*owner))
      writer.put_string(kWhichDrop, describe(DropReason::interface_down).name);
  } else {
    writer.put_string(kWhichDrop, describe(DropReason::unknown_tag).name);
  }
  writer.end();
  return Handled::acknowledge;
}

uint64_t objects_created_by(const nlmsghdr& message, bool generic) {
  if (!generic) return message.nlmsg_type == RTM_NEWLINK && (message.nlmsg_flags & NLM_F_CREATE) != 0 ? 1 : 0;
  if (message.nlmsg_len < NLMSG_HDRLEN + GENL_HDRLEN) return 0;
  const auto* bytes = reinterpret_cast<const std::byte*>(&message);
  const auto* header = reinterpret_cast<const genlmsghdr*>(bytes + NLMSG_HDRLEN);
  if (header->cmd != kCmdLinkBulkAdd) return 0;
  return bulk_add_objects(
      {bytes + NLMSG_HDRLEN + GENL_HDRLEN, message.nlmsg_len - NLMSG_HDRLEN - GENL_HDRLEN});
}

}  // namespace mayfly
