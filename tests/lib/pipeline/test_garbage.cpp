// SPDX-License-Identifier: BSD-3-Clause
// Nothing that can arrive may hurt: random bytes, and good frames with random damage, whole and in segments.
#include <gtest/gtest.h>

#include "base/seed.hpp"
#include "frames.hpp"
#include "fuzz_packet.hpp"

namespace mayfly::testing {
namespace {

constexpr int kRounds = 20'000;

Bytes good_frame(std::mt19937_64& random) {
  const std::vector<std::vector<Tag>> ways = {
      {}, {{0x8100, 1}}, {{0x88a8, 1}}, {{0x8100, 1}, {0x8100, 1}}, {{0x8100, 0}}};
  const Ipv4 addresses[] = {ip("10.0.0.1"), ip("10.4.0.1"), ip("10.4.0.7"), ip("10.0.0.8"), ip("99.1.2.3")};
  const auto& tags = ways[random() % ways.size()];
  if (random() % 4 == 0)
    return ethernet(kBroadcastMac, 0x0a0000000001, tags, 0x0806,
                    arp(static_cast<uint16_t>(1 + random() % 2), 0x0a0000000001, addresses[random() % 5], 0,
                        addresses[random() % 5]));
  Ipv4Fields fields{.source = addresses[random() % 5], .destination = addresses[random() % 5], .protocol = 1};
  fields.payload = icmp_echo(8, 1, Bytes(random() % 200));
  return ethernet(0x020000000001, 0x0a0000000001, tags, 0x0800, ipv4(fields));
}

TEST(Garbage, DoesNoHarm) {
  auto random = seeded_random();
  for (int round = 0; round < kRounds; ++round) {
    Bytes input = {static_cast<uint8_t>(random())};
    if (round % 10 == 0) {
      Bytes noise(1 + random() % 200);
      for (uint8_t& byte : noise) byte = static_cast<uint8_t>(random());
      put(input, noise);
    } else {
      put(input, good_frame(random));
    }
    for (uint64_t damage = random() % 3; damage > 0; --damage)
      input[1 + random() % (input.size() - 1)] = static_cast<uint8_t>(random());
    if (random() % 8 == 0) input.resize(2 + random() % (input.size() - 1));
    fuzz_one_packet(input.data(), input.size());
  }
}

}  // namespace
}  // namespace mayfly::testing
