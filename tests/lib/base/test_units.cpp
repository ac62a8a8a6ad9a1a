// SPDX-License-Identifier: BSD-3-Clause
#include "base/units.hpp"

#include <gtest/gtest.h>

namespace mayfly {
namespace {

TEST(Units, Numbers) {
  EXPECT_EQ(parse_number("x", "0", 0, 10).value(), 0u);
  EXPECT_EQ(parse_number("x", "010", 0, 10).value(), 10u);
  EXPECT_EQ(parse_number("x", "0xff", 0, 255).value(), 255u);
  EXPECT_EQ(parse_number("x", "18446744073709551615", 0, UINT64_MAX).value(), UINT64_MAX);
  for (const char* bad : {"", "-1", "+1", " 1", "1 ", "1.5", "1e3", "0x", "0xg", "one", "1,000"})
    EXPECT_EQ(parse_number("x", bad, 0, UINT64_MAX).error().code, EINVAL) << bad;
  for (const char* out : {"0", "11", "18446744073709551616", "99999999999999999999999"})
    EXPECT_EQ(parse_number("x", out, 1, 10).error().code, ERANGE) << out;
  EXPECT_EQ(parse_number("vlan id", "4095", 1, 4094).error().text, "vlan id 4095: accepted 1..4094");
  EXPECT_EQ(parse_number("vlan id", "ten", 1, 4094).error().text,
            "vlan id 'ten': expected a number, accepted 1..4094");
}

TEST(Units, Bytes) {
  EXPECT_EQ(parse_bytes("x", "1B", 0, UINT64_MAX).value(), 1u);
  EXPECT_EQ(parse_bytes("x", "2KiB", 0, UINT64_MAX).value(), 2'048u);
  EXPECT_EQ(parse_bytes("x", "64MiB", 0, UINT64_MAX).value(), 64u << 20);
  EXPECT_EQ(parse_bytes("x", "3GiB", 0, UINT64_MAX).value(), uint64_t{3} << 30);
  for (const char* bad : {"", "64", "MiB", "64 MiB", "64MB", "64mib", "-1B", "1.5GiB", "1MiBx"})
    EXPECT_EQ(parse_bytes("x", bad, 0, UINT64_MAX).error().code, EINVAL) << bad;
  EXPECT_EQ(parse_bytes("x", "17179869184GiB", 0, UINT64_MAX).error().code, ERANGE);
  EXPECT_EQ(parse_bytes("x", "99999999999999999999B", 0, UINT64_MAX).error().code, ERANGE);
  EXPECT_EQ(parse_bytes("size", "3KiB", 1, 2'048).error().text, "size '3KiB': accepted 1 B..2 KiB");
  EXPECT_NE(parse_bytes("size", "64", 1, 2'048).error().text.find("unit is missing"), std::string::npos);
}

TEST(Units, Durations) {
  EXPECT_EQ(parse_duration("x", "7ns", 0, UINT64_MAX).value(), 7u);
  EXPECT_EQ(parse_duration("x", "50us", 0, UINT64_MAX).value(), 50'000u);
  EXPECT_EQ(parse_duration("x", "2ms", 0, UINT64_MAX).value(), 2'000'000u);
  EXPECT_EQ(parse_duration("x", "3s", 0, UINT64_MAX).value(), 3'000'000'000u);
  EXPECT_EQ(parse_duration("x", "2min", 0, UINT64_MAX).value(), 120'000'000'000u);
  EXPECT_EQ(parse_duration("x", "1h", 0, UINT64_MAX).value(), 3'600'000'000'000u);
  for (const char* bad : {"", "5", "ms", "5 ms", "5m", "-5ms", "5mss"})
    EXPECT_EQ(parse_duration("x", bad, 0, UINT64_MAX).error().code, EINVAL) << bad;
  EXPECT_EQ(parse_duration("x", "2ms", 0, 1'000'000).error().code, ERANGE);
}

TEST(Units, Formatting) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1'023), "1023 B");
  EXPECT_EQ(format_bytes(1'024), "1 KiB");
  EXPECT_EQ(format_bytes(10'276'045), "9.8 MiB");
  EXPECT_EQ(format_bytes((1u << 20) - 1), "1.0 MiB");
  EXPECT_EQ(format_bytes(UINT64_MAX), "16777216 TiB");
  EXPECT_EQ(format_duration(999), "999 ns");
  EXPECT_EQ(format_duration(120'400), "120 us");
  EXPECT_EQ(format_duration(999'700), "1.0 ms");
  EXPECT_EQ(format_duration(1'340'000), "1.3 ms");
  EXPECT_EQ(format_duration(9'960'000), "10 ms");
  EXPECT_EQ(format_duration(999'600'000), "1.00 s");
  EXPECT_EQ(format_duration(1'340'000'000), "1.34 s");
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1'000), "1,000");
  EXPECT_EQ(format_count(1'234'567), "1,234,567");
}

}  // namespace
}  // namespace mayfly
