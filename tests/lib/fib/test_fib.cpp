// SPDX-License-Identifier: BSD-3-Clause
#include "fib/fib.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "reclaim/reclaim.hpp"

namespace mayfly {
namespace {

uint64_t seed_of_this_run() {
  const char* given = std::getenv("MAYFLY_TEST_SEED");
  const uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 0) : std::random_device{}();
  std::printf("MAYFLY_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

// Prefixes in the order of their length, so that the last one that contains an address is the best.
class Model {
 public:
  void set(const Ipv4Prefix& prefix, const RouteValue& value) {
    values_[{prefix.length, prefix.address}] = value;
  }
  void erase(const Ipv4Prefix& prefix) { values_.erase({prefix.length, prefix.address}); }
  std::optional<RouteValue> lookup(Ipv4 address) const {
    std::optional<RouteValue> best;
    for (const auto& [key, value] : values_)
      if (Ipv4Prefix{key.second, key.first}.contains(address)) best = value;
    return best;
  }
  std::vector<Ipv4Prefix> prefixes() const {
    std::vector<Ipv4Prefix> all;
    for (const auto& [key, value] : values_) all.push_back({key.second, key.first});
    return all;
  }

 private:
  std::map<std::pair<uint8_t, Ipv4>, RouteValue> values_;
};

// As in the daemon there is one BlockPools; it is small (16 MiB a class), so that a test can exhaust it.
BlockPools pools(1);

class FibTest : public testing::Test {
 protected:
  ~FibTest() override {
    Returns returns;
    fib.dismantle(returns);
    take_back(returns);
    EXPECT_TRUE(reclaim.stop(10 * kNsPerSecond));
    EXPECT_EQ(pools.blocks_in_use(), 0U);
  }

  void SetUp() override { ASSERT_TRUE(reclaim.start().has_value()); }

  static void take_back(Returns& returns) {
    for (const Returns::Group& group : returns.groups())
      for (const uint32_t token : group.tokens) group.owner->take_back(token);
  }

  void commit() {
    RetireList list;
    fib.commit(list);
    reclaim.submit(list);
    reclaim.collect(Deadline::never());
  }

  void wait_for_teardown() {
    while (reclaim.backlog().objects > 0) {
      reclaim.collect(Deadline::never());
      std::this_thread::yield();
    }
  }

  // Each of the addresses, the borders of the model's prefixes and their neighbours.
  void expect_equal(const Model& model, std::vector<Ipv4> addresses) {
    for (const Ipv4Prefix& prefix : model.prefixes()) {
      const Ipv4 last = prefix.address | ~prefix_mask(prefix.length);
      addresses.insert(addresses.end(), {prefix.address, prefix.address - 1, last, last + 1});
    }
    std::vector<const RouteValue*> values(addresses.size());
    fib.lookup_bulk(addresses.data(), values.data(), static_cast<unsigned>(addresses.size()));
    for (size_t i = 0; i < addresses.size(); ++i) {
      const auto wanted = model.lookup(addresses[i]);
      ASSERT_EQ(values[i] != nullptr, wanted.has_value()) << format_ipv4(addresses[i]);
      ASSERT_EQ(values[i], fib.lookup(addresses[i])) << format_ipv4(addresses[i]);
      if (wanted) {
        ASSERT_EQ(*values[i], *wanted) << format_ipv4(addresses[i]);
      }
    }
  }

  Fib fib{pools};
  Reclaim reclaim{TeardownConfig{}};
};

Ipv4Prefix make_prefix(Ipv4 address, unsigned length) {
  const auto short_length = static_cast<uint8_t>(length);
  return {address & prefix_mask(short_length), short_length};
}

// Few different bits, so that prefixes nest, share nodes and meet again.
Ipv4Prefix random_prefix(std::mt19937_64& random) {
  const Ipv4 address =
      random() % 4 == 0 ? static_cast<Ipv4>(random()) : static_cast<Ipv4>(random()) & 0xc1830707;
  return make_prefix(address, random() % 33);
}

RouteValue random_value(std::mt19937_64& random) {
  return {.oif = static_cast<uint32_t>(random()), .gateway = static_cast<Ipv4>(random())};
}

std::vector<Ipv4> random_addresses(std::mt19937_64& random, size_t count) {
  std::vector<Ipv4> addresses = {0, 1, 0x7fffffff, 0x80000000, 0xffffffff};
  while (addresses.size() < count)
    addresses.push_back(static_cast<Ipv4>(random()) & (random() % 2 ? ~0U : 0xc1830707));
  return addresses;
}

TEST_F(FibTest, EmptyCostsNoBlock) {
  EXPECT_EQ(fib.lookup(0x0a000001), nullptr);
  std::array<const RouteValue*, 3> values;
  const std::array<Ipv4, 3> addresses = {0, 1, 2};
  fib.lookup_bulk(addresses.data(), values.data(), 3);
  EXPECT_EQ(values[2], nullptr);
  EXPECT_TRUE(fib.erase({0, 0}).has_value());
  commit();
  EXPECT_EQ(pools.blocks_in_use(), 0U);
}

TEST_F(FibTest, EveryLengthAtItsBorders) {
  Model model;
  for (unsigned length = 0; length <= 32; ++length) {
    const Ipv4Prefix prefix = make_prefix(0xa5a5a5a5, length);
    ASSERT_TRUE(fib.set(prefix, {.oif = length + 1}).has_value());
    model.set(prefix, {.oif = length + 1});
    commit();
    expect_equal(model, {0, 0xffffffff, 0xa5a5a5a5});
  }
  for (unsigned length = 0; length <= 32; ++length) {
    const Ipv4Prefix prefix = make_prefix(0xa5a5a5a5, length * 7 % 33);
    ASSERT_TRUE(fib.erase(prefix).has_value());
    model.erase(prefix);
    commit();
    expect_equal(model, {0, 0xffffffff, 0xa5a5a5a5});
  }
  wait_for_teardown();
  EXPECT_EQ(pools.blocks_in_use(), 0U);
  EXPECT_EQ(fib.bytes(), 0U);
}

TEST_F(FibTest, BytesFollowThePublishedNodes) {
  ASSERT_TRUE(fib.set({0, 0}, {.oif = 1}).has_value());
  EXPECT_EQ(fib.bytes(), 0U);
  commit();
  EXPECT_EQ(fib.bytes(), 64U);  // one node with one value
  ASSERT_TRUE(fib.set({0x0a000000, 8}, {.oif = 1}).has_value());
  fib.abort();
  EXPECT_EQ(fib.bytes(), 64U);
  ASSERT_TRUE(fib.set({0x0a000000, 8}, {.oif = 1}).has_value());
  commit();
  EXPECT_EQ(fib.bytes(), 96U + 64U);  // a child more in the root, and the child with one value
}

TEST_F(FibTest, EachLengthAlone) {
  for (unsigned length = 0; length <= 32; ++length) {
    Model model;
    const Ipv4Prefix prefix = make_prefix(0xffffffff, length);
    model.set(prefix, {.oif = 9});
    ASSERT_TRUE(fib.set(prefix, {.oif = 9}).has_value());
    commit();
    expect_equal(model, {0, 1});
    ASSERT_TRUE(fib.erase(prefix).has_value());
    commit();
    wait_for_teardown();
    EXPECT_EQ(pools.blocks_in_use(), 0U) << length;
  }
}

TEST_F(FibTest, AnEditIsInvisibleUntilItsCommit) {
  ASSERT_TRUE(fib.set({0, 0}, {.oif = 1}).has_value());
  EXPECT_EQ(fib.lookup(1), nullptr);
  EXPECT_EQ(fib.lookup_edit(1)->oif, 1U);
  commit();
  EXPECT_EQ(fib.lookup(1)->oif, 1U);
  ASSERT_TRUE(fib.set({0, 0}, {.oif = 2}).has_value());
  ASSERT_TRUE(fib.set({0x0a000000, 8}, {.oif = 3}).has_value());
  EXPECT_EQ(fib.lookup(0x0a000001)->oif, 1U);
  commit();
  EXPECT_EQ(fib.lookup(0x0a000001)->oif, 3U);
  EXPECT_EQ(fib.lookup(1)->oif, 2U);
}

TEST_F(FibTest, RandomEditsEqualTheModel) {
  std::mt19937_64 random(seed_of_this_run());
  Model model;
  std::vector<Ipv4Prefix> known;
  for (int edit = 0; edit < 400; ++edit) {
    Model next = model;
    const bool growing = edit / 50 % 2 == 0;
    const unsigned changes = 1 + random() % 20;
    for (unsigned change = 0; change < changes; ++change) {
      const bool adds = random() % 8 < (growing ? 6 : 2);
      const Ipv4Prefix prefix =
          known.empty() || random() % 3 == 0 ? random_prefix(random) : known[random() % known.size()];
      if (adds) {
        const RouteValue value = random_value(random);
        ASSERT_TRUE(fib.set(prefix, value).has_value());
        next.set(prefix, value);
        known.push_back(prefix);
      } else {
        ASSERT_TRUE(fib.erase(prefix).has_value());
        next.erase(prefix);
      }
    }
    if (random() % 4 == 0) {
      fib.abort();
    } else {
      commit();
      model = next;
    }
    ASSERT_NO_FATAL_FAILURE(expect_equal(model, random_addresses(random, 100)));
  }
  for (const Ipv4Prefix& prefix : model.prefixes()) ASSERT_TRUE(fib.erase(prefix).has_value());
  commit();
  wait_for_teardown();
  EXPECT_EQ(pools.blocks_in_use(), 0U);
  EXPECT_EQ(fib.bytes(), 0U);
}

TEST_F(FibTest, AnAbortedEditRetiresNothingAndLeaksNothing) {
  std::mt19937_64 random(seed_of_this_run());
  Model model;
  for (int i = 0; i < 200; ++i) {
    const Ipv4Prefix prefix = random_prefix(random);
    ASSERT_TRUE(fib.set(prefix, {.oif = 5}).has_value());
    model.set(prefix, {.oif = 5});
  }
  commit();
  wait_for_teardown();
  const uint64_t blocks = pools.blocks_in_use();
  for (const Ipv4Prefix& prefix : model.prefixes()) ASSERT_TRUE(fib.erase(prefix).has_value());
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(fib.set(random_prefix(random), {.oif = 6}).has_value());
  fib.abort();
  EXPECT_EQ(pools.blocks_in_use(), blocks);
  RetireList list;
  fib.commit(list);
  EXPECT_EQ(list.objects(), 0U);
  expect_equal(model, random_addresses(random, 100));
}

TEST_F(FibTest, MemoryFollowsTheRoutes) {
  constexpr Ipv4 kNet = 0x64400000;
  for (Ipv4 host = 0; host < 65'536; ++host)
    ASSERT_TRUE(fib.set({kNet + host, 32}, {.oif = host}).has_value());
  commit();
  wait_for_teardown();
  EXPECT_LT(pools.blocks_in_use(), 1'100U);
  for (Ipv4 host = 0; host < 65'536; ++host) {
    if (host % 64 == 0) continue;
    ASSERT_TRUE(fib.erase({kNet + host, 32}).has_value());
  }
  commit();
  wait_for_teardown();
  for (Ipv4 host = 0; host < 65'536; ++host) ASSERT_EQ(fib.lookup(kNet + host) != nullptr, host % 64 == 0);
  for (Ipv4 host = 0; host < 65'536; host += 64) ASSERT_TRUE(fib.erase({kNet + host, 32}).has_value());
  commit();
  wait_for_teardown();
  EXPECT_EQ(pools.blocks_in_use(), 0U);
}

TEST_F(FibTest, DismantleGivesEverythingBack) {
  std::mt19937_64 random(seed_of_this_run());
  for (int i = 0; i < 2'000; ++i)
    ASSERT_TRUE(fib.set(make_prefix(static_cast<Ipv4>(random()), random() % 33), {.oif = 1}).has_value());
  commit();
  wait_for_teardown();
  EXPECT_GT(pools.blocks_in_use(), 0U);
  Returns returns;
  fib.dismantle(returns);
  take_back(returns);
  EXPECT_EQ(pools.blocks_in_use(), 0U);
}

// Other blocks fill the pools, a random few of which are given back now and then.
TEST_F(FibTest, AFailedChangeIsNotMade) {
  std::mt19937_64 random(seed_of_this_run());
  constexpr std::array<size_t, 12> kSizes = {48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048};
  std::array<std::vector<Retired*>, kSizes.size()> taken;
  for (size_t size = 0; size < kSizes.size(); ++size)
    while (Retired* block = pools.allocate(kSizes[size])) taken[size].push_back(block);

  Model committed;
  Model model;
  uint64_t failures = 0;
  for (int step = 0; step < 4'000; ++step) {
    for (auto& blocks : taken)
      for (uint64_t give = random() % 3; give > 0 && random() % 2 == 0; --give) {
        pools.free_unpublished(*blocks.back());
        blocks.pop_back();
      }
    const Ipv4Prefix prefix = random_prefix(random);
    const RouteValue value = random_value(random);
    const bool adds = random() % 3 != 0;
    Status changed = adds ? fib.set(prefix, value) : fib.erase(prefix);
    if (changed) {
      adds ? model.set(prefix, value) : model.erase(prefix);
    } else {
      EXPECT_EQ(changed.error().code, ENOBUFS);
      ++failures;
    }
    if (step % 10 == 0) {
      for (const Ipv4 address : random_addresses(random, 50)) {
        const auto wanted = model.lookup(address);
        const RouteValue* found = fib.lookup_edit(address);
        ASSERT_EQ(found != nullptr, wanted.has_value());
        if (wanted) {
          ASSERT_EQ(*found, *wanted);
        }
      }
    }
    if (random() % 50 == 0) {
      if (random() % 2 == 0) {
        fib.abort();
        model = committed;
      } else {
        commit();
        committed = model;
      }
      ASSERT_NO_FATAL_FAILURE(expect_equal(committed, {}));
      wait_for_teardown();
      for (size_t size = 0; size < kSizes.size(); ++size)
        while (Retired* block = pools.allocate(kSizes[size])) taken[size].push_back(block);
    }
  }
  EXPECT_GT(failures, 100U);
  fib.abort();
  for (auto& blocks : taken)
    for (Retired* block : blocks) pools.free_unpublished(*block);
}

// Every edit moves all prefixes to the next generation at once, so a reader must never see two of them in one
// vector, nor a block that was given back.
TEST_F(FibTest, ReadersSeeWholeEdits) {
  std::mt19937_64 random(seed_of_this_run());
  std::vector<Ipv4Prefix> prefixes;
  std::vector<Ipv4> addresses;
  for (int i = 0; i < 64; ++i) {
    prefixes.push_back(make_prefix(static_cast<Ipv4>(random()) & 0xf0f0ffff, 1 + random() % 32));
    addresses.push_back(prefixes.back().address);
  }
  const auto write_generation = [&](uint32_t generation) {
    for (const Ipv4Prefix& prefix : prefixes)
      ASSERT_TRUE(fib.set(prefix, {.oif = generation, .gateway = ~generation}).has_value());
    // Nodes come and go beside them.
    const Ipv4Prefix visitor = make_prefix(static_cast<Ipv4>(random()), 9 + random() % 24);
    if (std::ranges::find(prefixes, visitor) == prefixes.end()) {
      ASSERT_TRUE(fib.set(visitor, {.oif = generation, .gateway = ~generation}).has_value());
      commit();
      ASSERT_TRUE(fib.erase(visitor).has_value());
    }
    commit();
  };
  write_generation(1);

  std::atomic<bool> stop = false;
  std::atomic<uint64_t> torn = 0;
  std::atomic<uint64_t> vectors = 0;
  std::thread reader([&] {
    rcu_register_worker();
    std::vector<const RouteValue*> values(addresses.size());
    uint32_t newest = 0;
    while (!stop.load(std::memory_order_relaxed)) {
      fib.lookup_bulk(addresses.data(), values.data(), static_cast<unsigned>(values.size()));
      const uint32_t generation = values[0] != nullptr ? values[0]->oif : 0;
      for (const RouteValue* value : values)
        if (value == nullptr || value->oif != generation || value->gateway != ~generation) ++torn;
      if (generation < newest) ++torn;
      newest = generation;
      ++vectors;
      rcu_quiescent_state();
    }
    rcu_unregister_worker();
  });
  uint32_t generation = 2;
  for (; generation < 1'000 || vectors.load() < 1'000; ++generation) write_generation(generation);
  stop = true;
  reader.join();
  EXPECT_EQ(torn.load(), 0U);
  EXPECT_EQ(fib.lookup(addresses[0])->oif, generation - 1);
}

}  // namespace
}  // namespace mayfly
