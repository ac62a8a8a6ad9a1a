// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>
#include <libmnl/libmnl.h>

#include "../base/seed.hpp"
#include "control/request_attributes.hpp"

namespace mayfly {
namespace {

constexpr AttributeSpec kSpecs[] = {
    {1, AttributeSpec::Type::u32, "count"},
    {2, AttributeSpec::Type::string, "name", 15},
    {3, AttributeSpec::Type::binary, "address", 6},
    {4, AttributeSpec::Type::nested, "inside"},
    {5, AttributeSpec::Type::string, "entry", 0, true},
    {6, AttributeSpec::Type::flag, "up"},
    {7, AttributeSpec::Type::address, "via"},
    {8, AttributeSpec::Type::address, "src"},
};

// A row of attributes built with libmnl, then taken apart by our parser.
class RequestAttributesTest : public ::testing::Test {
 protected:
  RequestAttributesTest() : message_(mnl_nlmsg_put_header(buffer_)) {}
  std::span<const std::byte> bytes() const {
    return {reinterpret_cast<const std::byte*>(buffer_) + NLMSG_HDRLEN,
            message_->nlmsg_len - size_t{NLMSG_HDRLEN}};
  }
  std::string refusal() const {
    auto parsed = RequestAttributes::parse(bytes(), kSpecs);
    return parsed ? "accepted" : parsed.error().text;
  }
  alignas(8) char buffer_[4096] = {};
  nlmsghdr* message_;
};

TEST_F(RequestAttributesTest, ReadsWhatLibmnlWrote) {
  mnl_attr_put_u32(message_, 1, 42);
  mnl_attr_put_strz(message_, 2, "sub0");
  mnl_attr_put(message_, 3, 6, "\1\2\3\4\5\6");
  nlattr* nested = mnl_attr_nest_start(message_, 4);
  mnl_attr_put_u32(message_, 1, 7);
  mnl_attr_nest_end(message_, nested);
  mnl_attr_put_strz(message_, 5, "a");
  mnl_attr_put_strz(message_, 5, "b");
  mnl_attr_put(message_, 6, 0, nullptr);
  auto parsed = RequestAttributes::parse(bytes(), kSpecs);
  ASSERT_TRUE(parsed) << parsed.error().text;
  EXPECT_EQ(parsed->u32(1), 42u);
  EXPECT_EQ(parsed->string(2), "sub0");
  EXPECT_EQ(parsed->binary(3).size(), 6u);
  EXPECT_TRUE(parsed->has(6));
  EXPECT_EQ(RequestAttributes::parse_nested(*parsed->find(4), kSpecs)->u32(1), 7u);
  std::string entries;
  parsed->each(5, [&](const nlattr& entry) { entries += RequestAttributes::text(entry); });
  EXPECT_EQ(entries, "ab");
}

TEST_F(RequestAttributesTest, RefusesAndNamesTheAttribute) {
  mnl_attr_put_u16(message_, 1, 42);
  EXPECT_EQ(refusal(), "count: 2 bytes, accepted 4");
}

TEST_F(RequestAttributesTest, ReadsAddressesByTheirLength) {
  mnl_attr_put(message_, 7, 4, "\12\0\0\1");
  mnl_attr_put(message_, 8, 16, "\x20\1\xd\xb8\0\0\0\0\0\0\0\0\0\0\0\5");
  auto parsed = RequestAttributes::parse(bytes(), kSpecs);
  ASSERT_TRUE(parsed) << parsed.error().text;
  EXPECT_EQ(format_address(*parsed->address(7)), "10.0.0.1");
  EXPECT_EQ(format_address(*parsed->address(8)), "2001:db8::5");
  mnl_attr_put(message_, 9, 0, nullptr);
  EXPECT_EQ(refusal(), "attribute 9: unknown here");
}

TEST_F(RequestAttributesTest, RefusesAddressesOfOtherLengths) {
  mnl_attr_put(message_, 7, 6, "\12\0\0\1\0\0");
  EXPECT_EQ(refusal(), "via: 6 bytes, accepted 4 (IPv4) or 16 (IPv6)");
}

TEST_F(RequestAttributesTest, RefusesMappedAddresses) {
  mnl_attr_put(message_, 7, 16, "\0\0\0\0\0\0\0\0\0\0\xff\xff\12\0\0\1");
  EXPECT_EQ(refusal(), "via ::ffff:10.0.0.1: an IPv4-mapped address");
}

TEST_F(RequestAttributesTest, RefusesUnknownOnes) {
  mnl_attr_put_u32(message_, 99, 42);
  EXPECT_EQ(refusal(), "attribute 99: unknown here");
}

TEST_F(RequestAttributesTest, RefusesAStringWithoutEnd) {
  mnl_attr_put(message_, 2, 4, "abcd");
  EXPECT_EQ(refusal(), "name: the string does not end with a NUL");
}

TEST_F(RequestAttributesTest, RefusesALongString) {
  mnl_attr_put_strz(message_, 2, "sixteen-letters!");
  EXPECT_EQ(refusal(), "name 'sixteen-letters!': 16 characters, accepted 1..15");
}

TEST_F(RequestAttributesTest, RefusesTheSameTwice) {
  mnl_attr_put_u32(message_, 1, 1);
  mnl_attr_put_u32(message_, 1, 2);
  EXPECT_EQ(refusal(), "count: given twice");
}

TEST_F(RequestAttributesTest, RefusesLengthsThatDoNotAddUp) {
  mnl_attr_put_u32(message_, 1, 1);
  auto* first = reinterpret_cast<nlattr*>(buffer_ + NLMSG_HDRLEN);
  for (const uint16_t length : {uint16_t{0}, uint16_t{3}, uint16_t{9}, uint16_t{65535}}) {
    first->nla_len = length;
    EXPECT_NE(refusal(), "accepted") << length;
  }
}

// Whatever the bytes, the parser stays inside them (the sanitizers watch).
TEST_F(RequestAttributesTest, SurvivesAnything) {
  std::mt19937_64 random = testing::seeded_random();
  for (int round = 0; round < 100'000; ++round) {
    const size_t length = random() % 64;
    std::vector<std::byte> noise(length);
    for (std::byte& byte : noise) byte = static_cast<std::byte>(random() % 3 == 0 ? random() : random() % 8);
    const auto parsed = RequestAttributes::parse(noise, kSpecs);
    if (!parsed) {
      ASSERT_EQ(parsed.error().code, EINVAL);
      ASSERT_FALSE(parsed.error().text.empty());
    }
  }
}

}  // namespace
}  // namespace mayfly
