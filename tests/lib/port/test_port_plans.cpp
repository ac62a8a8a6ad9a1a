// SPDX-License-Identifier: BSD-3-Clause
// What is decided without a device: CPUs, the EAL's arguments, devargs, packet rings, frame sizes, queues.
#include <gtest/gtest.h>
#include <rte_ethdev.h>

#include <cerrno>
#include <set>

#include <algorithm>

#include "port/cpu_plan.hpp"
#include "port/devargs.hpp"
#include "port/eal.hpp"
#include "port/frame_limits.hpp"
#include "port/mac_filter.hpp"
#include "port/packet_ring.hpp"
#include "port/queue_assignment.hpp"
#include "port/rss.hpp"

namespace mayfly {
namespace {

using Cpus = std::vector<int>;

TEST(CpuPlan, WorkersTakeTheLastCpus) {
  const auto plan = plan_cpus(2, {}, {0, 1, 2, 5});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->worker_cpus, (Cpus{2, 5}));
  EXPECT_EQ(plan->control_cpus, (Cpus{0, 1}));
  EXPECT_EQ(plan->warning, "");
}

TEST(CpuPlan, SharesWhenThereAreTooFew) {
  const auto two = plan_cpus(3, {}, {0, 1});
  ASSERT_TRUE(two);
  EXPECT_EQ(two->worker_cpus, (Cpus{1, 1, 1}));
  EXPECT_EQ(two->control_cpus, (Cpus{0}));
  EXPECT_NE(two->warning.find("2 CPUs (0-1) for 3 workers"), std::string::npos) << two->warning;

  const auto one = plan_cpus(1, {}, {4});
  ASSERT_TRUE(one);
  EXPECT_EQ(one->worker_cpus, (Cpus{4}));
  EXPECT_EQ(one->control_cpus, (Cpus{4}));
  EXPECT_NE(one->warning, "");
}

TEST(CpuPlan, TakesTheWantedOnesOrSaysWhatIsAccepted) {
  EXPECT_EQ(plan_cpus(2, {0, 3}, {0, 1, 2, 3})->control_cpus, (Cpus{1, 2}));
  EXPECT_EQ(plan_cpus(1, {9}, {0, 1, 2, 5}).error().text,
            "workers.cpus: CPU 9: accepted 0-2,5 (the CPUs this process may run on)");
  EXPECT_EQ(plan_cpus(2, {1}, {0, 1}).error().text, "workers.cpus: 1 CPUs for 2 workers: name one a worker");
  EXPECT_FALSE(plan_cpus(0, {}, {0, 1}));
}

TEST(Eal, ArgumentsWithoutHugepages) {
  EalSettings settings;
  settings.memory_bytes = uint64_t{256} << 20;
  settings.worker_cpus = {2, 3};
  settings.control_cpus = {0, 1};
  settings.port_devargs = {"net_null0"};
  settings.extra_args = {"--log-level", "7"};
  const std::vector<std::string> expected = {
      "mayflyd",        "--lcores", "0@(0,1),1@2,2@3", "--main-lcore", "0",
      "--file-prefix",  "p",        "--no-huge",       "-m",           "256",
      "--no-telemetry", "-a",       "ffff:ff:1f.7",    "--log-level",  "7"};
  EXPECT_EQ(eal_arguments(settings, "p"), expected);
}

TEST(Eal, OnlyNamedPciDevicesAreAllowed) {
  EalSettings settings;
  settings.hugepages = true;
  settings.telemetry = true;
  settings.worker_cpus = {1};
  settings.control_cpus = {0};
  settings.port_devargs = {"0000:03:00.0,x=1", "net_null0", "0A:00.1"};
  const std::vector<std::string> expected = {
      "mayflyd", "--lcores",     "0@(0),1@1", "--main-lcore",     "0",  "--file-prefix", "p", "--in-memory",
      "-a",      "ffff:ff:1f.7", "-a",        "0000:03:00.0,x=1", "-a", "0000:0a:00.1"};
  EXPECT_EQ(eal_arguments(settings, "p"), expected);
}

TEST(Devargs, APciAddressIsTheSameHoweverItIsWritten) {
  for (const char* const text : {"0000:0a:00.1", "0a:00.1", "0A:00.1", "0000:0A:00.1"}) {
    EXPECT_EQ(Devargs::parse(text).device, "0000:0a:00.1") << text;
    EXPECT_EQ(Devargs::parse(std::string(text) + ",x=AB").text(), "0000:0a:00.1,x=AB") << text;
  }
  EXPECT_EQ(Devargs::parse("ab12:03:00.0").device, "ab12:03:00.0");
  EXPECT_EQ(Devargs::parse("net_Null0").device, "net_Null0");
}

TEST(Devargs, ReadsAndWrites) {
  const Devargs devargs = Devargs::parse("net_af_packet0,iface=veth0,flag,qpairs=2");
  EXPECT_EQ(devargs.device, "net_af_packet0");
  EXPECT_EQ(devargs.text(), "net_af_packet0,iface=veth0,flag,qpairs=2");
  EXPECT_EQ(devargs.kernel_interface(), "veth0");
  EXPECT_EQ(**devargs.number("qpairs"), 2u);
  EXPECT_FALSE(*devargs.number("framesz"));
  EXPECT_FALSE(Devargs::parse("net_af_packet0,qpairs=many").number("qpairs"));
  EXPECT_TRUE(devargs.is_of("net_af_packet"));
  EXPECT_FALSE(Devargs::parse("net_af_packetx").is_of("net_af_packet"));
  EXPECT_EQ(Devargs::parse("net_tap0,iface=x").kernel_interface(), "");
}

TEST(Devargs, ParenthesesHoldCommas) {
  const char* const text = "net_bonding0,mode=1,slave=(net_af_packet0,iface=veth0),slave=net_null1";
  const Devargs devargs = Devargs::parse(text);
  ASSERT_EQ(devargs.arguments.size(), 3u);
  EXPECT_EQ(devargs.arguments[1].second, "(net_af_packet0,iface=veth0)");
  EXPECT_EQ(devargs.arguments[2].second, "net_null1");
  EXPECT_EQ(devargs.text(), text);
  EXPECT_EQ(Devargs::parse("x,a=(b,c").arguments.size(), 1u) << "never closed: to the end";
  EXPECT_EQ(Devargs::parse("x,a)b,c").arguments.size(), 2u);
}

// A device with room for kDeviceMacs, which can be made to refuse one.
constexpr size_t kDeviceMacs = 3;
std::set<Mac> device_macs;
Mac refused_mac;
int change_fake(uint16_t, Mac mac, bool add) {
  if (!add) return device_macs.erase(mac) == 1 ? 0 : -ENOENT;
  if (mac == refused_mac) return -EIO;
  return device_macs.size() < kDeviceMacs && device_macs.insert(mac).second ? 0 : -ENOSPC;
}

TEST(MacFilter, KeepsTheDeviceAtWhatIsWanted) {
  device_macs.clear();
  refused_mac = 0;
  MacFilter filter(change_fake);
  const auto apply = [&](std::vector<Mac> macs, uint64_t count = 0) {
    const uint64_t all = count != 0 ? count : macs.size();
    return filter.apply(0, {.macs = std::move(macs), .count = all}, kDeviceMacs);
  };
  EXPECT_EQ(apply({1, 2, 3}), "");
  EXPECT_EQ(device_macs, (std::set<Mac>{1, 2, 3}));
  EXPECT_EQ(apply({3, 4, 5}), "") << "what goes makes room for what comes";
  EXPECT_EQ(device_macs, (std::set<Mac>{3, 4, 5}));
  EXPECT_EQ(filter.size(), 3u);
  EXPECT_EQ(apply({3, 4, 5, 6}), "4 further MAC addresses are needed, and the device has room for 3");
  EXPECT_TRUE(device_macs.empty()) << "promiscuous, it needs none";
  EXPECT_EQ(apply({3, 4}, 100'000), "100000 further MAC addresses are needed, and the device has room for 3");
  refused_mac = 8;
  EXPECT_EQ(apply({7, 8, 9}), "the device's MAC filter refuses 00:00:00:00:00:08: Input/output error");
  EXPECT_TRUE(device_macs.empty());
  EXPECT_EQ(apply({7, 9}), "");
  filter.clear(0);
  EXPECT_TRUE(device_macs.empty());
  EXPECT_EQ(filter.size(), 0u);
}

TEST(MacFilter, SaysWhenThereIsNone) {
  MacFilter none([](uint16_t, Mac, bool) { return -ENOTSUP; });
  EXPECT_NE(none.apply(0, {.macs = {1}, .count = 1}, 63).find("no MAC filter"), std::string::npos);
  EXPECT_NE(none.apply(0, {.macs = {1}, .count = 1}, 0).find("no MAC filter"), std::string::npos);
  EXPECT_EQ(none.apply(0, {}, 0), "");
}

TEST(Rss, TakesWhatIsWantedOfWhatIsOffered) {
  EXPECT_EQ(choose_rss(0).all, 0u);
  const RssTypes types = choose_rss(RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_S_VLAN | RTE_ETH_RSS_VXLAN);
  EXPECT_EQ(types.all, RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_S_VLAN);
  EXPECT_EQ(types.without_tags, RTE_ETH_RSS_IPV4);
  EXPECT_EQ(rss_names(types.all), (std::vector<std::string>{"ipv4", "s-vlan"}));
  EXPECT_EQ(rss_names(RTE_ETH_RSS_NONFRAG_IPV6_UDP | uint64_t{1} << 63).front(), "ipv6-udp");
}

Result<PacketRing> ring(std::string_view text, uint32_t mtu, uint32_t buffer, Devargs* devargs = nullptr) {
  PortSettings settings;
  settings.mtu = mtu;
  Devargs parsed = Devargs::parse(text);
  std::vector<std::string> notes;
  auto completed = complete_packet_ring(parsed, settings, buffer, notes);
  if (devargs != nullptr) *devargs = parsed;
  return completed;
}

TEST(PacketRing, DefaultsAreAddedWhereAbsent) {
  Devargs devargs;
  ASSERT_TRUE(ring("net_af_packet0,iface=v", 1'500, 2'048, &devargs));
  EXPECT_EQ(devargs.text(), "net_af_packet0,iface=v,qpairs=1,framecnt=4096,framesz=2048,blocksz=4096");
  ASSERT_TRUE(ring("net_af_packet0,iface=v,framecnt=64,qpairs=3", 1'500, 2'048, &devargs));
  EXPECT_EQ(devargs.text(), "net_af_packet0,iface=v,framecnt=64,qpairs=3,framesz=2048,blocksz=4096");
}

TEST(PacketRing, EveryMtuGivesARingThatDriverAndKernelAccept) {
  for (uint32_t mtu = 68; mtu <= 16'000; mtu += 7) {
    const auto made = ring("net_af_packet0,iface=v", mtu, mtu + 200 < 2'048 ? 2'048 : mtu + 200);
    ASSERT_TRUE(made) << mtu << ": " << made.error().text;
    EXPECT_GE(made->most_frame(), mtu + 22);
    EXPECT_EQ(made->frame_bytes % 16, 0u);
    EXPECT_EQ(made->block_bytes % 4'096, 0u);
    EXPECT_EQ(made->block_bytes % made->frame_bytes, 0u);
    EXPECT_EQ(made->frames % (made->block_bytes / made->frame_bytes), 0u);
  }
}

TEST(PacketRing, SaysWhatIsAccepted) {
  const auto text = [](std::string_view arguments, uint32_t mtu = 1'500) {
    const auto made = ring(fmt::format("net_af_packet0,iface=v,{}", arguments), mtu, 2'048);
    return made ? std::string() : made.error().text;
  };
  EXPECT_EQ(text("framecnt=1001"), "framecnt=1001: accepted multiples of 2 (blocksz / framesz)");
  EXPECT_EQ(text("framesz=2000,blocksz=4096"),
            "blocksz=4096: accepted multiples of the page (4096) and of framesz (2000): 512000 for one");
  EXPECT_EQ(text("framesz=1001"), "framesz=1001: accepted multiples of 16, 128 and above");
  EXPECT_EQ(text("framesz=4096"),
            "framesz=4096 (for mtu 1500) does not fit mbufs of 2048 B: set mbufs.size: 4192 or "
            "more, or framesz=2080 or less");
  EXPECT_EQ(text("framecnt=2000000"), "framecnt=2000000: accepted at most 1048574 with framesz=2048");
  EXPECT_NE(text("qpairs=0"), "");
  EXPECT_NE(text("", 9'000), "");
}

FrameRoom device_room(uint32_t most_mtu, uint32_t buffer_bytes) {
  FrameRoom room;
  room.device = "d";
  room.most_mtu = most_mtu;
  room.buffer_bytes = buffer_bytes;
  return room;
}

TEST(FrameLimits, OverheadIsWhatADeviceDoesNotCountAsMtu) {
  EXPECT_EQ(frame_overhead(9'234, 9'216), 18u);
  EXPECT_EQ(frame_overhead(9'728, 9'702), 26u);
  EXPECT_EQ(frame_overhead(1'518, UINT16_MAX), 18u) << "the driver tells of no largest MTU";
  EXPECT_EQ(frame_overhead(16'384, 9'000), 18u) << "net_vmxnet3";
}

TEST(FrameLimits, TheDeviceIsConfiguredForTwoTags) {
  FrameRoom room = device_room(9'000, 2'048);
  const auto plain = plan_frames(1'500, room);
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->device_mtu, 1'508u);
  EXPECT_EQ(plain->mtu_by_tags, (std::array<uint32_t, 3>{1'500, 1'500, 1'500}));
  EXPECT_EQ(plain->most_mtu, 2'026u);

  room.header_bytes = 22;  // counts two tags beside the MTU already
  EXPECT_EQ(plan_frames(1'500, room)->device_mtu, 1'500u);

  room = device_room(1'500, 0);
  EXPECT_EQ(plan_frames(1'500, room)->mtu_by_tags, (std::array<uint32_t, 3>{1'500, 1'496, 1'492}));
}

TEST(FrameLimits, ScatterOnlyWhereItIsNeeded) {
  FrameRoom room = device_room(9'600, 2'048);
  room.scatter = true;
  EXPECT_FALSE(plan_frames(1'500, room)->needs_scatter);
  EXPECT_TRUE(plan_frames(9'000, room)->needs_scatter);
  room.scatter = false;
  EXPECT_EQ(plan_frames(9'000, room).error().text,
            "mtu 9000: accepted 68..2026: a larger one needs larger mbufs: set mbufs.size: 9150 or more");
}

TEST(FrameLimits, AKernelInterfaceTakesOneTagBesideItsMtu) {
  FrameRoom room = device_room(UINT16_MAX, 0);
  room.kernel_interface = "veth0";
  room.kernel_mtu = 1'500;
  room.ring_frame = 1'982;
  EXPECT_EQ(plan_frames(1'500, room)->mtu_by_tags, (std::array<uint32_t, 3>{1'500, 1'500, 1'496}));
  EXPECT_EQ(plan_frames(1'400, room)->mtu_by_tags, (std::array<uint32_t, 3>{1'400, 1'400, 1'400}));
  EXPECT_EQ(plan_frames(1'501, room).error().text,
            "mtu 1501: accepted 68..1500: veth0 has an MTU of 1500: ip link set dev veth0 mtu 1501");
  EXPECT_EQ(plan_frames(60, room).error().text, "mtu 60: accepted 68..1500");
}

TEST(QueueAssignment, SpreadsQueues) {
  using Workers = std::vector<uint32_t>;
  EXPECT_EQ(assign_queues(5, {0, 0}), (Workers{0, 1, 0, 1, 0}));
  EXPECT_EQ(assign_queues(1, {1, 0, 0}), (Workers{1}));
  EXPECT_EQ(assign_queues(2, {3, 1, 0, 1}), (Workers{2, 1}));
}

}  // namespace
}  // namespace mayfly
