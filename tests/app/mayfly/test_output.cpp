// SPDX-License-Identifier: BSD-3-Clause
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/if.h>
#include <linux/if_ether.h>
#include <linux/rtnetlink.h>

#include <limits>

#include <nlohmann/json.hpp>

#include "fake_daemon.hpp"
#include "mayfly/output.hpp"
#include "mayfly/progress.hpp"
#include "parsed.hpp"

namespace mayfly::cli {
namespace {

using mayfly::test::FakeDaemon;
using mayfly::test::Reply;
using Parsed = nlohmann::ordered_json;

template <class Fixed>
std::string_view bytes_of(const Fixed& fixed) {
  return {reinterpret_cast<const char*>(&fixed), sizeof fixed};
}

struct Outcome {
  int status;
  std::string output;
  std::string errors;
};

Outcome run(const FakeDaemon& daemon, std::string_view line, Options options = {}) {
  options.socket = daemon.path();
  Output output(-1);
  test::Parsed parsed(line, options);
  EXPECT_TRUE(parsed.ok()) << parsed.error();
  Session session(parsed.options, output);
  testing::internal::CaptureStderr();
  const int status = session.execute(parsed.plan);
  return {status, output.take(), testing::internal::GetCapturedStderr()};
}

Options json() {
  Options options;
  options.json = true;
  return options;
}

TEST(JsonArray, StreamsItsElements) {
  Output output(-1);
  {
    JsonArray array(output, false);
    array.add(Json{{"a", 1}});
    array.add(Json{{"b", "x\"y\n"}});
  }
  EXPECT_EQ(output.take(), "[{\"a\":1},{\"b\":\"x\\\"y\\n\"}]\n");
  {
    JsonArray empty(output, true);
    empty.begin();
  }
  EXPECT_EQ(output.take(), "[]\n");
  { const JsonArray never(output, true); }
  EXPECT_EQ(output.take(), "");
  {
    JsonArray pretty(output, true);
    pretty.add(Json{{"a", 1}});
    pretty.add(Json{{"b", 2}});
  }
  const std::string text = output.take();
  EXPECT_EQ(text, "[\n    {\n        \"a\": 1\n    },\n    {\n        \"b\": 2\n    }\n]\n");
  EXPECT_TRUE(Parsed::accept(text));
}

TEST(Json, IsTheSameDocumentAsTheLibraryMakes) {
  const std::vector<std::string> words{"a", "", "b\"\\\n\x01"};
  Json written{{"null", nullptr},
               {"bool", true},
               {"least", std::numeric_limits<int64_t>::min()},
               {"most", std::numeric_limits<uint64_t>::max()},
               {"octet", uint8_t{65}},
               {"share", 12.5},
               {"nan", std::numeric_limits<double>::quiet_NaN()},
               {"words", words},
               {"deep", {{"er", {{"est", Json::array()}}}, {"object", Json::object()}}}};
  EXPECT_FALSE(written.empty());
  EXPECT_TRUE(Json::array().empty());
  EXPECT_TRUE(Json::object().empty());
  Json list = Json::array();
  list.push_back({{"a", "1"}});
  list.push_back("two");
  list.push_back(3);
  written.set("list \"quoted\"", list);
  written.update({{"x", 1}, {"y", std::string("z")}});
  Parsed made;
  made["null"] = nullptr;
  made["bool"] = true;
  made["least"] = std::numeric_limits<int64_t>::min();
  made["most"] = std::numeric_limits<uint64_t>::max();
  made["octet"] = 65;
  made["share"] = 12.5;
  made["nan"] = nullptr;
  made["words"] = words;
  made["deep"]["er"]["est"] = Parsed::array();
  made["deep"]["object"] = Parsed::object();
  made["list \"quoted\""] = Parsed::array({Parsed{{"a", "1"}}, "two", 3});
  made["x"] = 1;
  made["y"] = "z";
  EXPECT_EQ(written.text(), made.dump());
  EXPECT_EQ(written.pretty(), made.dump(Json::kIndent));
}

TEST(Json, ReplacesWhatIsNoUtf8) {
  const std::string text = Json{{"ifalias", "a\xff\xfe"}}.text();
  EXPECT_TRUE(Parsed::accept(text)) << text;
}

TEST(FormatAge, IsShort) {
  constexpr uint64_t second = 1'000'000'000;
  EXPECT_EQ(format_age(0, 5 * second), "never");
  EXPECT_EQ(format_age(3 * second, 5 * second), "2 s ago");
  EXPECT_EQ(format_age(second, 181 * second), "3 min ago");
  EXPECT_EQ(format_age(9 * second, 5 * second), "0 s ago");
}

TEST(Progress, ShowsShareAndCounts) {
  EXPECT_EQ(format_progress(500'000, 1'000'000),
            "[###############...............]  50 %  500,000 of 1,000,000");
  EXPECT_EQ(format_progress(0, 0), "[..............................]   0 %  0 of 0");
  EXPECT_EQ(format_progress(7, 5), "[##############################] 100 %  7 of 5");
}

// port0 and a QinQ interface on it.
void answer_links(const nlmsghdr& request, Reply& reply) {
  ifinfomsg port{};
  port.ifi_index = 1;
  port.ifi_flags = IFF_UP | IFF_BROADCAST | IFF_RUNNING | IFF_LOWER_UP;
  ifinfomsg sub{};
  sub.ifi_index = 5;
  sub.ifi_flags = IFF_UP | IFF_BROADCAST;
  const uint8_t mac[] = {2, 0, 0, 0, 0, 1};
  const auto dump = static_cast<uint16_t>((request.nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP ? NLM_F_MULTI : 0);
  const std::string wanted(Attributes(request, sizeof(ifinfomsg)).string(IFLA_IFNAME));
  if (!wanted.empty() && wanted != "sub0")
    return reply.acknowledge(request, ENODEV, "interface '" + wanted + "' does not exist");
  if (wanted.empty())
    reply.message(request, RTM_NEWLINK, dump, bytes_of(port), [&mac](RequestMessage& link) {
      link.put_string(IFLA_IFNAME, "port0");
      link.put_u32(IFLA_MTU, 1500);
      link.put_u8(IFLA_OPERSTATE, 6);
      link.put_u32(IFLA_GROUP, 0);
      link.put(IFLA_ADDRESS, mac, sizeof mac);
      const RequestMessage::Nest info(link, IFLA_LINKINFO);
      link.put_string(IFLA_INFO_KIND, "port");
    });
  reply.message(request, RTM_NEWLINK, dump, bytes_of(sub), [&mac](RequestMessage& link) {
    link.put_string(IFLA_IFNAME, "sub0");
    link.put_u32(IFLA_MTU, 1400);
    link.put_u8(IFLA_OPERSTATE, 3);
    link.put_u32(IFLA_GROUP, 7);
    link.put_u32(IFLA_LINK, 1);
    link.put_string(protocol::kAttrDevice, "port0");
    link.put(IFLA_ADDRESS, mac, sizeof mac);
    link.put_string(IFLA_IFALIAS, "cust \"42\"");
    link.put_u64(protocol::kAttrId, 77);
    link.put_u64(protocol::kAttrCreated, 123);
    link.put_string(protocol::kAttrNetns, "default");
    rtnl_link_stats64 counters{};
    counters.rx_packets = 10;
    counters.rx_bytes = 640;
    counters.tx_dropped = 3;
    link.put(IFLA_STATS64, &counters, sizeof counters);
    {
      const RequestMessage::Nest drops(link, protocol::kAttrDrops);
      const RequestMessage::Nest drop(link, protocol::kAttrDrop);
      link.put_string(protocol::kReasonName, "no_route");
      link.put_u64(protocol::kReasonTotal, 3);
    }
    const RequestMessage::Nest info(link, IFLA_LINKINFO);
    link.put_string(IFLA_INFO_KIND, "vlan");
    const RequestMessage::Nest data(link, IFLA_INFO_DATA);
    link.put_u16(IFLA_VLAN_PROTOCOL, htons(ETH_P_8021AD));
    link.put_u16(IFLA_VLAN_ID, 100);
    link.put_u16(protocol::kVlanInner, 200);
  });
  if (dump != 0)
    reply.done(request);
  else
    reply.acknowledge(request);
}

void answer_addresses(const nlmsghdr& request, Reply& reply) {
  ifaddrmsg fixed{};
  fixed.ifa_family = AF_INET;
  fixed.ifa_prefixlen = 24;
  fixed.ifa_index = 5;
  reply.message(request, RTM_NEWADDR, NLM_F_MULTI, bytes_of(fixed),
                [](RequestMessage& address) { address.put_u32(IFA_LOCAL, htonl(0x0a000001)); });
  reply.done(request);
}

void answer_route_family(const nlmsghdr& request, Reply& reply) {
  if (request.nlmsg_type == RTM_GETLINK) return answer_links(request, reply);
  if (request.nlmsg_type == RTM_GETADDR) return answer_addresses(request, reply);
  FakeDaemon::acknowledge_all(request, reply);
}

TEST(LinkShow, LooksLikeIp) {
  const FakeDaemon daemon(answer_route_family);
  EXPECT_EQ(run(daemon, "link show").output,
            "1: port0: <BROADCAST,UP,LOWER_UP> mtu 1500 state UP group default\n"
            "    link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff\n"
            "5: sub0@port0: <NO-CARRIER,BROADCAST,UP> mtu 1400 state LOWERLAYERDOWN group 7\n"
            "    link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff\n"
            "    alias cust \"42\"\n");
  Options options;
  options.details = true;
  options.statistics = true;
  const std::string details = run(daemon, "link show sub0", options).output;
  EXPECT_NE(details.find("\n    vlan protocol 802.1ad id 100 inner 200\n    netns default unique id 77 "),
            std::string::npos)
      << details;
  EXPECT_NE(details.find("    drops: no_route 3\n"), std::string::npos) << details;
}

TEST(LinkShow, TellsOfAnAbsentOne) {
  const FakeDaemon daemon(answer_route_family);
  const Outcome outcome = run(daemon, "link show nope", json());
  EXPECT_EQ(outcome.status, kExitRefused);
  EXPECT_EQ(outcome.output, "");
  EXPECT_EQ(outcome.errors, "Error: interface 'nope' does not exist\n");
}

TEST(LinkShow, BriefHasAColumnEachAndTheTotalApart) {
  const FakeDaemon daemon(answer_route_family);
  Options options;
  options.brief = true;
  const Outcome outcome = run(daemon, "link show", options);
  std::vector<std::string_view> words;
  std::string line = outcome.output.substr(outcome.output.find('\n') + 1);
  ASSERT_TRUE(split_line(&line, &words));
  EXPECT_EQ(words, (std::vector<std::string_view>{"sub0", "5", "vlan", "88a8:100.200", "LOWERLAYERDOWN",
                                                  "default", "7", "1400", "02:00:00:00:00:01"}));
  EXPECT_EQ(outcome.errors, "2 interfaces\n");
}

TEST(LinkShow, JsonHasIpsKeys) {
  const FakeDaemon daemon(answer_route_family);
  Options options = json();
  options.statistics = true;
  const Parsed links = Parsed::parse(run(daemon, "link show", options).output);
  ASSERT_EQ(links.size(), 2u);
  const Parsed& sub = links[1];
  EXPECT_EQ(sub["ifname"], "sub0");
  EXPECT_EQ(sub["ifindex"], 5);
  EXPECT_EQ(sub["link"], "port0");
  EXPECT_EQ(sub["mtu"], 1400);
  EXPECT_EQ(sub["flags"], (Parsed{"NO-CARRIER", "BROADCAST", "UP"}));
  EXPECT_EQ(sub["operstate"], "LOWERLAYERDOWN");
  EXPECT_EQ(sub["group"], "7");
  EXPECT_EQ(sub["link_type"], "ether");
  EXPECT_EQ(sub["address"], "02:00:00:00:00:01");
  EXPECT_EQ(sub["ifalias"], "cust \"42\"");
  EXPECT_EQ(sub["linkinfo"], Parsed::parse(R"({"info_kind":"vlan","info_data":{"protocol":"802.1ad","id":100,
                                             "inner":200}})"));
  EXPECT_EQ(sub["stats64"]["rx"]["packets"], 10);
  EXPECT_EQ(sub["stats64"]["tx"]["dropped"], 3);
  EXPECT_EQ(sub["drops"], Parsed::parse(R"({"no_route":3})"));
  EXPECT_EQ(sub["id"], 77);
  EXPECT_EQ(sub["created_ns"], 123);
  EXPECT_EQ(sub["netns"], "default");
  EXPECT_EQ(sub["boot_id"], "boot-1");
  EXPECT_EQ(links[0]["group"], "default");
  EXPECT_EQ(Parsed::parse(run(daemon, "link show sub0", json()).output).size(), 1u);
  options.pretty = true;
  EXPECT_EQ(Parsed::parse(run(daemon, "link show", options).output), links);
}

TEST(AddressShow, PutsAddressesUnderTheirInterface) {
  const FakeDaemon daemon(answer_route_family);
  EXPECT_EQ(run(daemon, "addr show sub0").output,
            "5: sub0@port0: <NO-CARRIER,BROADCAST,UP> mtu 1400 state LOWERLAYERDOWN group 7\n"
            "    inet 10.0.0.1/24 scope global sub0\n");
  const Parsed links = Parsed::parse(run(daemon, "addr", json()).output);
  EXPECT_EQ(links[0]["addr_info"], Parsed::array());
  EXPECT_EQ(links[1]["addr_info"][0]["local"], "10.0.0.1");
  EXPECT_EQ(links[1]["addr_info"][0]["prefixlen"], 24);
}

TEST(AddressFlush, DeletesWhatIsListed) {
  FakeDaemon daemon(answer_route_family);
  EXPECT_EQ(run(daemon, "addr flush dev sub0").status, kExitOk);
  const auto messages = daemon.messages();
  ASSERT_EQ(messages.size(), 2u);
  const auto& deletion = *reinterpret_cast<const nlmsghdr*>(messages[1].data());
  EXPECT_EQ(deletion.nlmsg_type, RTM_DELADDR);
  EXPECT_EQ(Attributes(deletion, sizeof(ifaddrmsg)).number(IFA_ADDRESS), htonl(0x0a000001));
}

TEST(LinkRename, NamesTheInterfaceByItsIndex) {
  FakeDaemon daemon(answer_route_family);
  EXPECT_EQ(run(daemon, "link set sub0 name sub1 up").status, kExitOk);
  const auto messages = daemon.messages();
  ASSERT_EQ(messages.size(), 2u);
  const auto& change = *reinterpret_cast<const nlmsghdr*>(messages[1].data());
  EXPECT_EQ(change.nlmsg_type, RTM_NEWLINK);
  EXPECT_EQ(static_cast<const ifinfomsg*>(mnl_nlmsg_get_payload(&change))->ifi_index, 5);
  EXPECT_EQ(Attributes(change, sizeof(ifinfomsg)).string(IFLA_IFNAME), "sub1");
}

TEST(RouteShow, LooksLikeIp) {
  const FakeDaemon daemon([](const nlmsghdr& request, Reply& reply) {
    rtmsg fixed{};
    fixed.rtm_dst_len = 24;
    fixed.rtm_protocol = RTPROT_KERNEL;
    fixed.rtm_scope = RT_SCOPE_LINK;
    fixed.rtm_type = RTN_UNICAST;
    fixed.rtm_table = RT_TABLE_MAIN;
    reply.message(request, RTM_NEWROUTE, NLM_F_MULTI, bytes_of(fixed), [](RequestMessage& route) {
      route.put_u32(RTA_DST, htonl(0x0a000000));
      route.put_u32(RTA_OIF, 5);
      route.put_u32(RTA_PREFSRC, htonl(0x0a000001));
    });
    fixed.rtm_dst_len = 0;
    fixed.rtm_protocol = RTPROT_BOOT;
    fixed.rtm_scope = RT_SCOPE_UNIVERSE;
    reply.message(request, RTM_NEWROUTE, NLM_F_MULTI, bytes_of(fixed), [](RequestMessage& route) {
      route.put_u32(RTA_GATEWAY, htonl(0x0a000002));
      route.put_string(protocol::kAttrDevice, "port0");
    });
    fixed.rtm_dst_len = 32;
    fixed.rtm_table = RT_TABLE_LOCAL;
    fixed.rtm_type = RTN_LOCAL;
    fixed.rtm_scope = RT_SCOPE_HOST;
    reply.message(request, RTM_NEWROUTE, NLM_F_MULTI, bytes_of(fixed), [](RequestMessage& route) {
      route.put_u32(RTA_DST, htonl(0x0a000001));
      route.put_string(protocol::kAttrDevice, "port0");
    });
    reply.done(request);
  });
  EXPECT_EQ(run(daemon, "route").output,
            "10.0.0.0/24 dev if5 proto kernel scope link src 10.0.0.1\ndefault via 10.0.0.2 dev port0\n");
  EXPECT_EQ(run(daemon, "route show table local").output, "local 10.0.0.1 dev port0 scope host\n");
  const Parsed routes = Parsed::parse(run(daemon, "route show table all", json()).output);
  EXPECT_EQ(routes.size(), 3u);
  EXPECT_EQ(routes[1], Parsed::parse(R"({"dst":"default","gateway":"10.0.0.2","dev":"port0","protocol":"boot",
                                       "scope":"global","flags":[]})"));
}

FakeDaemon::Script bulk_answer(uint64_t failed, int code) {
  return [failed, code](const nlmsghdr& request, Reply& reply) {
    reply.generic(request, protocol::kCmdBulkProgress, [](RequestMessage& progress) {
      progress.put_u64(protocol::kBulkDone, 1);
      progress.put_u64(protocol::kBulkTotal, 2);
    });
    reply.generic(request, protocol::kCmdBulkResult, [failed](RequestMessage& result) {
      result.put_u64(protocol::kBulkMatched, 20'000);
      result.put_u64(protocol::kBulkChanged, 20'000 - failed);
      result.put_u64(protocol::kBulkFailed, failed);
      result.put_u64(protocol::kBulkDuration, 61'000'000);
      result.put_u64(protocol::kBulkToReclaim, 10'276'045);
      for (uint64_t at = 0; at < std::min<uint64_t>(failed, 10); ++at) {
        const RequestMessage::Nest failure(result, protocol::kBulkFailure);
        result.put_string(protocol::kFailureName, fmt::format("sub{}", at));
        result.put_u32(protocol::kFailureErrno, EEXIST);
        result.put_string(protocol::kFailureText, "exists");
      }
    });
    if (code == 0)
      reply.acknowledge(request);
    else
      reply.acknowledge(request, code, "nothing was created");
  };
}

TEST(Bulk, SaysWhatItDidInOneLine) {
  const FakeDaemon daemon(bulk_answer(0, 0));
  const Outcome add = run(daemon, "link bulk add link port0 type vlan id 1-4000 inner 1-5");
  EXPECT_EQ(add.status, kExitOk);
  EXPECT_EQ(add.output, "link bulk add: matched 20000 created 20000 failed 0 in 61 ms\n");
  EXPECT_EQ(
      run(daemon, "link del group 7").output,
      "link del group 7: matched 20000 deleted 20000 failed 0 in 61 ms; 9.8 MiB to reclaim (reclaim wait)\n");
  EXPECT_EQ(run(daemon, "link del group 7 --dry-run").output,
            "link del group 7: matched 20000 deleted 20000 failed 0 in 61 ms (dry run: nothing changed)\n");
  EXPECT_EQ(run(daemon, "link del sub0 --dry-run").output.substr(0, 31), "link del sub0: matched 20000 de");
}

TEST(Bulk, ListsFailuresAndExitsWithOne) {
  const FakeDaemon daemon(bulk_answer(12, 0));
  const Outcome add = run(daemon, "link bulk add count 20000 type dummy -force");
  EXPECT_EQ(add.status, kExitRefused);
  EXPECT_NE(add.output.find("\n  sub0: exists\n"), std::string::npos) << add.output;
  EXPECT_NE(add.output.find("\n  and 2 more\n"), std::string::npos) << add.output;
  const Parsed result = Parsed::parse(run(daemon, "link bulk del name 'sub{}' count 9", json()).output);
  EXPECT_EQ(result["operation"], "link bulk del");
  EXPECT_EQ(result["matched"], 20'000);
  EXPECT_EQ(result["deleted"], 19'988);
  EXPECT_EQ(result["failed"], 12);
  EXPECT_EQ(result["duration_ns"], 61'000'000);
  EXPECT_EQ(result["to_reclaim_bytes"], 10'276'045);
  EXPECT_EQ(result["failures"].size(), 10u);
  EXPECT_EQ(result["failures"][0], Parsed::parse(R"({"ifname":"sub0","errno":17,"text":"exists"})"));
  EXPECT_EQ(result["boot_id"], "boot-1");
  const FakeDaemon strict(bulk_answer(20'000, EEXIST));
  const Outcome refused = run(strict, "link bulk add count 20000 type dummy");
  EXPECT_EQ(refused.status, kExitRefused);
  EXPECT_EQ(refused.errors, "Error: nothing was created\n");
}

void answer_statistics(const nlmsghdr& request, Reply& reply) {
  const auto command = static_cast<const genlmsghdr*>(mnl_nlmsg_get_payload(&request))->cmd;
  if (command == protocol::kCmdDrops) {
    for (const uint64_t total : {30, 10, 0})
      reply.generic(
          request, command,
          [total](RequestMessage& reason) {
            reason.put_string(protocol::kReasonName, fmt::format("reason_{}", total));
            reason.put_string(protocol::kReasonStage, "classify");
            reason.put_u64(protocol::kReasonTotal, total);
          },
          NLM_F_MULTI);
    return reply.done(request);
  }
  reply.generic(request, command, [](RequestMessage& stats) {
    stats.put_u64(protocol::kStatsRx, 100);
    stats.put_u64(protocol::kStatsOriginated, 2);
    stats.put_u64(protocol::kStatsTx, 50);
    stats.put_u64(protocol::kStatsDrops, 40);
    stats.put_u64(protocol::kStatsPunted, 8);
    stats.put_u64(protocol::kStatsParked, 5);
    const RequestMessage::Nest worker(stats, protocol::kStatsWorker);
    stats.put_u32(protocol::kStatsWorkerIndex, 0);
    stats.put_u64(protocol::kStatsLoops, 1000);
  });
  reply.acknowledge(request);
}

TEST(Stats, AlwaysShowTheBalance) {
  const FakeDaemon daemon(answer_statistics);
  const std::string balance =
      "rx 100 + originated 2 = tx 50 + drops 40 + punted 8 + parked 5, difference -1\n";
  for (const char* line : {"stats", "stats drops"}) {
    const std::string output = run(daemon, line).output;
    EXPECT_TRUE(output.ends_with(balance)) << output;
    const Parsed document = Parsed::parse(run(daemon, line, json()).output);
    EXPECT_EQ(document["balance"]["difference"], -1);
    EXPECT_EQ(document["balance"]["parked"], 5);
  }
  const Parsed drops = Parsed::parse(run(daemon, "stats drops", json()).output)["drops"];
  ASSERT_EQ(drops.size(), 3u);
  EXPECT_EQ(drops[0]["share_percent"], 75.0);
  const std::string text = run(daemon, "stats drops").output;
  EXPECT_NE(text.find("reason_10 "), std::string::npos);
  EXPECT_EQ(text.find("reason_0 "), std::string::npos);
}

// Whatever the daemon leaves out: pages and documents stay whole.
TEST(Pages, SurviveEmptyAnswers) {
  const FakeDaemon daemon([](const nlmsghdr& request, Reply& reply) {
    const auto command = static_cast<const genlmsghdr*>(mnl_nlmsg_get_payload(&request))->cmd;
    const bool dump = (request.nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP;
    reply.generic(request, command, {}, dump ? NLM_F_MULTI : 0);
    if (dump)
      reply.done(request);
    else
      reply.acknowledge(request);
  });
  for (const char* line : {"status", "reclaim", "reclaim wait", "port", "stats", "stats drops",
                           "stats stages", "link count", "link which port0 5", "netns list"}) {
    const Outcome text = run(daemon, line);
    EXPECT_EQ(text.status, kExitOk) << line;
    EXPECT_FALSE(text.output.empty()) << line;
    const Outcome document = run(daemon, line, json());
    EXPECT_TRUE(Parsed::accept(document.output)) << line << ": " << document.output;
  }
  EXPECT_EQ(run(daemon, "port show wan").errors, "Error: port 'wan' does not exist\n");
}

TEST(LinkWhich, SaysWhoOwnsTheTags) {
  const FakeDaemon daemon([](const nlmsghdr& request, Reply& reply) {
    const bool owned = Attributes(request, sizeof(genlmsghdr)).has(protocol::kWhichInner);
    reply.generic(request, protocol::kCmdLinkWhich, [owned](RequestMessage& answer) {
      if (owned) {
        answer.put_string(protocol::kWhichName, "sub5");
        answer.put_u32(protocol::kWhichIfindex, 12);
      } else {
        answer.put_string(protocol::kWhichDrop, "unknown_tag");
      }
    });
    reply.acknowledge(request);
  });
  EXPECT_EQ(run(daemon, "link which port0 100.7").output, "port0 100.7: sub5 (ifindex 12)\n");
  EXPECT_EQ(run(daemon, "link which port0 100").output, "port0 100: nobody's; dropped as unknown_tag\n");
  EXPECT_EQ(Parsed::parse(run(daemon, "link which port0 100.7", json()).output)["ifname"], "sub5");
}

}  // namespace
}  // namespace mayfly::cli
