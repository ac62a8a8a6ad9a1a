// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline/parking.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <tuple>

#include "base/index_hash.hpp"
#include "base/seed.hpp"

namespace mayfly::testing {
namespace {

rte_mbuf* fake(uint64_t number) {
  return reinterpret_cast<rte_mbuf*>(number * 64);
}

TEST(Parking, AgreesWithAMapOfQueues) {
  auto random = seeded_random();
  constexpr uint32_t kLimit = 40;
  Parking parking(kLimit);
  std::map<std::tuple<uint32_t, uint64_t, IpAddress>, std::deque<rte_mbuf*>> model;
  size_t packets = 0;
  for (uint64_t step = 1; step < 200'000; ++step) {
    const auto ifindex = static_cast<uint32_t>(random() % 4);
    const uint64_t id = random() % 2;
    const uint64_t host = random() % 10;
    const IpAddress address =
        host < 5 ? IpAddress(static_cast<Ipv4>(host)) : IpAddress(Ipv6{0xfe80'0000'0000'0000, host});
    const auto key = std::tuple(ifindex, id, address);
    Parking::Queue* queue = parking.find(ifindex, id, address);
    ASSERT_EQ(queue != nullptr, model.contains(key));
    if (queue != nullptr) {
      ASSERT_EQ(queue->count, model[key].size());
    }
    const bool room = queue == nullptr || queue->count < Parking::kPacketsPerNeighbour;
    if (random() % 2 == 0 && room && !parking.full()) {
      if (queue == nullptr)
        parking.open(ifindex, id, address, fake(step), 0);
      else
        parking.push(*queue, fake(step), 0);
      model[key].push_back(fake(step));
      ++packets;
    } else if (queue != nullptr) {
      ASSERT_EQ(parking.pop(*queue), model[key].front());
      model[key].pop_front();
      if (model[key].empty()) model.erase(key);
      --packets;
    }
    ASSERT_EQ(parking.packets(), packets);
    ASSERT_EQ(parking.full(), packets == kLimit);
  }
}

// The x for which mix_hash(x) is this: what a stranger who read our source can compute.
uint64_t unmix(uint64_t hash) {
  const auto inverse = [](uint64_t odd) {
    uint64_t found = odd;
    for (int bits = 3; bits < 64; bits *= 2) found *= 2 - odd * found;
    return found;
  };
  hash ^= hash >> 33;
  hash *= inverse(0xc4ceb9fe1a85ec53);
  hash ^= hash >> 33;
  hash *= inverse(0xff51afd7ed558ccd);
  return hash ^ hash >> 33;
}

class HostileAddresses : public ::testing::Test {
 protected:
  static constexpr uint32_t kLimit = 4096;
  static constexpr uint32_t kLongest = 16;  // of 4,096 keys in as many buckets: chance makes seven or eight

  void park(uint32_t ifindex, IpAddress address) { parking.open(ifindex, 1, address, fake(1), 0); }

  Parking parking{kLimit};
};

TEST_F(HostileAddresses, ThatMixToTheSameBitsDoNotCollide) {
  ASSERT_EQ(mix_hash(unmix(0x0123456789abcdef)), 0x0123456789abcdef);
  constexpr uint64_t kNetwork = 0x20010db8'00000000;
  constexpr uint32_t kIfindex = 7;
  for (uint64_t n = 0; n < kLimit; ++n)
    park(kIfindex,
         IpAddress(Ipv6{kNetwork, unmix(n * kLimit) ^ mix_hash(kNetwork ^ uint64_t{kIfindex} << 32)}));
  EXPECT_LE(parking.longest_chain(), kLongest);
}

TEST_F(HostileAddresses, InARowDoNotCollide) {
  for (uint32_t n = 0; n < kLimit / 4; ++n) {
    park(1, IpAddress(static_cast<Ipv4>(0x0a000000 + n)));
    park(1, IpAddress(static_cast<Ipv4>(0x0a000000 + (n << 12))));
    park(1, IpAddress(Ipv6{0x20010db8'00000000, n}));
    park(1, IpAddress(Ipv6{0x20010db8'00000000 + n, 1}));
  }
  EXPECT_LE(parking.longest_chain(), kLongest);
}

TEST_F(HostileAddresses, OnManyInterfacesDoNotCollide) {
  for (uint32_t n = 0; n < kLimit; ++n) park(n + 1, IpAddress(static_cast<Ipv4>(0x0a000001)));
  EXPECT_LE(parking.longest_chain(), kLongest);
}

}  // namespace
}  // namespace mayfly::testing
