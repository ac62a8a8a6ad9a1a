// SPDX-License-Identifier: BSD-3-Clause
// Which rights this process has, against what the kernel says of it.

#include "port/privilege.hpp"

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

namespace mayfly {
namespace {

uint64_t effective_set() {
  std::ifstream status("/proc/thread-self/status");
  for (std::string word; status >> word;)
    if (word == "CapEff:") {
      uint64_t set = 0;
      status >> std::hex >> set;
      return set;
    }
  ADD_FAILURE() << "no CapEff";
  return 0;
}

// Capabilities are a thread's own: what it does without them leaves the other tests theirs.
template <class Body>
void without_capabilities(Body body) {
  std::thread([&] {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    const __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
    ASSERT_EQ(syscall(SYS_capset, &header, none), 0);
    body();
  }).join();
}

TEST(Privilege, CapabilitiesAreTheKernels) {
  const uint64_t set = effective_set();
  for (int capability = 0; capability <= CAP_LAST_CAP; ++capability)
    EXPECT_EQ(has_capability(capability), ((set >> capability) & 1) != 0) << capability;
  without_capabilities([] {
    for (int capability = 0; capability <= CAP_LAST_CAP; ++capability)
      EXPECT_FALSE(has_capability(capability)) << capability;
  });
}

TEST(Privilege, NamesWhatADriverNeeds) {
  without_capabilities([] {
    const auto missing = [](std::string_view devargs, std::string_view reason = "") {
      return missing_privilege(Devargs::parse(devargs), reason);
    };
    EXPECT_EQ(missing("net_tap0,iface=t0"), ": needs CAP_NET_ADMIN, which this process has not");
    EXPECT_EQ(missing("net_pcap0,iface=eth0"), ": needs CAP_NET_RAW, which this process has not");
    EXPECT_EQ(missing("net_af_xdp0,iface=eth0"),
              ": needs CAP_NET_RAW, CAP_NET_ADMIN, CAP_SYS_ADMIN, which this process has not");
    for (const char* devargs : {"net_null0", "net_ring0", "net_pcap0,rx_pcap=in,tx_pcap=out", "0000:ff:1f.7",
                                "net_af_packet0,iface=eth0"})
      EXPECT_EQ(missing(devargs), "") << devargs;
  });
}

TEST(Privilege, BlamesLockedMemoryOnlyForMappings) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_MEMLOCK, &before), 0);
  if (before.rlim_cur < (1u << 20)) GTEST_SKIP() << "less than 1 MiB may be locked here";
  const rlimit lower{1u << 20, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_MEMLOCK, &lower), 0);
  without_capabilities([] {
    const Devargs devargs = Devargs::parse("net_af_packet0,iface=eth0");
    EXPECT_TRUE(
        missing_privilege(devargs, "call to mmap failed").contains("may have 1 MiB: raise the limit"));
    EXPECT_EQ(missing_privilege(devargs, "no such device"), "");
    EXPECT_EQ(missing_privilege(Devargs::parse("net_null0"), "call to mmap failed"), "");
    const Devargs nic = Devargs::parse("0000:ff:1f.7");
    EXPECT_TRUE(missing_privilege(nic, "Cannot set up DMA remapping, error 12").contains("may have 1 MiB"));
    EXPECT_EQ(missing_privilege(nic, "Cannot find device"), "");
  });
  setrlimit(RLIMIT_MEMLOCK, &before);
}

TEST(Privilege, RuntimeDirectoryIsFoundAsTheEalFindsIt) {
  std::string base = std::filesystem::temp_directory_path() / "mayfly-privilege-XXXXXX";
  ASSERT_NE(mkdtemp(base.data()), nullptr);
  setenv("RUNTIME_DIRECTORY", base.c_str(), 1);
  EXPECT_EQ(unwritable_runtime_directory(), "");
  setenv("RUNTIME_DIRECTORY", (base + "/nowhere").c_str(), 1);
  EXPECT_EQ(unwritable_runtime_directory(), base + "/nowhere");
  std::ofstream(base + "/dpdk") << "a file";
  setenv("RUNTIME_DIRECTORY", base.c_str(), 1);
  EXPECT_EQ(unwritable_runtime_directory(), base + "/dpdk");
  unsetenv("RUNTIME_DIRECTORY");
  std::filesystem::remove_all(base);
}

}  // namespace
}  // namespace mayfly
