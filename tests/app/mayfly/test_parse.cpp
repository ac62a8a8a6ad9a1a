// SPDX-License-Identifier: BSD-3-Clause
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/if.h>
#include <linux/if_ether.h>

#include "parsed.hpp"

namespace mayfly::cli {
namespace {

using test::Parsed;

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(LinkAdd, DescribesAVlan) {
  const Parsed parsed(
      "link add sub0 link port0 mtu 1400 address 02:00:00:00:00:05 group 7 alias 'a b' up type vlan id 100 "
      "inner 200 "
      "protocol 802.1ad");
  ASSERT_TRUE(parsed.ok()) << parsed.error();
  EXPECT_TRUE(parsed.is_simple_change());
  EXPECT_EQ(parsed.type(), RTM_NEWLINK);
  EXPECT_EQ(parsed.flags(), NLM_F_REQUEST | NLM_F_CREATE | NLM_F_EXCL);
  const auto& fixed = parsed.fixed<ifinfomsg>();
  EXPECT_EQ(fixed.ifi_flags, unsigned{IFF_UP});
  EXPECT_EQ(fixed.ifi_change, unsigned{IFF_UP});
  EXPECT_EQ(fixed.ifi_index, 0);
  const Attributes attributes = parsed.attributes<ifinfomsg>();
  EXPECT_EQ(attributes.string(IFLA_IFNAME), "sub0");
  EXPECT_EQ(attributes.string(protocol::kAttrDevice), "port0");
  EXPECT_EQ(attributes.number(IFLA_MTU), 1400u);
  EXPECT_EQ(attributes.number(IFLA_GROUP), 7u);
  EXPECT_EQ(attributes.string(IFLA_IFALIAS), "a b");
  ASSERT_EQ(attributes.bytes(IFLA_ADDRESS).size(), 6u);
  EXPECT_EQ(load_mac(attributes.bytes(IFLA_ADDRESS).data()), 0x020000000005u);
  const auto info = attributes.nested(IFLA_LINKINFO);
  ASSERT_TRUE(info);
  EXPECT_EQ(info->string(IFLA_INFO_KIND), "vlan");
  const auto data = info->nested(IFLA_INFO_DATA);
  ASSERT_TRUE(data);
  EXPECT_EQ(data->number(IFLA_VLAN_ID), 100u);
  EXPECT_EQ(data->number(protocol::kVlanInner), 200u);
  EXPECT_EQ(data->number(IFLA_VLAN_PROTOCOL), htons(ETH_P_8021AD));
  EXPECT_EQ(data->bytes(IFLA_VLAN_ID).size(), 2u);
}

TEST(LinkAdd, TakesIpsOrderToo) {
  const Parsed parsed("l a link port0 name sub0 type vlan protocol 0x88A8 id 0x10");
  ASSERT_TRUE(parsed.ok()) << parsed.error();
  const Attributes attributes = parsed.attributes<ifinfomsg>();
  EXPECT_EQ(attributes.string(IFLA_IFNAME), "sub0");
  EXPECT_EQ(attributes.nested(IFLA_LINKINFO)->nested(IFLA_INFO_DATA)->number(IFLA_VLAN_ID), 16u);
}

TEST(LinkAdd, DescribesADummy) {
  const Parsed parsed("link add lo100 index 9 type dummy");
  ASSERT_TRUE(parsed.ok()) << parsed.error();
  EXPECT_EQ(parsed.fixed<ifinfomsg>().ifi_index, 9);
  EXPECT_EQ(parsed.fixed<ifinfomsg>().ifi_change, 0u);
  const auto info = parsed.attributes<ifinfomsg>().nested(IFLA_LINKINFO);
  EXPECT_EQ(info->string(IFLA_INFO_KIND), "dummy");
  EXPECT_FALSE(info->has(IFLA_INFO_DATA));
}

TEST(LinkAdd, LeavesRangesToTheDaemon) {
  const Parsed parsed("link add sub0 link port0 type vlan id 4095");
  ASSERT_TRUE(parsed.ok());
  const auto data = parsed.attributes<ifinfomsg>().nested(IFLA_LINKINFO)->nested(IFLA_INFO_DATA);
  EXPECT_EQ(data->number(IFLA_VLAN_ID), 4095u);
}

TEST(LinkAdd, NamesMistakes) {
  struct Mistake {
    const char* line;
    const char* text;
    int exit;
  };
  const Mistake mistakes[] = {
      {"link add", "name of the new interface is missing", kExitUsage},
      {"link add sub0", "'type' is missing: expected one of vlan, dummy, veth", kExitUsage},
      {"link add sub0 type", "'type': a value must follow", kExitUsage},
      {"link add sub0 type bridge", "type 'bridge': expected one of vlan, dummy, veth", kExitUsage},
      {"link add sub0 type veth", "type veth needs 'peer name NAME'", kExitUsage},
      {"link add sub0 type veth peer name", "'name': a value must follow", kExitUsage},
      {"link add sub0 type dummy peer name x", "unknown word 'peer'", kExitUsage},
      {"link add sub0 rp_filter loose type dummy", "rp_filter 'loose': expected strict or off", kExitUsage},
      {"link add sub0 type port", "type 'port' is not created here", kExitUsage},
      {"link add sub0 type vlan id 5", "type vlan needs 'link PARENT'", kExitUsage},
      {"link add sub0 link port0 type vlan", "type vlan needs 'id' (1..4094)", kExitUsage},
      {"link add sub0 link port0 type vlan id", "'id': a value must follow", kExitUsage},
      {"link add sub0 link port0 type vlan id 1-5", "id 1-5: a single number is expected here", kExitUsage},
      {"link add sub0 link port0 type vlan id x", "id 'x': expected a number", kExitUsage},
      {"link add sub0 link port0 type vlan id 70000", "id 70000: accepted 1..4094", kExitRefused},
      {"link add sub0 link port0 type vlan id 5 protocol 802.3", "protocol '802.3'", kExitUsage},
      {"link add sub0 other type dummy", "unknown word 'other'", kExitUsage},
      {"link add sub0 mtu x type dummy", "mtu 'x'", kExitUsage},
      {"link add sub0 mtu 5000000000 type dummy", "accepted 0..4294967295", kExitRefused},
      {"link add sub0 address 1:2 type dummy", "address '1:2': expected six octets", kExitUsage},
      {"link add sub0 type dummy type dummy", "'type' given twice", kExitUsage},
  };
  for (const Mistake& mistake : mistakes) {
    const Parsed parsed(mistake.line);
    EXPECT_EQ(parsed.exit(), mistake.exit) << mistake.line;
    EXPECT_TRUE(contains(parsed.error(), mistake.text)) << mistake.line << " -> " << parsed.error();
  }
}

TEST(LinkSet, ChangesByName) {
  const Parsed parsed("link set dev sub0 down mtu 1300 group default alias ''");
  ASSERT_TRUE(parsed.ok()) << parsed.error();
  EXPECT_TRUE(parsed.is_simple_change());
  EXPECT_EQ(parsed.type(), RTM_NEWLINK);
  EXPECT_EQ(parsed.flags(), NLM_F_REQUEST);
  EXPECT_EQ(parsed.fixed<ifinfomsg>().ifi_flags, 0u);
  EXPECT_EQ(parsed.fixed<ifinfomsg>().ifi_change, unsigned{IFF_UP});
  const Attributes attributes = parsed.attributes<ifinfomsg>();
  EXPECT_EQ(attributes.string(IFLA_IFNAME), "sub0");
  EXPECT_EQ(attributes.number(IFLA_GROUP), 0u);
  EXPECT_TRUE(attributes.has(IFLA_IFALIAS));
  EXPECT_FALSE(attributes.has(IFLA_LINKINFO));
  EXPECT_TRUE(Parsed("link set sub0 up").is_simple_change());
  EXPECT_FALSE(Parsed("link set sub0 name sub1").is_simple_change());
}

TEST(LinkSet, NamesMistakes) {
  EXPECT_TRUE(contains(Parsed("link set").error(), "name of the interface is missing"));
  EXPECT_TRUE(contains(Parsed("link set sub0").error(), "nothing to set"));
  EXPECT_TRUE(contains(Parsed("link set sub0 type vlan").error(), "unknown word 'type'"));
  EXPECT_TRUE(contains(Parsed("link set group 7 up").error(), "unknown word '7'"));
}

TEST(Selector, IsTheSameForShowCountAndDelete) {
  const char* conditions = "group 7 parent port0 type vlan vlan 100-200 inner 5 up";
  const auto check = [](const Attributes& selector) {
    EXPECT_EQ(selector.number(protocol::kSelectGroup), 7u);
    EXPECT_EQ(selector.string(protocol::kSelectParent), "port0");
    EXPECT_EQ(selector.string(protocol::kSelectKind), "vlan");
    EXPECT_EQ(selector.number(protocol::kSelectOuterFirst), 100u);
    EXPECT_EQ(selector.number(protocol::kSelectOuterLast), 200u);
    EXPECT_EQ(selector.number(protocol::kSelectInnerFirst), 5u);
    EXPECT_EQ(selector.number(protocol::kSelectInnerLast), 5u);
    EXPECT_EQ(selector.number(protocol::kSelectAdminUp), 1u);
    EXPECT_FALSE(selector.has(protocol::kSelectLimit));
  };
  const Parsed show(fmt::format("link show {}", conditions));
  ASSERT_TRUE(show.ok()) << show.error();
  EXPECT_EQ(show.type(), RTM_GETLINK);
  EXPECT_EQ(show.flags(), NLM_F_REQUEST | NLM_F_DUMP);
  check(*show.attributes<ifinfomsg>().nested(protocol::kAttrSelector));

  const Parsed count(fmt::format("link count {}", conditions));
  ASSERT_TRUE(count.ok()) << count.error();
  EXPECT_EQ(count.command(), protocol::kCmdLinkCount);
  check(*count.attributes<genlmsghdr>().nested(protocol::kBulkSelector));

  const Parsed del(fmt::format("link del {} --dry-run", conditions));
  ASSERT_TRUE(del.ok()) << del.error();
  EXPECT_EQ(del.command(), protocol::kCmdLinkBulkDel);
  EXPECT_TRUE(del.attributes<genlmsghdr>().has(protocol::kBulkDryRun));
  check(*del.attributes<genlmsghdr>().nested(protocol::kBulkSelector));
}

TEST(Selector, ShowsWithoutAnyOrOneName) {
  const Parsed all("link");
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all.flags(), NLM_F_REQUEST | NLM_F_DUMP);
  EXPECT_FALSE(all.attributes<ifinfomsg>().has(protocol::kAttrSelector));
  for (const char* line : {"link show sub0", "link show dev sub0", "l sh sub0", "link list sub0"}) {
    const Parsed one(line);
    ASSERT_TRUE(one.ok()) << line;
    EXPECT_EQ(one.flags(), NLM_F_REQUEST) << line;
    EXPECT_EQ(one.attributes<ifinfomsg>().string(IFLA_IFNAME), "sub0") << line;
  }
  const Parsed limited("link show limit 5 down");
  const auto selector = limited.attributes<ifinfomsg>().nested(protocol::kAttrSelector);
  EXPECT_EQ(selector->number(protocol::kSelectLimit), 5u);
  EXPECT_EQ(selector->number(protocol::kSelectAdminUp), 0u);
  EXPECT_EQ(Parsed("link show dev group").attributes<ifinfomsg>().string(IFLA_IFNAME), "group");
  EXPECT_FALSE(Parsed("link show sub0 up").ok());
  EXPECT_FALSE(Parsed("link show up sub0").ok());
  EXPECT_FALSE(Parsed("link show vlan 9-5").ok());
  EXPECT_FALSE(Parsed("link show inner 9").ok());
  EXPECT_EQ(Parsed("link show vlan 99999").exit(), kExitRefused);
}

TEST(Selector, IsRefusedWhereItWouldDeleteTooMuch) {
  const std::pair<const char*, const char*> refused[] = {
      {"link del", "say which interfaces"},         {"link del group 0", "group 0"},
      {"link del group default", "group 0"},        {"link del group 0 parent port0", "group 0"},
      {"link del parent port0 limit 5", "'limit'"}, {"link del sub0 group 7", "unknown word"},
      {"link del group 7 dev sub0", "not both"},    {"link bulk del", "say which interfaces"},
      {"link bulk del group 0", "group 0"},
  };
  for (const auto& [line, text] : refused) {
    const Parsed parsed(line);
    EXPECT_EQ(parsed.exit(), kExitUsage) << line;
    EXPECT_TRUE(contains(parsed.error(), text)) << line << " -> " << parsed.error();
  }
}

TEST(LinkDelete, SendsTheName) {
  for (const char* line : {"link del sub0", "link delete dev sub0", "l d sub0"}) {
    const Parsed parsed(line);
    ASSERT_TRUE(parsed.ok()) << line << parsed.error();
    EXPECT_TRUE(parsed.is_simple_change());
    EXPECT_EQ(parsed.type(), RTM_DELLINK);
    EXPECT_EQ(parsed.attributes<ifinfomsg>().string(IFLA_IFNAME), "sub0");
  }
  const Parsed dry("link del sub0 --dry-run");
  EXPECT_EQ(dry.command(), protocol::kCmdLinkBulkDel);
  EXPECT_TRUE(dry.attributes<genlmsghdr>().has(protocol::kBulkListed));
  EXPECT_TRUE(dry.attributes<genlmsghdr>().has(protocol::kBulkDryRun));
}

struct Range {
  uint64_t parameter, first, last;
  bool operator==(const Range&) const = default;
};

std::vector<Range> ranges_of(const Parsed& parsed) {
  std::vector<Range> ranges;
  parsed.attributes<genlmsghdr>().each(protocol::kBulkRange, [&ranges](const Attributes& range) {
    ranges.push_back({range.number_or(protocol::kRangeParameter, 0),
                      range.number_or(protocol::kRangeFirst, 0), range.number_or(protocol::kRangeLast, 0)});
  });
  return ranges;
}

TEST(BulkAdd, SendsTemplateAndRanges) {
  Options options;
  options.force = true;
  const Parsed parsed(
      "link bulk add count 100000 name 'sub{}' link port0 group 7 up type vlan inner 1-25 id 1-4000 protocol "
      "802.1Q",
      options);
  ASSERT_TRUE(parsed.ok()) << parsed.error();
  EXPECT_FALSE(parsed.is_simple_change());
  EXPECT_EQ(parsed.command(), protocol::kCmdLinkBulkAdd);
  const Attributes attributes = parsed.attributes<genlmsghdr>();
  EXPECT_EQ(attributes.string(protocol::kBulkName), "sub{}");
  EXPECT_EQ(attributes.number(protocol::kBulkCount), 100'000u);
  EXPECT_TRUE(attributes.has(protocol::kBulkUp));
  EXPECT_TRUE(attributes.has(protocol::kBulkForce));
  EXPECT_FALSE(attributes.has(protocol::kBulkDryRun));
  // The inner tag varies fastest in whatever order it was written.
  EXPECT_EQ(ranges_of(parsed), (std::vector<Range>{{IFLA_VLAN_ID, 1, 4000}, {protocol::kVlanInner, 1, 25}}));
  const auto shared = attributes.nested(protocol::kBulkTemplate);
  ASSERT_TRUE(shared);
  EXPECT_EQ(shared->string(protocol::kAttrDevice), "port0");
  EXPECT_EQ(shared->number(IFLA_GROUP), 7u);
  const auto data = shared->nested(IFLA_LINKINFO)->nested(IFLA_INFO_DATA);
  EXPECT_FALSE(data->has(IFLA_VLAN_ID));
  EXPECT_EQ(data->number(IFLA_VLAN_PROTOCOL), htons(ETH_P_8021Q));
}

TEST(BulkAdd, HasDefaults) {
  const Parsed outer("link bulk add link port0 type vlan id 1-10");
  ASSERT_TRUE(outer.ok()) << outer.error();
  EXPECT_EQ(outer.attributes<genlmsghdr>().string(protocol::kBulkName), "{parent}.{outer}");
  EXPECT_FALSE(outer.attributes<genlmsghdr>().has(protocol::kBulkCount));
  const Parsed both("link bulk add link port0 type vlan id 7 inner 1-10");
  EXPECT_EQ(both.attributes<genlmsghdr>().string(protocol::kBulkName), "{parent}.{outer}.{inner}");
  EXPECT_EQ(ranges_of(both), (std::vector<Range>{{protocol::kVlanInner, 1, 10}}));
  const auto data = both.attributes<genlmsghdr>()
                        .nested(protocol::kBulkTemplate)
                        ->nested(IFLA_LINKINFO)
                        ->nested(IFLA_INFO_DATA);
  EXPECT_EQ(data->number(IFLA_VLAN_ID), 7u);
  const Parsed dummies("link bulk add count 5 type dummy --dry-run");
  EXPECT_EQ(dummies.attributes<genlmsghdr>().string(protocol::kBulkName), "dummy{}");
  EXPECT_TRUE(dummies.attributes<genlmsghdr>().has(protocol::kBulkDryRun));
}

TEST(BulkAdd, NamesMistakes) {
  EXPECT_TRUE(contains(Parsed("link bulk add type dummy").error(), "how many"));
  EXPECT_TRUE(contains(Parsed("link bulk add link p type vlan id 5-1").error(), "upside down"));
  EXPECT_TRUE(contains(Parsed("link bulk add link p type vlan id 1-70000").error(), "accepted 1..4094"));
  EXPECT_TRUE(
      contains(Parsed("link bulk add link p type vlan id 1-5 protocol 1-5").error(), "protocol '1-5'"));
  EXPECT_TRUE(contains(Parsed("link bulk add count 0 type dummy").error(), "accepted 1.."));
  EXPECT_TRUE(contains(Parsed("link bulk").error(), "bulk"));
  EXPECT_TRUE(contains(Parsed("link bulk x").error(), "unknown command of link bulk 'x'"));
}

TEST(BulkDelete, TakesAPatternAListOrASelector) {
  const Parsed pattern("link bulk del name 'sub{}' count 100000");
  ASSERT_TRUE(pattern.ok()) << pattern.error();
  EXPECT_EQ(pattern.command(), protocol::kCmdLinkBulkDel);
  EXPECT_EQ(pattern.attributes<genlmsghdr>().string(protocol::kBulkName), "sub{}");
  EXPECT_EQ(pattern.attributes<genlmsghdr>().number(protocol::kBulkCount), 100'000u);
  const Parsed listed("link bulk del -");
  ASSERT_TRUE(listed.ok()) << listed.error();
  EXPECT_TRUE(listed.attributes<genlmsghdr>().has(protocol::kBulkListed));
  const Parsed selected("link bulk del group 7 -force");
  EXPECT_TRUE(selected.attributes<genlmsghdr>().has(protocol::kBulkSelector));
  EXPECT_TRUE(selected.attributes<genlmsghdr>().has(protocol::kBulkForce));
  EXPECT_FALSE(Parsed("link bulk del name 'sub{}'").ok());
  EXPECT_FALSE(Parsed("link bulk del count 5").ok());
  EXPECT_FALSE(Parsed("link bulk del - group 7").ok());
}

TEST(LinkWhich, SplitsTheTags) {
  const Parsed parsed("link which port0 100.7 protocol 802.1ad");
  ASSERT_TRUE(parsed.ok()) << parsed.error();
  const Attributes attributes = parsed.attributes<genlmsghdr>();
  EXPECT_EQ(attributes.string(protocol::kWhichPort), "port0");
  EXPECT_EQ(attributes.number(protocol::kWhichOuter), 100u);
  EXPECT_EQ(attributes.number(protocol::kWhichInner), 7u);
  EXPECT_EQ(attributes.number(protocol::kWhichProtocol), uint64_t{ETH_P_8021AD});
  EXPECT_FALSE(Parsed("link which port0 100").attributes<genlmsghdr>().has(protocol::kWhichInner));
  EXPECT_FALSE(Parsed("link which port0").attributes<genlmsghdr>().has(protocol::kWhichOuter));
  EXPECT_FALSE(Parsed("link which").ok());
  EXPECT_FALSE(Parsed("link which port0 a.b").ok());
}

TEST(Address, IsAddedAndDeleted) {
  const Parsed add("addr add 10.0.0.1/24 dev port0");
  ASSERT_TRUE(add.ok()) << add.error();
  EXPECT_TRUE(add.is_simple_change());
  EXPECT_EQ(add.type(), RTM_NEWADDR);
  EXPECT_EQ(add.flags(), NLM_F_REQUEST | NLM_F_CREATE | NLM_F_EXCL);
  EXPECT_EQ(add.fixed<ifaddrmsg>().ifa_family, AF_INET);
  EXPECT_EQ(add.fixed<ifaddrmsg>().ifa_prefixlen, 24);
  const Attributes attributes = add.attributes<ifaddrmsg>();
  EXPECT_EQ(attributes.number(IFA_LOCAL), htonl(0x0a000001));
  EXPECT_EQ(attributes.number(IFA_ADDRESS), htonl(0x0a000001));
  EXPECT_EQ(attributes.string(protocol::kAttrDevice), "port0");
  EXPECT_EQ(Parsed("a d dev port0 10.0.0.1").fixed<ifaddrmsg>().ifa_prefixlen, 32);
  EXPECT_EQ(Parsed("a d dev port0 10.0.0.1").type(), RTM_DELADDR);
  EXPECT_EQ(Parsed("addr add 10.0.0.1/33 dev port0").exit(), kExitUsage);
  EXPECT_TRUE(contains(Parsed("addr add 10.0.0.1/24").error(), "'dev NAME' is missing"));
  EXPECT_TRUE(contains(Parsed("addr add dev port0").error(), "address is missing"));
  EXPECT_TRUE(contains(Parsed("addr flush").error(), "'dev NAME' is missing"));
  EXPECT_TRUE(Parsed("addr").ok());
  EXPECT_TRUE(Parsed("addr show up").ok());
  EXPECT_TRUE(Parsed("addr flush dev port0").ok());
}

TEST(Route, IsAddedWithIpsFlags) {
  const Parsed add("route add 10.1.0.0/16 via 10.0.0.2 dev port0 src 10.0.0.1 metric 5 protocol static");
  ASSERT_TRUE(add.ok()) << add.error();
  EXPECT_TRUE(add.is_simple_change());
  EXPECT_EQ(add.flags(), NLM_F_REQUEST | NLM_F_CREATE | NLM_F_EXCL);
  const auto& fixed = add.fixed<rtmsg>();
  EXPECT_EQ(fixed.rtm_dst_len, 16);
  EXPECT_EQ(fixed.rtm_table, RT_TABLE_MAIN);
  EXPECT_EQ(fixed.rtm_protocol, RTPROT_STATIC);
  EXPECT_EQ(fixed.rtm_scope, RT_SCOPE_UNIVERSE);
  EXPECT_EQ(fixed.rtm_type, RTN_UNICAST);
  const Attributes attributes = add.attributes<rtmsg>();
  EXPECT_EQ(attributes.number(RTA_DST), htonl(0x0a010000));
  EXPECT_EQ(attributes.number(RTA_GATEWAY), htonl(0x0a000002));
  EXPECT_EQ(attributes.number(RTA_PREFSRC), htonl(0x0a000001));
  EXPECT_EQ(attributes.number(RTA_PRIORITY), 5u);
  EXPECT_EQ(attributes.string(protocol::kAttrDevice), "port0");

  EXPECT_EQ(Parsed("r replace default via 10.0.0.2").flags(), NLM_F_REQUEST | NLM_F_CREATE | NLM_F_REPLACE);
  EXPECT_EQ(Parsed("r append default via 10.0.0.2").flags(), NLM_F_REQUEST | NLM_F_CREATE | NLM_F_APPEND);
  EXPECT_EQ(Parsed("r change default via 10.0.0.2").flags(), NLM_F_REQUEST | NLM_F_REPLACE);
  const Parsed fallback("r add default via 10.0.0.2");
  EXPECT_EQ(fallback.fixed<rtmsg>().rtm_dst_len, 0);
  EXPECT_FALSE(fallback.attributes<rtmsg>().has(RTA_DST));
  EXPECT_EQ(fallback.fixed<rtmsg>().rtm_protocol, RTPROT_BOOT);
  EXPECT_EQ(Parsed("r add 10.1.0.0/16 dev port0").fixed<rtmsg>().rtm_scope, RT_SCOPE_LINK);
  EXPECT_EQ(Parsed("r add default via 10.0.0.2 dev port0 onlink").fixed<rtmsg>().rtm_flags,
            unsigned{RTNH_F_ONLINK});
  const Parsed hole("r add blackhole 10.2.0.0/16");
  ASSERT_TRUE(hole.ok()) << hole.error();
  EXPECT_EQ(hole.fixed<rtmsg>().rtm_type, RTN_BLACKHOLE);
}

TEST(Route, IsDeletedByWhatIsKnown) {
  const Parsed del("route del 10.1.0.0/16");
  ASSERT_TRUE(del.ok()) << del.error();
  EXPECT_EQ(del.type(), RTM_DELROUTE);
  EXPECT_EQ(del.fixed<rtmsg>().rtm_type, RTN_UNSPEC);
  EXPECT_EQ(del.fixed<rtmsg>().rtm_scope, RT_SCOPE_NOWHERE);
  EXPECT_EQ(del.fixed<rtmsg>().rtm_protocol, RTPROT_UNSPEC);
}

TEST(Route, IsAskedFor) {
  const Parsed get("route get 10.1.2.3");
  ASSERT_TRUE(get.ok()) << get.error();
  EXPECT_EQ(get.type(), RTM_GETROUTE);
  EXPECT_EQ(get.flags(), NLM_F_REQUEST);
  EXPECT_EQ(get.fixed<rtmsg>().rtm_dst_len, 32);
  EXPECT_EQ(get.attributes<rtmsg>().number(RTA_DST), htonl(0x0a010203));
  EXPECT_FALSE(Parsed("route get").ok());
  EXPECT_FALSE(Parsed("route get 10.1.2.3 10.1.2.4").ok());
  EXPECT_EQ(Parsed("route show dev port0").attributes<rtmsg>().string(protocol::kAttrDevice), "port0");
  EXPECT_TRUE(contains(Parsed("route show table x").error(), "table 'x': expected main, local or all"));
  EXPECT_TRUE(contains(Parsed("route add 10.0.0.0/8").error(), "where to"));
  EXPECT_TRUE(contains(Parsed("route add").error(), "destination is missing"));
  EXPECT_TRUE(Parsed("route add 2001:db8::/64 dev port0").ok());
  EXPECT_FALSE(Parsed("route add 2001:db8::/129 dev port0").ok());
}

TEST(Neighbour, IsAddedAndDeleted) {
  const Parsed add("neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 dev port0");
  ASSERT_TRUE(add.ok()) << add.error();
  EXPECT_TRUE(add.is_simple_change());
  EXPECT_EQ(add.type(), RTM_NEWNEIGH);
  EXPECT_EQ(add.fixed<ndmsg>().ndm_state, NUD_PERMANENT);
  EXPECT_EQ(add.attributes<ndmsg>().number(NDA_DST), htonl(0x0a000002));
  EXPECT_EQ(add.attributes<ndmsg>().bytes(NDA_LLADDR).size(), 6u);
  EXPECT_EQ(Parsed("n replace 10.0.0.2 lladdr 2:0:0:0:0:2 dev p nud reachable").fixed<ndmsg>().ndm_state,
            NUD_REACHABLE);
  EXPECT_EQ(Parsed("n del 10.0.0.2 dev port0").type(), RTM_DELNEIGH);
  EXPECT_FALSE(Parsed("n add 10.0.0.2 dev port0").ok());
  EXPECT_FALSE(Parsed("n add 10.0.0.2 lladdr 2:0:0:0:0:2").ok());
  EXPECT_FALSE(Parsed("n add 10.0.0.2 lladdr 2:0:0:0:0:2 dev p nud tired").ok());
  EXPECT_TRUE(Parsed("n").ok());
}

TEST(Reclaim, WaitsWithATimeout) {
  const Parsed wait("reclaim wait timeout 5s");
  ASSERT_TRUE(wait.ok()) << wait.error();
  EXPECT_EQ(wait.command(), protocol::kCmdReclaimWait);
  EXPECT_EQ(wait.attributes<genlmsghdr>().number(protocol::kReclaimTimeout), 5'000'000'000u);
  EXPECT_FALSE(Parsed("reclaim wait").attributes<genlmsghdr>().has(protocol::kReclaimTimeout));
  EXPECT_FALSE(Parsed("reclaim wait timeout 60").ok());
  EXPECT_EQ(Parsed("reclaim").command(), protocol::kCmdReclaimShow);
}

TEST(Objects, AreAbbreviatedWhereNobodyCanMistakeThem) {
  EXPECT_EQ(Parsed("stats").command(), protocol::kCmdStats);
  EXPECT_EQ(Parsed("stats drops").command(), protocol::kCmdDrops);
  EXPECT_EQ(Parsed("stats stages").command(), protocol::kCmdStages);
  EXPECT_EQ(Parsed("status").command(), protocol::kCmdStatus);
  EXPECT_EQ(Parsed("p").command(), protocol::kCmdPortShow);
  EXPECT_EQ(Parsed("rec").command(), protocol::kCmdReclaimShow);
  EXPECT_EQ(Parsed("ro").type(), RTM_GETROUTE);
  EXPECT_EQ(Parsed("r").type(), RTM_GETROUTE);
  EXPECT_EQ(Parsed("neighbor").type(), RTM_GETNEIGH);
  EXPECT_TRUE(Parsed("netns list").ok());
  EXPECT_TRUE(contains(Parsed("stat").error(), "ambiguous: stats, status"));
  EXPECT_TRUE(contains(Parsed("link s").error(), "ambiguous: set, show"));
  EXPECT_TRUE(contains(Parsed("ne").error(), "ambiguous"));
  EXPECT_TRUE(contains(Parsed("frog").error(), "unknown object 'frog': expected one of link, "));
  EXPECT_TRUE(contains(Parsed("link frog").error(), "unknown command of link 'frog'"));
  EXPECT_TRUE(contains(Parsed("").error(), "an object must follow"));
  EXPECT_FALSE(Parsed("stats drops now").ok());
  EXPECT_FALSE(Parsed("status show now").ok());
  EXPECT_FALSE(Parsed("port show a b").ok());
}

TEST(Stages, AreSwitchedByOneWord) {
  const Parsed on("stats stages on"), off("stats stages off"), reset("stats stages reset");
  for (const char* line : {"stats stages on", "stats stages off", "stats stages reset"})
    EXPECT_EQ(Parsed(line).command(), protocol::kCmdStagesSet) << line;
  EXPECT_EQ(on.attributes<genlmsghdr>().number(protocol::kStagesOn), 1u);
  EXPECT_EQ(off.attributes<genlmsghdr>().number(protocol::kStagesOn), 0u);
  EXPECT_FALSE(off.attributes<genlmsghdr>().has(protocol::kStagesReset));
  EXPECT_TRUE(reset.attributes<genlmsghdr>().has(protocol::kStagesReset));
  EXPECT_FALSE(reset.attributes<genlmsghdr>().has(protocol::kStagesOn));
  EXPECT_TRUE(contains(Parsed("stats stages frog").error(), "'frog': expected on, off or reset"));
  EXPECT_TRUE(contains(Parsed("stats stages on off").error(), "unknown word 'off'"));
}

TEST(Objects, AllHaveHelp) {
  for (const char* object : {"link", "address", "route", "neighbour", "netns", "port", "reclaim", "stats",
                             "status", "link bulk"}) {
    const Parsed help(fmt::format("{} help", object));
    EXPECT_TRUE(help.ok()) << object;
    EXPECT_TRUE(help.plan.present) << object;
    EXPECT_EQ(help.plan.family, Plan::Family::none) << object;
  }
  EXPECT_EQ(Parsed("link add help").plan.family, Plan::Family::none);
  EXPECT_EQ(Parsed("help").plan.family, Plan::Family::none);
}

TEST(OptionsLine, AreIps) {
  const std::vector<std::string_view> line = {"-n",       "blue", "-j",     "-p",     "-s", "-d",   "-br",
                                              "--socket", "/x",   "-force", "-batch", "-",  "link", "show"};
  std::span<const std::string_view> words = line;
  const auto options = parse_options(&words);
  ASSERT_TRUE(options);
  EXPECT_EQ(options->netns, "blue");
  EXPECT_EQ(options->socket, "/x");
  EXPECT_EQ(options->batch, "-");
  EXPECT_TRUE(options->json && options->pretty && options->statistics && options->details && options->brief &&
              options->force);
  ASSERT_EQ(words.size(), 2u);
  EXPECT_EQ(words.front(), "link");
}

TEST(OptionsLine, NamesMistakes) {
  const std::vector<std::string_view> unknown = {"-x"};
  std::span<const std::string_view> words = unknown;
  EXPECT_TRUE(contains(parse_options(&words).error().text, "unknown option '-x'"));
  const std::vector<std::string_view> valueless = {"-netns"};
  words = valueless;
  EXPECT_TRUE(contains(parse_options(&words).error().text, "a value must follow"));
  const std::vector<std::string_view> version = {"--version"};
  words = version;
  EXPECT_TRUE(parse_options(&words)->version);
}

}  // namespace
}  // namespace mayfly::cli
