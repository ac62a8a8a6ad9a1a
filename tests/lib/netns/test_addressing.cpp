// SPDX-License-Identifier: BSD-3-Clause
#include "netns/addressing.hpp"

#include <gtest/gtest.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "reclaim/reclaim.hpp"

namespace mayfly {
namespace {

constexpr uint8_t kOptimistic = InterfaceAddress::kOptimistic;
constexpr uint8_t kDuplicate = InterfaceAddress::kDuplicate;
constexpr uint8_t kNoDad = InterfaceAddress::kNoDad;

uint64_t seed_of_this_run() {
  const char* given = std::getenv("MAYFLY_TEST_SEED");
  const uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 0) : std::random_device{}();
  std::printf("MAYFLY_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

IpAddress ip(const char* text) {
  return *parse_address("test", text);
}
IpPrefix prefix(const char* text) {
  return *parse_ip_prefix("test", text);
}

class AddressingTest : public testing::Test {
 protected:
  AddressingTest() {
    EXPECT_TRUE(reclaim.start().has_value());
    table = std::move(*InterfaceTable::create(1'000, 1, blocks, neighbours));
    addressing = std::make_unique<Addressing>(*table, neighbours, blocks);
    dummy = create("d0", 0x020000000001, netns.get());
    other = create("d1", 0x020000000002, netns.get());
  }
  ~AddressingTest() override {
    for (uint32_t at = table->next(1); at != kNoInterface; at = table->next(1)) remove(at);
    commit();
    EXPECT_EQ(addressing->addresses(), 0U);
    EXPECT_EQ(netns->rib.size(), 0U);
    EXPECT_TRUE(reclaim.stop(60 * kNsPerSecond));
    EXPECT_EQ(blocks.blocks_in_use(), 0U);
  }

  uint32_t create(const char* name, Mac mac, Netns* in) {
    InterfaceSpec spec;
    spec.name = name;
    spec.kind = *find_kind("dummy");
    spec.netns = in;
    spec.mac = mac;
    spec.mtu = 1500;
    spec.up = true;
    const auto ifindex = table->claim(spec);
    EXPECT_TRUE(ifindex.has_value());
    table->commit(*ifindex);
    return *ifindex;
  }
  void remove(uint32_t ifindex) {
    addressing->detach(ifindex, retired);
    table->retire(ifindex, retired);
  }
  void commit() {
    route_table.commit(retired);
    reclaim.submit(retired);
    reclaim.collect(Deadline::never());
  }
  Status add(const char* text, uint8_t flags = 0) {
    return addressing->add(dummy, prefix(text), flags, retired);
  }
  void set_up(bool up) {
    table->set_admin_up(dummy, up);
    if (up)
      EXPECT_TRUE(addressing->came_up(dummy, retired).has_value());
    else
      addressing->went_down(dummy, retired);
  }
  // "local 2001:db8::1/128" and so on.
  std::set<std::string> routes() const {
    std::set<std::string> all;
    for (RouteCursor at(netns->rib); at.current() != nullptr; at.advance()) {
      const Route& route = *at.current();
      const char* type = route.type == RouteType::kLocal       ? "local "
                         : route.type == RouteType::kBroadcast ? "broadcast "
                                                               : "";
      all.insert(type + format_prefix(route.prefix()));
    }
    return all;
  }
  uint8_t flags_of(const char* text) const {
    const AddressList* list = table->interface(dummy).addresses.own();
    for (const InterfaceAddress& entry : list->all())
      if (entry.address == ip(text)) return entry.flags;
    ADD_FAILURE() << text;
    return 0;
  }
  std::vector<std::string> questions() {
    std::vector<AddressQuestion> asked;
    addressing->tick(now, asked, retired);
    std::vector<std::string> texts;
    for (const AddressQuestion& question : asked) texts.push_back(format_ipv6(question.address));
    return texts;
  }
  const Interface& interface(uint32_t ifindex) const { return table->interface(ifindex); }
  bool own(uint32_t ifindex, const char* text) const {
    return is_own_address(table->interfaces(), interface(ifindex), ip(text));
  }
  std::string source(uint32_t ifindex, const char* neighbour) const {
    const IpAddress found = source_of(table->interfaces(), interface(ifindex), ip(neighbour));
    return found.none() ? "none" : format_address(found);
  }

  BlockPools blocks;
  Neighbours neighbours{blocks};
  Reclaim reclaim{TeardownConfig{}};
  RouteTable route_table{10'000};
  std::unique_ptr<InterfaceTable> table;
  std::unique_ptr<Netns> netns = std::make_unique<Netns>("default", blocks, route_table);
  std::unique_ptr<Netns> elsewhere = std::make_unique<Netns>("elsewhere", blocks, route_table);
  std::unique_ptr<Addressing> addressing;
  RetireList retired;
  uint64_t now = 7 * kNsPerSecond;
  uint32_t dummy = 0;
  uint32_t other = 0;
};

TEST_F(AddressingTest, RoutesOfAddresses) {
  ASSERT_TRUE(add("10.0.0.1/24").has_value());
  ASSERT_TRUE(add("2001:db8::1/64").has_value());
  EXPECT_EQ(routes(),
            (std::set<std::string>{"local 10.0.0.1/32", "10.0.0.0/24", "broadcast 10.0.0.0/32",
                                   "broadcast 10.0.0.255/32", "local 2001:db8::1/128", "2001:db8::/64"}));
  ASSERT_TRUE(add("2001:db8::2/64").has_value());
  ASSERT_TRUE(add("2001:db8:1::1/128").has_value());
  ASSERT_TRUE(add("fe80::7/64").has_value());
  EXPECT_EQ(routes().size(), 8U) << "a second one of the subnet, a host's, and one of the link alone";
  EXPECT_EQ(add("2001:db8::1/64").error().code, EEXIST);
  EXPECT_EQ(add("2001:db8::1/64").error().text, "address 2001:db8::1/64: 'd0' has it already");
  ASSERT_TRUE(addressing->remove(dummy, prefix("2001:db8::1/64"), retired).has_value());
  EXPECT_EQ(routes().count("2001:db8::/64"), 1U);
  ASSERT_TRUE(addressing->remove(dummy, prefix("2001:db8::2/64"), retired).has_value());
  EXPECT_EQ(routes().count("2001:db8::/64"), 0U);
  EXPECT_EQ(addressing->remove(dummy, prefix("2001:db8::2/64"), retired).error().code, EADDRNOTAVAIL);
}

// Two subnets of different length begin or end with the same address.
TEST_F(AddressingTest, SubnetsShareBroadcastAddresses) {
  const std::pair<const char*, const char*> pairs[] = {
      {"10.0.0.1/24", "10.0.0.1/25"}, {"10.0.0.129/24", "10.0.0.129/25"}, {"10.0.0.1/24", "10.0.0.129/25"}};
  for (const auto& [one, two] : pairs)
    for (const bool swapped : {false, true})
      for (const bool up_first : {false, true}) {
        const char* first = swapped ? two : one;
        const char* second = swapped ? one : two;
        SCOPED_TRACE(fmt::format("{} then {}, {}", first, second, up_first ? "up" : "down"));
        set_up(up_first);
        ASSERT_TRUE(add(second).has_value());
        set_up(true);
        const auto alone = routes();
        ASSERT_TRUE(addressing->remove(dummy, prefix(second), retired).has_value());
        set_up(up_first);
        ASSERT_TRUE(add(first).has_value());
        ASSERT_TRUE(add(second).has_value());
        set_up(true);
        const auto both = routes();
        EXPECT_TRUE(std::ranges::includes(both, alone));
        EXPECT_TRUE(both.contains("10.0.0.0/24"));
        EXPECT_TRUE(both.contains("broadcast 10.0.0.0/32"));
        EXPECT_TRUE(both.contains("broadcast 10.0.0.255/32"));
        ASSERT_TRUE(addressing->remove(dummy, prefix(first), retired).has_value());
        EXPECT_EQ(routes(), alone);
        ASSERT_TRUE(addressing->remove(dummy, prefix(second), retired).has_value());
        EXPECT_TRUE(routes().empty());
        commit();
      }
}

// Nothing stays of an address whose last route finds no memory, and nothing of others goes with it.
TEST_F(AddressingTest, WithoutMemoryForAllRoutesThereAreNone) {
  ASSERT_TRUE(add("10.0.0.129/24").has_value());
  const auto before = routes();
  RouteMatch match;
  Route filler;
  filler.type = RouteType::kBlackhole;
  filler.length = 32;
  for (uint32_t left = 0; left <= 3; ++left) {
    SCOPED_TRACE(left);
    uint32_t fillers = 0;
    for (; route_table.in_use() + left < route_table.limit(); ++fillers) {
      filler.address = IpAddress(static_cast<Ipv4>(0x14000000 + fillers));
      ASSERT_TRUE(elsewhere->rib.add(filler, RouteAdd::create_exclusive(), nullptr).has_value());
    }
    // A local, a connected and one more broadcast route: 10.0.0.255 has its own already.
    EXPECT_EQ(add("10.0.0.129/25").has_value(), left >= 2) << "same address: no other local route";
    EXPECT_EQ(routes() == before, left < 2);
    while (fillers-- > 0) {
      match.address = IpAddress(static_cast<Ipv4>(0x14000000 + fillers));
      match.length = 32;
      ASSERT_TRUE(elsewhere->rib.remove(match, nullptr).has_value());
    }
    if (left >= 2) {
      ASSERT_TRUE(addressing->remove(dummy, prefix("10.0.0.129/25"), retired).has_value());
    }
    EXPECT_EQ(routes(), before);
    commit();
  }
}

// Up to a thousand addresses, with repeated subnets and host addresses, against the rules:
// each subnet has the routes of its first address, in every life.
TEST_F(AddressingTest, TheFirstAddressOfASubnetGivesItsRoutes) {
  std::mt19937_64 random(seed_of_this_run());
  for (const uint32_t count : {1U, 7U, 300U, 1'000U}) {
    std::vector<IpPrefix> added;
    while (added.size() < count) {
      const bool v4 = random() % 2 == 0;
      const std::array<uint8_t, 3> lengths =
          v4 ? std::array<uint8_t, 3>{24, 26, 32} : std::array<uint8_t, 3>{64, 120, 128};
      const uint32_t number = static_cast<uint32_t>(random() % (4 * count));
      const IpAddress address = v4 ? IpAddress(static_cast<Ipv4>(0x0a000001 + number))
                                   : IpAddress(Ipv6{0x20010db8'00000000U + number / 64, 1 + number});
      const IpPrefix given(address, lengths[random() % 3]);
      if (addressing->add(dummy, given, kNoDad, retired).has_value()) added.push_back(given);
      if (added.size() % 64 == 0) commit();
    }
    set_up(false);
    std::map<std::string, std::string> wanted;  // route -> preferred source
    for (const IpPrefix& each : added)
      wanted.try_emplace("local " + format_prefix(IpPrefix(each.address, each.most_length())),
                         format_address(each.address));
    const auto sources = [&] {
      std::map<std::string, std::string> all;
      for (RouteCursor at(netns->rib); at.current() != nullptr; at.advance()) {
        const Route& route = *at.current();
        if (route.type == RouteType::kBroadcast) continue;
        const bool local = route.type == RouteType::kLocal;
        const IpAddress source = route.prefsrc.none() && local ? route.address : route.prefsrc;
        all.emplace((local ? "local " : "") + format_prefix(route.prefix()),
                    source.none() ? "none" : format_address(source));
      }
      return all;
    };
    EXPECT_EQ(sources(), wanted);
    set_up(true);
    for (const IpPrefix& each : added)
      if (each.length != each.most_length())
        wanted.try_emplace(format_prefix(IpPrefix(each.network(), each.length)),
                           each.is_v4() ? format_address(each.address) : "none");
    EXPECT_EQ(sources(), wanted);
    for (const IpPrefix& each : added) ASSERT_TRUE(addressing->remove(dummy, each, retired).has_value());
    EXPECT_TRUE(routes().empty());
    commit();
  }
}

TEST_F(AddressingTest, RefusesWhatIsNoAddress) {
  for (const char* bad : {"::/64", "::1/128", "ff02::1/64", "127.0.0.1/8", "0.0.0.0/8", "224.0.0.1/24"}) {
    const Status refused = add(bad);
    ASSERT_FALSE(refused.has_value()) << bad;
    EXPECT_EQ(refused.error().code, EADDRNOTAVAIL) << bad;
    EXPECT_NE(refused.error().text.find(bad), std::string::npos) << refused.error().text;
  }
  EXPECT_EQ(addressing->add(dummy, IpPrefix(ip("2001:db8::1"), 129), 0, retired).error().text,
            "prefix length 129: accepted 0..128");
  EXPECT_TRUE(routes().empty());
}

TEST_F(AddressingTest, DownAndUpAgain) {
  ASSERT_TRUE(add("10.0.0.1/24").has_value());
  ASSERT_TRUE(add("2001:db8::1/64").has_value());
  ASSERT_TRUE(add("fe80::7/64").has_value());
  const auto before = routes();
  set_up(false);
  EXPECT_EQ(routes(), (std::set<std::string>{"local 10.0.0.1/32", "local 2001:db8::1/128"}));
  EXPECT_TRUE(own(dummy, "2001:db8::1"));
  set_up(true);
  EXPECT_EQ(routes(), before);
}

TEST_F(AddressingTest, QuestionsAreAskedOnceAndSettled) {
  ASSERT_TRUE(add("10.0.0.1/24").has_value());
  ASSERT_TRUE(add("2001:db8::1/64").has_value());
  ASSERT_TRUE(add("2001:db8::2/64", kNoDad).has_value());
  EXPECT_EQ(flags_of("2001:db8::1"), kOptimistic);
  EXPECT_EQ(flags_of("2001:db8::2"), kNoDad);
  EXPECT_TRUE(own(dummy, "2001:db8::1"));
  EXPECT_EQ(questions(), std::vector<std::string>{"2001:db8::1"});
  EXPECT_TRUE(questions().empty());
  now += kNsPerSecond - 1;
  questions();
  EXPECT_EQ(flags_of("2001:db8::1"), kOptimistic);
  now += 1;
  questions();
  EXPECT_EQ(flags_of("2001:db8::1"), 0);
  EXPECT_FALSE(addressing->conflict(dummy, ip("2001:db8::1").v6(), retired)) << "it is ours by now";
  set_up(false);
  EXPECT_TRUE(questions().empty());
  set_up(true);
  EXPECT_EQ(questions(), std::vector<std::string>{"2001:db8::1"});
  EXPECT_EQ(flags_of("2001:db8::2"), kNoDad);
}

TEST_F(AddressingTest, ADuplicateIsNotUsedUntilTheInterfaceComesUpAgain) {
  ASSERT_TRUE(add("2001:db8::1/64").has_value());
  EXPECT_FALSE(addressing->conflict(dummy, ip("2001:db8::9").v6(), retired));
  EXPECT_TRUE(addressing->conflict(dummy, ip("2001:db8::1").v6(), retired));
  EXPECT_FALSE(addressing->conflict(dummy, ip("2001:db8::1").v6(), retired));
  EXPECT_EQ(flags_of("2001:db8::1"), kDuplicate);
  EXPECT_EQ(routes(), std::set<std::string>{"2001:db8::/64"});
  EXPECT_FALSE(own(dummy, "2001:db8::1"));
  EXPECT_EQ(source(dummy, "2001:db8::5"), "fe80::ff:fe00:1");
  now += 2 * kNsPerSecond;
  questions();
  now += 2 * kNsPerSecond;
  questions();
  EXPECT_EQ(flags_of("2001:db8::1"), kDuplicate);
  set_up(false);
  EXPECT_TRUE(routes().empty());
  set_up(true);
  EXPECT_EQ(flags_of("2001:db8::1"), kOptimistic);
  EXPECT_EQ(routes().size(), 2U);
  ASSERT_TRUE(addressing->conflict(dummy, ip("2001:db8::1").v6(), retired));
  ASSERT_TRUE(addressing->remove(dummy, prefix("2001:db8::1/64"), retired).has_value());
  EXPECT_TRUE(routes().empty());
}

TEST_F(AddressingTest, ManyQuestionsAreSpreadOut) {
  for (int i = 1; i <= 1'000; ++i) ASSERT_TRUE(add(fmt::format("2001:db8::{:x}/64", i).c_str()).has_value());
  size_t asked = 0;
  size_t ticks = 0;
  for (; asked < 1'000 && ticks < 1'000; ++ticks, now += kNsPerMs) {
    const size_t now_asked = questions().size();
    ASSERT_LE(now_asked, Addressing::kQuestionsPerTick);
    asked += now_asked;
  }
  EXPECT_EQ(asked, 1'000U);
  EXPECT_GE(ticks, 1'000 / Addressing::kQuestionsPerTick);
  // Those whose interface is gone are passed over.
  set_up(false);
  set_up(true);
  remove(dummy);
  dummy = create("d2", 0x020000000003, netns.get());
  EXPECT_TRUE(questions().empty());
}

// What an interface contains waits with it, and counts as that.
TEST_F(AddressingTest, TheBacklogKnowsWhatADeadInterfaceContains) {
  constexpr uint32_t kNeighbours = 1'000;
  constexpr uint32_t kAddresses = 100;
  const uint64_t bare = [&] {
    remove(create("bare", 0x020000000005, netns.get()));
    const uint64_t bytes = retired.bytes();
    commit();
    return bytes;
  }();
  for (uint32_t n = 0; n < kAddresses; ++n)
    ASSERT_TRUE(add(fmt::format("10.{}.0.1/32", n).c_str()).has_value());
  Neighbours::Table& known = table->interface(dummy).neighbours;
  for (uint32_t n = 0; n < kNeighbours; ++n)
    ASSERT_TRUE(neighbours
                    .learn(known, dummy, IpAddress(static_cast<Ipv4>(0x14000001 + n)), 0x020000000077,
                           NeighbourEvidence::other(true), now, retired)
                    ->known);
  while (reclaim.backlog().objects > 0 || retired.objects() > 0) commit();
  EXPECT_EQ(reclaim.backlog().bytes, 0U);
  remove(dummy);
  EXPECT_GE(retired.bytes(), bare + kNeighbours * sizeof(Neighbour) + kAddresses * sizeof(InterfaceAddress));
  EXPECT_LE(retired.bytes(), bare + kNeighbours * (sizeof(Neighbour) + 64) + kAddresses * 64);
  commit();
  while (reclaim.backlog().objects > 0) commit();
  EXPECT_EQ(reclaim.backlog().bytes, 0U);
}

TEST_F(AddressingTest, LinkLocalComesOfTheMac) {
  EXPECT_TRUE(own(dummy, "fe80::ff:fe00:1"));
  EXPECT_FALSE(own(dummy, "fe80::ff:fe00:2"));
  EXPECT_EQ(source(dummy, "fe80::1"), "fe80::ff:fe00:1");
  EXPECT_EQ(source(dummy, "2001:db8::1"), "fe80::ff:fe00:1");
  EXPECT_EQ(source(dummy, "10.0.0.1"), "none");
  table->set_flag(dummy, Interface::kNoLinkLocal, true);
  EXPECT_FALSE(own(dummy, "fe80::ff:fe00:1"));
  EXPECT_EQ(source(dummy, "fe80::1"), "none");
  ASSERT_TRUE(add("fe80::7/64", kNoDad).has_value());
  EXPECT_TRUE(own(dummy, "fe80::7"));
  EXPECT_EQ(source(dummy, "fe80::1"), "fe80::7");
}

TEST_F(AddressingTest, SourcesOfPackets) {
  for (const char* each : {"10.0.0.1/24", "10.1.0.1/24"}) ASSERT_TRUE(add(each).has_value());
  for (const char* each : {"2001:db8:1::1/64", "2001:db8:2::1/64", "fe80::7/64"})
    ASSERT_TRUE(add(each, kNoDad).has_value());
  ASSERT_TRUE(add("2001:db8:2:0:ffff::1/128").has_value());
  EXPECT_EQ(source(dummy, "10.1.0.9"), "10.1.0.1");
  EXPECT_EQ(source(dummy, "192.0.2.1"), "10.0.0.1");
  EXPECT_EQ(source(dummy, "2001:db8:2::9"), "2001:db8:2::1");
  EXPECT_EQ(source(dummy, "2001:db8:2:0:ffff::2"), "2001:db8:2::1") << "an optimistic one comes last";
  EXPECT_EQ(source(dummy, "2001:db8:1:5::9"), "2001:db8:1::1");
  EXPECT_EQ(source(dummy, "fe80::9"), "fe80::7");
}

TEST_F(AddressingTest, UnnumberedInterfacesBorrow) {
  ASSERT_TRUE(add("10.0.0.1/24").has_value());
  ASSERT_TRUE(add("2001:db8::1/64", kNoDad).has_value());
  EXPECT_EQ(addressing->set_unnumbered(other, other).error().code, EINVAL);
  EXPECT_EQ(addressing->lender_of(other), kNoInterface);
  ASSERT_TRUE(addressing->set_unnumbered(other, dummy).has_value());
  EXPECT_EQ(addressing->lender_of(other), dummy);
  EXPECT_EQ(addressing->set_unnumbered(dummy, other).error().text,
            "unnumbered 'd1': that uses the addresses of 'd0' itself, directly or over others");
  EXPECT_TRUE(own(other, "10.0.0.1"));
  EXPECT_TRUE(own(other, "2001:db8::1"));
  EXPECT_FALSE(own(other, "fe80::ff:fe00:1")) << "a link-local address stays on its link";
  EXPECT_EQ(source(other, "10.9.9.9"), "10.0.0.1");
  EXPECT_EQ(source(other, "2001:db8::5"), "2001:db8::1");
  EXPECT_EQ(source(other, "fe80::5"), "fe80::ff:fe00:2");
  EXPECT_EQ(addresses_of(table->interfaces(), interface(other)), interface(dummy).addresses.own());
  ASSERT_TRUE(addressing->add(other, prefix("10.7.0.1/32"), 0, retired).has_value());
  EXPECT_EQ(source(other, "10.9.9.9"), "10.7.0.1") << "its own come first";

  Interface& far = table->interface(create("far", 0x020000000009, elsewhere.get()));
  EXPECT_EQ(addressing->set_unnumbered(far.ifindex, dummy).error().text,
            "unnumbered 'd0': of another namespace");
  // The lender dies; so does what took its number.
  remove(dummy);
  commit();
  EXPECT_EQ(addressing->lender_of(other), kNoInterface);
  EXPECT_FALSE(own(other, "10.0.0.1"));
  while (reclaim.backlog().objects > 0) reclaim.collect(Deadline::never());
  EXPECT_FALSE(own(other, "10.0.0.1"));
  dummy = create("d2", 0x020000000003, netns.get());
  ASSERT_TRUE(add("10.0.0.1/24").has_value());
  EXPECT_EQ(addressing->lender_of(other), kNoInterface);
  EXPECT_FALSE(own(other, "10.0.0.1"));
  ASSERT_TRUE(addressing->set_unnumbered(other, dummy).has_value());
  EXPECT_TRUE(own(other, "10.0.0.1"));
  ASSERT_TRUE(addressing->set_unnumbered(other, kNoInterface).has_value());
  EXPECT_FALSE(own(other, "10.0.0.1"));
}

// What routes an interface's addresses must have, from the rules alone.
std::multiset<std::string> wanted_routes(const std::map<std::string, bool>& duplicates, bool up) {
  std::set<std::string> routes;
  for (const auto& [text, duplicate] : duplicates) {
    const IpPrefix given = prefix(text.c_str());
    const bool link_only = !given.is_v4() && is_link_local(given.address.v6());
    if (link_only) continue;
    if (!duplicate) routes.insert("local " + format_prefix(IpPrefix(given.address, given.most_length())));
    if (!up || given.length == given.most_length()) continue;
    routes.insert(format_prefix(IpPrefix(given.network(), given.length)));
    if (!given.is_v4() || given.length == 31) continue;
    const Ipv4 first = given.v4().network();
    routes.insert("broadcast " + format_ipv4(first) + "/32");
    routes.insert("broadcast " + format_ipv4(first | ~prefix_mask(given.length)) + "/32");
  }
  return {routes.begin(), routes.end()};
}

TEST_F(AddressingTest, RandomChangesEqualTheRules) {
  std::mt19937_64 random(seed_of_this_run());
  std::map<std::string, bool> model;  // address with its length -> found to be a duplicate
  bool up = true;
  for (int step = 0; step < 5'000; ++step) {
    const uint64_t bits = random();
    const auto host = bits % 5 + 1 + bits / 113 % 2 * 128;
    const auto net = bits / 5 % 2;
    constexpr std::array kLengths = {24, 25, 26, 31, 32};
    constexpr std::array kLengths6 = {64, 127, 128};
    const std::string address = bits / 11 % 3 == 0   ? fmt::format("10.0.{}.{}", net, host)
                                : bits / 11 % 3 == 1 ? fmt::format("2001:db8:0:{}::{}", net, host)
                                                     : fmt::format("fe80::{}", host);
    const bool v4 = bits / 11 % 3 == 0;
    const std::string text =
        fmt::format("{}/{}", address, v4 ? kLengths[bits / 37 % 5] : kLengths6[bits / 37 % 3]);
    const auto same_address = [&](const auto& each) { return each.first.starts_with(address + "/"); };
    switch (random() % 8) {
      case 0:
      case 1:
      case 2: {
        const bool known = model.contains(text);
        ASSERT_EQ(add(text.c_str()).has_value(), !known) << text;
        const auto twin = std::ranges::find_if(model, same_address);
        const bool duplicate = twin != model.end() && twin->second;
        if (!known) model[text] = duplicate;
        break;
      }
      case 3:
      case 4:
        ASSERT_EQ(addressing->remove(dummy, prefix(text.c_str()), retired).has_value(),
                  model.erase(text) == 1);
        break;
      case 5:
        if (!v4 && addressing->conflict(dummy, ip(address.c_str()).v6(), retired))
          for (auto& each : model)
            if (same_address(each)) each.second = true;
        break;
      case 6:
        now += kNsPerSecond;
        questions();
        break;
      default:
        up = !up;
        set_up(up);
        if (up)
          for (auto& each : model) each.second = false;
    }
    const auto seen = routes();
    ASSERT_EQ(std::multiset<std::string>(seen.begin(), seen.end()), wanted_routes(model, up)) << step;
    ASSERT_EQ(addressing->addresses(), model.size());
    if (step % 20 == 0) commit();
  }
}

}  // namespace
}  // namespace mayfly
