// SPDX-License-Identifier: BSD-3-Clause
#include "base/address.hpp"

#include <gtest/gtest.h>

#include "seed.hpp"

namespace mayfly {
namespace {

using namespace std::string_view_literals;

TEST(Address, Mac) {
  EXPECT_EQ(parse_mac("address", "02:00:00:00:00:01").value(), 0x0200'0000'0001u);
  EXPECT_EQ(parse_mac("address", "FF:ff:Ff:fF:ff:ff").value(), kBroadcastMac);
  EXPECT_EQ(format_mac(0x0200'0000'00abu), "02:00:00:00:00:ab");
  for (const auto bad :
       {""sv, "02:00:00:00:00"sv, "02:00:00:00:00:01:02"sv, "02-00-00-00-00-01"sv, "2000000000001"sv,
        "02:00:00:00:00:100"sv, "02:00:00:00:00:0g"sv, " 02:00:00:00:00:01"sv, "02:00:00:00:00:01 "sv,
        "02:00:00:00:00:-1"sv, "02:00:00:00:00:"sv, "02:00:00:00:00:01\0"sv})
    EXPECT_EQ(parse_mac("address", bad).error().code, EINVAL) << bad;
  EXPECT_TRUE(is_multicast(0x0100'5e00'0001u));
  EXPECT_TRUE(is_multicast(kBroadcastMac));
  EXPECT_FALSE(is_multicast(0x0200'0000'0001u));
}

TEST(Address, Ipv4) {
  EXPECT_EQ(parse_ipv4("address", "192.0.2.1").value(), 0xc000'0201u);
  EXPECT_EQ(format_ipv4(0xc000'0201u), "192.0.2.1");
  for (const auto bad : {""sv, "192.0.2"sv, "192.0.2.256"sv, "192.0.2.1.1"sv, "192.0.2.01x"sv, "0x7f.1"sv,
                         "1"sv, " 192.0.2.1"sv, "192.0.2.1\0junk"sv, "::1"sv})
    EXPECT_EQ(parse_ipv4("address", bad).error().code, EINVAL) << bad;
}

TEST(Address, Prefix) {
  EXPECT_EQ(parse_prefix("address", "10.0.0.1/24").value(), (Ipv4Prefix{0x0a00'0001u, 24}));
  EXPECT_EQ(parse_prefix("address", "10.0.0.1").value(), (Ipv4Prefix{0x0a00'0001u, 32}));
  EXPECT_EQ(parse_prefix("address", "0.0.0.0/0").value(), (Ipv4Prefix{0, 0}));
  for (const auto bad : {"10.0.0.1/"sv, "10.0.0.1/33"sv, "10.0.0.1/-1"sv, "10.0.0.1/x"sv, "/24"sv,
                         "10.0.0.1/24/24"sv, "10.0.0.1/ 24"sv, "10.0.0.1/4294967320"sv})
    EXPECT_EQ(parse_prefix("address", bad).error().code, EINVAL) << bad;
  const Ipv4Prefix prefix{0x0a00'0001u, 24};
  EXPECT_EQ(prefix.network(), 0x0a00'0000u);
  EXPECT_TRUE(prefix.contains(0x0a00'00ffu));
  EXPECT_FALSE(prefix.contains(0x0a00'0100u));
  EXPECT_TRUE((Ipv4Prefix{1, 0}).contains(0xffff'ffffu));
  EXPECT_EQ(format_prefix(prefix), "10.0.0.1/24");
}

TEST(Address, TextReadsBack) {
  auto random = testing::seeded_random();
  for (int i = 0; i < 2'000; ++i) {
    const Mac mac = random() & kBroadcastMac;
    EXPECT_EQ(parse_mac("address", format_mac(mac)).value(), mac);
    uint8_t octets[6];
    store_mac(octets, mac);
    EXPECT_EQ(load_mac(octets), mac);
    const Ipv4Prefix prefix{static_cast<Ipv4>(random()), static_cast<uint8_t>(random() % 33)};
    EXPECT_EQ(parse_prefix("address", format_prefix(prefix)).value(), prefix);
  }
}

}  // namespace
}  // namespace mayfly
