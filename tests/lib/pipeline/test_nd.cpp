// SPDX-License-Identifier: BSD-3-Clause
// Neighbour discovery: what is answered, what control is told, what is sent, what is refused.
#include <gtest/gtest.h>

#include "world.hpp"

namespace mayfly::testing {
namespace {

constexpr Mac kHost = 0x0a0000000001;
constexpr Mac kPort0 = 0x020000000001;
constexpr uint32_t kRouter = 0x80000000, kSolicited = 0x40000000, kOverride = 0x20000000;
constexpr uint8_t kAsk = 135, kSay = 136;

class NdTest : public ::testing::Test {
 protected:
  NdTest() : vlan(world.add_vlan(0, 5)) { world.add_address(vlan, "2001:db8::1/64"); }

  Bytes frame(const Bytes& packet, Mac to) { return ethernet(to, kHost, {{0x8100, 5}}, 0x86dd, packet); }
  Bytes ask(Ipv6 source, Ipv6 target, Mac mac = kHost) {
    const Ipv6 group = solicited_node_of(target);
    return frame(nd(kAsk, source, group, target, mac), multicast_mac_of(group));
  }
  Bytes say(Ipv6 target, Mac mac, uint32_t flags, const char* to = "2001:db8::1") {
    return frame(nd(kSay, target, ip6(to), target, mac, flags),
                 is_multicast(ip6(to)) ? 0x333300000001 : kPort0);
  }
  std::string answer(Ipv6 target, Ipv6 to, uint32_t flags, Mac mac = kHost) {
    return hex(ethernet(mac, kPort0, {{0x8100, 5}}, 0x86dd, nd(kSay, target, to, target, kPort0, flags)));
  }
  DropReason dropped(const Bytes& frame) { return world.dropped(0, frame); }

