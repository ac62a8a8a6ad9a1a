// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Bulk requests to a ControlWorld: rows become items, answers become numbers.

#include <arpa/inet.h>
#include <linux/if_link.h>

#include <optional>
#include <string>
#include <vector>

#include "control/client.hpp"
#include "control_world.hpp"

namespace mayfly {

// One interface as a plan has it: a vlan of the parent, or without an id a dummy.
struct Row {
  std::string name;
  uint16_t id = 0;
  uint16_t inner = 0;
  std::string parent = "port0";
  std::optional<uint32_t> mtu = {};
  std::optional<uint32_t> group = {};
  std::optional<std::string> alias = {};
  std::optional<bool> up = {};
  std::optional<bool> strict = {};
  std::vector<std::string> addresses = {};
  std::vector<std::string> routes = {};
};

struct BulkAnswer {
  bool has_result = false;
  uint64_t matched = 0;
  uint64_t created = 0;
  uint64_t kept = 0;
  uint64_t changed = 0;
  uint64_t deleted = 0;
  uint64_t failed = 0;
  std::vector<std::optional<uint64_t>> members;  // of the failures told
  std::vector<std::string> texts;
  int code = -1;  // of the acknowledgement
  std::string text;
};

inline void put_prefix(RequestMessage& message, uint16_t attribute, const std::string& text,
                       uint64_t step = 0, uint8_t shift = 0) {
  const RequestMessage::Nest nest(message, attribute);
  const IpPrefix prefix = *parse_ip_prefix("addr", text);
  uint8_t octets[16];
  if (prefix.is_v4()) {
    const uint32_t network = htonl(prefix.address.v4());
    message.put(protocol::kDressAddress, &network, sizeof network);
  } else {
    store_ipv6(octets, prefix.address.v6());
    message.put(protocol::kDressAddress, octets, sizeof octets);
  }
  message.put_u8(protocol::kDressLength, prefix.length);
  if (step != 0) message.put_u64(protocol::kDressStep, step);
  if (shift != 0) message.put_u8(protocol::kDressStepShift, shift);
}

inline void put_template(RequestMessage& message, const Row& row) {
  const RequestMessage::Nest nest(message, protocol::kBulkTemplate);
  if (row.id != 0) message.put_string(protocol::kAttrDevice, row.parent);
  if (row.mtu) message.put_u32(IFLA_MTU, *row.mtu);
  if (row.group) message.put_u32(IFLA_GROUP, *row.group);
  if (row.alias) message.put_string(IFLA_IFALIAS, *row.alias);
  if (row.strict) message.put_u8(protocol::kAttrRpFilter, *row.strict ? 1 : 0);
  const RequestMessage::Nest info(message, IFLA_LINKINFO);
  message.put_string(IFLA_INFO_KIND, row.id == 0 ? "dummy" : "vlan");
  if (row.id == 0) return;
  const RequestMessage::Nest data(message, IFLA_INFO_DATA);
  message.put_u16(IFLA_VLAN_ID, row.id);
  if (row.inner != 0) message.put_u16(protocol::kVlanInner, row.inner);
}

inline void put_item(RequestMessage& message, const Row& row) {
  const RequestMessage::Nest item(message, protocol::kBulkItem);
  message.put_string(protocol::kBulkName, row.name);
  put_template(message, row);
  if (row.up) message.put_flag(*row.up ? protocol::kBulkUp : protocol::kBulkDown);
  for (const std::string& address : row.addresses) put_prefix(message, protocol::kBulkAddress, address);
  for (const std::string& route : row.routes) put_prefix(message, protocol::kBulkRoute, route);
}

class BulkClient {
 public:
  explicit BulkClient(ControlWorld& world, const char* netns = "default")
      : client_(world, NETLINK_GENERIC, netns) {}

  BulkAnswer send(RequestMessage& message) {
    post(message);
    return finish();
  }
  // The message is handled, and nothing of what it starts is done.
  void begin(RequestMessage& message) {
    post(message);
    client_.connection().run(Deadline::after_ns(0));
  }
  BulkAnswer finish() {
    BulkAnswer answer;
    const std::vector<std::byte> bytes = client_.finish();
    int left = static_cast<int>(bytes.size());
    for (auto* at = reinterpret_cast<const nlmsghdr*>(bytes.data()); mnl_nlmsg_ok(at, left);
         at = mnl_nlmsg_next(at, &left))
      read(*at, answer);
    return answer;
  }

  void list(const std::vector<Row>& rows, size_t in_a_message = 50) {
    RequestMessage message;
    for (size_t at = 0; at < rows.size();) {
      message.begin_generic(protocol::kCmdLinkBulkItems);
      for (size_t end = std::min(at + in_a_message, rows.size()); at < end; ++at) put_item(message, rows[at]);
      MAYFLY_CHECK(send(message).code == 0, "items were refused");
    }
  }

  struct Switches {
    bool replace = true;
    std::optional<uint32_t> sweep = {};
    bool force = false;
    bool dry_run = false;
  };
  static void put_switches(RequestMessage& message, const Switches& switches) {
    if (switches.replace) message.put_flag(protocol::kBulkReplace);
    if (switches.sweep) message.put_u32(protocol::kBulkSweepGroup, *switches.sweep);
    if (switches.force) message.put_flag(protocol::kBulkForce);
    if (switches.dry_run) message.put_flag(protocol::kBulkDryRun);
  }
  // Lists the rows; the message to make them with.
  RequestMessage prepare(const std::vector<Row>& rows, const Switches& switches) {
    list(rows);
    RequestMessage message;
    message.begin_generic(protocol::kCmdLinkBulkAdd);
    message.put_flag(protocol::kBulkListed);
    message.put_u64(protocol::kBulkCount, rows.size());
    put_switches(message, switches);
    return message;
  }
  BulkAnswer make(const std::vector<Row>& rows, const Switches& switches) {
    RequestMessage message = prepare(rows, switches);
    return send(message);
  }

  TestClient& client() noexcept { return client_; }

 private:
  void post(RequestMessage& message) {
    message.header()->nlmsg_flags |= NLM_F_ACK;
    client_.post({reinterpret_cast<const std::byte*>(message.header()), message.size()});
  }
  static void read(const nlmsghdr& message, BulkAnswer& answer) {
    if (message.nlmsg_type == NLMSG_ERROR) {
      answer.code = -static_cast<const nlmsgerr*>(mnl_nlmsg_get_payload(&message))->error;
      answer.text = Attributes(message, sizeof(nlmsgerr)).string(NLMSGERR_ATTR_MSG);
      return;
    }
    const auto* header = static_cast<const genlmsghdr*>(mnl_nlmsg_get_payload(&message));
    if (header->cmd != protocol::kCmdBulkResult) return;
    const Attributes attributes(message, sizeof(genlmsghdr));
    answer.has_result = true;
    answer.matched = attributes.number_or(protocol::kBulkMatched, 0);
    answer.created = attributes.number_or(protocol::kBulkCreated, 0);
    answer.kept = attributes.number_or(protocol::kBulkKept, 0);
    answer.changed = attributes.number_or(protocol::kBulkChanged, 0);
    answer.deleted = attributes.number_or(protocol::kBulkDeleted, 0);
    answer.failed = attributes.number_or(protocol::kBulkFailed, 0);
    attributes.each(protocol::kBulkFailure, [&](const Attributes& failure) {
      answer.members.push_back(failure.number(protocol::kFailureMember));
      answer.texts.emplace_back(failure.string(protocol::kFailureText));
    });
  }

  TestClient client_;
};

}  // namespace mayfly
