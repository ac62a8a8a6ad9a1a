// SPDX-License-Identifier: BSD-3-Clause
// The tables that a packet or a create request looks into: tags to interface, and an index by hash.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <random>
#include <vector>

#include "base/index_hash.hpp"
#include "iface/demux.hpp"
#include "reclaim/reclaim.hpp"

namespace mayfly {
namespace {

constexpr uint64_t kStopNs = 10 * kNsPerSecond;
constexpr uint32_t kInnerTags = 1'000;

TagKey key_of(uint32_t number) {
  return {.protocol = TagProtocol::c_tag,
          .outer = static_cast<uint16_t>(1 + number / kInnerTags),
          .inner = static_cast<uint16_t>(1 + number % kInnerTags)};
}

void demux_find(benchmark::State& state) {
  const auto count = static_cast<uint32_t>(state.range(0));
  BlockPools blocks;
  Reclaim reclaim{TeardownConfig{}};
  if (!reclaim.start()) std::abort();
  VlanDemux demux;
  for (uint32_t i = 0; i < count; ++i)
    if (!demux.insert(key_of(i), i + 1, blocks)) std::abort();
  std::mt19937 random(1);
  std::vector<TagKey> keys(1 << 16);
  for (TagKey& key : keys) key = key_of(static_cast<uint32_t>(random() % count));
  size_t at = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(demux.find(keys[at]));
    at = (at + 1) % keys.size();
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()));
  RetireList retired;
  for (uint32_t i = 0; i < count; ++i) demux.erase(key_of(i), blocks, retired);
  reclaim.submit(retired);
  reclaim.stop(kStopNs);
}

struct Numbers {
  struct Element {
    uint64_t key;
    uint32_t next;
  };
  std::vector<Element>* elements;
  uint32_t& next(uint32_t number) { return (*elements)[number].next; }
  uint32_t next(uint32_t number) const { return (*elements)[number].next; }
  uint64_t hash(uint32_t number) const { return mix_hash((*elements)[number].key); }
};

void index_insert_and_erase(benchmark::State& state) {
  const auto count = static_cast<uint32_t>(state.range(0));
  std::vector<Numbers::Element> elements(count);
  for (uint32_t i = 0; i < count; ++i) elements[i] = {.key = i, .next = 0};
  for (auto _ : state) {
    IndexHash<Numbers> index(count, Numbers{&elements});
    for (uint32_t i = 0; i < count; ++i) index.insert(i);
    for (uint32_t i = 0; i < count; ++i) index.erase(i);
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()) * count);
}

BENCHMARK(demux_find)->ArgName("interfaces")->Arg(2)->Arg(1'000)->Arg(65'536)->Arg(1'000'000);
BENCHMARK(index_insert_and_erase)->ArgName("elements")->Arg(1'000)->Arg(100'000)->Arg(1'000'000);

}  // namespace
}  // namespace mayfly

BENCHMARK_MAIN();