  World world;
  const uint32_t vlan;
  const Ipv6 own = ip6("2001:db8::1");
  const Ipv6 host = ip6("2001:db8::9");
  const Ipv6 link_local = link_local_of(kPort0);
};

TEST_F(NdTest, SolicitationsAreAnsweredAndTeach) {
  for (const Ipv6 target : {own, link_local}) {
    EXPECT_EQ(hex(world.forwarded(0, ask(host, target), 0)),
              answer(target, host, kRouter | kSolicited | kOverride));
    const auto told = world.heard();
    ASSERT_TRUE(told.has_value());
    EXPECT_EQ(told->type, WorkerMessage::Type::neighbour_seen);
    EXPECT_EQ(told->address, IpAddress(host));
    EXPECT_EQ(told->mac, kHost);
    EXPECT_TRUE(told->creates);
    EXPECT_FALSE(told->solicited);
  }
  world.set_neighbour(vlan, host, kHost, NeighbourState::kReachable);
  EXPECT_EQ(hex(world.forwarded(0, ask(host, own), 0)), answer(own, host, kRouter | kSolicited | kOverride));
  EXPECT_FALSE(world.heard().has_value()) << "no news";
  // Unicast and without an option, as a probe may be: answered to where it came from.
  EXPECT_EQ(hex(world.forwarded(0, frame(nd(kAsk, host, own, own, 0), kPort0), 0)),
            answer(own, host, kRouter | kSolicited | kOverride));
}

TEST_F(NdTest, ProbesAreAnsweredToAllNodes) {
  EXPECT_EQ(hex(world.forwarded(0, ask({}, own, 0), 0)),
            answer(own, ip6("ff02::1"), kRouter | kOverride, 0x333300000001));
  EXPECT_FALSE(world.heard().has_value());
}

TEST_F(NdTest, OptimisticAddressesConflict) {
  world.add_address(vlan, "2001:db8::2/64", InterfaceAddress::kOptimistic);
  const Ipv6 young = ip6("2001:db8::2");
  EXPECT_EQ(hex(world.forwarded(0, ask(host, young), 0)), answer(young, host, kRouter | kSolicited));
  while (world.heard()) {
  }
  for (const Bytes& claim : {ask({}, young, 0), say(young, kHost, kOverride, "ff02::1")}) {
    EXPECT_EQ(dropped(claim), DropReason::count);
    EXPECT_TRUE(world.take_all(0).empty());
    const auto told = world.heard();
    ASSERT_TRUE(told.has_value());
    EXPECT_EQ(told->type, WorkerMessage::Type::address_conflict);
    EXPECT_EQ(told->address, IpAddress(young));
    EXPECT_EQ(told->mac, kHost);
    EXPECT_EQ(told->ifindex, vlan);
  }
  world.add_address(vlan, "2001:db8::3/64", InterfaceAddress::kDuplicate);
  EXPECT_EQ(dropped(ask(host, ip6("2001:db8::3"))), DropReason::nd_other_host);
  EXPECT_EQ(dropped(say(own, kHost, kOverride, "ff02::1")), DropReason::nd_invalid) << "settled";
}

TEST_F(NdTest, AdvertisementsUpdateWhoIsKnown) {
  EXPECT_EQ(dropped(say(host, kHost, kSolicited | kOverride)), DropReason::nd_other_host);
  world.set_neighbour(vlan, host, 0, NeighbourState::kIncomplete);
  EXPECT_EQ(dropped(say(host, 0, kSolicited)), DropReason::nd_other_host) << "no MAC at all";
  EXPECT_EQ(dropped(say(host, kHost, kRouter | kSolicited | kOverride)), DropReason::count);
  auto told = world.heard();
  ASSERT_TRUE(told.has_value());
  EXPECT_TRUE(told->solicited && told->overrides && told->tells_router && told->router);
  EXPECT_FALSE(told->creates);
  EXPECT_EQ(told->mac, kHost);
  world.set_neighbour(vlan, host, kHost, NeighbourState::kProbe);
  EXPECT_EQ(dropped(say(host, 0, kSolicited)), DropReason::count);
  told = world.heard();
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(told->mac, kHost) << "confirms what is known";
  EXPECT_FALSE(told->overrides);
  EXPECT_EQ(dropped(say(host, kHost, kOverride, "ff02::1")), DropReason::nd_other_host) << "no news";
  EXPECT_EQ(dropped(say(host, kHost + 1, kOverride, "ff02::1")), DropReason::count);
  told = world.heard();
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(told->mac, kHost + 1);
  EXPECT_FALSE(told->solicited);
}

TEST_F(NdTest, InvalidMessages) {
  const Bytes good = nd(kAsk, host, solicited_node_of(own), own, kHost);
  const Mac to = multicast_mac_of(solicited_node_of(own));
  const auto bad = [&](size_t at, uint8_t value) {
    Bytes packet = good;
    packet[at] = value;
    return dropped(frame(with_icmpv6_checksum(packet), to));
  };
  EXPECT_EQ(bad(7, 254), DropReason::nd_invalid) << "hop limit";
  EXPECT_EQ(bad(41, 1), DropReason::nd_invalid) << "code";
  EXPECT_EQ(bad(48, 0xff), DropReason::nd_invalid) << "target";
  EXPECT_EQ(bad(65, 0), DropReason::nd_invalid) << "option length";
  EXPECT_EQ(bad(65, 2), DropReason::nd_invalid) << "option beyond the message";
  EXPECT_EQ(bad(66, 0x0b), DropReason::nd_invalid) << "a group's MAC";
  Bytes wrong = good;
  wrong[43] ^= 1;
  EXPECT_EQ(dropped(frame(wrong, to)), DropReason::icmp_invalid);
  EXPECT_EQ(dropped(ask({}, own, kHost)), DropReason::nd_invalid) << "a probe with an option";
  EXPECT_EQ(dropped(frame(nd(kAsk, {}, ip6("ff02::1"), own, 0), 0x333300000001)), DropReason::nd_invalid);
  EXPECT_EQ(dropped(say(host, kHost, kSolicited, "ff02::1")), DropReason::nd_invalid);
  EXPECT_EQ(dropped(frame(nd(kSay, {}, ip6("ff02::1"), host, kHost), 0x333300000001)),
            DropReason::nd_invalid);
  EXPECT_EQ(dropped(ask(own, own)), DropReason::nd_invalid) << "in our name";
  EXPECT_EQ(
      dropped(frame(icmpv6({.source = host, .destination = own, .hop_limit = 255}, kAsk, 0, Bytes(19, 0)),
                    kPort0)),
      DropReason::nd_invalid)
      << "too short";
  for (const uint8_t type : {133, 134, 137})
    EXPECT_EQ(dropped(frame(icmpv6({.source = host, .destination = ip6("ff02::2"), .hop_limit = 255}, type, 0,
                                   Bytes(16, 0)),
                            0x333300000002)),
              DropReason::nd_unwanted);
  EXPECT_EQ(dropped(ask(host, ip6("2001:db8::77"))), DropReason::nd_other_host);
  EXPECT_FALSE(world.heard().has_value());
  EXPECT_TRUE(world.take_all(0).empty());
}

// The message behind a fragment header; whole (an atomic fragment), the first part of more, or a later one.
Bytes behind_fragment_header(const Bytes& frame, uint16_t fragment) {
  constexpr size_t kIp = 18;
  constexpr size_t kUpper = kIp + 40;
  Bytes header;
  put(header, frame.at(kIp + 6), 1);
  put(header, 0, 1);
  put(header, fragment, 2);
  put(header, 0x01020304, 4);
  Bytes changed = frame;
  changed.insert(changed.begin() + kUpper, header.begin(), header.end());
  set(changed, kIp + 4, get(changed, kIp + 4, 2) + header.size(), 2);
  changed.at(kIp + 6) = 44;
  return changed;
}

TEST_F(NdTest, NothingIsTakenFromBehindAFragmentHeader) {
  world.set_neighbour(vlan, host, kHost, NeighbourState::kStale);
  for (const Bytes& message :
       {ask(host, own), ask(ip6("2001:db8::8"), own), ask({}, own, 0), ask(host, link_local),
        say(host, kHost + 1, kSolicited | kOverride), say(host, kHost + 1, kOverride, "ff02::1")})
    EXPECT_EQ(dropped(behind_fragment_header(message, 0)), DropReason::nd_invalid) << hex(message);
  for (const uint16_t fragment : {1, 8, 9})
    EXPECT_EQ(dropped(behind_fragment_header(ask(host, own), fragment)), DropReason::local_unknown);
  EXPECT_FALSE(world.heard().has_value());
  EXPECT_TRUE(world.take_all(0).empty());
  // An echo request may come that way.
  const Bytes echo = icmpv6({.source = host, .destination = own}, 128, 0, Bytes(20, 0x5a));
  EXPECT_FALSE(world.forwarded(0, behind_fragment_header(frame(echo, kPort0), 0), 0).empty());
}

TEST_F(NdTest, SolicitationsAreSentWhenControlAsks) {
  const auto sent = [&](Mac to, const Bytes& packet) {
    return hex(ethernet(to, kPort0, {{0x8100, 5}}, 0x86dd, packet));
  };
  const Ipv6 group = solicited_node_of(host);
  world.tell(ControlMessage::Type::ask_neighbour, vlan, IpAddress(host), kBroadcastMac, IpAddress(own));
  world.tell(ControlMessage::Type::ask_neighbour, vlan, IpAddress(host), kHost, IpAddress(link_local));
  world.tell(ControlMessage::Type::ask_neighbour, vlan, IpAddress(own), kBroadcastMac, {});
  world.step();
  EXPECT_EQ(hex(world.take(0).value_or(Bytes{})),
            sent(multicast_mac_of(group), nd(kAsk, own, group, host, kPort0)));
  EXPECT_EQ(hex(world.take(0).value_or(Bytes{})), sent(kHost, nd(kAsk, link_local, host, host, kPort0)));
  EXPECT_EQ(hex(world.take(0).value_or(Bytes{})),
            sent(multicast_mac_of(solicited_node_of(own)), nd(kAsk, {}, solicited_node_of(own), own, 0)));
  EXPECT_EQ(world.totals().originated, 3u);
}

TEST_F(NdTest, ProxyAndUnnumbered) {
  const uint32_t other = world.add_vlan(0, 6);
  const uint32_t gateway = world.add_dummy();
  world.add_address(gateway, "2001:db8:5::1/64");
  world.set_unnumbered(other, gateway);
  world.set_route6("2001:db8::5/128", {.oif = other, .gateway = {}});
  const Ipv6 client = ip6("2001:db8::5");
  EXPECT_EQ(dropped(ask(host, client)), DropReason::nd_other_host);
  world.set_flag(vlan, Interface::kProxyNd);
  // In its own name, since the client's is the client's.
  const Bytes said = world.forwarded(0, ask(host, client), 0);
  EXPECT_EQ(hex(said), hex(ethernet(kHost, kPort0, {{0x8100, 5}}, 0x86dd,
                                    nd(kSay, own, host, client, kPort0, kSolicited))));
  EXPECT_EQ(hex(world.forwarded(0, ask({}, client, 0), 0).empty() ? Bytes{} : Bytes{1}), "01")
      << "an address in use elsewhere must not be taken";
  EXPECT_EQ(dropped(ask(host, ip6("2001:db8::77"))), DropReason::nd_other_host) << "on the same link";
  EXPECT_EQ(dropped(ask(host, ip6("fe80::77"))), DropReason::nd_other_host);
  const Ipv6 borrowed = ip6("2001:db8:5::1");
  const Ipv6 group = solicited_node_of(borrowed);
  EXPECT_EQ(hex(world.forwarded(0,
                                ethernet(multicast_mac_of(group), kHost, {{0x8100, 6}}, 0x86dd,
                                         nd(kAsk, client, group, borrowed, kHost)),
                                0)),
            hex(ethernet(kHost, kPort0, {{0x8100, 6}}, 0x86dd,
                         nd(kSay, borrowed, client, borrowed, kPort0, kRouter | kSolicited | kOverride))));
}

}  // namespace
}  // namespace mayfly::testing
