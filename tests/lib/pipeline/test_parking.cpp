// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline/parking.hpp"

#include <gtest/gtest.h>
#include <rte_mbuf.h>

#include <deque>
#include <map>
#include <tuple>
#include <vector>

#include "base/index_hash.hpp"
#include "base/seed.hpp"

namespace mayfly::testing {
namespace {

// More than a test parks at one time.
constexpr size_t kFakes = 8192;

rte_mbuf* fake(uint64_t number, uint16_t segments = 1) {
  static std::vector<rte_mbuf> mbufs(kFakes);
  rte_mbuf* const mbuf = &mbufs[number % kFakes];
  mbuf->nb_segs = segments;
  return mbuf;
}

// Packets of one to five mbufs: the limit is one of mbufs.
TEST(Parking, AgreesWithAMapOfQueues) {
  auto random = seeded_random();
  constexpr uint32_t kLimit = 40;
  Parking parking(kLimit);
  std::map<std::tuple<uint32_t, uint64_t, IpAddress>, std::deque<rte_mbuf*>> model;
  size_t packets = 0;
  size_t mbufs = 0;
  uint64_t parked = 0;
  std::deque<rte_mbuf*> free;
  for (uint64_t n = 0; n < kLimit; ++n) free.push_back(fake(n));
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
    const auto segments = static_cast<uint16_t>(random() % 4 == 0 ? 1 + random() % 5 : 1);
    ASSERT_EQ(parking.has_room(0, segments), mbufs + segments <= kLimit);
    ASSERT_EQ(parking.has_room(3, segments), mbufs + 3 * segments < kLimit);
    if (random() % 2 == 0 && room && parking.has_room(0, segments)) {
      rte_mbuf* const mbuf = free.front();
      free.pop_front();
      mbuf->nb_segs = segments;
      if (queue == nullptr)
        parking.open(ifindex, id, address, mbuf, 0);
      else
        parking.push(*queue, mbuf, 0);
      model[key].push_back(mbuf);
      ++packets;
      mbufs += segments;
      ++parked;
    } else if (queue != nullptr) {
      rte_mbuf* const oldest = model[key].front();
      ASSERT_EQ(parking.pop(*queue), oldest);
      mbufs -= oldest->nb_segs;
      free.push_back(oldest);
      model[key].pop_front();
      if (model[key].empty()) model.erase(key);
      --packets;
    }
    ASSERT_EQ(parking.packets(), packets);
    ASSERT_EQ(parking.mbufs(), mbufs);
  }
  EXPECT_GT(parked, 1'000u);
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

  void park(uint32_t ifindex, IpAddress address) {
    parking.open(ifindex, 1, address, fake(parking.packets()), 0);
  }

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
    park(1, IpAddress(Ipv6{0x20010db8'00000000U + n, 1}));
  }
  EXPECT_LE(parking.longest_chain(), kLongest);
}

TEST_F(HostileAddresses, OnManyInterfacesDoNotCollide) {
  for (uint32_t n = 0; n < kLimit; ++n) park(n + 1, IpAddress(static_cast<Ipv4>(0x0a000001)));
  EXPECT_LE(parking.longest_chain(), kLongest);
}

}  // namespace
}  // namespace mayfly::testing
