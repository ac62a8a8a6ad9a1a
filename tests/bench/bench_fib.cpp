// SPDX-License-Identifier: BSD-3-Clause
// Longest-prefix match beside DPDK's own, in one run: look-ups of vectors of 64 addresses, random ones and
// ones that hit routes, in tables of a full table's prefix lengths.
#include <benchmark/benchmark.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_fib.h>
#include <rte_lpm.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <vector>

#include "base/clock.hpp"
#include "fib/fib.hpp"
#include "reclaim/reclaim.hpp"

namespace mayfly {
namespace {

constexpr unsigned kVector = 64;
constexpr size_t kAddresses = 1 << 16;
constexpr uint64_t kSeed = 1;
constexpr uint64_t kStopNs = 10 * kNsPerSecond;

struct RouteOf {
  Ipv4Prefix prefix;
  uint32_t next_hop;
};

// Most routes of the Internet are /24, the rest lies between /12 and /23; a few are longer.
std::vector<RouteOf> make_routes(size_t count) {
  std::mt19937_64 random(kSeed);
  std::vector<RouteOf> routes;
  while (routes.size() < count) {
    const uint64_t dice = random() % 100;
    const auto length = static_cast<uint8_t>(dice < 60   ? 24
                                             : dice < 97 ? 12 + random() % 12
                                                         : 25 + random() % 8);
    const Ipv4Prefix prefix{static_cast<Ipv4>(random() % 0xdf00'0000 + 0x0100'0000), length};
    routes.push_back({{prefix.network(), length}, static_cast<uint32_t>(1 + routes.size() % 250)});
    if (routes.size() < count) continue;
    const auto key = [](const RouteOf& route) {
      return std::pair(route.prefix.address, route.prefix.length);
    };
    std::ranges::sort(routes, {}, key);
    const auto [first, last] = std::ranges::unique(routes, {}, key);
    routes.erase(first, last);
  }
  return routes;
}

// hits: inside of routes; otherwise anywhere.
std::vector<Ipv4> make_addresses(const std::vector<RouteOf>& routes, bool hits) {
  std::mt19937_64 random(kSeed + 1);
  std::vector<Ipv4> addresses(kAddresses);
  for (Ipv4& address : addresses) {
    address = static_cast<Ipv4>(random());
    if (!hits) continue;
    const Ipv4Prefix& prefix = routes[random() % routes.size()].prefix;
    address = prefix.address | (address & ~prefix_mask(prefix.length));
  }
  return addresses;
}

template <class LookUp>
void measure(benchmark::State& state, const std::vector<Ipv4>& addresses, LookUp look_up) {
  size_t at = 0;
  for (auto _ : state) {
    look_up(addresses.data() + at);
    at = (at + kVector) % kAddresses;
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()) * kVector);
}

void mayfly_fib(benchmark::State& state) {
  const auto routes = make_routes(static_cast<size_t>(state.range(0)));
  BlockPools pools;
  Reclaim reclaim{TeardownConfig{}};
  if (!reclaim.start()) std::abort();
  BasicFib<Ipv4Family> fib(pools);
  for (const RouteOf& route : routes)
    if (!fib.set(route.prefix,
                 {.oif = route.next_hop, .gateway = 0, .type = RouteType::kUnicast, .reserved = {}}))
      std::abort();
  RetireList retired;
  fib.commit(retired);
  reclaim.submit(retired);
  const RouteValue* values[kVector];
  measure(state, make_addresses(routes, state.range(1) != 0), [&](const Ipv4* addresses) {
    fib.lookup_bulk(addresses, values, kVector);
    benchmark::DoNotOptimize(values);
  });
  state.counters["bytes_a_route"] = static_cast<double>(fib.bytes()) / static_cast<double>(routes.size());
  Returns returns;
  fib.dismantle(returns);
  for (Returns::Group& group : returns.groups())
    for (const uint32_t token : group.tokens) group.owner->take_back(token);
  reclaim.stop(kStopNs);
}

void dpdk_dir24_8(benchmark::State& state) {
  const auto routes = make_routes(static_cast<size_t>(state.range(0)));
  rte_fib_conf settings{};
  settings.type = RTE_FIB_DIR24_8;
  settings.default_nh = 0;
  settings.max_routes = static_cast<int>(routes.size() * 2);
  settings.rib_ext_sz = 0;
  settings.dir24_8.nh_sz = RTE_FIB_DIR24_8_4B;
  settings.dir24_8.num_tbl8 = 1 << 17;
  rte_fib* fib = rte_fib_create("bench", SOCKET_ID_ANY, &settings);
  if (fib == nullptr) return state.SkipWithError(rte_strerror(rte_errno));
  for (const RouteOf& route : routes)
    rte_fib_add(fib, route.prefix.address, route.prefix.length, route.next_hop);
  uint64_t values[kVector];
  measure(state, make_addresses(routes, state.range(1) != 0), [&](const Ipv4* addresses) {
    rte_fib_lookup_bulk(fib, const_cast<Ipv4*>(addresses), values, kVector);
    benchmark::DoNotOptimize(values);
  });
  rte_fib_free(fib);
}

void dpdk_lpm(benchmark::State& state) {
  const auto routes = make_routes(static_cast<size_t>(state.range(0)));
  rte_lpm_config settings{};
  settings.max_rules = static_cast<uint32_t>(routes.size() * 2);
  settings.number_tbl8s = 1 << 16;
  rte_lpm* lpm = rte_lpm_create("bench", SOCKET_ID_ANY, &settings);
  if (lpm == nullptr) return state.SkipWithError(rte_strerror(rte_errno));
  for (const RouteOf& route : routes)
    rte_lpm_add(lpm, route.prefix.address, route.prefix.length, route.next_hop);
  uint32_t values[kVector];
  measure(state, make_addresses(routes, state.range(1) != 0), [&](const Ipv4* addresses) {
    rte_lpm_lookup_bulk(lpm, addresses, values, kVector);
    benchmark::DoNotOptimize(values);
  });
  rte_lpm_free(lpm);
}

void sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"routes", "hits"})->ArgsProduct({{10, 1'000, 100'000, 1'000'000}, {0, 1}});
}

BENCHMARK(mayfly_fib)->Apply(sizes);
BENCHMARK(dpdk_dir24_8)->Apply(sizes);
BENCHMARK(dpdk_lpm)->Apply(sizes);

}  // namespace
}  // namespace mayfly

int main(int argc, char** argv) {
  const std::string prefix = "mayfly-bench-" + std::to_string(getpid());
  std::string words[] = {"bench_fib",   "--no-huge",     "-m",  "2048", "--no-pci", "--no-telemetry",
                         "--no-shconf", "--file-prefix", prefix};
  std::vector<char*> eal;
  for (std::string& word : words) eal.push_back(word.data());
  if (rte_eal_init(static_cast<int>(eal.size()), eal.data()) < 0) return 1;
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  rte_eal_cleanup();
  std::error_code ignored;
  std::filesystem::remove_all("/var/run/dpdk/" + prefix, ignored);
  return 0;
}
