// SPDX-License-Identifier: BSD-3-Clause
// Which addresses packets take for the interface's own: as the lists say, however long they are.
#include "pipeline/own.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

#include "../base/seed.hpp"
#include "world.hpp"

namespace mayfly::testing {
namespace {

// Addresses of both families from a small space, some of them link-local, some found to be duplicates.
std::vector<InterfaceAddress> some_addresses(std::mt19937_64& random, size_t count, bool link_locals) {
  std::vector<InterfaceAddress> all;
  std::set<IpAddress> taken;
  while (all.size() < count) {
    const uint64_t number = random() % (3 * count);
    const unsigned kind = static_cast<unsigned>(random() % (link_locals ? 5 : 4));
    const IpAddress address = kind < 2   ? IpAddress(static_cast<Ipv4>(0x0a000000 + number))
                              : kind < 4 ? IpAddress(Ipv6{0x20010db8'00000000, number})
                                         : IpAddress(Ipv6{0xfe80'0000'0000'0000, number});
    if (!taken.insert(address).second) continue;
    const bool duplicate = !address.is_v4() && random() % 8 == 0;
    all.push_back({address, static_cast<uint8_t>(address.is_v4() ? 32 : 128),
                   duplicate ? InterfaceAddress::kDuplicate : uint8_t{0}});
  }
  return all;
}

std::set<IpAddress> usable(const std::vector<InterfaceAddress>& list) {
  std::set<IpAddress> all;
  for (const InterfaceAddress& entry : list)
    if (entry.usable()) all.insert(entry.address);
  return all;
}

class Own : public ::testing::TestWithParam<std::tuple<uint32_t, uint32_t, bool>> {};

TEST_P(Own, AgreesWithTheLists) {
  std::mt19937_64 random = seeded_random();
  const auto [of_own, of_lender, link_locals] = GetParam();
  World world;
  const uint32_t interface = world.add_vlan(0, 5);
  const uint32_t lender = world.add_vlan(1, 6);
  const uint32_t twin = world.add_vlan(2, 7);
  const std::vector<InterfaceAddress> own = some_addresses(random, of_own, link_locals);
  const std::vector<InterfaceAddress> lent = some_addresses(random, of_lender, link_locals);
  const std::set<IpAddress> own_usable = usable(own);
  const std::set<IpAddress> lent_usable = usable(lent);
  // The routes of addresses that several have are the last one's.
  world.add_addresses(interface, own);
  world.add_addresses(lender, lent);
  world.add_addresses(twin, some_addresses(random, 20, link_locals));
  if (of_lender != 0) world.set_unnumbered(interface, lender);
  const uint32_t space = 3 * std::max({of_own, of_lender, 20U}) + 5;
  const auto check = [&](IpAddress address) {
    const Interface& asked = world.interface(interface);
    const bool implicit =
        !address.is_v4() && address.v6() == link_local_of(asked.mac.load(std::memory_order_relaxed));
    ASSERT_EQ(is_own(world.table().interfaces(), asked, address),
              own_usable.contains(address) || lent_usable.contains(address) || implicit)
        << format_address(address);
  };
  for (uint64_t number = 0; number < space; ++number) {
    check(IpAddress(static_cast<Ipv4>(0x0a000000 + number)));
    check(IpAddress(Ipv6{0x20010db8'00000000, number}));
    check(IpAddress(Ipv6{0xfe80'0000'0000'0000, number}));
  }
  check(IpAddress(link_local_of(world.interface(interface).mac.load())));
  check(IpAddress(link_local_of(0x020000000001)));
}

INSTANTIATE_TEST_SUITE_P(Lengths, Own,
                         ::testing::Combine(::testing::Values(0U, 1U, 8U, 9U, 4096U),
                                            ::testing::Values(0U, 1U, 9U, 300U), ::testing::Bool()));

}  // namespace
}  // namespace mayfly::testing
