// SPDX-License-Identifier: BSD-3-Clause
#include "ring_ports.hpp"

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <sched.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/check.hpp"

namespace mayfly::testing {
namespace {

std::string file_prefix() {
  return fmt::format("mayfly-test-{}", getpid());
}

std::string allowed_cpus() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  MAYFLY_CHECK(sched_getaffinity(0, sizeof cpus, &cpus) == 0, "the CPUs of the test are not known");
  std::string list;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &cpus)) list += fmt::format("{}{}", list.empty() ? "" : ",", cpu);
  return list;
}

// DPDK leaves its directory behind.
void remove_eal_directory() {
  rte_eal_cleanup();
  std::error_code ignored;
  std::filesystem::remove_all("/var/run/dpdk/" + file_prefix(), ignored);
}

void start_eal() {
  std::vector<std::string> words = {"test",
                                    "--no-huge",
                                    "-m",
                                    "128",
                                    "--no-pci",
                                    "--no-telemetry",
                                    "--no-shconf",
                                    "--file-prefix",
                                    file_prefix(),
                                    "--lcores",
                                    fmt::format("0@({})", allowed_cpus()),
                                    "--log-level",
                                    "lib.*:warning"};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  MAYFLY_CHECK(rte_eal_init(static_cast<int>(arguments.size()), arguments.data()) >= 0,
               "the EAL did not start");
  std::atexit(remove_eal_directory);
}

rte_ring* make_ring(const char* direction, uint16_t port) {
  const std::string name = fmt::format("{}{}", direction, port);
  rte_ring* ring = rte_ring_create(name.c_str(), kRingFrames, SOCKET_ID_ANY,
                                   RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ);
  MAYFLY_CHECK(ring != nullptr, "no memory for a ring");
  return ring;
}

void start_port(RingPorts& ports, uint16_t number) {
  ports.received[number] = make_ring("received", number);
  ports.sent[number] = make_ring("sent", number);
  const std::string name = fmt::format("ring{}", number);
  const int port = rte_eth_from_rings(name.c_str(), &ports.received[number], 1, &ports.sent[number], 1, 0);
  MAYFLY_CHECK(port == number, "the ring devices are not the first ports");
  const rte_eth_conf configuration{};
  MAYFLY_CHECK(rte_eth_dev_configure(number, 1, 1, &configuration) == 0 &&
                   rte_eth_rx_queue_setup(number, 0, kRingFrames, SOCKET_ID_ANY, nullptr, ports.pool) == 0 &&
                   rte_eth_tx_queue_setup(number, 0, kRingFrames, SOCKET_ID_ANY, nullptr) == 0 &&
                   rte_eth_dev_start(number) == 0,
               "a ring device did not start");
}

}  // namespace

const RingPorts& ring_ports() {
  static const RingPorts ports = [] {
    start_eal();
    RingPorts made{};
    made.pool =
        rte_pktmbuf_pool_create("test_frames", kMbufs, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
    MAYFLY_CHECK(made.pool != nullptr, "no memory for mbufs");
    for (uint16_t number = 0; number < kRingPorts; ++number) start_port(made, number);
    return made;
  }();
  return ports;
}

}  // namespace mayfly::testing
