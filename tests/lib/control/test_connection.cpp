// SPDX-License-Identifier: BSD-3-Clause
// What the order and the flags of messages in a datagram mean.
#include <gtest/gtest.h>
#include <linux/if_link.h>

#include <string>

#include "control/change_list.hpp"
#include "control_world.hpp"

namespace mayfly {
namespace {

class Datagram {
 public:
  nlmsghdr* add(uint16_t type, uint16_t flags) {
    used_ += current_ == nullptr ? 0 : NLMSG_ALIGN(current_->nlmsg_len);
    current_ = mnl_nlmsg_put_header(buffer_ + used_);
    current_->nlmsg_type = type;
    current_->nlmsg_flags = static_cast<uint16_t>(NLM_F_REQUEST | flags);
    current_->nlmsg_seq = ++sequence_;
    mnl_nlmsg_put_extra_header(current_, sizeof(ifinfomsg));
    return current_;
  }
  void add_dummy(const std::string& name) {
    nlmsghdr* message = add(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK);
    mnl_attr_put_strz(message, IFLA_IFNAME, name.c_str());
    nlattr* info = mnl_attr_nest_start(message, IFLA_LINKINFO);
    mnl_attr_put_strz(message, IFLA_INFO_KIND, "dummy");
    mnl_attr_nest_end(message, info);
  }
  void remove(const std::string& name, uint16_t flags = 0) {
    mnl_attr_put_strz(add(RTM_DELLINK, static_cast<uint16_t>(NLM_F_ACK | flags)), IFLA_IFNAME, name.c_str());
  }
  std::span<const std::byte> bytes() const {
    return {reinterpret_cast<const std::byte*>(buffer_), used_ + NLMSG_ALIGN(current_->nlmsg_len)};
  }

