// SPDX-License-Identifier: BSD-3-Clause
// IPv4 header checks, and packets for our own addresses: ICMP echo.
#include <gtest/gtest.h>

#include "world.hpp"

namespace mayfly::testing {
namespace {

constexpr Mac kHost = 0x0a0000000001;
constexpr Mac kPort0 = 0x020000000001;
constexpr Mac kPort1 = 0x020000000002;
constexpr Mac kNextHop = 0x0a0000000002;

// port0 10.0.0.1/24 with host .9, port1 10.1.0.1/24 with host .9.
class Input : public ::testing::Test {
 protected:
  Input() {
    world.set_address(world.port(0), "10.0.0.1/24");
    world.set_address(world.port(1), "10.1.0.1/24");
    world.set_neighbour(world.port(0), ip("10.0.0.9"), kHost);
    world.set_neighbour(world.port(1), ip("10.1.0.9"), kNextHop);
  }

  Ipv4Fields to_host() { return {.source = ip("10.0.0.9"), .destination = ip("10.1.0.9")}; }
  Bytes frame(const Bytes& packet) { return ethernet(kPort0, kHost, {}, 0x0800, packet); }
  Bytes sent(const Bytes& packet) { return ethernet(kNextHop, kPort1, {}, 0x0800, packet); }
  DropReason dropped(const Bytes& packet) { return world.dropped(0, frame(packet)); }
  Bytes echo(Ipv4 to, const Bytes& message, Ipv4 from = ip("10.0.0.9")) {
    return ipv4({.source = from, .destination = to, .ttl = 3, .protocol = 1, .payload = message});
  }

