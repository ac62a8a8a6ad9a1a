// SPDX-License-Identifier: BSD-3-Clause
// Changing the configuration: its lock, and what is said of changes that cannot be undone.
#include <gtest/gtest.h>

#include "bulk_client.hpp"

namespace mayfly {
namespace {

RequestMessage generic_request(protocol::Command command) {
  RequestMessage message;
  message.begin_generic(command);
  return message;
}

RequestMessage text_request(std::string_view text) {
  RequestMessage message = generic_request(protocol::kCmdConfigText);
  message.put_string(protocol::kConfigText, text);
  return message;
}

// A dummy of this name is made, or as what is undone, deleted.
RequestMessage dummy_request(const std::string& name) {
  RequestMessage create;
  create.begin_route(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, ifinfomsg{});
  create.put_string(IFLA_IFNAME, name);
  {
    const RequestMessage::Nest info(create, IFLA_LINKINFO);
    create.put_string(IFLA_INFO_KIND, "dummy");
  }
  RequestMessage remove;
  remove.begin_route(RTM_DELLINK, 0, ifinfomsg{});
  remove.put_string(IFLA_IFNAME, name);
  RequestMessage message = generic_request(protocol::kCmdConfigChange);
  message.put_u32(protocol::kConfigFamily, NETLINK_ROUTE);
  message.put_string(protocol::kConfigWhere, "f.yaml:1");
  message.put_string(protocol::kConfigWhat, "link add " + name);
  message.put(protocol::kConfigMessage, create.header(), create.size());
  message.put(protocol::kConfigUndo, remove.header(), remove.size());
  return message;
}

int ask(BulkClient& client, RequestMessage message) {
  return client.send(message).code;
}

TEST(Configuration, TheLockGoesWithTheApply) {
  ControlWorld world;
  const Configuration& configuration = world.dataplane().configuration;
  BulkClient client(world);
  BulkClient other(world);
  EXPECT_EQ(ask(client, generic_request(protocol::kCmdConfigBegin)), 0);
  EXPECT_EQ(ask(other, generic_request(protocol::kCmdConfigBegin)), EBUSY);
  EXPECT_EQ(ask(client, text_request("first")), 0);
  EXPECT_EQ(ask(client, generic_request(protocol::kCmdConfigApply)), 0);
  EXPECT_EQ(configuration.text.whole(), "first");
  // Without a begin there is nothing to apply.
  EXPECT_EQ(ask(client, generic_request(protocol::kCmdConfigApply)), EPERM);
  EXPECT_EQ(ask(client, text_request("x")), EPERM);
  EXPECT_EQ(configuration.text.whole(), "first");
  EXPECT_EQ(ask(other, generic_request(protocol::kCmdConfigBegin)), 0);
  // One that is refused gives it back, too.
  EXPECT_EQ(ask(other, text_request("second")), 0);
  EXPECT_EQ(ask(other, dummy_request("port0")), 0);
  RequestMessage apply = generic_request(protocol::kCmdConfigApply);
  const BulkAnswer answer = other.send(apply);
  EXPECT_EQ(answer.code, EEXIST);
  EXPECT_TRUE(answer.text.ends_with("; nothing was changed")) << answer.text;
  EXPECT_EQ(configuration.text.whole(), "first");
  EXPECT_EQ(ask(client, generic_request(protocol::kCmdConfigBegin)), 0);
}

TEST(Configuration, WhatCannotBeUndoneIsTold) {
  ControlWorld world;
  InterfaceTable& table = world.interfaces();
  BulkClient client(world);
  EXPECT_EQ(ask(client, generic_request(protocol::kCmdConfigBegin)), 0);
  for (const char* name : {"a", "b", "port0"}) EXPECT_EQ(ask(client, dummy_request(name)), 0);
  RequestMessage apply = generic_request(protocol::kCmdConfigApply);
  client.begin(apply);
  Netns* netns = &world.dataplane().netnses.initial();
  while (table.find(netns, "b") == kNoInterface) client.client().connection().run(Deadline::after_ns(0));
  // Somebody else is deleting it.
  const uint32_t a = table.find(netns, "a");
  table.mark(a, ++world.dataplane().removals);
  const BulkAnswer answer = client.finish();
  table.unmark(a);
  EXPECT_EQ(answer.code, EEXIST);
  EXPECT_NE(answer.text.find("f.yaml:1: link add port0"), std::string::npos) << answer.text;
  EXPECT_NE(answer.text.find("1 changes before it could not be undone"), std::string::npos) << answer.text;
  EXPECT_EQ(answer.text.find("nothing was changed"), std::string::npos) << answer.text;
  EXPECT_NE(table.find(netns, "a"), kNoInterface);
  EXPECT_EQ(table.find(netns, "b"), kNoInterface);
}

// To free what a reload consisted of takes as long as it is: it is left to teardown, whether it was made,
// given up, or never asked for.
TEST(Configuration, WhatIsNoLongerNeededIsLeftToTeardown) {
  ControlWorld world;
  Configuration& configuration = world.dataplane().configuration;
  const auto handed_over = [&] {
    world.settle();
    return world.dataplane().reclaim.statistics().objects_retired;
  };
  const std::string long_text(4 << 20, 'x');
  const auto upload = [&](BulkClient& client, bool with_text) {
    EXPECT_EQ(ask(client, generic_request(protocol::kCmdConfigBegin)), 0);
    for (int n = 0; n < 100; ++n) EXPECT_EQ(ask(client, dummy_request(fmt::format("d{}", n))), 0);
    for (size_t at = 0; with_text && at < long_text.size(); at += 32'768)
      EXPECT_EQ(ask(client, text_request(std::string_view(long_text).substr(at, 32'768))), 0);
  };
  BulkClient client(world);
  uint64_t before = handed_over();
  upload(client, true);
  EXPECT_EQ(ask(client, generic_request(protocol::kCmdConfigBegin)), 0);  // begun anew
  EXPECT_EQ(handed_over(), before + 1);
  {
    BulkClient other(world);
    EXPECT_EQ(ask(client, generic_request(protocol::kCmdConfigApply)), 0);
    upload(other, false);
    before = handed_over();
  }
  EXPECT_EQ(handed_over(), before + 1) << "its client is gone";
  EXPECT_TRUE(configuration.pending().empty());
  upload(client, true);
  before = handed_over();
  EXPECT_EQ(ask(client, generic_request(protocol::kCmdConfigApply)), 0);
  EXPECT_EQ(handed_over(), before + 1) << "the changes; the text before was short";
  EXPECT_EQ(configuration.text.whole(), long_text);
  // Who reads the text goes on reading it when it is no longer the loaded one.
  BulkClient reader(world);
  RequestMessage show;
  show.begin_generic(protocol::kCmdConfigShow, NLM_F_DUMP);
  reader.begin(show);
  configuration.text = "other";
  const auto bytes = reader.client().finish();
  size_t shown = 0;
  int left = static_cast<int>(bytes.size());
  for (auto* at = reinterpret_cast<const nlmsghdr*>(bytes.data()); mnl_nlmsg_ok(at, left);
       at = mnl_nlmsg_next(at, &left))
    if (at->nlmsg_type == protocol::kGenericFamilyId)
      shown += Attributes(*at, sizeof(genlmsghdr)).string(protocol::kConfigText).size();
  EXPECT_EQ(shown, long_text.size());
}

}  // namespace
}  // namespace mayfly