 private:
  alignas(8) char buffer_[4096] = {};
  size_t used_ = 0;
  nlmsghdr* current_ = nullptr;
  uint32_t sequence_ = 0;
};

// The errno of each acknowledgement, in order; other answers are left out.
std::vector<int> codes(const std::vector<std::byte>& answers) {
  std::vector<int> found;
  int left = static_cast<int>(answers.size());
  for (auto* message = reinterpret_cast<const nlmsghdr*>(answers.data()); mnl_nlmsg_ok(message, left);
       message = mnl_nlmsg_next(message, &left))
    if (message->nlmsg_type == NLMSG_ERROR)
      found.push_back(-static_cast<const nlmsgerr*>(mnl_nlmsg_get_payload(message))->error);
  return found;
}

TEST(Connection, ADeleteBeforeADumpDiesWithItsDatagram) {
  ControlWorld world;
  TestClient client(world, NETLINK_ROUTE);
  Datagram create;
  create.add_dummy("gone");
  EXPECT_EQ(codes(client.exchange(create.bytes())), std::vector{0});
  Datagram datagram;
  datagram.remove("gone");
  datagram.add(RTM_GETLINK, NLM_F_DUMP);
  EXPECT_EQ(codes(client.exchange(datagram.bytes())), std::vector{0});
  EXPECT_EQ(client.connection().retired().objects(), 0u);
  world.settle();
  EXPECT_EQ(world.interfaces().in_use(), 1u);
}

TEST(Connection, AChainStopsAtItsFirstRefusal) {
  ControlWorld world;
  TestClient client(world, NETLINK_ROUTE);
  Datagram create;
  for (const char* name : {"a", "b", "c"}) create.add_dummy(name);
  EXPECT_EQ(codes(client.exchange(create.bytes())), (std::vector{0, 0, 0}));
  Datagram datagram;
  datagram.remove("missing");
  datagram.remove("a", protocol::kFlagChained);
  datagram.remove("b", protocol::kFlagChained);
  datagram.remove("c");
  EXPECT_EQ(codes(client.exchange(datagram.bytes())), (std::vector{ENODEV, ECANCELED, ECANCELED, 0}));
  const Netns* netns = &world.dataplane().netnses.initial();
  EXPECT_NE(world.interfaces().find(netns, "a"), kNoInterface);
  EXPECT_NE(world.interfaces().find(netns, "b"), kNoInterface);
  EXPECT_EQ(world.interfaces().find(netns, "c"), kNoInterface);
}

// A chain may go on in the next datagram.
TEST(Connection, AChainReachesOverDatagrams) {
  ControlWorld world;
  TestClient client(world, NETLINK_ROUTE);
  Datagram first;
  first.add_dummy("kept");
  first.remove("missing");
  EXPECT_EQ(codes(client.exchange(first.bytes())), (std::vector{0, ENODEV}));
  Datagram second;
  second.remove("kept", protocol::kFlagChained);
  EXPECT_EQ(codes(client.exchange(second.bytes())), std::vector{ECANCELED});
}

// A port must be moved out of a dying namespace, which takes a grace period: with nobody left to collect it,
// the end of the list must not wait for ever.
TEST(Connection, ADeleteUnderWayIsFinishedWhenItsListEnds) {
  ControlWorld world;
  Dataplane& dataplane = world.dataplane();
  InterfaceTable& table = world.interfaces();
  Netns& blue = **dataplane.netnses.add("blue");
  table.suspend(world.port(), true);
  table.move(world.port(), &blue, "port0");
  table.suspend(world.port(), false);

  alignas(8) char buffer[256] = {};
  nlmsghdr* message = mnl_nlmsg_put_header(buffer);
  message->nlmsg_type = protocol::kGenericFamilyId;
  message->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
  auto* header = static_cast<genlmsghdr*>(mnl_nlmsg_put_extra_header(message, sizeof(genlmsghdr)));
  header->cmd = protocol::kCmdNetnsDel;
  header->version = protocol::kGenericVersion;
  mnl_attr_put_strz(message, protocol::kNetnsName, "blue");
  Change change;
  change.generic = true;
  change.netns = "default";
  const auto* bytes = reinterpret_cast<const std::byte*>(buffer);
  change.messages.assign(bytes, bytes + NLMSG_ALIGN(message->nlmsg_len));
  {
    ChangeList list(dataplane, std::vector{change}, "test");
    EXPECT_NE(list.step(Deadline::after_ns(kNsPerMs)), Operation::Progress::done)
        << "nothing is collected here";
  }
  EXPECT_EQ(dataplane.netnses.find("blue"), nullptr);
  EXPECT_EQ(table.find(&dataplane.netnses.initial(), "port0"), world.port());
}

// Marks are taken off as they are put on, in slices.
TEST(Connection, GivingUpADeleteIsSliced) {
  constexpr uint32_t kChildren = 3'000;
  ControlWorld world;
  InterfaceTable& table = world.interfaces();
  InterfaceSpec spec;
  spec.kind = *find_kind("vlan");
  spec.netns = &world.dataplane().netnses.initial();
  spec.parent = world.port();
  spec.name = "parent";
  spec.values.set(1, 4000);
  const uint32_t parent = *table.claim(spec);
  table.commit(parent);
  spec.parent = parent;
  std::string name;
  for (uint32_t n = 1; n <= kChildren; ++n) {
    name = fmt::format("c{}", n);
    spec.name = name;
    spec.values.set(1, static_cast<uint16_t>(n));
    table.commit(*table.claim(spec));
  }
  const auto marked = [&] {
    uint32_t count = 0;
    for (uint32_t at = table.next(1); at != kNoInterface; at = table.next(at + 1))
      if (table.state(at) == InterfaceState::marked) ++count;
    return count;
  };
  TestClient client(world, NETLINK_ROUTE);
  Datagram datagram;
  datagram.remove("parent");
  client.post(datagram.bytes());
  while (marked() < kChildren / 2) client.connection().run(Deadline::after_ns(0));
  client.connection().close("gone");
  uint32_t slices = 0;
  for (uint32_t before = marked(); !client.connection().finished(); before = marked(), ++slices) {
    client.connection().run(Deadline::after_ns(0));
    EXPECT_LE(before - marked(), 64u);
  }
  EXPECT_GT(slices, kChildren / 2 / 64);
  EXPECT_EQ(marked(), 0u);
  EXPECT_EQ(table.live(), kChildren + 2);
}

}  // namespace
}  // namespace mayfly
