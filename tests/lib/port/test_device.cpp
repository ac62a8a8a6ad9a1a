// SPDX-License-Identifier: BSD-3-Clause
// Devices of every driver at hand, and each way in which one can not be opened.
#include <rte_ethdev.h>

#include <array>

#include "port/device.hpp"
#include "port_test_process.hpp"

namespace mayfly {
namespace {

size_t open_descriptors() {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    count += entry.exists() ? 1 : 0;
  return count;
}

class DeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    descriptors_ = open_descriptors();
    available_ = PortTestProcess::pool->available();
  }
  // Whatever a test did, its devices left nothing behind.
  void TearDown() override {
    EXPECT_EQ(rte_eth_dev_count_avail(), 0u);
    EXPECT_EQ(open_descriptors(), descriptors_);
    EXPECT_EQ(PortTestProcess::pool->available(), available_);
  }

  static PortSettings settings(std::string devargs, uint32_t queues = 1) {
    PortSettings wanted;
    wanted.name = "port0";
    wanted.devargs = std::move(devargs);
    wanted.rx_queues = wanted.tx_queues = queues;
    return wanted;
  }
  static Result<std::unique_ptr<Device>> open(const PortSettings& wanted) {
    return Device::open(wanted, PortTestProcess::pool->get());
  }
  static std::string error(const PortSettings& wanted) {
    const auto opened = open(wanted);
    return opened ? "it opened" : opened.error().text;
  }

 private:
  size_t descriptors_ = 0;
  uint32_t available_ = 0;
};

class AfPacketTest : public DeviceTest {
 protected:
  void SetUp() override {
    if (!PortTestProcess::private_network) GTEST_SKIP() << "needs root and a network namespace of its own";
    ASSERT_TRUE(
        PortTestProcess::sh("ip link add veth0 type veth peer name veth1 && ip link set dev veth0 up && "
                            "ip link set dev veth1 up"));
    DeviceTest::SetUp();
  }
  void TearDown() override {
    if (!PortTestProcess::private_network) return;
    DeviceTest::TearDown();
    PortTestProcess::sh("ip link del veth0");
  }
};

