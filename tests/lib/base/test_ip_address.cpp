// SPDX-License-Identifier: BSD-3-Clause
#include "base/ip_address.hpp"

#include <gtest/gtest.h>

#include "seed.hpp"

namespace mayfly {
namespace {

using namespace std::string_view_literals;

TEST(IpAddress, Ipv6Text) {
  const Ipv6 address{0x2001'0db8'0000'0000, 1};
  EXPECT_EQ(parse_ipv6("address", "2001:db8::1").value(), address);
  EXPECT_EQ(parse_ipv6("address", "2001:0DB8:0:0:0:0:0:1").value(), address);
  EXPECT_EQ(format_ipv6(address), "2001:db8::1");
  EXPECT_EQ(format_ipv6({}), "::");
  for (const auto bad : {""sv, "2001:db8"sv, "2001:db8::1::2"sv, "2001:db8::g"sv, "::1%eth0"sv, " ::1"sv,
                         "192.0.2.1"sv, "::ffff:192.0.2.1"sv, "::1\0"sv, "1:2:3:4:5:6:7:8:9"sv})
    EXPECT_EQ(parse_ipv6("address", bad).error().code, EINVAL) << bad;
}

TEST(IpAddress, OctetsAreInWireOrder) {
  uint8_t octets[16];
  store_ipv6(octets, {0x0102'0304'0506'0708, 0x090a'0b0c'0d0e'0f10});
  for (uint8_t i = 0; i < 16; ++i) EXPECT_EQ(octets[i], i + 1);
  EXPECT_EQ(load_ipv6(octets), (Ipv6{0x0102'0304'0506'0708, 0x090a'0b0c'0d0e'0f10}));
}

TEST(IpAddress, FamiliesNeverMeet) {
  const IpAddress v4(Ipv4{0x0a00'0001});
  EXPECT_TRUE(v4.is_v4());
  EXPECT_EQ(v4.v4(), 0x0a00'0001u);
  EXPECT_FALSE(IpAddress(Ipv6{0, 0x0a00'0001}).is_v4());
  EXPECT_NE(v4, IpAddress(Ipv6{0, 0x0a00'0001}));
  EXPECT_TRUE(IpAddress().none());
  EXPECT_FALSE(IpAddress(Ipv4{0}).none());
  EXPECT_FALSE(IpPrefix(IpAddress(Ipv6{}), 0).contains(v4));
  EXPECT_FALSE(IpPrefix(IpAddress(Ipv4{0}), 0).contains(IpAddress(Ipv6{1, 1})));
  EXPECT_TRUE(IpPrefix(IpAddress(Ipv4{0}), 0).contains(v4));
}

TEST(IpAddress, Prefix) {
  EXPECT_EQ(parse_ip_prefix("address", "10.0.0.1/24").value(), (IpPrefix(IpAddress(Ipv4{0x0a00'0001}), 24)));
  EXPECT_EQ(parse_ip_prefix("address", "10.0.0.1").value().length, 32);
  EXPECT_EQ(parse_ip_prefix("address", "::1").value().length, 128);
  EXPECT_EQ(format_prefix(parse_ip_prefix("address", "2001:db8::7/64").value()), "2001:db8::7/64");
  EXPECT_EQ(format_address(parse_ip_prefix("address", "2001:db8::7/64").value().network()), "2001:db8::");
  EXPECT_EQ(format_address(parse_ip_prefix("address", "192.0.2.7/24").value().network()), "192.0.2.0");
  for (const auto bad : {"10.0.0.1/33"sv, "::1/129"sv, "::1/-1"sv, "::1/"sv, "/64"sv, "::1/64/64"sv})
    EXPECT_EQ(parse_ip_prefix("address", bad).error().code, EINVAL) << bad;
}

// Against bit by bit arithmetic.
TEST(IpAddress, MaskAndContains) {
  auto random = mayfly::testing::seeded_random();
  const auto bit = [](Ipv6 address, unsigned at) {
    return (at < 64 ? address.high >> (63 - at) : address.low >> (127 - at)) & 1;
  };
  for (int round = 0; round < 2000; ++round) {
    const auto length = static_cast<uint8_t>(random() % 129);
    const Ipv6Prefix prefix{{random(), random()}, length};
    Ipv6 other = prefix.address;
    const auto flipped = static_cast<unsigned>(random() % 128);
    (flipped < 64 ? other.high : other.low) ^= uint64_t{1} << (63 - flipped % 64);
    EXPECT_EQ(prefix.contains(other), flipped >= length);
    for (unsigned at = 0; at < 128; ++at)
      EXPECT_EQ(bit(prefix.network(), at), at < length ? bit(prefix.address, at) : 0);
  }
}

TEST(IpAddress, DerivedAddresses) {
  EXPECT_EQ(format_ipv6(link_local_of(0x0200'0000'0001)), "fe80::ff:fe00:1");
  EXPECT_EQ(format_ipv6(link_local_of(0x3456'789a'bcde)), "fe80::3656:78ff:fe9a:bcde");
  const Ipv6 group = solicited_node_of(parse_ipv6("address", "2001:db8::12:3456").value());
  EXPECT_EQ(format_ipv6(group), "ff02::1:ff12:3456");
  EXPECT_EQ(format_mac(multicast_mac_of(group)), "33:33:ff:12:34:56");
  EXPECT_TRUE(is_multicast(group));
  EXPECT_TRUE(is_link_local(parse_ipv6("address", "febf::1").value()));
  EXPECT_FALSE(is_link_local(parse_ipv6("address", "fec0::1").value()));
}

}  // namespace
}  // namespace mayfly
