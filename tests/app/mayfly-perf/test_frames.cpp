// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <tuple>

#include "mayfly-perf/frames.hpp"
#include "mayfly-perf/load.hpp"

namespace mayfly::perf {
namespace {

uint16_t word(const std::vector<uint8_t>& frame, size_t at) {
  return static_cast<uint16_t>(frame[at] << 8 | frame[at + 1]);
}

// RFC 1071, by the book.
uint16_t checksum(const std::vector<uint8_t>& bytes) {
  uint32_t sum = 0;
  for (size_t i = 0; i < bytes.size(); i += 2)
    sum += static_cast<uint32_t>(bytes[i] << 8 | (i + 1 < bytes.size() ? bytes[i + 1] : 0));
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}

const FlowFrame kFlow4{.destination = 0x02'aa'bb'cc'dd'ee,
                       .outer = 100,
                       .inner = 4'094,
                       .source = IpAddress(Ipv4{0xc6120001}),
                       .target = IpAddress(Ipv4{0x0a800001})};

TEST(Frames, Ipv4IsWhatItSays) {
  const auto frame = build_frame(kFlow4, 64);
  ASSERT_EQ(frame.size(), 60u);
  EXPECT_EQ(load_mac(frame.data()), kFlow4.destination);
  EXPECT_EQ(word(frame, 12), 0x8100);
  EXPECT_EQ(word(frame, 14), 100);
  EXPECT_EQ(word(frame, 16), 0x8100);
  EXPECT_EQ(word(frame, 18), 4'094);
  EXPECT_EQ(word(frame, 20), 0x0800);
  EXPECT_EQ(word(frame, 24), 60 - 22);
  EXPECT_EQ(checksum({frame.begin() + 22, frame.begin() + 42}), 0);
  EXPECT_EQ(word(frame, 38) << 16 | word(frame, 40), 0x0a800001);
  EXPECT_EQ(word(frame, 46), 60 - 42);
  EXPECT_EQ(payload_offset(4), 50u);
}

TEST(Frames, Ipv6ChecksumIsRight) {
  FlowFrame flow = kFlow4;
  flow.source = IpAddress(Ipv6{0xfd00000000000000, 1});
  flow.target = IpAddress(Ipv6{0xfd00000100000000, 2});
  for (const uint32_t size : {74u, 75u, 500u, 1'522u}) {
    const auto frame = build_frame(flow, size);
    ASSERT_EQ(frame.size(), size - 4);
    EXPECT_EQ(word(frame, 26), frame.size() - 62);
    std::vector<uint8_t> summed(frame.begin() + 30, frame.begin() + 62);  // both addresses
    const auto length = static_cast<uint16_t>(frame.size() - 62);
    for (const int octet : {0, 0, length >> 8, length & 0xff, 0, 0, 0, 17})
      summed.push_back(static_cast<uint8_t>(octet));
    summed.insert(summed.end(), frame.begin() + 62, frame.end());
    EXPECT_EQ(checksum(summed), 0) << size;
  }
  EXPECT_EQ(least_frame(6), 74u);
  EXPECT_EQ(least_frame(4), 64u);
}

TEST(Frames, ImixIsSevenFourOne) {
  const auto sizes = parse_sizes("imix");
  ASSERT_TRUE(sizes.has_value());
  EXPECT_EQ(std::ranges::count(*sizes, 64u), 7);
  EXPECT_EQ(std::ranges::count(*sizes, 570u), 4);
  EXPECT_EQ(std::ranges::count(*sizes, 1'518u), 1);
}

TEST(Load, EveryWayIsHitEquallyOftenInEitherOrder) {
  for (const Order order : {Order::sequential, Order::random}) {
    PerfOptions options;
    options.interfaces = 2'600;
    options.order = order;
    const auto frames = load_frames(options, 1);
    ASSERT_EQ(frames.size(), load_frame_count(options));
    EXPECT_EQ(frames.size() % 1'300, 0u);
    EXPECT_GE(frames.size(), 4'096u);
    std::map<std::tuple<int, int, uint32_t>, size_t> hits;
    for (const auto& frame : frames)
      ++hits[{word(frame, 14), word(frame, 18), uint32_t{word(frame, 38)} << 16 | word(frame, 40)}];
    EXPECT_EQ(hits.size(), 1'300u);
    for (const auto& [way, count] : hits) EXPECT_EQ(count, frames.size() / 1'300);
    // In order, or not.
    EXPECT_EQ(word(frames[0], 18) == 1 && word(frames[1], 18) == 2 && word(frames[2], 18) == 3,
              order == Order::sequential);
  }
}

TEST(Capture, IsAFileOfLibpcap) {
  const std::string path = ::testing::TempDir() + "/frames.pcap";
  const std::vector<std::vector<uint8_t>> frames{build_frame(kFlow4, 64), build_frame(kFlow4, 1'518)};
  ASSERT_TRUE(begin_capture(path).has_value());
  ASSERT_TRUE(append_capture(path, frames).has_value());
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  ASSERT_EQ(text.size(), 24 + 2 * 16 + 60 + 1'514);
  uint32_t magic = 0, length = 0;
  std::memcpy(&magic, text.data(), 4);
  std::memcpy(&length, text.data() + 24 + 16 + 60 + 8, 4);
  EXPECT_EQ(magic, 0xa1b2c3d4);
  EXPECT_EQ(length, 1'514u);
  EXPECT_EQ(text.substr(24 + 16, 60), std::string(frames[0].begin(), frames[0].end()));
  std::filesystem::remove(path);
  EXPECT_FALSE(append_capture("/nowhere/frames.pcap", frames).has_value());
}

}  // namespace
}  // namespace mayfly::perf
