// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <map>
#include <set>

#include "../base/seed.hpp"
#include "iface/interface_table.hpp"
#include "iface/selector.hpp"
#include "reclaim/reclaim.hpp"

namespace mayfly {
namespace {

constexpr uint64_t kTimeoutNs = 60 * kNsPerSecond;

class InterfaceTest : public ::testing::Test {
 protected:
  InterfaceTest() : neighbours_(blocks_), reclaim_(TeardownConfig{}) {
    EXPECT_TRUE(reclaim_.start());
    table_ = std::move(*InterfaceTable::create(100'000, 2, blocks_, neighbours_));
    InterfaceSpec port;
    port.name = "port0";
    port.kind = kPortKind;
    port.port = 0;
    port.mtu = 1500;
    port.mac = 0x020000000001;
    port.up = true;
    port_ = *table_->claim(port);
    table_->commit(port_);
  }
  ~InterfaceTest() override {
    RetireList list;
    for (uint32_t ifindex = table_->next(1); ifindex != kNoInterface; ifindex = table_->next(1)) {
      while (table_->first_child(ifindex) != kNoInterface) ifindex = table_->first_child(ifindex);
      table_->retire(ifindex, list);
    }
    reclaim_.submit(list);
    EXPECT_TRUE(reclaim_.stop(kTimeoutNs));
    EXPECT_EQ(blocks_.blocks_in_use(), 0u);
    EXPECT_EQ(table_->in_use(), 0u);
  }

  InterfaceSpec vlan(std::string_view name, uint16_t id, uint16_t inner = 0, uint32_t parent = 0) {
    InterfaceSpec spec;
    spec.name = name;
    spec.kind = *find_kind("vlan");
    spec.parent = parent == 0 ? port_ : parent;
    const auto parameters = interface_kinds()[spec.kind]->description().parameters;
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (parameters[i].word == "id") spec.values.set(i, id);
      if (parameters[i].word == "inner" && inner != 0) spec.values.set(i, inner);
    }
    return spec;
  }
  static InterfaceSpec up(InterfaceSpec spec) {
    spec.up = true;
    return spec;
  }
  uint32_t create(const InterfaceSpec& spec) {
    const auto ifindex = table_->claim(spec);
    EXPECT_TRUE(ifindex) << ifindex.error().text;
    table_->commit(*ifindex);
    return *ifindex;
  }
  void retire_and_wait(uint32_t ifindex) {
    RetireList list;
    table_->retire(ifindex, list);
    reclaim_.submit(list);
    while (reclaim_.backlog().objects > 0) {
      pollfd ready{reclaim_.completion_fd(), POLLIN, 0};
      poll(&ready, 1, 5);
      reclaim_.collect(Deadline::never());
    }
  }

  BlockPools blocks_;
  Neighbours neighbours_;
  Reclaim reclaim_;
  std::unique_ptr<InterfaceTable> table_;
  uint32_t port_ = 0;
};

TEST_F(InterfaceTest, RefusalsHaveTheKernelsErrnoAndNameTheField) {
  create(vlan("v1", 100));
  const auto refused = [&](const InterfaceSpec& spec, int code, std::string_view part) {
    const auto result = table_->claim(spec);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, code);
    EXPECT_NE(result.error().text.find(part), std::string::npos) << result.error().text;
  };
  refused(vlan("v1", 101), EEXIST, "name 'v1'");
  refused(vlan("v2", 100), EEXIST, "'v1'");
  refused(vlan("sixteen-letters!", 101), EINVAL, "accepted 1..15");
  refused(vlan("", 101), EINVAL, "accepted 1..15");
  refused(vlan("a/b", 101), EINVAL, "'/'");
  refused(vlan("a b", 101), EINVAL, "white space");
  refused(vlan("..", 101), EINVAL, "'..'");
  auto spec = vlan("v2", 101);
  spec.parent = 4242;
  refused(spec, ENODEV, "parent");
  spec = vlan("v2", 101);
  spec.mtu = 67;
  refused(spec, EINVAL, "mtu 67");
  spec.mtu = 1501;
  refused(spec, EINVAL, "accepted 68..1500");
  spec = vlan("v2", 101);
  spec.mac = 0x010000000000;
  refused(spec, EADDRNOTAVAIL, "01:00:00:00:00:00");
  spec = vlan("v2", 101);
  spec.ifindex = port_;
  refused(spec, EEXIST, "port0");
  spec.ifindex = 100'001;
  refused(spec, ERANGE, "accepted 1..100000");
  EXPECT_EQ(table_->live(), 2u);
  EXPECT_EQ(table_->in_use(), 2u) << "a refused request kept a number";
}

TEST_F(InterfaceTest, ClaimedIsAConflictButInvisible) {
  const auto claimed = table_->claim(vlan("v1", 100));
  ASSERT_TRUE(claimed);
  EXPECT_EQ(table_->find(nullptr, "v1"), kNoInterface);
  EXPECT_FALSE(table_->exists(*claimed));
  EXPECT_FALSE(table_->interface(*claimed).live());
  EXPECT_EQ(table_->claim(vlan("v1", 101)).error().code, EEXIST);
  EXPECT_EQ(table_->claim(vlan("v2", 100)).error().code, EEXIST);
  RetireList list;
  table_->abandon(*claimed, list);
  reclaim_.submit(list);
  create(vlan("v1", 100));  // name and tag are free at once, the number is not
  EXPECT_NE(table_->find(nullptr, "v1"), *claimed);
}

TEST_F(InterfaceTest, NumbersComeBackOnlyAfterTeardownAndCarryNothingOver) {
  const uint32_t first = create(vlan("v1", 100));
  table_->set_alias(first, "customer");
  table_->counters(1)[first].rx_packets.store(77);
  const uint64_t first_id = table_->interface(first).id;
  table_->references(1)[first].store(1);
  RetireList list;
  table_->retire(first, list);
  reclaim_.submit(list);
  auto again = vlan("v1", 100);
  again.ifindex = first;
  EXPECT_EQ(table_->claim(again).error().code, EBUSY) << "a number in teardown was given out";
  table_->references(1)[first].store(0);
  while (reclaim_.backlog().objects > 0) {
    pollfd ready{reclaim_.completion_fd(), POLLIN, 0};
    poll(&ready, 1, 5);
    reclaim_.collect(Deadline::never());
  }
  const uint32_t second = create(again);
  EXPECT_EQ(second, first);
  EXPECT_GT(table_->interface(second).id, first_id);
  EXPECT_EQ(table_->sums(second).rx_packets, 0u);
  EXPECT_EQ(table_->record(second).alias, nullptr);
}

TEST_F(InterfaceTest, AStackedVlanFollowsItsParentsStateAndAPortsVlansDoNot) {
  auto spec = vlan("outer", 5);
  spec.up = true;
  const uint32_t outer = create(spec);
  spec = vlan("inner", 6, 0, outer);
  spec.up = true;
  const uint32_t inner = create(spec);
  EXPECT_EQ(table_->interface(inner).tag_bytes, 8);
  EXPECT_EQ(table_->port_demux(0).vlans.find({TagProtocol::c_tag, 5, 6}), inner);
  EXPECT_TRUE(table_->interface(inner).live_and_up());
  table_->set_admin_up(outer, false);
  EXPECT_FALSE(table_->interface(inner).live_and_up());
  EXPECT_TRUE(table_->record(inner).admin_up);
  table_->set_admin_up(outer, true);
  EXPECT_TRUE(table_->interface(inner).live_and_up());
  table_->set_admin_up(port_, false);
  EXPECT_TRUE(table_->interface(inner).live_and_up()) << "workers look at the port themselves";
  EXPECT_FALSE(table_->oper_up(inner));
  EXPECT_EQ(table_->claim(vlan("third", 7, 0, inner)).error().code, EOPNOTSUPP);
}

// Random creates, deletes, renames and group changes against maps; at the end every list agrees.
TEST_F(InterfaceTest, AgreesWithAModel) {
  struct Known {
    std::string name;
    uint16_t id, inner;
    uint32_t group;
  };
  std::mt19937_64 random = testing::seeded_random();
  std::map<uint32_t, Known> model;
  std::set<uint64_t> ids;
  const auto named = [&](const std::string& name) {
    return std::ranges::find_if(model, [&](const auto& entry) { return entry.second.name == name; });
  };
  for (int step = 0; step < 30'000; ++step) {
    const std::string name = fmt::format("i{}", random() % 300);
    const auto id = static_cast<uint16_t>(1 + random() % 40);
    const auto inner = static_cast<uint16_t>(random() % 2 == 0 ? 0 : 1 + random() % 10);
    if (random() % 3 != 0) {
      auto spec = vlan(name, id, inner);
      spec.group = static_cast<uint32_t>(random() % 5);
      const bool conflict = named(name) != model.end() || std::ranges::any_of(model, [&](const auto& entry) {
                              return entry.second.id == id && entry.second.inner == inner;
                            });
      const auto ifindex = table_->claim(spec);
      ASSERT_EQ(ifindex.has_value(), !conflict);
      if (ifindex) {
        table_->commit(*ifindex);
        ASSERT_TRUE(ids.insert(table_->interface(*ifindex).id).second) << "an id was used twice";
        model[*ifindex] = {name, id, inner, spec.group};
      }
    } else if (!model.empty()) {
      auto victim = model.lower_bound(static_cast<uint32_t>(random() % 400));
      if (victim == model.end()) victim = model.begin();
      const uint64_t choice = random() % 4;
      if (choice == 0) {
        const bool taken = named(name) != model.end() && named(name) != victim;
        ASSERT_EQ(table_->rename(victim->first, name).has_value(), !taken);
        if (!taken) victim->second.name = name;
      } else if (choice == 1) {
        victim->second.group = static_cast<uint32_t>(random() % 5);
        table_->set_group(victim->first, victim->second.group);
      } else {
        RetireList list;
        table_->retire(victim->first, list);
        reclaim_.submit(list);
        model.erase(victim);
      }
    }
    if (step % 100 == 0) reclaim_.collect(Deadline::never());
  }
  ASSERT_EQ(table_->live(), model.size() + 1);
  for (const auto& [ifindex, known] : model) {
    EXPECT_EQ(table_->find(nullptr, known.name), ifindex);
    EXPECT_EQ(table_->port_demux(0).vlans.find({TagProtocol::c_tag, known.id, known.inner}), ifindex);
  }
  for (uint32_t group = 0; group < 5; ++group) {
    Selector selector;
    selector.group = group;
    selector.parent = port_;
    std::set<uint32_t> expected, found;
    for (const auto& [ifindex, known] : model)
      if (known.group == group) expected.insert(ifindex);
    SelectorWalk walk(*table_, selector);
    for (uint32_t at = walk.next(Deadline::never()); at != kNoInterface; at = walk.next(Deadline::never()))
      EXPECT_TRUE(found.insert(at).second);
    EXPECT_EQ(found, expected);
  }
}

TEST_F(InterfaceTest, CarrierIsDerivedByWhatIsStacked) {
  const uint32_t vlan5 = create(up(vlan("v5", 5)));
  const uint32_t stacked = create(up(vlan("w", 6, 0, vlan5)));
  EXPECT_TRUE(table_->oper_up(stacked));
  const uint32_t flags = table_->interface(stacked).flags.load();
  table_->set_tag_losses(port_, 4, 8);
  table_->set_carrier(port_, false);
  for (const uint32_t ifindex : {port_, vlan5, stacked}) EXPECT_FALSE(table_->oper_up(ifindex));
  EXPECT_EQ(table_->interface(stacked).flags.load(), flags) << "nothing is written but the port";
  table_->set_admin_up(port_, false);
  table_->set_admin_up(port_, true);
  EXPECT_FALSE(table_->has_carrier(port_)) << "up and down do not change the link";
  const uint32_t of_port = table_->interface(port_).flags.load();
  EXPECT_EQ(Interface::tag_loss(of_port, 0), 0u);
  EXPECT_EQ(Interface::tag_loss(of_port, 4), 4u);
  EXPECT_EQ(Interface::tag_loss(of_port, 8), 8u);
  table_->set_carrier(port_, true);
  EXPECT_TRUE(table_->oper_up(stacked));
  EXPECT_EQ(Interface::tag_loss(table_->interface(port_).flags.load(), 8), 8u);
}

// Against a plain count of what has which address.
TEST_F(InterfaceTest, OwnMacsAreThoseThatThePortDoesNotHave) {
  auto random = testing::seeded_random();
  const Mac of_port = table_->interface(port_).mac.load();
  const std::array<Mac, 4> macs = {of_port, 0x0200000000a1, 0x0200000000a2, 0x0200000000a3};
  std::map<uint32_t, Mac> expected;
  uint16_t next_tag = 1;
  for (int step = 0; step < 2'000; ++step) {
    const Mac mac = macs[random() % macs.size()];
    if (expected.size() < 3 || random() % 3 == 0) {
      InterfaceSpec spec = vlan("x", next_tag, static_cast<uint16_t>(step % 4'000 + 1));
      const std::string name = fmt::format("m{}", step);
      spec.name = name;
      if (mac != of_port || random() % 2 == 0) spec.mac = mac;
      expected[create(spec)] = mac;
      next_tag = static_cast<uint16_t>(next_tag % 4'000 + 1);
    } else {
      auto victim = expected.begin();
      std::advance(victim, random() % expected.size());
      if (random() % 2 == 0) {
        ASSERT_TRUE(table_->set_mac(victim->first, mac));
        victim->second = mac;
      } else {
        RetireList list;
        table_->retire(victim->first, list);
        reclaim_.submit(list);
        expected.erase(victim);
      }
    }
    std::map<Mac, uint32_t> count;
    for (const auto& [ifindex, has] : expected) {
      if (has != of_port) ++count[has];
      ASSERT_EQ(table_->shares_port_mac(ifindex), has == of_port);
    }
    ASSERT_EQ(table_->port_demux(0).own_macs.count, count);
  }
}

}  // namespace
}  // namespace mayfly