  World world;
};

TEST_F(Input, BadHeaders) {
  Bytes version = ipv4(to_host());
  version[0] = 0x65;
  EXPECT_EQ(dropped(version), DropReason::ip_header);
  Bytes words = ipv4(to_host());
  words[0] = 0x44;
  EXPECT_EQ(dropped(words), DropReason::ip_header);
  Bytes total = ipv4(to_host());
  set(total, 2, 19, 2);
  fix_ipv4_checksum(total);
  EXPECT_EQ(dropped(total), DropReason::ip_header);
  Bytes options = ipv4(to_host());
  options.resize(24);
  options[0] = 0x4f;
  EXPECT_EQ(dropped(options), DropReason::truncated);
}

TEST_F(Input, EveryWrongBitOfTheHeaderIsSeen) {
  const Bytes good = ipv4(to_host());
  for (size_t bit = 8; bit < 160; ++bit) {
    Bytes bad = good;
    bad[bit / 8] = static_cast<uint8_t>(bad[bit / 8] ^ 1u << bit % 8);
    EXPECT_EQ(dropped(bad), DropReason::ip_checksum) << bit;
  }
}

TEST_F(Input, TotalLengthBeyondTheFrame) {
  Bytes packet = ipv4(to_host());
  set(packet, 2, packet.size() + 1, 2);
  fix_ipv4_checksum(packet);
  EXPECT_EQ(dropped(packet), DropReason::ip_length);
}

TEST_F(Input, PaddingIsCutOff) {
  const Bytes packet =
      ipv4({.source = ip("10.0.0.9"), .destination = ip("10.1.0.9"), .payload = Bytes(2, 7)});
  Bytes padded = frame(packet);
  padded.resize(60);
  EXPECT_EQ(hex(world.forwarded(0, padded, 1)), hex(sent(one_hop_further(packet))));
}

TEST_F(Input, PaddingInLaterSegmentsIsCutOff) {
  const Bytes packet = ipv4(to_host());
  const Bytes whole = frame(packet);
  // Header, half the payload; the other half and padding; padding.
  Bytes second(whole.begin() + 45, whole.end());
  second.resize(second.size() + 5);
  world.put_segments(0, {Bytes(whole.begin(), whole.begin() + 45), second, Bytes(9, 0)});
  world.step();
  EXPECT_EQ(hex(world.take(1).value_or(Bytes{})), hex(sent(one_hop_further(packet))));
}

TEST_F(Input, OptionsAreForwarded) {
  Ipv4Fields fields = to_host();
  fields.options = {0x94, 0x04, 0x00, 0x00, 1, 1, 1, 0};
  const Bytes packet = ipv4(fields);
  EXPECT_EQ(hex(world.forwarded(0, frame(packet), 1)), hex(sent(one_hop_further(packet))));
  Bytes bad = packet;
  bad[21] ^= 1;
  EXPECT_EQ(dropped(bad), DropReason::ip_checksum);
}

TEST_F(Input, MartianSources) {
  for (const char* source : {"0.0.0.0", "0.1.2.3", "127.0.0.1", "127.255.0.9", "224.0.0.1", "239.1.1.1",
                             "240.0.0.1", "255.255.255.254", "255.255.255.255"}) {
    Ipv4Fields fields = to_host();
    fields.source = ip(source);
    EXPECT_EQ(dropped(ipv4(fields)), DropReason::martian_source) << source;
  }
  for (const char* source : {"1.0.0.0", "126.255.255.255", "128.0.0.0", "223.255.255.255"}) {
    Ipv4Fields fields = to_host();
    fields.source = ip(source);
    EXPECT_EQ(dropped(ipv4(fields)), DropReason::count) << source;
  }
}

TEST_F(Input, GroupsAreNotForwarded) {
  world.set_route("0.0.0.0/0", {.oif = world.port(1), .gateway = ip("10.1.0.9")});
  for (const char* destination : {"224.0.0.5", "239.255.255.250", "255.255.255.255", "10.1.0.255"}) {
    Ipv4Fields fields = to_host();
    fields.destination = ip(destination);
    EXPECT_EQ(dropped(ipv4(fields)), DropReason::multicast) << destination;
  }
  Ipv4Fields dhcp = to_host();
  dhcp.source = 0;
  dhcp.destination = ip("255.255.255.255");
  EXPECT_EQ(dropped(ipv4(dhcp)), DropReason::multicast);
  for (const char* destination : {"0.0.0.0", "0.9.9.9", "127.0.0.1", "240.0.0.1", "255.255.255.254"}) {
    Ipv4Fields fields = to_host();
    fields.destination = ip(destination);
    EXPECT_EQ(dropped(ipv4(fields)), DropReason::martian_destination) << destination;
  }
}

TEST_F(Input, EchoIsAnswered) {
  const Bytes request = frame(echo(ip("10.0.0.1"), icmp_echo(8, 77)));
  Bytes reply = ipv4({.source = ip("10.0.0.1"),
                      .destination = ip("10.0.0.9"),
                      .ttl = 64,
                      .protocol = 1,
                      .payload = icmp_echo(0, 77)});
  EXPECT_EQ(hex(world.forwarded(0, request, 0)), hex(ethernet(kHost, kPort0, {}, 0x0800, reply)));
}

TEST_F(Input, EchoToTheAddressOfAnotherInterfaceIsAnswered) {
  const uint32_t vlan = world.add_vlan(2, 100, 7, 0x88a8);
  world.set_address(vlan, "10.2.0.1/24");
  const Bytes reply = ipv4({.source = ip("10.2.0.1"),
                            .destination = ip("10.0.0.9"),
                            .ttl = 64,
                            .protocol = 1,
                            .payload = icmp_echo(0, 1, {})});
  EXPECT_EQ(hex(world.forwarded(0, frame(echo(ip("10.2.0.1"), icmp_echo(8, 1, {}))), 0)),
            hex(ethernet(kHost, kPort0, {}, 0x0800, reply)));
}

TEST_F(Input, EchoRepliesFollowTheRoute) {
  // The asker's address is behind port1, whatever MAC and port the request came from.
  const Bytes request = frame(echo(ip("10.0.0.1"), icmp_echo(8, 5), ip("10.1.0.9")));
  const Bytes reply = ipv4({.source = ip("10.0.0.1"),
                            .destination = ip("10.1.0.9"),
                            .ttl = 64,
                            .protocol = 1,
                            .payload = icmp_echo(0, 5)});
  EXPECT_EQ(hex(world.forwarded(0, request, 1)), hex(sent(reply)));
  EXPECT_EQ(dropped(echo(ip("10.0.0.1"), icmp_echo(8, 5), ip("99.1.0.9"))), DropReason::no_route);
}

TEST_F(Input, EchoChecksumsOfAllRequests) {
  for (uint32_t sequence = 0; sequence < 0x10000; sequence += 257) {
    Bytes data;
    put(data, sequence * 31, 2);
    const Bytes answer = world.forwarded(
        0, frame(echo(ip("10.0.0.1"), icmp_echo(8, static_cast<uint16_t>(sequence), data))), 0);
    ASSERT_EQ(answer.size(), 14u + 20 + 10);
    EXPECT_EQ(checksum(answer, 14, 20), 0);
    EXPECT_EQ(checksum(answer, 34, 10), 0);
  }
}

TEST_F(Input, EchoInSegments) {
  const Bytes whole = frame(echo(ip("10.0.0.1"), icmp_echo(8, 9, Bytes(1000, 0x33))));
  const auto part = [&](long from, long to) { return Bytes(whole.begin() + from, whole.begin() + to); };
  world.put_segments(0, {part(0, 43), part(43, 500), part(500, static_cast<long>(whole.size()))});
  world.step();
  const Bytes reply = world.take(0).value_or(Bytes(64));
  EXPECT_EQ(reply.size(), whole.size());
  EXPECT_EQ(checksum(reply, 34, reply.size() - 34), 0);
  world.put_segments(0, {part(0, 36), part(36, static_cast<long>(whole.size()))});
  world.step();
  EXPECT_EQ(world.drops(DropReason::truncated), 1u);
}

TEST_F(Input, OurOwnAddressAsSourceGetsNoAnswer) {
  EXPECT_EQ(dropped(echo(ip("10.0.0.1"), icmp_echo(8, 5), ip("10.1.0.1"))), DropReason::spoofed_source);
}

TEST_F(Input, MalformedIcmp) {
  Bytes wrong = icmp_echo(8, 5);
  wrong[9] ^= 1;
  EXPECT_EQ(dropped(echo(ip("10.0.0.1"), wrong)), DropReason::icmp_invalid);
  EXPECT_EQ(dropped(echo(ip("10.0.0.1"), Bytes(7, 0))), DropReason::icmp_invalid);
  EXPECT_EQ(dropped(echo(ip("10.0.0.1"), {})), DropReason::icmp_invalid);
}

TEST_F(Input, OtherLocalPackets) {
  EXPECT_EQ(dropped(echo(ip("10.0.0.1"), icmp_echo(0, 5))), DropReason::local_unknown);
  EXPECT_EQ(dropped(echo(ip("10.0.0.1"), icmp_echo(13, 5))), DropReason::local_unknown);
  EXPECT_EQ(dropped(ipv4({.source = ip("10.0.0.9"), .destination = ip("10.1.0.1"), .protocol = 6})),
            DropReason::local_unknown);
  for (const uint16_t fragment : {0x2000, 0x0001, 0x2009})
    EXPECT_EQ(dropped(ipv4({.source = ip("10.0.0.9"),
                            .destination = ip("10.0.0.1"),
                            .protocol = 1,
                            .fragment = fragment,
                            .payload = icmp_echo(8, 5)})),
              DropReason::local_unknown);
}

TEST_F(Input, ManyRequestsInOneVector) {
  for (uint16_t i = 0; i < 64; ++i)
    world.put(0, i % 2 == 0 ? frame(echo(ip("10.0.0.1"), icmp_echo(8, i))) : frame(ipv4(to_host())));
  world.step();
  EXPECT_EQ(world.take_all(0).size(), 32u);
  EXPECT_EQ(world.take_all(1).size(), 32u);
}

}  // namespace
}  // namespace mayfly::testing