TEST_F(DeviceTest, Null) {
  const auto device = open(settings("net_null0,no-rx=1", 2));
  ASSERT_TRUE(device) << device.error().text;
  const PortInfo& info = (*device)->info();
  EXPECT_EQ(info.device, "net_null0");
  EXPECT_EQ(info.driver, "net_null");
  EXPECT_EQ(info.mtu, 1'500u);
  EXPECT_EQ(info.mtu_by_tags[2], 1'500u);
  EXPECT_EQ(info.rx_queues, 2u);
  EXPECT_EQ(info.tx_queues, 2u);
  EXPECT_NE(info.mac, 0u);
  EXPECT_FALSE(is_multicast(info.mac));
  EXPECT_EQ(rte_eth_dev_count_avail(), 1u);
}

TEST_F(DeviceTest, Ring) {
  const auto device = open(settings("net_ring0", 2));
  ASSERT_TRUE(device) << device.error().text;
  EXPECT_EQ((*device)->info().driver, "net_ring");
  EXPECT_NE((*device)->info().mac, 0u);
  // These two are still in the ring when it is closed.
  for (uint16_t queue = 0; queue < 2; ++queue) {
    rte_mbuf* mbuf = rte_pktmbuf_alloc(&PortTestProcess::pool->get());
    ASSERT_EQ(rte_eth_tx_burst((*device)->info().port, queue, &mbuf, 1), 1);
  }
}

TEST_F(DeviceTest, Pcap) {
  const std::string in = PortTestProcess::pcap_file("in.pcap");
  const std::string out = PortTestProcess::directory / "out.pcap";
  const auto device = open(settings(fmt::format("net_pcap0,rx_pcap={},tx_pcap={}", in, out)));
  ASSERT_TRUE(device) << device.error().text;
  rte_mbuf* mbufs[4] = {};
  ASSERT_EQ(rte_eth_rx_burst((*device)->info().port, 0, mbufs, 4), 1);
  EXPECT_EQ(mbufs[0]->pkt_len, 60u);
  ASSERT_EQ(rte_eth_tx_burst((*device)->info().port, 0, mbufs, 1), 1);
  (*device)->refresh();
  EXPECT_EQ((*device)->counters().rx_packets, 1u);
  EXPECT_EQ((*device)->counters().tx_packets, 1u);
}

TEST_F(DeviceTest, TheSameDeviceCanBeOpenedAgainAfterItWasClosed) {
  for (int round = 0; round < 3; ++round)
    for (const char* devargs : {"net_null0", "net_ring0"}) EXPECT_TRUE(open(settings(devargs))) << devargs;
}

TEST_F(DeviceTest, ADeviceThatExistsIsNotTakenTwice) {
  const auto first = open(settings("net_null0"));
  ASSERT_TRUE(first);
  EXPECT_EQ(error(settings("net_null0")),
            "port0: devargs 'net_null0': the device net_null0 exists already: give it another number");
}

TEST_F(DeviceTest, UnknownDriver) {
  EXPECT_EQ(error(settings("net_foo0")),
            "port0: devargs 'net_foo0': no driver of this name; known are net_af_packet, net_af_xdp, "
            "net_bonding, net_memif, "
            "net_null, net_pcap, net_ring, net_tap, net_virtio_user, or a PCI address like 0000:03:00.0");
}

TEST_F(DeviceTest, PciDeviceThatDoesNotExist) {
  const std::string text = error(settings("0000:ff:1f.7"));
  EXPECT_TRUE(
      text.starts_with("port0: 0000:ff:1f.7: this machine has no such PCI device (lspci -D lists them)"))
      << text;
}

TEST_F(DeviceTest, ArgumentsTheDriverDoesNotKnow) {
  const std::string text = error(settings("net_null0,nonsense=1"));
  EXPECT_TRUE(text.starts_with("port0: net_null0,nonsense=1 can not be opened")) << text;
}

TEST_F(DeviceTest, TooFewReceiveQueues) {
  const std::string in = PortTestProcess::pcap_file("in.pcap");
  const std::string out = PortTestProcess::directory / "out.pcap";
  const std::string devargs = fmt::format("net_pcap0,rx_pcap={},tx_pcap={},tx_pcap={}", in, out, out);
  EXPECT_EQ(error(settings(devargs, 2)),
            "port0: net_pcap0 has 1 receive queue, 2 workers need 2: set rx_queues: 1");
  PortSettings one = settings(devargs, 2);
  one.rx_queues = 1;
  EXPECT_TRUE(open(one));
}

TEST_F(DeviceTest, TooFewTransmitQueues) {
  const std::string in = PortTestProcess::pcap_file("in.pcap");
  const std::string out = PortTestProcess::directory / "out.pcap";
  PortSettings wanted = settings(fmt::format("net_pcap0,rx_pcap={},tx_pcap={}", in, out), 2);
  wanted.rx_queues = 1;
  EXPECT_EQ(error(wanted),
            "port0: net_pcap0 has 1 transmit queue, 2 workers need one each: set workers.count: 1, or "
            "name tx_pcap= 2 times in its devargs");
}

TEST_F(DeviceTest, PcapFileThatDoesNotExist) {
  EXPECT_EQ(error(settings("net_pcap0,rx_pcap=/nowhere/in.pcap,tx_pcap=/tmp/x")),
            "port0: net_pcap0: rx_pcap=/nowhere/in.pcap: No such file or directory");
  const std::string in = PortTestProcess::pcap_file("in.pcap");
  const std::string text = error(settings(fmt::format("net_pcap0,rx_pcap={},tx_pcap=/nowhere/out.pcap", in)));
  EXPECT_NE(text.find("can not be opened"), std::string::npos) << text;
  EXPECT_NE(text.find("DPDK says"), std::string::npos) << text;
}

TEST_F(DeviceTest, MtuOutOfRange) {
  PortSettings wanted = settings("net_null0");
  wanted.mtu = 9'000;
  EXPECT_EQ(
      error(wanted),
      "port0: mtu 9000: accepted 68..2026: a larger one needs larger mbufs: set mbufs.size: 9150 or more");
  wanted.mtu = 67;
  EXPECT_EQ(error(wanted), "port0: mtu 67: accepted 68..2026");
}

TEST_F(DeviceTest, ChangesWhileItRuns) {
  const auto device = open(settings("net_null0,no-rx=1"));
  ASSERT_TRUE(device);
  EXPECT_TRUE((*device)->set_mtu(1'400));
  EXPECT_EQ((*device)->info().mtu, 1'400u);
  EXPECT_FALSE((*device)->set_mtu(40));
  EXPECT_EQ((*device)->info().mtu, 1'400u);
  EXPECT_TRUE((*device)->set_mac(0x02'00'00'00'00'05));
  EXPECT_EQ((*device)->info().mac, 0x02'00'00'00'00'05u);
  EXPECT_FALSE((*device)->set_mac(kBroadcastMac));
}

TEST_F(AfPacketTest, ForwardsAndCounts) {
  const auto left = open(settings("net_af_packet0,iface=veth0"));
  const auto right = open(settings("net_af_packet1,iface=veth1,framecnt=16"));
  ASSERT_TRUE(left) << left.error().text;
  ASSERT_TRUE(right) << right.error().text;
  const PortInfo& info = (*left)->info();
  EXPECT_EQ(info.devargs, "net_af_packet0,iface=veth0,qpairs=1,framecnt=4096,framesz=2048,blocksz=4096");
  EXPECT_EQ(info.rx_descriptors, 4'096u);
  EXPECT_EQ(info.kernel_interface, "veth0");
  EXPECT_EQ(info.mtu_by_tags, (std::array<uint32_t, 3>{1'500, 1'500, 1'496}));
  EXPECT_TRUE(info.link_up);
  EXPECT_TRUE(info.promiscuous);
  ASSERT_FALSE(info.warnings.empty());
  EXPECT_NE(info.warnings[0].find("802.1ad"), std::string::npos);

  // 64 frames meet a ring of 16.
  constexpr uint16_t kFrames = 64;
  for (uint16_t i = 0; i < kFrames; ++i) {
    rte_mbuf* mbuf = rte_pktmbuf_alloc(&PortTestProcess::pool->get());
    ASSERT_NE(mbuf, nullptr);
    char* data = rte_pktmbuf_append(mbuf, 1'514);
    std::memset(data, 0xff, 1'514);
    ASSERT_EQ(rte_eth_tx_burst(info.port, 0, &mbuf, 1), 1);
  }
  uint32_t received = 0;
  std::array<rte_mbuf*, kFrames> mbufs{};
  const uint16_t count = rte_eth_rx_burst((*right)->info().port, 0, mbufs.data(), kFrames);
  for (uint16_t i = 0; i < count; ++i) {
    received += mbufs[i]->pkt_len == 1'514 ? 1 : 0;
    rte_pktmbuf_free(mbufs[i]);
  }
  (*left)->refresh();
  (*right)->refresh();
  EXPECT_EQ((*left)->counters().tx_packets, kFrames);
  EXPECT_GE(received, 1u);
  EXPECT_GE(received + (*right)->counters().imissed, kFrames);
  EXPECT_GE((*right)->counters().imissed, 1u);
}

TEST_F(AfPacketTest, LinkFollowsTheKernelInterface) {
  const auto device = open(settings("net_af_packet0,iface=veth0"));
  ASSERT_TRUE(device);
  ASSERT_TRUE(PortTestProcess::sh("ip link set dev veth0 down"));
  (*device)->refresh();
  EXPECT_FALSE((*device)->info().link_up);
}

TEST_F(AfPacketTest, LeavesTheInterfaceAsItWas) {
  { ASSERT_TRUE(open(settings("net_af_packet0,iface=veth0"))); }
  EXPECT_FALSE(read_kernel_interface("veth0")->promiscuous);
  ASSERT_TRUE(PortTestProcess::sh("ip link set dev veth0 promisc on"));
  { ASSERT_TRUE(open(settings("net_af_packet0,iface=veth0"))); }
  EXPECT_TRUE(read_kernel_interface("veth0")->promiscuous);
  EXPECT_EQ(read_kernel_interface("veth0")->mtu, 1'500u);
}

TEST_F(AfPacketTest, OneQueuePairAWorker) {
  const auto device = open(settings("net_af_packet0,iface=veth0", 2));
  ASSERT_TRUE(device) << device.error().text;
  EXPECT_EQ((*device)->info().most_tx_queues, 2u);
}

TEST_F(AfPacketTest, MtuFollowsTheInterface) {
  PortSettings wanted = settings("net_af_packet0,iface=veth0");
  wanted.mtu = 1'600;
  EXPECT_EQ(error(wanted),
            "port0: mtu 1600: accepted 68..1500: veth0 has an MTU of 1500: ip link set dev veth0 mtu 1600");
  ASSERT_TRUE(PortTestProcess::sh("ip link set dev veth0 mtu 1608"));
  const auto device = open(wanted);
  ASSERT_TRUE(device) << device.error().text;
  EXPECT_EQ((*device)->info().mtu_by_tags[2], 1'600u);
  EXPECT_TRUE((*device)->set_mtu(1'608));
  EXPECT_EQ((*device)->info().mtu_by_tags[2], 1'604u);
  EXPECT_FALSE((*device)->set_mtu(1'609));
}

TEST_F(AfPacketTest, Errors) {
  EXPECT_EQ(error(settings("net_af_packet0")),
            "port0: devargs 'net_af_packet0': which kernel interface? net_af_packet0,iface=NAME");
  EXPECT_EQ(error(settings("net_af_packet0,iface=veth7")),
            "port0: kernel interface 'veth7' does not exist in this network namespace, which has: lo, veth1, "
            "veth0");
  EXPECT_EQ(error(settings("net_af_packet0,iface=veth0,qpairs=1", 2)),
            "port0: net_af_packet0 has 1 receive queue, 2 workers need 2: set rx_queues: 1");
  PortSettings one = settings("net_af_packet0,iface=veth0,qpairs=1", 2);
  one.rx_queues = 1;
  EXPECT_EQ(error(one),
            "port0: net_af_packet0 has 1 transmit queue, 2 workers need one each: set workers.count: 1, or "
            "qpairs=2 in its devargs");
  EXPECT_EQ(error(settings("net_af_packet0,iface=veth0,framecnt=1001")),
            "port0: framecnt=1001: accepted multiples of 2 (blocksz / framesz)");
  const std::string unknown = error(settings("net_af_packet0,iface=veth0,colour=red"));
  EXPECT_NE(unknown.find("can not be opened"), std::string::npos) << unknown;
}

TEST_F(AfPacketTest, NeedsTheRightToOpenPacketSockets) {
  ASSERT_EQ(seteuid(65'534), 0);
  const std::string text = error(settings("net_af_packet0,iface=veth0"));
  ASSERT_EQ(seteuid(0), 0);
  EXPECT_EQ(text,
            "port0: packet sockets need CAP_NET_RAW: run as root, or give the program the right "
            "(setcap cap_net_raw,cap_net_admin+ep)");
}

TEST(MbufPoolTest, CountsWhatIsTaken) {
  MbufPoolSettings wanted;
  wanted.count = 1'024;
  wanted.cache = 32;
  const auto pool = MbufPool::create("counted", wanted);
  ASSERT_TRUE(pool);
  EXPECT_EQ((*pool)->available(), 1'024u);
  rte_mbuf* mbuf = rte_pktmbuf_alloc(&(*pool)->get());
  EXPECT_EQ((*pool)->in_use(), 1u);
  rte_pktmbuf_free(mbuf);
  EXPECT_EQ((*pool)->in_use(), 0u);
}

TEST(MbufPoolTest, SaysHowMuchMemoryWouldBeEnough) {
  MbufPoolSettings wanted;
  wanted.count = 150'000;
  const auto pool = MbufPool::create("large", wanted);
  ASSERT_FALSE(pool);
  EXPECT_EQ(pool.error().code, ENOMEM);
  EXPECT_TRUE(pool.error().text.starts_with(
      "mbufs: 150000 of 2176 B need 587.9 MiB, which the EAL does not have: set "
      "eal.memory: "))
      << pool.error().text;
  wanted.count = 100;
  wanted.cache = 67;
  EXPECT_EQ(MbufPool::create("cache", wanted).error().text,
            "mbufs.cache 67: accepted 0..66 with mbufs.count 100");
  wanted.data_room_bytes = 128;
  EXPECT_FALSE(MbufPool::create("room", wanted));
}

}  // namespace
}  // namespace mayfly

int main(int argc, char** argv) {
  return mayfly::PortTestProcess::run(argc, argv, 2);
}
