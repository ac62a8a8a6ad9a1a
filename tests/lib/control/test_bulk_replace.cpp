// SPDX-License-Identifier: BSD-3-Clause
// link bulk replace: against a model, and what it refuses.
#include <gtest/gtest.h>
#include <algorithm>

#include <algorithm>
#include <map>
#include <set>

#include "../base/seed.hpp"
#include "bulk_client.hpp"
#include "control/bulk_dressing.hpp"
#include "iface/address_list.hpp"

namespace mayfly {
namespace {

// An interface as the tables have it.
struct Seen {
  uint64_t id = 0;
  uint16_t tag = 0;
  uint16_t inner = 0;
  uint32_t mtu = 0;
  uint32_t group = 0;
  std::string alias;
  bool up = false;
  bool strict = false;
  std::set<std::string> addresses;
  const void* address_block = nullptr;

  bool operator==(const Seen&) const = default;
};
using World = std::map<std::string, Seen>;

World look(ControlWorld& world) {
  World all;
  const InterfaceTable& table = world.interfaces();
  for (uint32_t at = table.next(1); at != kNoInterface; at = table.next(at + 1)) {
    if (at == world.port()) continue;
    const Interface& interface = table.interface(at);
    const InterfaceRecord& record = table.record(at);
    Seen seen;
    seen.id = interface.id;
    if (interface.tag_bytes > 0) seen.tag = interface.outer_tag();
    if (interface.tag_bytes == 8) seen.inner = interface.inner_tag();
    seen.mtu = interface.mtu.load();
    seen.group = record.group;
    seen.alias = record.alias == nullptr ? "" : record.alias;
    seen.up = record.admin_up;
    seen.strict = (interface.flags.load() & Interface::kRpFilterStrict) != 0;
    seen.address_block = interface.addresses.own();
    if (const AddressList* list = interface.addresses.own(); list != nullptr)
      for (const InterfaceAddress& entry : list->all()) seen.addresses.insert(format_prefix(entry.prefix()));
    EXPECT_EQ(table.state(at), InterfaceState::live) << record.name;
    all.emplace(record.name, seen);
  }
  return all;
}

// The model of an interface: Seen without what only the tables know.
bool same_key(const Seen& seen, const Row& row) {
  return seen.tag == row.id && seen.inner == row.inner;
}

bool bad(const Row& row) {
  return row.id != 0 && row.mtu && *row.mtu > 1500;  // the port's
}

Seen give(Seen seen, const Row& row, std::optional<uint32_t> sweep) {
  if (row.mtu) seen.mtu = *row.mtu;
  if (row.group)
    seen.group = *row.group;
  else if (sweep)
    seen.group = *sweep;
  if (row.alias) seen.alias = *row.alias;
  if (row.up) seen.up = *row.up;
  if (row.strict) seen.strict = *row.strict;
  if (!row.addresses.empty()) seen.addresses = {row.addresses.begin(), row.addresses.end()};
  return seen;
}

Seen make_new(const Row& row, std::optional<uint32_t> sweep) {
  Seen seen;
  seen.tag = row.id;
  seen.inner = row.inner;
  seen.mtu = 1500;
  return give(seen, row, sweep);
}

// What a replace must answer and leave behind; id 0 stands for a new one.
struct Expected {
  World world;
  uint64_t created = 0, kept = 0, changed = 0, deleted = 0, failed = 0;
  std::set<std::string> untouched;
};

bool key_taken(const World& world, const Row& row) {
  if (row.id == 0) return false;
  return std::ranges::any_of(world, [&](const auto& each) { return same_key(each.second, row); });
}

Expected expect(const World& before, const std::vector<Row>& rows, const BulkClient::Switches& switches) {
  Expected out;
  out.world = before;
  std::vector<const Row*> missing;
  std::set<std::string> listed;
  std::set<std::string> victims;
  std::map<std::string, Seen> changes;
  for (const Row& row : rows) {
    const auto found = before.find(row.name);
    if (found == before.end()) {
      missing.push_back(&row);
      continue;
    }
    if (!listed.insert(row.name).second) {
      ++out.failed;
      continue;
    }
    if (!same_key(found->second, row)) {
      if (switches.force) {
        victims.insert(row.name);
        missing.push_back(&row);
      } else {
        ++out.failed;
      }
      continue;
    }
    const Seen after = give(found->second, row, switches.sweep);
    if (after == found->second) {
      ++out.kept;
      out.untouched.insert(row.name);
    } else if (bad(row)) {
      ++out.failed;
    } else {
      ++out.changed;
      changes.emplace(row.name, after);
    }
  }
  if (switches.sweep)
    for (const auto& [name, seen] : before)
      if (seen.group == *switches.sweep && !listed.contains(name)) victims.insert(name);
  out.deleted = victims.size();
  World at_claim = before;
  if (switches.force)
    for (const std::string& name : victims) at_claim.erase(name);
  World created;
  for (const Row* row : missing) {
    if (at_claim.contains(row->name) || key_taken(at_claim, *row) || bad(*row)) {
      ++out.failed;
      continue;
    }
    const Seen seen = make_new(*row, switches.sweep);
    at_claim.emplace(row->name, seen);
    created.emplace(row->name, seen);
  }
  out.created = created.size();
  if (out.failed > 0 && !switches.force) {
    for (const auto& [name, seen] : before) out.untouched.insert(name);
    out.created = out.kept = out.changed = out.deleted = 0;
    return out;
  }
  for (const std::string& name : victims) out.world.erase(name);
  for (auto& [name, seen] : changes) out.world[name] = seen;
  for (auto& [name, seen] : created) out.world[name] = seen;
  return out;
}

std::vector<Row> random_plan(std::mt19937_64& random, const World& before) {
  std::vector<Row> rows;
  const unsigned density = 20 + random() % 80;
  const bool clean = random() % 3 != 0;  // most plans have no mistakes in them
  for (unsigned n = 0; n < 120; ++n) {
    if (random() % 100 >= density) continue;
    Row row;
    row.name = "n" + std::to_string(n);
    row.id = n % 5 == 0 ? 0 : static_cast<uint16_t>(1 + n);
    if (n % 7 == 1 && row.id != 0) row.inner = 3;
    if (const auto found = before.find(row.name); clean && found != before.end()) {
      row.id = found->second.tag;
      row.inner = found->second.inner;
    } else if (!clean && random() % 20 == 0 && row.id != 0) {
      row.id = static_cast<uint16_t>(1 + random() % 120);
    }
    if (random() % 4 == 0) row.mtu = 1400 + random() % 101;
    if (!clean && random() % 60 == 0) row.mtu = 9000;
    if (random() % 8 == 0) row.group = 7 + random() % 2;
    if (random() % 4 == 0) row.alias = random() % 2 == 0 ? "" : "line " + std::to_string(random() % 3);
    if (random() % 2 == 0) row.up = random() % 3 != 0;
    if (random() % 4 == 0) row.strict = random() % 2 == 0;
    if (random() % 3 == 0)
      for (unsigned address = 0; address <= random() % 2; ++address)
        row.addresses.push_back("10." + std::to_string(address) + "." + std::to_string(n) + "." +
                                std::to_string(1 + random() % 2) + "/30");
    rows.push_back(row);
    if (!clean && random() % 80 == 0) rows.push_back(row);
  }
  std::ranges::shuffle(rows, random);
  return rows;
}

void compare(const World& after, const Expected& expected, const World& before) {
  ASSERT_EQ(after.size(), expected.world.size());
  for (const auto& [name, want] : expected.world) {
    const auto found = after.find(name);
    ASSERT_NE(found, after.end()) << name;
    Seen seen = found->second;
    if (expected.untouched.contains(name)) {
      ASSERT_EQ(seen, before.at(name)) << name << " was touched";
      continue;
    }
    if (want.id != 0) {
      EXPECT_EQ(seen.id, want.id) << name << " is another one";
    }
    seen.id = want.id;
    seen.address_block = want.address_block;
    EXPECT_EQ(seen, want) << name;
  }
}

TEST(BulkReplace, DoesWhatTheModelDoes) {
  std::mt19937_64 random = testing::seeded_random();
  ControlWorld world;
  BulkClient client(world);
  for (int round = 0; round < 300; ++round) {
    const World before = look(world);
    const std::vector<Row> rows = random_plan(random, before);
    if (rows.empty()) continue;
    BulkClient::Switches switches;
    if (random() % 3 != 0) switches.sweep = 7 + random() % 2;
    switches.force = random() % 3 == 0;
    const Expected expected = expect(before, rows, switches);
    if (random() % 4 == 0) {
      BulkClient::Switches dry = switches;
      dry.dry_run = true;
      const BulkAnswer answer = client.make(rows, dry);
      ASSERT_TRUE(answer.has_result) << answer.text;
      EXPECT_EQ(look(world), before) << "a dry run changed something";
      if (!switches.force && expected.failed == 0) {
        EXPECT_EQ(answer.created, expected.created);
        EXPECT_EQ(answer.kept, expected.kept);
        EXPECT_EQ(answer.changed, expected.changed);
        EXPECT_EQ(answer.deleted, expected.deleted);
      }
    }
    const BulkAnswer answer = client.make(rows, switches);
    ASSERT_TRUE(answer.has_result) << answer.text;
    ASSERT_EQ(answer.code == 0, switches.force || expected.failed == 0) << answer.text;
    EXPECT_EQ(answer.created, expected.created);
    EXPECT_EQ(answer.kept, expected.kept);
    EXPECT_EQ(answer.changed, expected.changed);
    EXPECT_EQ(answer.deleted, expected.deleted);
    if (switches.force) {
      EXPECT_EQ(answer.failed, expected.failed);
      EXPECT_EQ(answer.matched,
                answer.created + answer.kept + answer.changed + answer.deleted + answer.failed);
    } else {
      EXPECT_EQ(answer.failed > 0, expected.failed > 0);
    }
    compare(look(world), expected, before);
    if (HasFailure()) FAIL() << "round " << round;
    // The same again keeps everything.
    if (answer.code == 0 && answer.failed == 0) {
      const World now = look(world);
      const BulkAnswer again = client.make(rows, switches);
      EXPECT_EQ(again.kept, rows.size());
      EXPECT_EQ(again.created + again.changed + again.deleted + again.failed, 0u);
      EXPECT_EQ(look(world), now);
    }
  }
  world.delete_all(false);
  EXPECT_EQ(world.interfaces().in_use(), 1u);
  EXPECT_EQ(world.dataplane().routes.in_use(), 0u);
}

class BulkReplaceTest : public ::testing::Test {
 protected:
  uint32_t find(std::string_view name) {
    return world_.interfaces().find(&world_.dataplane().netnses.initial(), name);
  }
  // Refused, and nothing has changed.
  void refuse(const std::vector<Row>& rows, const BulkClient::Switches& switches, int code,
              std::string_view text, std::optional<uint64_t> member = {}) {
    const World before = look(world_);
    const BulkAnswer answer = client_.make(rows, switches);
    EXPECT_EQ(answer.code, code) << answer.text;
    EXPECT_NE(answer.text.find(text), std::string::npos) << answer.text;
    if (member) {
      ASSERT_FALSE(answer.members.empty());
      EXPECT_EQ(answer.members.front(), member);
    }
    EXPECT_EQ(look(world_), before);
    EXPECT_EQ(client_.client().connection().items().count, 0u);
  }
  void make(const std::vector<Row>& rows, const BulkClient::Switches& switches = {}) {
    const BulkAnswer answer = client_.make(rows, switches);
    ASSERT_EQ(answer.code, 0) << answer.text;
    ASSERT_EQ(answer.failed, 0u) << answer.texts.front();
  }

