// SPDX-License-Identifier: BSD-3-Clause
// Namespaces whose deletion is refused while interfaces of theirs come and go.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "../base/seed.hpp"
#include "control/interface_removal.hpp"
#include "control_world.hpp"

namespace mayfly {
namespace {

constexpr uint32_t kInterfaces = 300;

uint32_t add_dummy(ControlWorld& world, Netns& netns, const std::string& name, Ipv4 address) {
  InterfaceSpec spec;
  spec.name = name;
  spec.kind = *find_kind("dummy");
  spec.netns = &netns;
  spec.mac = 0x020000001000;
  spec.mtu = 1500;
  spec.up = true;
  const uint32_t ifindex = *world.interfaces().claim(spec);
  world.interfaces().commit(ifindex);
  Dataplane& dataplane = world.dataplane();
  RetireList retired;
  MAYFLY_CHECK(dataplane.addressing.add(ifindex, IpPrefix(IpAddress(address), 24), 0, retired).has_value(),
               "no address");
  dataplane.commit(retired);
  return ifindex;
}

void delete_interface(ControlWorld& world, uint32_t ifindex) {
  InterfaceRemoval removal(world.dataplane());
  RetireList retired;
  ASSERT_TRUE(removal.add(ifindex).has_value());
  while (!removal.walk(Deadline::never()).value()) {
  }
  while (!removal.commit(retired, Deadline::never())) {
  }
  world.dataplane().commit(retired);
}

std::vector<std::byte> delete_request(const char* netns) {
  alignas(8) std::byte buffer[256] = {};
  nlmsghdr* message = mnl_nlmsg_put_header(buffer);
  message->nlmsg_type = protocol::kGenericFamilyId;
  message->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
  auto* header = static_cast<genlmsghdr*>(mnl_nlmsg_put_extra_header(message, sizeof(genlmsghdr)));
  header->cmd = protocol::kCmdNetnsDel;
  header->version = protocol::kGenericVersion;
  mnl_attr_put_strz(message, protocol::kNetnsName, netns);
  return {buffer, buffer + NLMSG_ALIGN(message->nlmsg_len)};
}

uint32_t routes_listed(Netns& netns, uint32_t oif) {
  uint32_t count = 0;
  for (RouteCursor at(netns.rib); at.current() != nullptr; at.advance())
    if (at.current()->oif == oif) ++count;
  return count;
}

// Whoever dies between the first slice and the refusal takes its routes along: its number will be another's.
TEST(NetnsDelete, ARefusedOneLeavesNoRoutesOfTheDead) {
  std::mt19937_64 random = testing::seeded_random();
  ControlWorld world;
  Dataplane& dataplane = world.dataplane();
  InterfaceTable& table = world.interfaces();
  Netns& blue = **dataplane.netnses.add("blue");
  Netns& red = **dataplane.netnses.add("red");
  std::vector<uint32_t> members;
  for (uint32_t n = 0; n < kInterfaces; ++n)
    members.push_back(add_dummy(world, blue, "d" + std::to_string(n), 0x0a000001 + (n << 8)));

  for (int round = 0; round < 20; ++round) {
    const uint32_t before = blue.rib.size();
    ASSERT_EQ(before, members.size() * 4);
    // Nobody has come to the victim yet; what comes last is being moved, so that it is refused.
    const bool refused = random() % 2 == 0;
    const uint32_t in_the_way = members.back();
    const size_t chosen = 150 + random() % 100;
    const uint32_t victim = members[chosen];
    const Ipv4 address = table.interface(victim).addresses.own()->entries[0].address.v4();
    if (refused) table.mark(in_the_way, ++dataplane.removals);
    {
      TestClient client(world, NETLINK_GENERIC);
      client.post(delete_request("blue"));
      while (!blue.dying) client.connection().run(Deadline::after_ns(0));
      client.connection().run(Deadline::after_ns(0));
      delete_interface(world, victim);
      members.erase(members.begin() + static_cast<std::ptrdiff_t>(chosen));
      if (refused)
        while (blue.dying) client.connection().run(Deadline::after_ns(0));
      // Otherwise its client goes away.
    }
    ASSERT_FALSE(blue.dying);
    if (refused) table.unmark(in_the_way);
    EXPECT_EQ(blue.rib.size(), before - 4);
    EXPECT_EQ(routes_listed(blue, victim), 0u);
    EXPECT_EQ(blue.fib.lookup(address), nullptr);

    world.settle();
    const uint32_t heir = add_dummy(world, red, "heir", address);
    ASSERT_EQ(heir, victim) << "the lowest number that is free";
    EXPECT_EQ(routes_listed(red, heir), 4u);
    delete_interface(world, heir);
    EXPECT_EQ(red.rib.size(), 0u);
    world.settle();
    members.push_back(add_dummy(world, blue, "d" + std::to_string(kInterfaces + round), address));
  }
}

}  // namespace
}  // namespace mayfly
