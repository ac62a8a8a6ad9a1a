// SPDX-License-Identifier: BSD-3-Clause
// The network section: reading, writing, and the difference of two of them against a slow model that only
// knows sets of names.
#include <gtest/gtest.h>
#include <libmnl/libmnl.h>

#include <map>
#include <set>

#include "../base/seed.hpp"
#include "config/config.hpp"
#include "config/network.hpp"

namespace mayfly {
namespace {

NetworkConfig parsed(const std::string& text) {
  auto config = parse_config(text, "f.yaml");
  EXPECT_TRUE(config.has_value()) << config.error().text << "\n" << text;
  return config ? config->network : NetworkConfig{};
}

std::string error_of(const std::string& text) {
  const auto config = parse_config(text, "f.yaml");
  return config ? "" : config.error().text;
}

std::vector<std::string> printed(const std::vector<Change>& changes) {
  std::vector<std::string> lines;
  for (const Change& change : changes) lines.push_back(fmt::format("{} {}", change.sign(), change.what));
  return lines;
}

using Lines = std::vector<std::string>;

TEST(Network, EveryMistakeHasItsLine) {
  const auto refused = [](const std::string& entry) {
    return error_of("network:\n  - netns: default\n" + entry);
  };
  EXPECT_EQ(refused("    links: []\n").substr(0, 35), "f.yaml:3: network[0].links: unknown");
  EXPECT_EQ(refused("    interfaces: [{name: a, type: tun}]\n"),
            "f.yaml:3: network[0].interfaces[0].type: value 'tun': expected one of vlan, dummy, port, veth");
  EXPECT_EQ(refused("    interfaces:\n      - {name: a, type: vlan, link: p}\n"),
            "f.yaml:4: network[0].interfaces[0].id: missing: this key is mandatory");
  EXPECT_EQ(refused("    interfaces: [{name: 'a{}', type: vlan, link: p, id: 1-10, count: 11}]\n"),
            "f.yaml:3: network[0].interfaces[0].count: value 11: the ranges give 10 interfaces only");
  EXPECT_EQ(refused("    interfaces: [{name: abcdefghijklmn, type: dummy, up: yes}]\n"),
            "f.yaml:3: network[0].interfaces[0].up: value 'yes': expected one of true, false");
  EXPECT_EQ(refused("    interfaces: [{name: 'abcdefghijklm{}', type: dummy, count: 1000}]\n"),
            "f.yaml:3: network[0].interfaces[0].name: value 'abcdefghijklm{}': longer than 15 characters for "
            "member 999");
  EXPECT_EQ(refused("    interfaces: [{name: p, type: port, link: q}]\n"),
            "f.yaml:3: network[0].interfaces[0].link: an interface of type port has no such key");
  EXPECT_EQ(refused("    interfaces: [{name: a, type: veth, peer: {netns: b}}]\n"),
            "f.yaml:3: network[0].interfaces[0].peer.name: missing: this key is mandatory");
  EXPECT_EQ(refused("    routes: [{to: 10.0.0.0/8, type: blackhole, dev: a}]\n"),
            "f.yaml:3: network[0].routes[0].dev: blackhole, unreachable and prohibit routes have none");
  EXPECT_EQ(
      refused("    routes: [{to: 10.0.0.0/8, via: 'fe80::1', dev: a}]\n"),
      "f.yaml:3: network[0].routes[0].via: value fe80::1: expected an address of the family of 10.0.0.0/8");
  EXPECT_EQ(
      refused("    addresses: [{address: 10.0.0.1/24, dev: a}, {address: 10.0.0.1/24, dev: a}]\n"),
      "f.yaml:3: network[0].addresses[1].address: address 10.0.0.1/24 on 'a' of netns 'default' is there "
      "already, at f.yaml:3");
  EXPECT_EQ(
      refused("    neighbours: [{address: 10.0.0.1, dev: a, lladdr: 'ff:ff:ff:ff:ff:ff'}]\n"),
      "f.yaml:3: network[0].neighbours[0].lladdr: value ff:ff:ff:ff:ff:ff: expected a unicast MAC address");
}

TEST(Network, TheSectionIsWrittenAsItIsRead) {
  const std::string text =
      "network:\n"
      "  - netns: \"default\"\n"
      "    interfaces:\n"
      "      - {name: \"port0\", type: port, up: true, mtu: 1500}\n"
      "      - {name: \"s{}\", type: vlan, count: 7, link: \"port0\", protocol: 802.1ad, id: 1-4, inner: "
      "5-9, up: false, "
      "group: 3, alias: \"a \\\"b\\\" \\\\c\", unnumbered: \"lo\", rp_filter: strict, proxy_arp: true, "
      "proxy_nd: false, "
      "addrgenmode: none}\n"
      "      - {name: \"v\", type: veth, address: \"02:00:00:00:00:01\", peer: {name: \"w\", netns: \"b\", "
      "mtu: 1400, "
      "address: \"02:00:00:00:00:02\", up: true, group: 4, addrgenmode: none}}\n"
      "      - {name: \"x\", type: vlan, link: \"y\", link_netns: \"b\", id: 9}\n"
      "    addresses:\n"
      "      - {address: \"2001:db8::1/64\", dev: \"port0\", nodad: true}\n"
      "    routes:\n"
      "      - {to: \"0.0.0.0/0\", via: \"10.0.0.1\", dev: \"port0\", src: \"10.0.0.2\", onlink: true, "
      "metric: 5, "
      "protocol: boot}\n"
      "      - {to: \"::/0\", type: prohibit, protocol: 99}\n"
      "    neighbours:\n"
      "      - {address: \"fe80::1\", lladdr: \"02:00:00:00:00:02\", dev: \"port0\", router: true}\n"
      "  - netns: \"b\"\n";
  EXPECT_EQ(dump_network(parsed(text)), text);
}

TEST(Network, MembersAreCountedAsABulkCreateCountsThem) {
  const NetworkConfig network =
      parsed("network: [{netns: default, interfaces: [{type: vlan, link: p, id: 3-4, inner: 1-5}]}]");
  const NetworkLink& link = network.namespaces[0].links[0];
  EXPECT_EQ(link.members(), 10u);
  EXPECT_EQ(member_of(link, 0).name, "p.3.1");
  EXPECT_EQ(member_of(link, 4).name, "p.3.5");
  EXPECT_EQ(member_of(link, 5).name, "p.4.1");
  EXPECT_EQ(member_of(link, 9).name, "p.4.5");
  EXPECT_EQ(size_of(network).interfaces, 10u);
}

constexpr const char* kTemplate =
    "network: [{{netns: default, interfaces: [{{name: 's{{}}', type: vlan, count: {}, link: p, id: "
    "{}-4000}}]}}]";

TEST(Network, ATemplateGrowsAndShrinksAtItsEnd) {
  const NetworkConfig small = parsed(fmt::format(kTemplate, 100, 1));
  const NetworkConfig large = parsed(fmt::format(kTemplate, 102, 1));
  const NetworkConfig other = parsed(fmt::format(kTemplate, 102, 2));
  const auto grown = difference(small, large);
  ASSERT_EQ(grown.size(), 1u);
  EXPECT_FALSE(grown[0].generic);
  EXPECT_TRUE(grown[0].undo_generic);
  EXPECT_EQ(printed(grown),
            Lines{"+ link bulk add name s{} count 102 link p type vlan id 1-4000: all behind the first 100"});
  EXPECT_EQ(printed(difference(large, small)),
            Lines{"- link bulk del name s{} count 102: all behind the first 100"});
  EXPECT_EQ(printed(difference(large, other)),
            (Lines{"- link bulk del name s{} count 102",
                   "+ link bulk add name s{} count 102 link p type vlan id 2-4000"}));
  EXPECT_TRUE(difference(large, large).empty());
}

TEST(Network, WhatStandsOnSomethingComesAfterIt) {
  const NetworkConfig network = parsed(
      "network:\n"
      "  - {netns: a, interfaces: [{name: i, type: vlan, link: o, link_netns: b, id: 1, unnumbered: l},\n"
      "                            {name: l, type: dummy}]}\n"
      "  - {netns: b, interfaces: [{name: o, type: vlan, link: s3, id: 5}, {name: 's{}', type: dummy, count: "
      "5}]}\n");
  const Lines expected{"+ netns add a",
                       "+ netns add b",
                       "+ link bulk add name s{} count 5 type dummy netns b",
                       "+ link add o link s3 type vlan id 5 netns b",
                       "+ link add l type dummy netns a",
                       "+ link add i link o unnumbered l type vlan id 1 (link in netns b) netns a"};
  EXPECT_EQ(printed(creations(network)), expected);
  Lines back = printed(difference(network, NetworkConfig{}));
  EXPECT_EQ(back, (Lines{"- link del i netns a", "- link del l netns a", "- link del o netns b",
                         "- link bulk del name s{} count 5 netns b", "- netns del b", "- netns del a"}));
}

TEST(Network, PortsKeepTheirSettingsToGoBackTo) {
  const std::string ports = "ports: [{name: p, devargs: net_null0, mtu: 1400}]\n";
  const NetworkConfig none = parsed(ports);
  const NetworkConfig set = parsed(
      ports + "network: [{netns: default, interfaces: [{name: p, type: port, mtu: 1300, up: false}]}]");
  const NetworkConfig moved =
      parsed(ports + "network: [{netns: blue, interfaces: [{name: p, type: port, up: true}]}]");
  EXPECT_EQ(printed(difference(none, set)), Lines{"~ link set p mtu 1300 down"});
  EXPECT_EQ(printed(difference(set, none)), Lines{"~ link set p mtu 1400 up"});
  EXPECT_EQ(printed(difference(none, moved)),
            (Lines{"+ netns add blue", "~ link set p netns blue", "~ link set p up netns blue"}));
  EXPECT_EQ(printed(difference(moved, none)),
            (Lines{"~ link set p netns default netns blue", "~ link set p up", "- netns del blue"}));
}

// ---------------------------------------------------------------------------------------- against a model

// What a section makes, by name. The model's world is driven by the text of changes alone.
using World = std::set<std::string>;

struct Drawn {
  std::string yaml;
  World world;
};

Drawn draw(std::mt19937_64& random) {
  const auto chance = [&](unsigned of) { return random() % of == 0; };
  Drawn drawn;
  drawn.yaml = "network:\n";
  for (const std::string netns : {"default", "n1", "n2"}) {
    if (netns != "default" && chance(3)) continue;
    std::string suffix = netns == "default" ? "" : " netns " + netns;
    drawn.yaml += fmt::format("  - netns: {}\n", netns);
    if (netns != "default") drawn.world.insert("netns " + netns);
    std::string links, addresses, routes;
    for (int i = 0; i < 5; ++i) {
      if (chance(3)) continue;
      const unsigned group = static_cast<unsigned>(random() % 3);
      links += fmt::format("      - {{name: d{}, type: dummy, group: {}, up: true}}\n", i, group);
      drawn.world.insert(fmt::format("link d{} group {}{}", i, group, suffix));
      if (chance(2)) {
        addresses += fmt::format("      - {{address: 10.{}.0.1/24, dev: d{}}}\n", i, i);
        drawn.world.insert(fmt::format("addr 10.{}.0.1/24 dev d{}{}", i, i, suffix));
      }
      if (chance(2)) {
        const unsigned metric = static_cast<unsigned>(random() % 2);
        routes += fmt::format("      - {{to: 10.{}.7.0/24, dev: d{}, metric: {}}}\n", i, i, metric);
        drawn.world.insert(fmt::format("route 10.{}.7.0/24 dev d{} metric {}{}", i, i, metric, suffix));
      }
      if (chance(2)) {
        const unsigned id = 1 + static_cast<unsigned>(random() % 3);
        links += fmt::format("      - {{name: v{}, type: vlan, link: d{}, id: {}}}\n", i, i, id);
        drawn.world.insert(fmt::format("vlan v{} link d{} id {}{}", i, i, id, suffix));
      }
    }
    if (!links.empty()) drawn.yaml += "    interfaces:\n" + links;
    if (!addresses.empty()) drawn.yaml += "    addresses:\n" + addresses;
    if (!routes.empty()) drawn.yaml += "    routes:\n" + routes;
  }
  return drawn;
}

// Makes a change in the model; every step must be possible when its turn comes.
void make(World& world, const Change& change) {
  std::string text = change.what;
  std::string suffix;
  if (const size_t at = text.find(" netns "); at != std::string::npos && !text.starts_with("netns ")) {
    suffix = text.substr(at);
    text.resize(at);
  }
  const auto has_prefix = [&](const std::string& prefix) {
    for (const std::string& element : world)
      if (element.starts_with(prefix) &&
          (suffix.empty() ? element.find(" netns ") == std::string::npos : element.ends_with(suffix)))
        return true;
    return false;
  };
  const auto erase = [&](const std::string& prefix) {
    const size_t gone = std::erase_if(world, [&](const std::string& element) {
      return element.starts_with(prefix) &&
             (suffix.empty() ? element.find(" netns ") == std::string::npos || element.starts_with("netns ")
                             : element.ends_with(suffix));
    });
    EXPECT_EQ(gone, 1u) << change.what;
  };
  if (!suffix.empty()) {
    EXPECT_TRUE(world.contains(suffix.substr(1))) << change.what;
  }
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  const std::string& object = words[0];
  if (object == "netns") {
    if (words[1] == "add") world.insert("netns " + words[2]);
    if (words[1] == "del") {
      for (const std::string& element : world)
        EXPECT_FALSE(element.ends_with(" netns " + words[2])) << element;
      erase("netns " + words[2]);
    }
  } else if (object == "link" && words[1] == "set") {
    const std::string name = fmt::format("link {} ", words[2]);
    erase(name);
    world.insert(fmt::format("link {} group {}{}", words[2], words[4], suffix));
  } else if (object == "link" && words[1] == "del") {
    // Nothing hangs on it and nothing stands on it any more.
    for (const std::string& element : world) {
      EXPECT_FALSE(element.ends_with(fmt::format(" dev {}{}", words[2], suffix))) << change.what;
      const bool same_netns =
          suffix.empty() ? element.find(" netns ") == std::string::npos : element.ends_with(suffix);
      EXPECT_FALSE(same_netns && element.find(fmt::format(" link {} id", words[2])) != std::string::npos)
          << change.what;
    }
    erase(fmt::format("{} {} ", words[2][0] == 'd' ? "link" : "vlan", words[2]));
  } else if (object == "link") {
    if (text.find("type dummy") != std::string::npos) {
      world.insert(fmt::format("link {} group {}{}", words[2], words[4], suffix));
    } else {
      EXPECT_TRUE(has_prefix(fmt::format("link {} ", words[4]))) << change.what;
      world.insert(fmt::format("vlan {} link {} id {}{}", words[2], words[4], words[8], suffix));
    }
  } else {
    const std::string what = object + text.substr(object.size() + 4);
    if (words[1] == "del") {
      erase(what);
    } else {
      EXPECT_TRUE(world.insert(what + suffix).second) << change.what;
    }
  }
}

TEST(Network, ADifferenceLeadsFromAnythingToAnything) {
  std::mt19937_64 random = testing::seeded_random();
  Drawn from = draw(random);
  World world;
  NetworkConfig old;
  for (const Change& change : creations(parsed(from.yaml))) make(world, change);
  EXPECT_EQ(world, from.world);
  old = parsed(from.yaml);
  for (int round = 0; round < 200 && !::testing::Test::HasFailure(); ++round) {
    const Drawn to = draw(random);
    const NetworkConfig wanted = parsed(to.yaml);
    const World before = world;
    const auto changes = difference(old, wanted);
    for (const Change& change : changes) make(world, change);
    EXPECT_EQ(world, to.world) << "from\n" << from.yaml << "to\n" << to.yaml;
    // Only what is named differs: an element in both worlds is touched only with what it stands on.
    if (before == to.world) {
      EXPECT_TRUE(changes.empty());
    }
    from = to;
    old = wanted;
  }
}

// Every message of a change is whole and aligned, and everything but a port's MAC can be undone.
TEST(Network, ChangesAreRowsOfMessages) {
  std::mt19937_64 random = testing::seeded_random();
  for (int round = 0; round < 20; ++round) {
    for (const Change& change : difference(parsed(draw(random).yaml), parsed(draw(random).yaml))) {
      for (const Change::Messages* messages : {&change.messages, &change.undo}) {
        ASSERT_FALSE(messages->empty()) << change.what;
        int left = static_cast<int>(messages->size());
        const auto* message = reinterpret_cast<const nlmsghdr*>(messages->data());
        for (; mnl_nlmsg_ok(message, left); message = mnl_nlmsg_next(message, &left))
          EXPECT_NE(message->nlmsg_flags & NLM_F_ACK, 0);
        EXPECT_EQ(left, 0) << change.what;
      }
      EXPECT_TRUE(change.where.starts_with("f.yaml:")) << change.where;
    }
  }
}

TEST(Network, DumpsLoadBackWhateverIsInThem) {
  std::mt19937_64 random = testing::seeded_random();
  for (int round = 0; round < 50; ++round) {
    const NetworkConfig network = parsed(draw(random).yaml);
    const std::string text = dump_network(network);
    EXPECT_TRUE(difference(network, parsed(text)).empty()) << text;
    EXPECT_EQ(dump_network(parsed(text)), text);
  }
}

// What a daemon can hold a dump can say: the lists' limits are far beyond what 16 MiB of text could.
TEST(Network, ADumpOfManyLoadsBack) {
  constexpr unsigned kMembers = 2'000;
  Config config;
  NetworkNamespace& netns = config.network.namespaces.emplace_back();
  netns.name = "default";
  for (unsigned n = 0; n < kMembers; ++n) {
    NetworkLink& element = netns.links.emplace_back();
    element.link.kind = find_kind_description("dummy");
    element.link.name = fmt::format("d{}", n);
    element.link.up = true;
    element.link.alias = std::string(255, 'x');
    NetworkAddress& address = netns.addresses.emplace_back();
    address.prefix = IpPrefix(IpAddress(Ipv4{0x0a000000 + n}), 32);
    address.device = element.link.name;
  }
  std::string text = dump_config(config);
  // As long as that of a hundred thousand, in comments, which cost less to read.
  const std::string comment = "#" + std::string(1'000, ' ') + "\n";
  while (text.size() <= size_t{16} << 20) text += comment;
  const auto loaded = parse_config(text, "f.yaml");
  ASSERT_TRUE(loaded.has_value()) << loaded.error().text;
  EXPECT_EQ(loaded->network.namespaces.at(0).links.size(), kMembers);
  EXPECT_EQ(loaded->network.namespaces.at(0).addresses.size(), kMembers);
}

}  // namespace
}  // namespace mayfly