  ControlWorld world_;
  BulkClient client_{world_};
};

TEST_F(BulkReplaceTest, RefusesAndSaysWhichMember) {
  make({{.name = "a", .id = 1, .group = 7}, {.name = "b", .id = 2, .group = 7}});
  refuse({{.name = "c", .id = 3}, {.name = "d", .id = 4, .parent = "nope"}}, {}, ENODEV,
         "link: interface 'nope' does not exist", 1);
  refuse({{.name = "c", .id = 3}, {.name = "c", .id = 4}}, {}, EEXIST, "listed twice", 1);
  refuse({{.name = "a", .id = 1}, {.name = "a", .id = 1}}, {}, EEXIST, "listed twice", 1);
  refuse({{.name = "c", .id = 5000}}, {}, ERANGE, "vlan id 5000: accepted 1..4094", 0);
  refuse({{.name = "a", .id = 1, .mtu = 1501}}, {}, EINVAL, "mtu 1501: accepted 68..1500", 0);
  refuse({{.name = "a", .id = 9}}, {}, EEXIST, "delete it before", 0);
  refuse({{.name = "a"}}, {}, EEXIST, "another type, link or key", 0);
  refuse({{.name = "c", .id = 2}}, {.sweep = 7}, EEXIST, "belongs to interface 'b'", 0);
  refuse({{.name = "c/d", .id = 3}}, {}, EINVAL, "'/'", 0);
  refuse({{.name = "c", .id = 3, .addresses = {"224.0.0.1/32"}}}, {}, EADDRNOTAVAIL, "224.0.0.1/32", 0);
  refuse({{.name = "c", .id = 3, .routes = {"10.0.0.0/24"}}}, {}, EINVAL, "add 'up'", 0);
  refuse({{.name = "c", .id = 3, .up = true, .routes = {"10.0.0.1/24"}}}, {}, EINVAL, "10.0.0.1/24", 0);
}

TEST_F(BulkReplaceTest, RefusesRequestsThatMeanTooMuch) {
  make({{.name = "a", .id = 1, .group = 7}});
  refuse({{.name = "a", .id = 1}}, {.sweep = 0}, EINVAL, "group 0");
  refuse({{.name = "b", .id = 2}}, {.replace = false, .sweep = 7}, EINVAL, "goes with replace");
  refuse({}, {}, EINVAL, "nothing is listed");
  refuse({}, {.force = true}, EINVAL, "nothing is listed");
  refuse({}, {.sweep = 7}, EINVAL, "all of group 7");
  const BulkAnswer answer = client_.make({}, {.sweep = 7, .force = true});
  EXPECT_EQ(answer.code, 0) << answer.text;
  EXPECT_EQ(answer.deleted, 1u);
  EXPECT_EQ(look(world_).size(), 0u);
}

TEST_F(BulkReplaceTest, CountsTheItems) {
  client_.list({{.name = "a", .id = 1}});
  RequestMessage message;
  message.begin_generic(protocol::kCmdLinkBulkAdd);
  message.put_flag(protocol::kBulkListed);
  message.put_u64(protocol::kBulkCount, 2);
  EXPECT_EQ(client_.send(message).text, "count 2: 1 items were listed on this connection");
  // The list is used up by that.
  message.begin_generic(protocol::kCmdLinkBulkAdd);
  message.put_flag(protocol::kBulkListed);
  message.put_u64(protocol::kBulkCount, 1);
  EXPECT_EQ(client_.send(message).code, EINVAL);
  message.begin_generic(protocol::kCmdLinkBulkItems);
  message.put_string(protocol::kBulkName, "a");
  EXPECT_EQ(client_.send(message).code, EINVAL);
}

TEST_F(BulkReplaceTest, KeepsWhatOthersStandOn) {
  make({{.name = "outer", .id = 5, .group = 7}});
  make({{.name = "inner", .id = 6, .parent = "outer", .group = 8}});
  refuse({{.name = "inner", .id = 6, .parent = "outer", .group = 8}}, {.sweep = 7}, EBUSY,
         "what is listed stands on it");
  refuse({{.name = "inner2", .id = 7, .parent = "outer"}}, {.sweep = 7}, EBUSY, "stands on it");
  // Forced, it is reported and stays.
  const BulkAnswer answer =
      client_.make({{.name = "inner", .id = 6, .parent = "outer", .group = 8}}, {.sweep = 7, .force = true});
  EXPECT_EQ(answer.failed, 1u);
  EXPECT_EQ(answer.kept, 1u);
  EXPECT_EQ(look(world_).size(), 2u);
  // What stands on a swept one and is not listed goes with it.
  make({{.name = "x", .id = 100}}, {.sweep = 7});
  EXPECT_EQ(find("inner"), kNoInterface);
  EXPECT_EQ(find("outer"), kNoInterface);
}

TEST_F(BulkReplaceTest, MovesAKeyWhenForced) {
  make({{.name = "a", .id = 1, .group = 7},
        {.name = "b", .id = 2, .group = 7},
        {.name = "c", .id = 3, .group = 7}});
  const uint64_t kept = look(world_).at("c").id;
  // a and b swap their tags, d takes that of nobody, c stays.
  const BulkAnswer answer = client_.make(
      {{.name = "a", .id = 2}, {.name = "b", .id = 1}, {.name = "c", .id = 3}, {.name = "d", .id = 4}},
      {.sweep = 7, .force = true});
  EXPECT_EQ(answer.failed, 0u);
  EXPECT_EQ(answer.created, 3u);
  EXPECT_EQ(answer.deleted, 2u);
  EXPECT_EQ(answer.kept, 1u);
  const World now = look(world_);
  EXPECT_EQ(now.at("a").tag, 2);
  EXPECT_EQ(now.at("b").tag, 1);
  EXPECT_EQ(now.at("c").id, kept);
}

TEST_F(BulkReplaceTest, ABadRowIsNotSwept) {
  make({{.name = "a", .id = 1, .group = 7}, {.name = "b", .id = 2, .group = 7}});
  const BulkAnswer answer = client_.make({{.name = "a", .id = 1, .parent = "nope"}, {.name = "c", .id = 3}},
                                         {.sweep = 7, .force = true});
  EXPECT_EQ(answer.failed, 1u);
  EXPECT_EQ(answer.deleted, 1u);
  EXPECT_NE(find("a"), kNoInterface);
  EXPECT_EQ(find("b"), kNoInterface);
  EXPECT_NE(find("c"), kNoInterface);
}

TEST_F(BulkReplaceTest, ATemplateDressesItsMembersStepByStep) {
  RequestMessage message;
  const auto ask = [&] {
    message.begin_generic(protocol::kCmdLinkBulkAdd);
    message.put_string(protocol::kBulkName, "s{}");
    message.put_u64(protocol::kBulkCount, 100);
    put_template(message, {});
    message.put_flag(protocol::kBulkUp);
    put_prefix(message, protocol::kBulkAddress, "10.0.0.1/30", 4);
    put_prefix(message, protocol::kBulkAddress, "2001:db8::1/64", 1, 64);
    put_prefix(message, protocol::kBulkRoute, "100.64.0.0/32", 1);
    BulkClient::put_switches(message, {.sweep = 9});
    return client_.send(message);
  };
  const BulkAnswer answer = ask();
  EXPECT_EQ(answer.code, 0) << answer.text;
  EXPECT_EQ(answer.created, 100u);
  const World now = look(world_);
  EXPECT_EQ(now.at("s0").addresses, (std::set<std::string>{"10.0.0.1/30", "2001:db8::1/64"}));
  EXPECT_EQ(now.at("s99").addresses, (std::set<std::string>{"10.0.1.141/30", "2001:db8:0:63::1/64"}));
  const Netns& netns = world_.dataplane().netnses.initial();
  EXPECT_EQ(netns.fib.lookup((100u << 24) + (64u << 16) + 57)->oif, find("s57"));
  EXPECT_EQ(netns.fib.lookup((100u << 24) + (64u << 16) + 100), nullptr);
  const BulkAnswer again = ask();
  EXPECT_EQ(again.kept, 100u) << again.text;
  EXPECT_EQ(look(world_), now);
}

// A client that dies while its request runs, after so many slices of the shortest kind: all or nothing.
TEST(BulkReplace, IsWholeWhenItsClientDies) {
  std::mt19937_64 random = testing::seeded_random();
  ControlWorld world;
  uint64_t done_rounds = 0;
  for (int round = 0; round < 60; ++round) {
    std::vector<Row> rows;
    for (unsigned n = 0; n < 200; ++n)
      if (random() % 4 != 0)
        rows.push_back({.name = "n" + std::to_string(n),
                        .id = static_cast<uint16_t>(1 + n),
                        .alias = std::to_string(random() % 2),
                        .up = true,
                        .addresses = {fmt::format("10.0.{}.1/32", n)}});
    const World before = look(world);
    {
      BulkClient client(world);
      RequestMessage message = client.prepare(rows, {.sweep = 7});
      Connection& connection = client.client().connection();
      client.client().post({reinterpret_cast<const std::byte*>(message.header()), message.size()});
      for (uint64_t slices = random() % 40; slices > 0; --slices) connection.run(Deadline::after_ns(0));
    }
    const World after = look(world);
    std::set<std::string> listed;
    for (const Row& row : rows) listed.insert(row.name);
    if (after == before) continue;
    ++done_rounds;
    ASSERT_EQ(after.size(), listed.size()) << "round " << round;
    for (const Row& row : rows) {
      ASSERT_TRUE(after.contains(row.name));
      EXPECT_EQ(after.at(row.name).alias, *row.alias);
      EXPECT_EQ(after.at(row.name).addresses.size(), 1u);
    }
  }
  EXPECT_GT(done_rounds, 0u);
}

RequestMessage dressed_template(unsigned members, unsigned of_each) {
  RequestMessage message;
  message.begin_generic(protocol::kCmdLinkBulkAdd);
  message.put_string(protocol::kBulkName, "d{}");
  message.put_u64(protocol::kBulkCount, members);
  message.put_flag(protocol::kBulkUp);
  put_template(message, {.name = ""});
  for (unsigned i = 0; i < of_each; ++i) {
    put_prefix(message, protocol::kBulkAddress, fmt::format("10.{}.{}.1/32", i / 256, i % 256), 65'536);
    put_prefix(message, protocol::kBulkRoute, fmt::format("2001:db8:{:x}::/64", i), 65'536, 64);
    const RequestMessage::Nest neighbour(message, protocol::kBulkNeighbour);
    const uint32_t address = htonl(0x0a000002 + (i << 8));
    const uint8_t mac[6] = {2, 0, 0, 0, 0, 1};
    message.put(protocol::kDressAddress, &address, sizeof address);
    message.put(protocol::kDressLladdr, mac, sizeof mac);
  }
  return message;
}

// What one message can make a member wear is bounded, and how long a slice is does not depend on it.
TEST(BulkAdd, HeavyMembersAreFewInASlice) {
  ControlWorld world;
  BulkClient client(world);
  for (const unsigned too_many : {unsigned{Dressing::kMostOfEach} + 1, 300U}) {
    RequestMessage message = dressed_template(10, too_many);
    ASSERT_FALSE(message.overflown());
    const BulkAnswer answer = client.send(message);
    EXPECT_EQ(answer.code, E2BIG);
    EXPECT_EQ(answer.text, fmt::format("addr: given {} times, accepted 0..16", too_many));
    EXPECT_FALSE(answer.has_result);
  }
  constexpr unsigned kMembers = 60;
  RequestMessage message = dressed_template(kMembers, Dressing::kMostOfEach);
  client.begin(message);
  uint32_t slices = 0;
  for (uint32_t before = world.interfaces().live(); !client.client().connection().idle();
       before = world.interfaces().live(), ++slices) {
    client.client().connection().run(Deadline::after_ns(0));
    EXPECT_LE(world.interfaces().live(), before + 1) << "several in one step";
  }
  EXPECT_GE(slices, 2 * (kMembers - 1)) << "each pass";
  EXPECT_EQ(client.finish().changed, kMembers);
}

// Memory that runs out in the middle of the second pass.
TEST(BulkAdd, TakesBackWhatAppearedWhenRoutesRunOut) {
  ControlWorld world({}, 1'000, 50);
  BulkClient client(world);
  std::vector<Row> rows;
  for (unsigned n = 0; n < 100; ++n)
    rows.push_back({.name = "d" + std::to_string(n), .addresses = {fmt::format("10.0.{}.1/32", n)}});
  const BulkAnswer answer = client.make(rows, {.replace = false});
  EXPECT_EQ(answer.code, ENOBUFS) << answer.text;
  EXPECT_NE(answer.text.find("nothing was changed"), std::string::npos) << answer.text;
  EXPECT_EQ(answer.members.front(), 50u);
  EXPECT_EQ(look(world).size(), 0u);
  world.settle();
  EXPECT_EQ(world.interfaces().in_use(), 1u);
  EXPECT_EQ(world.dataplane().routes.in_use(), 0u);
  EXPECT_EQ(world.dataplane().addressing.addresses(), 0u);
  // Forced, what can be made is made.
  const BulkAnswer forced = client.make(rows, {.replace = false, .force = true});
  EXPECT_EQ(forced.changed, 50u);
  EXPECT_EQ(forced.failed, 50u);
  EXPECT_EQ(look(world).size(), 50u);
}

}  // namespace
}  // namespace mayfly
