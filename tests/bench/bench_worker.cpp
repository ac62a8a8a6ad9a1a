// SPDX-License-Identifier: BSD-3-Clause
// One loop of a worker that forwards IPv4 between a VLAN and a port, devices' bursts (net_ring) included: by
// the number of packets that come at once, and with its stages counted or not.
//
// The clock goes on while somebody else has the CPU, so on a busy machine "best" is the figure to look at: of
// a group of loops, and of all repetitions. Off and on are compared within one run:
//   bench_worker --benchmark_repetitions=20 --benchmark_enable_random_interleaving=true
#include <benchmark/benchmark.h>
#include <rte_cycles.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "world.hpp"

namespace mayfly::testing {
namespace {

constexpr Mac kPort0 = 0x020000000001;
constexpr Mac kHost = 0x0a0000000001;
constexpr Mac kNextHop = 0x0a0000000002;
constexpr uint64_t kLoopNs = 10;  // so that housekeeping is rare
constexpr uint64_t kGroupLoops = 200;

// Puts what was sent by port 1 back to where it came from, as it was.
void send_again(const Bytes& frame, uint32_t count) {
  rte_mbuf* mbufs[kVectorSize];
  const auto taken =
      rte_ring_dequeue_burst(ring_ports().sent[1], reinterpret_cast<void**>(mbufs), kVectorSize, nullptr);
  if (taken != count) std::abort();
  for (uint32_t i = 0; i < count; ++i) {
    mbufs[i]->data_off = RTE_PKTMBUF_HEADROOM;
    mbufs[i]->data_len = static_cast<uint16_t>(frame.size());
    mbufs[i]->pkt_len = mbufs[i]->data_len;
    std::copy(frame.begin(), frame.end(), rte_pktmbuf_mtod(mbufs[i], uint8_t*));
  }
  rte_ring_enqueue_burst(ring_ports().received[0], reinterpret_cast<void**>(mbufs), count, nullptr);
}

void forward(benchmark::State& state) {
  const auto count = static_cast<uint32_t>(state.range(0));
  World world;
  world.set_address(world.add_vlan(0, 5), "10.0.5.1/24");
  world.set_address(world.port(1), "10.1.0.1/24");
  world.set_neighbour(world.port(1), ip("10.1.0.9"), kNextHop);
  const Bytes frame =
      ethernet(kPort0, kHost, {{0x8100, 5}}, 0x0800,
               ipv4({.source = ip("10.0.5.9"), .destination = ip("10.1.0.9"), .payload = Bytes(22)}));
  for (uint32_t i = 0; i < count; ++i) world.put(0, frame);
  world.statistics().stages.set_on(state.range(1) != 0);
  uint64_t now_ns = world.now_ns();
  uint64_t loops = 0;
  uint64_t clocks = 0;  // of this group
  uint64_t best = UINT64_MAX;
  for (auto _ : state) {
    now_ns += kLoopNs;
    const uint64_t begin = rte_rdtsc();
    world.worker().step(now_ns);
    const uint64_t taken = rte_rdtsc() - begin;
    clocks += taken;
    if (++loops % kGroupLoops == 0) best = std::min(best, std::exchange(clocks, 0));
    state.SetIterationTime(static_cast<double>(taken) / static_cast<double>(rte_get_tsc_hz()));
    send_again(frame, count);
  }
  state.SetItemsProcessed(state.iterations() * count);
  if (best != UINT64_MAX)
    state.counters["best_clocks/packet"] =
        static_cast<double>(best) / static_cast<double>(kGroupLoops * count);
}

double least(const std::vector<double>& values) {
  return *std::min_element(values.begin(), values.end());
}

BENCHMARK(forward)
    ->ArgNames({"packets", "stages"})
    ->ArgsProduct({{64, 16, 4, 1}, {0, 1}})
    ->UseManualTime()
    ->ComputeStatistics("best", least);

}  // namespace
}  // namespace mayfly::testing

BENCHMARK_MAIN();
