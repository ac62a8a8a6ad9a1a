// SPDX-License-Identifier: BSD-3-Clause
// A namespace is deleted while other clients are at work in it: requests of both are stepped by hand.
#include <gtest/gtest.h>
#include <linux/veth.h>

#include <functional>

#include "bulk_client.hpp"

namespace mayfly {
namespace {

RequestMessage netns_request(protocol::Command command, const std::string& name) {
  RequestMessage message;
  message.begin_generic(command);
  message.put_string(protocol::kNetnsName, name);
  return message;
}

RequestMessage delete_everything(uint16_t how) {
  RequestMessage message;
  message.begin_generic(protocol::kCmdLinkBulkDel);
  if (how == protocol::kBulkName) {
    message.put_string(protocol::kBulkName, "d{}");
    message.put_u64(protocol::kBulkCount, 2);
  } else if (how == protocol::kBulkSelector) {
    const RequestMessage::Nest selector(message, protocol::kBulkSelector);
    message.put_u32(protocol::kSelectGroup, 7);
  } else {
    message.put_flag(how);
  }
  return message;
}

// Two dummies, or pairs; elsewhere: the namespace that the template, or its peer, names.
RequestMessage make_two(const std::string& elsewhere, bool pairs = false) {
  RequestMessage message;
  message.begin_generic(protocol::kCmdLinkBulkAdd);
  message.put_string(protocol::kBulkName, "n{}");
  message.put_u64(protocol::kBulkCount, 2);
  const RequestMessage::Nest shared(message, protocol::kBulkTemplate);
  if (!elsewhere.empty() && !pairs) message.put_string(protocol::kAttrNetns, elsewhere);
  const RequestMessage::Nest info(message, IFLA_LINKINFO);
  message.put_string(IFLA_INFO_KIND, pairs ? "veth" : "dummy");
  if (!pairs) return message;
  const RequestMessage::Nest data(message, IFLA_INFO_DATA);
  const RequestMessage::Nest peer(message, VETH_INFO_PEER);
  const ifinfomsg fixed{};
  message.put_raw(&fixed, sizeof fixed);
  message.put_string(IFLA_IFNAME, "p{}");
  message.put_string(protocol::kAttrNetns, elsewhere);
  return message;
}

// Whatever a bulk request is, it comes too late once the namespace it is sent in is being deleted.
TEST(NetnsBulk, NoBulkRequestEntersADyingNamespace) {
  const std::pair<const char*, std::function<RequestMessage(BulkClient&)>> requests[] = {
      {"selector", [](BulkClient&) { return delete_everything(protocol::kBulkSelector); }},
      {"pattern", [](BulkClient&) { return delete_everything(protocol::kBulkName); }},
      {"flush", [](BulkClient&) { return delete_everything(protocol::kBulkFlush); }},
      {"names", [](BulkClient&) { return delete_everything(protocol::kBulkListed); }},
      {"template", [](BulkClient&) { return make_two(""); }},
      {"template elsewhere", [](BulkClient&) { return make_two("default"); }},
      {"listed", [](BulkClient& client) { return client.prepare({{.name = "l"}}, {.replace = false}); }},
      {"replace", [](BulkClient& client) { return client.prepare({{.name = "l"}}, {.sweep = 7}); }},
  };
  for (const auto& [what, make] : requests) {
    SCOPED_TRACE(what);
    ControlWorld world;
    NetnsTable& netnses = world.dataplane().netnses;
    Netns& blue = **netnses.add("blue");
    BulkClient deleter(world);
    BulkClient inside(world, "blue");
    ASSERT_EQ(inside.make({{.name = "d0", .group = 7}, {.name = "d1", .group = 7}}, {.replace = false}).code,
              0);
    RequestMessage late = make(inside);
    RequestMessage gone = netns_request(protocol::kCmdNetnsDel, "blue");
    deleter.begin(gone);
    ASSERT_TRUE(blue.dying);
    const BulkAnswer answer = inside.send(late);
    EXPECT_EQ(answer.code, EBUSY) << answer.text;
    EXPECT_NE(answer.text.find("netns 'blue' is being deleted"), std::string::npos) << answer.text;
    EXPECT_EQ(deleter.finish().code, 0);
    world.settle();
    // Its block goes to the next one, which nobody holds.
    Netns& next = **netnses.add("next");
    EXPECT_EQ(next.bulk_requests, 0u);
    EXPECT_EQ(world.interfaces().live(), 1u);
  }
}

// A template holds what it names from the moment it is accepted, before its first slice.
TEST(NetnsBulk, ATemplateHoldsTheNamespacesItNames) {
  for (const bool pairs : {false, true}) {
    SCOPED_TRACE(pairs ? "peer's" : "its own");
    ControlWorld world;
    Netns& blue = **world.dataplane().netnses.add("blue");
    BulkClient maker(world);
    BulkClient deleter(world);
    RequestMessage message = make_two("blue", pairs);
    maker.begin(message);
    ASSERT_FALSE(maker.client().connection().idle()) << "nothing is stepped yet";
    RequestMessage gone = netns_request(protocol::kCmdNetnsDel, "blue");
    const BulkAnswer refused = deleter.send(gone);
    EXPECT_EQ(refused.code, EBUSY);
    EXPECT_NE(refused.text.find("a bulk request is at work in it"), std::string::npos) << refused.text;
    EXPECT_EQ(maker.finish().code, 0);
    EXPECT_NE(world.interfaces().find(&blue, pairs ? "p1" : "n1"), kNoInterface);
    EXPECT_EQ(deleter.send(gone).code, 0);
  }
}

}  // namespace
}  // namespace mayfly
