// SPDX-License-Identifier: BSD-3-Clause
// Whatever takes an interface's routes away takes them in steps, and other clients come in between. Counted
// in routes a slice, not in time: a slice whose deadline is over does one step.
#include <gtest/gtest.h>
#include <linux/if.h>

#include <functional>

#include "bulk_client.hpp"

namespace mayfly {
namespace {

constexpr uint32_t kRoutes = 20'000;

class ManyRoutes : public ::testing::Test {
 protected:
  ManyRoutes() {
    InterfaceSpec spec;
    spec.name = "core";
    spec.kind = *find_kind("dummy");
    spec.netns = &netns_;
    spec.up = true;
    spec.group = 7;
    core_ = *table_.claim(spec);
    table_.commit(core_);
    RetireList retired;
    Dataplane& dataplane = world_.dataplane();
    EXPECT_TRUE(
        dataplane.addressing.add(core_, *parse_ip_prefix("addr", "10.0.0.1/24"), 0, retired).has_value());
    for (uint32_t n = 0; n < kRoutes; ++n) {
      // A second address in the middle: routes of its own lie between the others.
      if (n == kRoutes / 2) {
        EXPECT_TRUE(
            dataplane.addressing.add(core_, *parse_ip_prefix("addr", "10.0.1.1/24"), 0, retired).has_value());
      }
      Route route;
      route.address = n % 2 == 0 ? IpAddress(Ipv4{0x20000000 + (n << 8)})
                                 : IpAddress(Ipv6{0x2001'0db8'0000'0000ULL + n, 0});
      route.length = n % 2 == 0 ? 24 : 64;
      route.oif = core_;
      EXPECT_TRUE(
          netns_.rib.add(route, RouteAdd::create_exclusive(), &table_.record(core_).routes).has_value());
    }
    dataplane.commit(retired);
  }

  RequestMessage link(uint16_t type, const std::function<void(RequestMessage&)>& more = {},
                      uint32_t change = 0) {
    ifinfomsg fixed{};
    fixed.ifi_index = static_cast<int>(core_);
    fixed.ifi_change = change;
    RequestMessage message;
    message.begin_route(type, NLM_F_ACK, fixed);
    if (more) more(message);
    return message;
  }

  // Runs what the message asks a step at a time, with another client at work between any two.
  void expect_steps(uint32_t family, const RequestMessage& message,
                    const std::function<void()>& between = {}) {
    TestClient client(world_, family);
    TestClient other(world_, NETLINK_ROUTE);
    client.post({reinterpret_cast<const std::byte*>(message.header()), message.size()});
    uint32_t steps = 0;
    for (uint32_t before = netns_.rib.size(); !client.connection().idle(); before = netns_.rib.size()) {
      client.connection().run(Deadline::after_ns(0));
      // What is left at the end: routes of addresses.
      ASSERT_LE(before - netns_.rib.size(), Addressing::kRoutesPerStep + 16);
      if (before != netns_.rib.size()) ++steps;
      world_.dataplane().reclaim.collect(Deadline::never());
      if (between && netns_.rib.size() < kRoutes / 2) between();
      RequestMessage ask;
      ask.begin_route(RTM_GETLINK, 0, ifinfomsg{});
      ask.put_string(IFLA_IFNAME, "port0");
      EXPECT_FALSE(other.exchange({reinterpret_cast<const std::byte*>(ask.header()), ask.size()}).empty());
    }
    EXPECT_GE(steps, kRoutes / Addressing::kRoutesPerStep);
  }

  int code_of(uint32_t family, const RequestMessage& message) {
    TestClient client(world_, family);
    const auto bytes =
        client.exchange({reinterpret_cast<const std::byte*>(message.header()), message.size()});
    int left = static_cast<int>(bytes.size());
    for (auto* at = reinterpret_cast<const nlmsghdr*>(bytes.data()); mnl_nlmsg_ok(at, left);
         at = mnl_nlmsg_next(at, &left))
      if (at->nlmsg_type == NLMSG_ERROR)
        return -static_cast<const nlmsgerr*>(mnl_nlmsg_get_payload(at))->error;
    return -1;
  }

  ControlWorld world_;
  InterfaceTable& table_ = world_.interfaces();
  Netns& netns_ = world_.dataplane().netnses.initial();
  uint32_t core_ = kNoInterface;
};

TEST_F(ManyRoutes, LinkDown) {
  const RequestMessage down = link(RTM_SETLINK, {}, IFF_UP);
  bool asked = false;
  expect_steps(NETLINK_ROUTE, down, [&] {
    if (std::exchange(asked, true)) return;
    // It is down and nobody else's meanwhile; its own addresses are answered for.
    EXPECT_FALSE(table_.record(core_).admin_up);
    EXPECT_NE(netns_.fib.lookup(0x0a000001), nullptr);
    EXPECT_NE(netns_.fib.lookup(0x0a000101), nullptr);
    RequestMessage up = link(RTM_SETLINK, {}, IFF_UP);
    static_cast<ifinfomsg*>(mnl_nlmsg_get_payload(up.header()))->ifi_flags = IFF_UP;
    EXPECT_EQ(code_of(NETLINK_ROUTE, up), EBUSY);
    EXPECT_EQ(code_of(NETLINK_ROUTE, link(RTM_DELLINK)), EBUSY);
  });
  EXPECT_TRUE(asked);
  EXPECT_EQ(table_.state(core_), InterfaceState::live);
  EXPECT_EQ(netns_.rib.size(), 2u) << "the local routes of two addresses";
  EXPECT_NE(netns_.fib.lookup(0x0a000001), nullptr);
  EXPECT_EQ(code_of(NETLINK_ROUTE, link(RTM_DELLINK)), 0);
}

TEST_F(ManyRoutes, LinkDelete) {
  expect_steps(NETLINK_ROUTE, link(RTM_DELLINK));
  EXPECT_FALSE(table_.exists(core_));
  EXPECT_EQ(netns_.rib.size(), 0u);
}

TEST_F(ManyRoutes, BulkDelete) {
  RequestMessage message;
  message.begin_generic(protocol::kCmdLinkBulkDel);
  {
    const RequestMessage::Nest selector(message, protocol::kBulkSelector);
    message.put_u32(protocol::kSelectGroup, 7);
  }
  expect_steps(NETLINK_GENERIC, message);
  EXPECT_FALSE(table_.exists(core_));
  EXPECT_EQ(netns_.rib.size(), 0u);
}

TEST_F(ManyRoutes, BulkReplaceWithDown) {
  BulkClient client(world_);
  client.list({{.name = "core", .up = false}});
  RequestMessage message;
  message.begin_generic(protocol::kCmdLinkBulkAdd);
  message.put_flag(protocol::kBulkListed);
  message.put_u64(protocol::kBulkCount, 1);
  message.put_flag(protocol::kBulkReplace);
  client.begin(message);
  uint32_t slices = 0;
  for (uint32_t before = netns_.rib.size(); !client.client().connection().idle();
       before = netns_.rib.size()) {
    client.client().connection().run(Deadline::after_ns(0));
    ASSERT_LE(before - netns_.rib.size(), Addressing::kRoutesPerStep + 16);
    ++slices;
  }
  EXPECT_GE(slices, kRoutes / Addressing::kRoutesPerStep);
  const BulkAnswer answer = client.finish();
  EXPECT_EQ(answer.code, 0) << answer.text;
  EXPECT_EQ(answer.changed, 1u);
  EXPECT_FALSE(table_.record(core_).admin_up);
  EXPECT_EQ(table_.state(core_), InterfaceState::live);
  EXPECT_EQ(netns_.rib.size(), 2u);
}

TEST_F(ManyRoutes, Move) {
  Netns& blue = **world_.dataplane().netnses.add("blue");
  bool asked = false;
  const RequestMessage move =
      link(RTM_SETLINK, [](RequestMessage& message) { message.put_string(protocol::kAttrNetns, "blue"); });
  expect_steps(NETLINK_ROUTE, move, [&] {
    if (std::exchange(asked, true)) return;
    // Its name is kept there for it.
    EXPECT_EQ(table_.find(&blue, "core"), kNoInterface);
    EXPECT_TRUE(table_.name_taken(&blue, "core"));
  });
  EXPECT_TRUE(asked);
  EXPECT_EQ(table_.find(&blue, "core"), core_);
  EXPECT_EQ(netns_.rib.size(), 0u);
  world_.settle();
  EXPECT_EQ(table_.in_use(), 2u) << "nothing is left of what kept the name";
}

// What was true when the request came is looked at again before there is no way back.
TEST_F(ManyRoutes, AMoveThatBecameImpossibleChangesNothing) {
  Netns& blue = **world_.dataplane().netnses.add("blue");
  InterfaceSpec spec;
  spec.name = "lo100";
  spec.kind = *find_kind("dummy");
  spec.netns = &blue;
  const uint32_t lender = *table_.claim(spec);
  table_.commit(lender);
  const uint32_t before = netns_.rib.size();
  const RequestMessage move = link(RTM_SETLINK, [](RequestMessage& message) {
    message.put_string(protocol::kAttrNetns, "blue");
    message.put_u32(IFLA_GROUP, 9);
    message.put_string(IFLA_IFALIAS, "named");
    message.put_string(protocol::kAttrUnnumbered, "lo100");
  });
  TestClient client(world_, NETLINK_ROUTE);
  client.post({reinterpret_cast<const std::byte*>(move.header()), move.size()});
  client.connection().run(Deadline::after_ns(0));
  ASSERT_FALSE(client.connection().idle());
  RetireList retired;
  world_.dataplane().addressing.detach(lender, retired);
  table_.retire(lender, retired);
  world_.dataplane().commit(retired);
  const auto bytes = client.finish();
  ASSERT_GE(bytes.size(), sizeof(nlmsghdr) + sizeof(nlmsgerr));
  EXPECT_EQ(
      static_cast<const nlmsgerr*>(mnl_nlmsg_get_payload(reinterpret_cast<const nlmsghdr*>(bytes.data())))
          ->error,
      -ENODEV);
  EXPECT_EQ(table_.find(&netns_, "core"), core_);
  EXPECT_EQ(table_.state(core_), InterfaceState::live);
  EXPECT_TRUE(table_.oper_up(core_));
  EXPECT_EQ(table_.record(core_).group, 7u);
  EXPECT_EQ(table_.record(core_).alias, nullptr);
  EXPECT_EQ(netns_.rib.size(), before);
}

TEST_F(ManyRoutes, AMoveGoesOnWithoutItsClient) {
  Netns& blue = **world_.dataplane().netnses.add("blue");
  const RequestMessage move =
      link(RTM_SETLINK, [](RequestMessage& message) { message.put_string(protocol::kAttrNetns, "blue"); });
  TestClient client(world_, NETLINK_ROUTE);
  client.post({reinterpret_cast<const std::byte*>(move.header()), move.size()});
  while (netns_.rib.size() > kRoutes / 2) {
    client.connection().run(Deadline::after_ns(0));
    world_.dataplane().reclaim.collect(Deadline::never());
  }
  client.connection().close("gone");
  while (!client.connection().finished()) client.connection().run(Deadline::after_ns(0));
  EXPECT_EQ(table_.find(&blue, "core"), core_);
  EXPECT_EQ(netns_.rib.size(), 0u);
}

}  // namespace
}  // namespace mayfly
