// SPDX-License-Identifier: BSD-3-Clause
#include "fib/rib.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <tuple>
#include <vector>

#include "reclaim/reclaim.hpp"

namespace mayfly {
namespace {

constexpr IpAddress v4(Ipv4 address) {
  return IpAddress(address);
}

constexpr RouteAdd kAdd = RouteAdd::create_exclusive();
constexpr RouteAdd kReplace = RouteAdd::create_replace();
constexpr RouteAdd kAppend = RouteAdd::create_append();
constexpr RouteAdd kPrepend = {.create = true};
constexpr RouteAdd kChange = {.replace = true};

uint64_t seed_of_this_run() {
  const char* given = std::getenv("MAYFLY_TEST_SEED");
  const uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 0) : std::random_device{}();
  std::printf("MAYFLY_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

// As in the daemon there is one BlockPools; it is small (16 MiB a class), so that a test can exhaust it.
BlockPools pools(1);

void take_back(Returns& returns) {
  for (const Returns::Group& group : returns.groups())
    for (const uint32_t token : group.tokens) group.owner->take_back(token);
}

// The edits of all namespaces, and teardown of what they replaced.
void publish(RouteTable& table) {
  RetireList list;
  table.commit(list);
  Reclaim reclaim{TeardownConfig{}};
  EXPECT_TRUE(reclaim.start().has_value());
  reclaim.submit(list);
  EXPECT_TRUE(reclaim.stop(10 * kNsPerSecond));
}

// A namespace with the heads of its interfaces' lists, [0] unused.
struct Namespace {
  explicit Namespace(RouteTable& table) : routes(table), fib(pools), fib6(pools), rib(table, fib, fib6) {}
  ~Namespace() {
    publish(routes);
    Returns returns;
    rib.detach();
    rib.dismantle(returns);
    fib.dismantle(returns);
    fib6.dismantle(returns);
    take_back(returns);
  }

  uint32_t* list_of(uint32_t oif) { return oif == 0 ? nullptr : &lists[oif]; }
  Status add(const Route& route, RouteAdd how) { return rib.add(route, how, list_of(route.oif)); }
  Result<Route> remove(const RouteMatch& match) { return rib.remove(match, list_of(match.oif)); }
  uint32_t forwards_to(Ipv4 address) const {
    const RouteValue* value = fib.lookup_edit(address);
    return value == nullptr ? 0 : value->oif;
  }
  std::vector<Route> dump() {
    std::vector<Route> routes;
    for (RouteCursor at(rib); const Route* route = at.current(); at.advance()) routes.push_back(*route);
    return routes;
  }

  std::array<uint32_t, 16> lists{};
  RouteTable& routes;
  Fib fib;
  Fib6 fib6;
  Rib rib;
};

// What a FIB of either family says.
struct Next {
  uint32_t oif;
  IpAddress gateway;
  RouteType type;
  bool operator==(const Next&) const = default;
};

std::optional<Next> look_up(const Namespace& ns, IpAddress address) {
  if (address.is_v4()) {
    const RouteValue* value = ns.fib.lookup_edit(address.v4());
    if (value == nullptr) return std::nullopt;
    return Next{value->oif, value->gateway == 0 ? IpAddress{} : v4(value->gateway), value->type};
  }
  const RouteValue6* value = ns.fib6.lookup_edit(address.v6());
  if (value == nullptr) return std::nullopt;
  return Next{value->oif, IpAddress(value->gateway), value->type};
}

class RibTest : public testing::Test {
 protected:
  ~RibTest() override {
    ns.reset();
    EXPECT_EQ(pools.blocks_in_use(), 0U);
    EXPECT_EQ(table.in_use(), 0U);
  }

  RouteTable table{200'000};
  std::unique_ptr<Namespace> ns = std::make_unique<Namespace>(table);
};

void expect_error(const Status& status, int code, std::string_view part) {
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, code) << status.error().text;
  EXPECT_NE(status.error().text.find(part), std::string::npos) << status.error().text;
}

TEST_F(RibTest, RefusesWhatIsNoRoute) {
  expect_error(ns->add({.address = v4(0x0a000001), .length = 24, .oif = 1}, kAdd), EINVAL, "10.0.0.1/24");
  expect_error(ns->add({.address = v4(0x0a000001), .length = 24, .oif = 1}, kAdd), EINVAL,
               "the network is 10.0.0.0/24");
  expect_error(ns->add({.address = v4(0), .length = 33, .oif = 1}, kAdd), EINVAL,
               "prefix length 33: accepted 0..32");
  expect_error(ns->add({.address = v4(0)}, kAdd), EINVAL, "an interface is needed");
  expect_error(ns->add({.type = RouteType::kBlackhole, .oif = 3}, kAdd), EINVAL, "interface 3");
  expect_error(ns->add({.address = v4(0), .type = RouteType::kLocal, .oif = 3, .gateway = v4(1)}, kAdd),
               EINVAL, "gateway 0.0.0.1");
  expect_error(ns->add({.address = v4(0), .oif = 3, .gateway = v4(0xe0000001)}, kAdd), EINVAL,
               "gateway 224.0.0.1");
  expect_error(ns->add({.type = static_cast<RouteType>(5), .oif = 3}, kAdd), EINVAL, "route type 5");
  EXPECT_EQ(ns->rib.size(), 0U);
}

TEST_F(RibTest, KernelSemanticsOfAdd) {
  const Route first = {.address = v4(0x0a000000), .length = 8, .oif = 1};
  Route second = first;
  second.oif = 2;
  expect_error(ns->add(first, kChange), ENOENT, "10.0.0.0/8 metric 0 does not exist");
  ASSERT_TRUE(ns->add(first, kAdd).has_value());
  expect_error(ns->add(second, kAdd), EEXIST, "10.0.0.0/8 metric 0 exists");
  ASSERT_TRUE(ns->add(second, kAppend).has_value());
  expect_error(ns->add(second, kAppend), EEXIST, "exists");
  EXPECT_EQ(ns->forwards_to(0x0a010101), 1U);
  Route third = first;
  third.oif = 3;
  ASSERT_TRUE(ns->add(third, kPrepend).has_value());
  EXPECT_EQ(ns->forwards_to(0x0a010101), 3U);
  third.oif = 4;
  ASSERT_TRUE(ns->add(third, kReplace).has_value());
  EXPECT_EQ(ns->forwards_to(0x0a010101), 4U);
  ASSERT_TRUE(ns->add(third, kReplace).has_value());
  expect_error(ns->add(first, kReplace), EEXIST, "exists");
  Route cheap = first;
  cheap.oif = 5;
  cheap.metric = 10;
  ASSERT_TRUE(ns->add(cheap, kAdd).has_value());
  EXPECT_EQ(ns->forwards_to(0x0a010101), 4U);
  EXPECT_EQ(ns->rib.size(), 4U);
  for (const uint32_t next : {1U, 2U, 5U, 0U}) {
    ASSERT_TRUE(ns->remove({.address = v4(0x0a000000), .length = 8}).has_value());
    EXPECT_EQ(ns->forwards_to(0x0a010101), next);
  }
  const Result<Route> gone = ns->remove({.address = v4(0x0a000000), .length = 8});
  ASSERT_FALSE(gone.has_value());
  EXPECT_EQ(gone.error().code, ESRCH);
}

TEST_F(RibTest, LimitAndGateways) {
  RouteTable small(2);
  Namespace other(small);
  ASSERT_TRUE(other.add({.address = v4(0xc0000200), .length = 24, .oif = 1}, kAdd).has_value());
  ASSERT_TRUE(other.add({.address = v4(0xc0000201), .length = 32, .type = RouteType::kLocal, .oif = 1}, kAdd)
                  .has_value());
  expect_error(other.add({.address = v4(0), .oif = 1}, kAdd), ENOBUFS, "all 2 routes");
  EXPECT_EQ(other.forwards_to(1), 0U);

  ASSERT_TRUE(ns->add({.address = v4(0xc0000200), .length = 24, .oif = 1}, kAdd).has_value());
  ASSERT_TRUE(ns->add({.address = v4(0xc0000200), .length = 24, .oif = 2}, kAppend).has_value());
  ASSERT_TRUE(ns->add({.address = v4(0xc0000201), .length = 32, .type = RouteType::kLocal, .oif = 1}, kAdd)
                  .has_value());
  ASSERT_TRUE(ns->add({.address = v4(0), .oif = 1, .gateway = v4(0xc0000202)}, kAdd).has_value());
  EXPECT_EQ(ns->rib.interface_of_gateway(v4(0xc0000202), 0, nullptr).value(), 1U);
  EXPECT_EQ(ns->rib.interface_of_gateway(v4(0xc0000202), 2, &ns->lists[2]).value(), 2U);
  EXPECT_EQ(ns->rib.interface_of_gateway(v4(0xc0000202), 3, &ns->lists[3]).error().code, ENETUNREACH);
  EXPECT_EQ(ns->rib.interface_of_gateway(v4(0xc0000301), 0, nullptr).error().code, ENETUNREACH);
  EXPECT_EQ(ns->rib.interface_of_gateway(v4(0xc0000201), 0, nullptr).error().code, EINVAL);
}

TEST_F(RibTest, GatewaysOfIpv6) {
  const auto v6 = [](const char* text) { return *parse_address("test", text); };
  const Route connected = {.address = v6("2001:db8::"), .length = 64, .oif = 1};
  ASSERT_TRUE(ns->add(connected, kAdd).has_value());
  ASSERT_TRUE(
      ns->add({.address = v6("2001:db8::1"), .length = 128, .type = RouteType::kLocal, .oif = 1}, kAdd)
          .has_value());
  EXPECT_EQ(ns->rib.interface_of_gateway(v6("2001:db8::2"), 0, nullptr).value(), 1U);
  EXPECT_EQ(ns->rib.interface_of_gateway(v6("2001:db8::2"), 2, &ns->lists[2]).error().code, ENETUNREACH);
  EXPECT_EQ(ns->rib.interface_of_gateway(v6("2001:db8::1"), 0, nullptr).error().code, EINVAL);
  EXPECT_EQ(ns->rib.interface_of_gateway(v6("fe80::1"), 0, nullptr).error().code, EINVAL);
  EXPECT_EQ(ns->rib.interface_of_gateway(v6("fe80::1"), 7, &ns->lists[7]).value(), 7U);
  Route far = {.address = v6("2001:db8:1::"), .length = 48, .oif = 1, .gateway = v6("fe80::1")};
  ASSERT_TRUE(ns->add(far, kAdd).has_value());
  EXPECT_EQ(ns->rib.size(), 3U);
  far.address = v4(0x0a000000);
  far.length = 8;
  expect_error(ns->add(far, kAdd), EINVAL, "gateway fe80::1: not of the family of 10.0.0.0/8");
  far = connected;
  far.address = v6("2001:db8::7");
  expect_error(ns->add(far, kAdd), EINVAL, "the network is 2001:db8::/64");
  far.length = 129;
  expect_error(ns->add(far, kAdd), EINVAL, "prefix length 129: accepted 0..128");
}

// 0.0.0.0/0 and ::/0 have the same bits but not the same family.
TEST_F(RibTest, TheDefaultRoutesOfBothFamilies) {
  ASSERT_TRUE(ns->add({.address = v4(0), .oif = 1}, kAdd).has_value());
  ASSERT_TRUE(ns->add({.oif = 2}, kAdd).has_value());
  EXPECT_EQ(look_up(*ns, v4(1))->oif, 1U);
  EXPECT_EQ(look_up(*ns, IpAddress(Ipv6{1, 1}))->oif, 2U);
  ASSERT_TRUE(ns->remove({}).has_value());
  EXPECT_EQ(look_up(*ns, v4(1))->oif, 1U);
  EXPECT_FALSE(look_up(*ns, IpAddress(Ipv6{1, 1})).has_value());
}

TEST_F(RibTest, NamespacesShareNothingButMemory) {
  Namespace other(table);
  const Route route = {.address = v4(0x0a000000), .length = 8, .oif = 1};
  ASSERT_TRUE(ns->add(route, kAdd).has_value());
  EXPECT_EQ(other.rib.find({.address = v4(0x0a000000), .length = 8}, nullptr), nullptr);
  ASSERT_TRUE(other.add(route, kAdd).has_value());
  ASSERT_TRUE(ns->remove({.address = v4(0x0a000000), .length = 8}).has_value());
  EXPECT_EQ(other.forwards_to(0x0a000001), 1U);
  EXPECT_EQ(other.dump().size(), 1U);
}

TEST_F(RibTest, ThousandsOfInterfacesWithOneAddress) {
  constexpr uint32_t kInterfaces = 50'000;
  std::vector<uint32_t> lists(kInterfaces + 1);
  Route route = {.address = v4(0x0a000001), .length = 32, .type = RouteType::kLocal};
  for (route.oif = 1; route.oif <= kInterfaces; ++route.oif)
    ASSERT_TRUE(ns->rib.add(route, kAppend, &lists[route.oif]).has_value());
  EXPECT_EQ(ns->forwards_to(0x0a000001), 1U);
  for (uint32_t oif = 2; oif < kInterfaces; ++oif) {
    ASSERT_EQ(ns->rib.remove({.address = v4(0x0a000001), .length = 32, .oif = oif}, &lists[oif]).value().oif,
              oif);
    ASSERT_EQ(lists[oif], 0U);
  }
  ASSERT_FALSE(ns->rib.remove_interface(lists[1], 10).value());
  EXPECT_EQ(ns->forwards_to(0x0a000001), kInterfaces);
}

TEST_F(RibTest, AnInterfaceDiesInSlices) {
  for (uint32_t i = 0; i < 1'000; ++i)
    ASSERT_TRUE(
        ns->add({.address = v4(0x0a000000 + (i << 8)), .length = 24, .oif = 1 + i % 2}, kAdd).has_value());
  EXPECT_TRUE(ns->rib.remove_interface(ns->lists[1], 300).value());
  EXPECT_EQ(ns->rib.size(), 700U);
  EXPECT_FALSE(ns->rib.remove_interface(ns->lists[1], 300).value());
  EXPECT_EQ(ns->rib.size(), 500U);
  EXPECT_EQ(ns->lists[1], 0U);
  for (const Route& route : ns->dump()) ASSERT_EQ(route.oif, 2U);
}

TEST_F(RibTest, ADumpSurvivesEveryChange) {
  for (uint32_t i = 0; i < 10; ++i)
    ASSERT_TRUE(ns->add({.address = v4(i << 24), .length = 8, .oif = 1}, kAdd).has_value());
  std::vector<uint32_t> seen;
  RouteCursor at(ns->rib);
  EXPECT_FALSE(at.changed());
  while (const Route* route = at.current()) {
    const uint32_t here = route->address.v4() >> 24;
    seen.push_back(here);
    if (here == 2) {  // the one under the cursor, the next one and the last one go; new ones come
      for (const uint32_t gone : {2U, 3U, 9U})
        ASSERT_TRUE(ns->remove({.address = v4(gone << 24), .length = 8}).has_value());
      ASSERT_TRUE(ns->add({.address = v4(100U << 24), .length = 8, .oif = 1}, kAdd).has_value());
      continue;  // the cursor stands on the next one already
    }
    at.advance();
  }
  EXPECT_EQ(seen, (std::vector<uint32_t>{0, 1, 2, 4, 5, 6, 7, 8}));
  EXPECT_TRUE(at.changed());

  auto other = std::make_unique<Namespace>(table);
  ASSERT_TRUE(other->add({.address = v4(0), .oif = 1}, kAdd).has_value());
  RouteCursor orphan(other->rib);
  other.reset();
  EXPECT_EQ(orphan.current(), nullptr);
  EXPECT_TRUE(orphan.changed());
}

TEST_F(RibTest, RoutesOfADeadNamespaceDoNotDisturbTheLiving) {
  auto dying = std::make_unique<Namespace>(table);
  for (uint32_t i = 0; i < 5'000; ++i)
    for (Namespace* each : {dying.get(), ns.get()})
      ASSERT_TRUE(each->add({.address = v4(i << 8), .length = 24, .oif = 1}, kAdd).has_value());
  publish(table);
  Returns returns;
  dying->rib.detach();
  dying->rib.dismantle(returns);
  for (uint32_t i = 0; i < 5'000; i += 2)
    ASSERT_TRUE(ns->remove({.address = v4(i << 8), .length = 24}).has_value());
  take_back(returns);
  EXPECT_EQ(table.in_use(), 2'500U);
  for (uint32_t i = 0; i < 5'000; ++i)
    ASSERT_EQ(ns->rib.find({.address = v4(i << 8), .length = 24}, nullptr) != nullptr, i % 2 == 1);
}

// The slow and obvious Rib: one list of routes in the order of their prefix's list.
class Model {
 public:
  int add(const Route& route, RouteAdd how) {
    const auto first =
        std::ranges::find_if(routes_, [&](const Route& other) { return same_key(route, other); });
    const bool conflict = first != routes_.end();
    if (conflict && how.exclusive) return EEXIST;
    if (!conflict && !how.create) return ENOENT;
    const bool equal = std::ranges::find(routes_, route) != routes_.end();
    if (conflict && how.replace) {
      if (*first == route) return 0;
      if (equal) return EEXIST;
      *first = route;
      return 0;
    }
    if (equal) return EEXIST;
    auto at = routes_.end();
    if (conflict && !how.append)
      at = first;
    else
      at = std::ranges::find_if(routes_, [&](const Route& other) {
        return other.prefix() == route.prefix() && other.metric > route.metric;
      });
    routes_.insert(at, route);
    return 0;
  }

  std::optional<Route> remove(const RouteMatch& match) {
    const auto found =
        std::ranges::find_if(routes_, [&](const Route& route) { return match.matches(route); });
    if (found == routes_.end()) return std::nullopt;
    const Route route = *found;
    routes_.erase(found);
    return route;
  }

  void remove_interface(uint32_t oif) {
    std::erase_if(routes_, [&](const Route& route) { return route.oif == oif; });
  }

  std::optional<Next> lookup(IpAddress address) const {
    const Route* best = nullptr;
    for (const Route& route : routes_)
      if (route.prefix().contains(address) && (best == nullptr || best->length < route.length)) best = &route;
    if (best == nullptr) return std::nullopt;
    return Next{best->oif, best->gateway, best->type};
  }

  const std::vector<Route>& routes() const { return routes_; }

 private:
  static bool same_key(const Route& a, const Route& b) {
    return a.prefix() == b.prefix() && a.metric == b.metric;
  }
  std::vector<Route> routes_;
};

// Few different bits, so that routes meet.
IpAddress random_address(std::mt19937_64& random, bool ipv6) {
  const uint64_t bits = random();
  if (!ipv6) return v4(static_cast<Ipv4>(bits) & 0xc0600003);
  return IpAddress(Ipv6{bits & 0xc000'0000'0000'0001, bits >> 8 & 0x8000'0000'0000'0003});
}

Route random_route(std::mt19937_64& random) {
  const bool ipv6 = random() % 2 == 0;
  IpPrefix prefix(random_address(random, ipv6), 0);
  prefix.length = static_cast<uint8_t>(random() % (prefix.most_length() + 1U));
  Route route;
  route.address = prefix.network();
  route.length = prefix.length;
  route.metric = random() % 3;
  route.protocol = static_cast<uint8_t>(2 + random() % 2);
  if (random() % 10 == 0) {
    route.type = RouteType::kBlackhole;
  } else {
    route.oif = 1 + random() % 15;
    if (random() % 2 == 0) route.gateway = ipv6 ? IpAddress(Ipv6{0x2001'0db8ULL << 32, 1}) : v4(0x0a000001);
  }
  return route;
}

TEST_F(RibTest, RandomRequestsEqualTheModel) {
  std::mt19937_64 random(seed_of_this_run());
  const std::array<RouteAdd, 5> hows = {kAdd, kReplace, kAppend, kPrepend, kChange};
  Model model;
  for (int step = 0; step < 20'000; ++step) {
    const Route route = random_route(random);
    const unsigned what = random() % 100;
    if (what < 55) {
      const RouteAdd how = hows[random() % hows.size()];
      const Status added = ns->add(route, how);
      ASSERT_EQ(added.has_value() ? 0 : added.error().code, model.add(route, how));
    } else if (what < 98) {
      RouteMatch match = {.address = route.address, .length = route.length};
      if (random() % 2 == 0) match.metric = route.metric;
      if (random() % 2 == 0) match.protocol = route.protocol;
      if (random() % 4 == 0) match.gateway = route.gateway;
      if (random() % 4 == 0) match.oif = route.oif;
      const auto removed = ns->rib.remove(match, nullptr);
      const auto wanted = model.remove(match);
      ASSERT_EQ(removed.has_value(), wanted.has_value());
      if (wanted) {
        ASSERT_EQ(*removed, *wanted);
      }
    } else if (route.oif != 0) {
      while (ns->rib.remove_interface(ns->lists[route.oif], 5).value()) continue;
      model.remove_interface(route.oif);
    }
    ASSERT_EQ(ns->rib.size(), model.routes().size());
    for (int i = 0; i < 4; ++i) {
      const IpAddress address = random_address(random, i % 2 == 0);
      ASSERT_EQ(look_up(*ns, address), model.lookup(address)) << format_address(address);
    }
  }
  std::vector<Route> dumped = ns->dump();
  std::vector<Route> wanted = model.routes();
  const auto order = [](const Route& a, const Route& b) {
    return std::tie(a.address, a.length, a.metric, a.oif, a.gateway, a.type, a.protocol) <
           std::tie(b.address, b.length, b.metric, b.oif, b.gateway, b.type, b.protocol);
  };
  std::ranges::sort(dumped, order);
  std::ranges::sort(wanted, order);
  EXPECT_EQ(dumped, wanted);
}

TEST_F(RibTest, WithoutMemoryForTheFibNothingChanges) {
  ASSERT_TRUE(ns->add({.address = v4(0x0a000000), .length = 7, .oif = 2}, kAdd).has_value());
  ASSERT_TRUE(ns->add({.address = v4(0x0a000000), .length = 8, .oif = 1}, kAdd).has_value());
  std::vector<Retired*> taken;
  for (const size_t bytes : {48, 64, 96, 128})
    while (Retired* block = pools.allocate(bytes)) taken.push_back(block);
  RetireList list;
  ns->fib.commit(list);
  expect_error(ns->add({.address = v4(0x0b000000), .length = 24, .oif = 1}, kAdd), ENOBUFS,
               "11.0.0.0/24: no memory");
  EXPECT_EQ(ns->rib.remove_interface(ns->lists[1], 10).error().code, ENOBUFS);
  EXPECT_EQ(ns->remove({.address = v4(0x0a000000), .length = 8}).error().code, ENOBUFS);
  EXPECT_EQ(ns->rib.size(), 2U);
  EXPECT_EQ(table.in_use(), 2U);
  EXPECT_EQ(ns->forwards_to(0x0a000001), 1U);
  for (Retired* block : taken) pools.free_unpublished(*block);
  EXPECT_TRUE(ns->remove({.address = v4(0x0a000000), .length = 8}).has_value());
  EXPECT_EQ(list.objects(), 0U);
  EXPECT_EQ(ns->forwards_to(0x0a000001), 2U);
}

}  // namespace
}  // namespace mayfly
