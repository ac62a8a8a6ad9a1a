// SPDX-License-Identifier: BSD-3-Clause
// Settings of a port that its device answers late: the test stands in for the port thread.
#include <gtest/gtest.h>
#include <linux/if.h>
#include <linux/if_link.h>

#include <set>

#include "bulk_client.hpp"

namespace mayfly {
namespace {

constexpr Mac kBefore = 0x0200000000aa;
constexpr Mac kAfter = 0x0200000000bb;
constexpr uint32_t kMtuBefore = 1500;

class PortDevice : public ::testing::Test {
 protected:
  PortDevice() {
    PortSettings settings;
    settings.name = "p1";
    settings.devargs = "net_null1";
    EXPECT_TRUE(ports_.begin_add(settings).has_value());
    info_.port = 1;
    info_.mac = kBefore;
    info_.mtu = kMtuBefore;
    info_.mtu_by_tags = {kMtuBefore, kMtuBefore, kMtuBefore};
    info_.link_up = info_.promiscuous = info_.promiscuous_wanted = true;
    serve();
    port_ = world_.interfaces().find(&netns(), "p1");
    EXPECT_NE(port_, kNoInterface);
    first_ = make_vlan("first", 5);
  }

  Netns& netns() { return world_.dataplane().netnses.initial(); }

  uint32_t make_vlan(const char* name, uint16_t id) {
    InterfaceSpec spec;
    spec.name = name;
    spec.kind = *find_kind("vlan");
    spec.netns = &netns();
    spec.parent = port_;
    spec.values.set(1, id);
    const auto claimed = world_.interfaces().claim(spec);
    EXPECT_TRUE(claimed.has_value());
    world_.interfaces().commit(*claimed);
    return *claimed;
  }

  // Answers what was asked of the device so far; returns how much that was.
  size_t serve(const std::set<PortRequest::Type>& refused = {}) {
    PortRequest request;
    size_t served = 0;
    for (; world_.port_thread().next(&request); ++served) {
      PortReply reply;
      reply.type = request.type;
      reply.slot = request.slot;
      reply.cookie = request.cookie;
      if (refused.contains(request.type))
        reply.result = fail(EIO, "the device does not want to");
      else if (request.type == PortRequest::Type::set_mac)
        info_.mac = request.mac;
      else if (request.type == PortRequest::Type::set_mtu)
        info_.mtu = request.mtu;
      else if (request.type == PortRequest::Type::set_promiscuous)
        info_.promiscuous = info_.promiscuous_wanted = request.promiscuous;
      reply.info = info_;
      world_.port_thread().reply(std::move(reply));
    }
    world_.dataplane().collect();
    return served;
  }

  RequestMessage set_port(bool mtu, bool mac, bool promiscuous_off, const char* alias = nullptr) {
    ifinfomsg fixed{};
    fixed.ifi_index = static_cast<int>(port_);
    if (promiscuous_off) fixed.ifi_change = IFF_PROMISC;
    RequestMessage message;
    message.begin_route(RTM_SETLINK, NLM_F_ACK, fixed);
    if (mtu) message.put_u32(IFLA_MTU, 1400);
    uint8_t octets[6];
    store_mac(octets, kAfter);
    if (mac) message.put(IFLA_ADDRESS, octets, sizeof octets);
    if (alias != nullptr) message.put_string(IFLA_IFALIAS, alias);
    return message;
  }

  void post(TestClient& client, const RequestMessage& message) {
    client.post({reinterpret_cast<const std::byte*>(message.header()), message.size()});
    client.connection().run(Deadline::never());
  }

  // Runs it and answers the device until it has ended.
  void see_through(Connection& connection, const std::set<PortRequest::Type>& refused = {}) {
    for (int rounds = 0; !connection.idle(); ++rounds) {
      ASSERT_LT(rounds, 100);
      connection.run(Deadline::after_ns(0));
      serve(refused);
    }
  }

  Mac mac_of(uint32_t ifindex) { return world_.interfaces().interface(ifindex).mac.load(); }

  // What the device lets pass is what its interfaces have.
  void expect_heard(Mac mac) {
    EXPECT_EQ(info_.mac, mac);
    for (uint32_t at = world_.interfaces().next(port_); at != kNoInterface;
         at = world_.interfaces().next(at + 1))
      EXPECT_EQ(mac_of(at), mac) << world_.interfaces().record(at).name;
    EXPECT_TRUE(world_.interfaces().port_demux(1).own_macs.count.empty());
  }

