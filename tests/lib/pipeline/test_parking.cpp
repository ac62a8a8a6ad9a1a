// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline/parking.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <tuple>

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

}  // namespace
}  // namespace mayfly::testing
