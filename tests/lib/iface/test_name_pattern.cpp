// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "iface/name_pattern.hpp"

namespace mayfly {
namespace {

std::string formatted(std::string_view pattern, const NameFields& fields) {
  auto parsed = NamePattern::parse(pattern);
  if (!parsed) return "refused: " + parsed.error().text;
  std::array<char, kInterfaceNameBytes> buffer;
  return std::string(parsed->format(fields, buffer));
}

TEST(NamePattern, FormatsEveryField) {
  const NameFields fields{42, "port0", 100, 7};
  EXPECT_EQ(formatted("sub{}", fields), "sub42");
  EXPECT_EQ(formatted("sub%d", fields), "sub42");
  EXPECT_EQ(formatted("{n}", fields), "42");
  EXPECT_EQ(formatted("s{n:06}", fields), "s000042");
  EXPECT_EQ(formatted("{parent}.{outer}.{inner}", fields), "port0.100.7");
  EXPECT_EQ(formatted("plain", fields), "plain");
}

TEST(NamePattern, ANameThatIsTooLongIsEmpty) {
  EXPECT_EQ(formatted("exactly-15-char", {}), "exactly-15-char");
  EXPECT_EQ(formatted("sixteen-letters!", {}), "");
  EXPECT_EQ(formatted("sub-and-more-{}", {99, "", 0, 0}), "sub-and-more-99");
  EXPECT_EQ(formatted("sub-and-more-{}", {100, "", 0, 0}), "");
}

TEST(NamePattern, RefusalsNameThePart) {
  EXPECT_NE(formatted("a{", {}).find("not closed"), std::string::npos);
  EXPECT_NE(formatted("a{colour}", {}).find("{colour}"), std::string::npos);
  EXPECT_NE(formatted("a{n:099}", {}).find("accepted 1..15"), std::string::npos);
}

TEST(NamePattern, KnowsWhetherMembersDiffer) {
  EXPECT_TRUE(NamePattern::parse("a{}")->varies());
  EXPECT_TRUE(NamePattern::parse("{outer}")->varies());
  EXPECT_FALSE(NamePattern::parse("{parent}")->varies());
  EXPECT_FALSE(NamePattern::parse("plain")->varies());
}

}  // namespace
}  // namespace mayfly