  ControlWorld world_;
  PortTable& ports_ = world_.dataplane().ports;
  PortInfo info_;
  uint32_t port_ = kNoInterface;
  uint32_t first_ = kNoInterface;
};

TEST_F(PortDevice, WhatIsStackedFollowsThoughTheClientIsGone) {
  TestClient client(world_, NETLINK_ROUTE);
  post(client, set_port(false, true, false, "named"));
  ASSERT_FALSE(client.connection().idle());
  client.connection().close("gone");
  EXPECT_FALSE(client.connection().finished()) << "the device has not answered";
  see_through(client.connection());
  expect_heard(kAfter);
  EXPECT_STREQ(world_.interfaces().record(port_).alias, "named") << "half of a request was done";
}

TEST_F(PortDevice, NothingIsLeftHalfWhenTheClientGoesInBetween) {
  TestClient client(world_, NETLINK_ROUTE);
  post(client, set_port(true, true, false, "named"));
  // The device has taken the MTU, and works on the MAC address, or is asked for it no more.
  for (const bool mac_asked : {false, true}) {
    SCOPED_TRACE(mac_asked);
    TestClient other(world_, NETLINK_ROUTE);
    TestClient& at_work = mac_asked ? other : client;
    if (mac_asked) {
      post(other, set_port(true, true, false, "named"));
      serve();
      other.connection().run(Deadline::never());
    }
    at_work.connection().close("gone");
    see_through(at_work.connection());
    const bool done = info_.mtu != kMtuBefore;
    EXPECT_EQ(done, mac_asked);
    expect_heard(done ? kAfter : kBefore);
    EXPECT_EQ(world_.interfaces().interface(port_).mtu.load(), info_.mtu);
    EXPECT_EQ(world_.interfaces().record(port_).alias != nullptr, done);
  }
}

// A VLAN that was made while the device had the new address goes back with it.
TEST_F(PortDevice, ARefusalTakesTheAddressBackFromAll) {
  TestClient client(world_, NETLINK_ROUTE);
  post(client, set_port(false, true, true));
  serve();
  client.connection().run(Deadline::never());
  EXPECT_EQ(mac_of(port_), kAfter);
  make_vlan("between", 6);
  see_through(client.connection(), {PortRequest::Type::set_promiscuous});
  expect_heard(kBefore);
  EXPECT_TRUE(info_.promiscuous_wanted);
}

// What a request names beside the device's settings may have gone while the device worked.
TEST_F(PortDevice, WhatBecameUntrueMeanwhileChangesNothing) {
  InterfaceSpec spec;
  spec.name = "lo100";
  spec.kind = *find_kind("dummy");
  spec.netns = &netns();
  const uint32_t lender = *world_.interfaces().claim(spec);
  world_.interfaces().commit(lender);
  RequestMessage message = set_port(false, true, false, "named");
  message.put_u32(IFLA_GROUP, 9);
  message.put_string(protocol::kAttrUnnumbered, "lo100");
  TestClient client(world_, NETLINK_ROUTE);
  post(client, message);
  RetireList retired;
  world_.dataplane().addressing.detach(lender, retired);
  world_.interfaces().retire(lender, retired);
  world_.dataplane().commit(retired);
  see_through(client.connection());
  expect_heard(kBefore);
  EXPECT_EQ(world_.interfaces().record(port_).group, 0u);
  EXPECT_EQ(world_.interfaces().record(port_).alias, nullptr);
}

TEST_F(PortDevice, AnEndWaitsForTheDevice) {
  // As the server does when the daemon stops: nobody but the loop below collects answers.
  TestClient client(world_, NETLINK_ROUTE);
  post(client, set_port(false, true, false));
  client.connection().close("the daemon stops");
  PortRequest request;
  ASSERT_TRUE(world_.port_thread().next(&request));
  PortReply reply;
  reply.type = request.type;
  reply.slot = request.slot;
  reply.cookie = request.cookie;
  reply.info = info_;
  reply.info.mac = info_.mac = kAfter;
  world_.port_thread().reply(std::move(reply));
  for (int rounds = 0; !client.connection().finished(); ++rounds) {
    ASSERT_LT(rounds, 100);
    client.connection().run(Deadline::never());
    world_.dataplane().collect();
  }
  expect_heard(kAfter);
}

}  // namespace
}  // namespace mayfly
