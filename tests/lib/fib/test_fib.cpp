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

constexpr uint64_t kTen = 10ULL << 56;  // 10.0.0.0 or a00::
constexpr uint64_t kPattern = 0xa5a5'a5a5'a5a5'a5a5;

uint64_t seed_of_this_run() {
  const char* given = std::getenv("MAYFLY_TEST_SEED");
  const uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 0) : std::random_device{}();
  std::printf("MAYFLY_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

// What is different in the two families, for tests that are the same. Addresses come out of 128 bits, of
// which IPv4 takes the first 32.
struct V4 {
  using Family = Ipv4Family;
  static Ipv4 address(uint64_t high, uint64_t) { return static_cast<Ipv4>(high >> 32); }
  static Ipv4 gateway(uint32_t number) { return number; }
  static Ipv4 last_of(const Ipv4Prefix& prefix) { return prefix.address | ~prefix_mask(prefix.length); }
  static Ipv4 plus(Ipv4 address, int64_t more) { return address + static_cast<Ipv4>(more); }
  static std::string text(Ipv4 address) { return format_ipv4(address); }
};

struct V6 {
  using Family = Ipv6Family;
  static Ipv6 address(uint64_t high, uint64_t low) { return {high, low}; }
  static Ipv6 gateway(uint32_t number) { return {number, ~uint64_t{number}}; }
  static Ipv6 last_of(const Ipv6Prefix& prefix) {
    const Ipv6 mask = prefix_mask6(prefix.length);
    return {prefix.address.high | ~mask.high, prefix.address.low | ~mask.low};
  }
  static Ipv6 plus(Ipv6 address, int64_t more) {
    const uint64_t low = address.low + static_cast<uint64_t>(more);
    const uint64_t carry = more > 0 && low < address.low   ? 1
                           : more < 0 && low > address.low ? ~uint64_t{0}
                                                           : 0;
    return {address.high + carry, low};
  }
  static std::string text(Ipv6 address) { return format_ipv6(address); }
};

// Prefixes in the order of their length, so that the last one that contains an address is the best.
template <class F>
class Model {
 public:
  using Address = typename F::Family::Address;
  using Prefix = typename F::Family::Prefix;
  using Value = typename F::Family::Value;

  void set(const Prefix& prefix, const Value& value) { values_[{prefix.length, prefix.address}] = value; }
  void erase(const Prefix& prefix) { values_.erase({prefix.length, prefix.address}); }
  std::optional<Value> lookup(Address address) const {
    std::optional<Value> best;
    for (const auto& [key, value] : values_)
      if (Prefix{key.second, key.first}.contains(address)) best = value;
    return best;
  }
  std::vector<Prefix> prefixes() const {
    std::vector<Prefix> all;
    for (const auto& [key, value] : values_) all.push_back({key.second, key.first});
    return all;
  }

 private:
  std::map<std::pair<uint8_t, Address>, Value> values_;
};

// As in the daemon there is one BlockPools; it is small (16 MiB a class), so that a test can exhaust it.
BlockPools pools(1);

template <class F>
class FibTest : public testing::Test {
 protected:
  using Family = typename F::Family;
  using Address = typename Family::Address;
  using Prefix = typename Family::Prefix;
  using Value = typename Family::Value;
  using Model = mayfly::Model<F>;
  static constexpr unsigned kBits = Family::kBits;

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
  void expect_equal(const Model& model, std::vector<Address> addresses) {
    for (const Prefix& prefix : model.prefixes()) {
      const Address last = F::last_of(prefix);
      addresses.insert(addresses.end(),
                       {prefix.address, F::plus(prefix.address, -1), last, F::plus(last, 1)});
    }
    std::vector<const Value*> values(addresses.size());
    fib.lookup_bulk(addresses.data(), values.data(), static_cast<unsigned>(addresses.size()));
    for (size_t i = 0; i < addresses.size(); ++i) {
      const auto wanted = model.lookup(addresses[i]);
      ASSERT_EQ(values[i] != nullptr, wanted.has_value()) << F::text(addresses[i]);
      ASSERT_EQ(values[i], fib.lookup(addresses[i])) << F::text(addresses[i]);
      if (wanted) {
        ASSERT_EQ(*values[i], *wanted) << F::text(addresses[i]);
      }
    }
  }

  // The first `length` bits of 128.
  static Prefix make_prefix(uint64_t high, uint64_t low, unsigned length) {
    Prefix prefix{F::address(high, low), static_cast<uint8_t>(length)};
    prefix.address = prefix.network();
    return prefix;
  }
  static Prefix any_prefix(std::mt19937_64& random) {
    const uint64_t high = random();
    return make_prefix(high, random(), random() % (kBits + 1));
  }
  static Value value_of(uint32_t oif) {
    Value value{};
    value.oif = oif;
    value.gateway = F::gateway(~oif);
    return value;
  }
  // Few different bits, so that prefixes nest, share nodes and meet again; often next to each other, seldom
  // far away.
  static std::pair<uint64_t, uint64_t> random_bits(std::mt19937_64& random) {
    const uint64_t high = random();
    const uint64_t low = random();
    switch (random() % 4) {
      case 0:
        return {high, low};
      case 1:
        return {high & 0xc183'0707'0000'0000, low & 0x8000'0000'0000'0107};
      default:
        return {(high & 0xc183'0707'0000'0000) | 0x0000'0000'2001'0db8, low & 0x0000'0f00'0000'0003};
    }
  }
  static Prefix random_prefix(std::mt19937_64& random) {
    const auto [high, low] = random_bits(random);
    return make_prefix(high, low, random() % (kBits + 1));
  }
  static Value random_value(std::mt19937_64& random) { return value_of(static_cast<uint32_t>(random())); }
  static std::vector<Address> random_addresses(std::mt19937_64& random, size_t count) {
    std::vector<Address> addresses = {Address{}, F::address(1ULL << 32, 1), F::address(~0ULL >> 1, ~0ULL),
                                      F::address(1ULL << 63, 0), F::address(~0ULL, ~0ULL)};
    while (addresses.size() < count) {
      const auto [high, low] = random_bits(random);
      addresses.push_back(F::address(high, low));
    }
    return addresses;
  }

  BasicFib<Family> fib{pools};
  Reclaim reclaim{TeardownConfig{}};
};

using Families = testing::Types<V4, V6>;
TYPED_TEST_SUITE(FibTest, Families);

TYPED_TEST(FibTest, EmptyCostsNoBlock) {
  EXPECT_EQ(this->fib.lookup(TypeParam::address(10ULL << 56, 1)), nullptr);
  std::array<const typename TestFixture::Value*, 3> values;
  const std::array<typename TestFixture::Address, 3> addresses{};
  this->fib.lookup_bulk(addresses.data(), values.data(), 3);
  EXPECT_EQ(values[2], nullptr);
  EXPECT_TRUE(this->fib.erase(TestFixture::make_prefix(0, 0, 0)).has_value());
  this->commit();
  EXPECT_EQ(pools.blocks_in_use(), 0U);
}

TYPED_TEST(FibTest, EveryLengthAtItsBorders) {
  typename TestFixture::Model model;
  for (unsigned length = 0; length <= TestFixture::kBits; ++length) {
    const auto prefix = TestFixture::make_prefix(kPattern, kPattern, length);
    ASSERT_TRUE(this->fib.set(prefix, TestFixture::value_of(length + 1)).has_value());
    model.set(prefix, TestFixture::value_of(length + 1));
    this->commit();
    this->expect_equal(model, {{}, TypeParam::address(~0ULL, ~0ULL), TypeParam::address(kPattern, kPattern)});
  }
  for (unsigned length = 0; length <= TestFixture::kBits; ++length) {
    const auto prefix = TestFixture::make_prefix(kPattern, kPattern, length * 7 % (TestFixture::kBits + 1));
    ASSERT_TRUE(this->fib.erase(prefix).has_value());
    model.erase(prefix);
    this->commit();
    this->expect_equal(model, {{}, TypeParam::address(~0ULL, ~0ULL), TypeParam::address(kPattern, kPattern)});
  }
  this->wait_for_teardown();
  EXPECT_EQ(pools.blocks_in_use(), 0U);
  EXPECT_EQ(this->fib.bytes(), 0U);
}

using Fib4Test = FibTest<V4>;

TEST_F(Fib4Test, BytesFollowThePublishedNodes) {
  ASSERT_TRUE(this->fib.set(make_prefix(0, 0, 0), value_of(1)).has_value());
  EXPECT_EQ(this->fib.bytes(), 0U);
  this->commit();
  EXPECT_EQ(this->fib.bytes(), 64U);  // one node with one value
  ASSERT_TRUE(this->fib.set(make_prefix(kTen, 0, 8), value_of(1)).has_value());
  this->fib.abort();
  EXPECT_EQ(this->fib.bytes(), 64U);
  ASSERT_TRUE(this->fib.set(make_prefix(kTen, 0, 8), value_of(1)).has_value());
  this->commit();
  EXPECT_EQ(this->fib.bytes(), 96U + 64U);  // a child more in the root, and the child with one value
}

TYPED_TEST(FibTest, EachLengthAlone) {
  for (unsigned length = 0; length <= TestFixture::kBits; ++length) {
    typename TestFixture::Model model;
    const auto prefix = TestFixture::make_prefix(~0ULL, ~0ULL, length);
    model.set(prefix, TestFixture::value_of(9));
    ASSERT_TRUE(this->fib.set(prefix, TestFixture::value_of(9)).has_value());
    this->commit();
    this->expect_equal(model, {{}, TypeParam::address(1ULL << 32, 1)});
    ASSERT_TRUE(this->fib.erase(prefix).has_value());
    this->commit();
    this->wait_for_teardown();
    EXPECT_EQ(pools.blocks_in_use(), 0U) << length;
  }
}

TYPED_TEST(FibTest, AnEditIsInvisibleUntilItsCommit) {
  ASSERT_TRUE(this->fib.set(TestFixture::make_prefix(0, 0, 0), TestFixture::value_of(1)).has_value());
  EXPECT_EQ(this->fib.lookup(typename TestFixture::Address{}), nullptr);
  EXPECT_EQ(this->fib.lookup_edit(typename TestFixture::Address{})->oif, 1U);
  this->commit();
  EXPECT_EQ(this->fib.lookup(typename TestFixture::Address{})->oif, 1U);
  ASSERT_TRUE(this->fib.set(TestFixture::make_prefix(0, 0, 0), TestFixture::value_of(2)).has_value());
  ASSERT_TRUE(this->fib.set(TestFixture::make_prefix(kTen, 0, 8), TestFixture::value_of(3)).has_value());
  EXPECT_EQ(this->fib.lookup(TypeParam::address(kTen | 1ULL << 32, 1))->oif, 1U);
  this->commit();
  EXPECT_EQ(this->fib.lookup(TypeParam::address(kTen | 1ULL << 32, 1))->oif, 3U);
  EXPECT_EQ(this->fib.lookup(typename TestFixture::Address{})->oif, 2U);
}

TYPED_TEST(FibTest, RandomEditsEqualTheModel) {
  std::mt19937_64 random(seed_of_this_run());
  typename TestFixture::Model model;
  std::vector<typename TestFixture::Prefix> known;
  for (int edit = 0; edit < 400; ++edit) {
    auto next = model;
    const bool growing = edit / 50 % 2 == 0;
    const unsigned changes = 1 + random() % 20;
    for (unsigned change = 0; change < changes; ++change) {
      const bool adds = random() % 8 < (growing ? 6 : 2);
      const auto prefix = known.empty() || random() % 3 == 0 ? TestFixture::random_prefix(random)
                                                             : known[random() % known.size()];
      if (adds) {
        const auto value = TestFixture::random_value(random);
        ASSERT_TRUE(this->fib.set(prefix, value).has_value());
        next.set(prefix, value);
        known.push_back(prefix);
      } else {
        ASSERT_TRUE(this->fib.erase(prefix).has_value());
        next.erase(prefix);
      }
    }
    if (random() % 4 == 0) {
      this->fib.abort();
    } else {
      this->commit();
      model = next;
    }
    ASSERT_NO_FATAL_FAILURE(this->expect_equal(model, TestFixture::random_addresses(random, 100)));
  }
  for (const auto& prefix : model.prefixes()) ASSERT_TRUE(this->fib.erase(prefix).has_value());
  this->commit();
  this->wait_for_teardown();
  EXPECT_EQ(pools.blocks_in_use(), 0U);
  EXPECT_EQ(this->fib.bytes(), 0U);
}

TYPED_TEST(FibTest, AnAbortedEditRetiresNothingAndLeaksNothing) {
  std::mt19937_64 random(seed_of_this_run());
  typename TestFixture::Model model;
  for (int i = 0; i < 200; ++i) {
    const auto prefix = TestFixture::random_prefix(random);
    ASSERT_TRUE(this->fib.set(prefix, TestFixture::value_of(5)).has_value());
    model.set(prefix, TestFixture::value_of(5));
  }
  this->commit();
  this->wait_for_teardown();
  const uint64_t blocks = pools.blocks_in_use();
  for (const auto& prefix : model.prefixes()) ASSERT_TRUE(this->fib.erase(prefix).has_value());
  for (int i = 0; i < 200; ++i)
    ASSERT_TRUE(this->fib.set(TestFixture::random_prefix(random), TestFixture::value_of(6)).has_value());
  this->fib.abort();
  EXPECT_EQ(pools.blocks_in_use(), blocks);
  RetireList list;
  this->fib.commit(list);
  EXPECT_EQ(list.objects(), 0U);
  this->expect_equal(model, TestFixture::random_addresses(random, 100));
}

TYPED_TEST(FibTest, MemoryFollowsTheRoutes) {
  const auto host = [](uint32_t number) {
    if constexpr (TestFixture::kBits == 32)
      return Ipv4Prefix{0x64400000 + number, 32};
    else
      return Ipv6Prefix{{0x2001'0db8'0000'0000, number}, 128};
  };
  for (uint32_t i = 0; i < 65'536; ++i)
    ASSERT_TRUE(this->fib.set(host(i), TestFixture::value_of(i)).has_value());
  this->commit();
  this->wait_for_teardown();
  EXPECT_LT(pools.blocks_in_use(), 1'100U);
  for (uint32_t i = 0; i < 65'536; ++i) {
    if (i % 64 == 0) continue;
    ASSERT_TRUE(this->fib.erase(host(i)).has_value());
  }
  this->commit();
  this->wait_for_teardown();
  for (uint32_t i = 0; i < 65'536; ++i) ASSERT_EQ(this->fib.lookup(host(i).address) != nullptr, i % 64 == 0);
  for (uint32_t i = 0; i < 65'536; i += 64) ASSERT_TRUE(this->fib.erase(host(i)).has_value());
  this->commit();
  this->wait_for_teardown();
  EXPECT_EQ(pools.blocks_in_use(), 0U);
}

using Fib6Test = FibTest<V6>;

// However far apart their addresses are: a node for each, and fewer than that above them.
TEST_F(Fib6Test, NodesAreAsManyAsRoutes) {
  std::mt19937_64 random(seed_of_this_run());
  std::vector<Ipv6Prefix> prefixes;
  for (unsigned i = 0; i < 2'000; ++i) {
    prefixes.push_back(make_prefix(random(), random(), 128 - i % 3 * 32));
    ASSERT_TRUE(fib.set(prefixes.back(), value_of(i)).has_value());
    if (i != 0 && i != 7) continue;
    commit();
    wait_for_teardown();
    EXPECT_LT(pools.blocks_in_use(), 2 * (i + 1));
  }
  commit();
  wait_for_teardown();
  EXPECT_LT(pools.blocks_in_use(), 4'000U);
  EXPECT_LT(fib.bytes(), 2'000U * 192);
  std::ranges::shuffle(prefixes, random);
  for (size_t i = 0; i < prefixes.size(); ++i) {
    ASSERT_TRUE(fib.erase(prefixes[i]).has_value());
    if (i % 100 != 99) continue;
    commit();
    wait_for_teardown();
    const size_t left = prefixes.size() - i - 1;
    ASSERT_LT(pools.blocks_in_use(), 2 * left + 1);
  }
}

TYPED_TEST(FibTest, DismantleGivesEverythingBack) {
  std::mt19937_64 random(seed_of_this_run());
  for (int i = 0; i < 2'000; ++i)
    ASSERT_TRUE(this->fib.set(TestFixture::any_prefix(random), TestFixture::value_of(1)).has_value());
  this->commit();
  this->wait_for_teardown();
  EXPECT_GT(pools.blocks_in_use(), 0U);
  Returns returns;
  this->fib.dismantle(returns);
  this->take_back(returns);
  EXPECT_EQ(pools.blocks_in_use(), 0U);
}

// Other blocks fill the pools, a random few of which are given back now and then.
TYPED_TEST(FibTest, AFailedChangeIsNotMade) {
  std::mt19937_64 random(seed_of_this_run());
  constexpr std::array<size_t, 12> kSizes = {48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048};
  std::array<std::vector<Retired*>, kSizes.size()> taken;
  for (size_t size = 0; size < kSizes.size(); ++size)
    while (Retired* block = pools.allocate(kSizes[size])) taken[size].push_back(block);

  typename TestFixture::Model committed;
  typename TestFixture::Model model;
  uint64_t failures = 0;
  for (int step = 0; step < 4'000; ++step) {
    for (auto& blocks : taken)
      for (uint64_t give = random() % 3; give > 0 && random() % 2 == 0; --give) {
        pools.free_unpublished(*blocks.back());
        blocks.pop_back();
      }
    const auto prefix = TestFixture::random_prefix(random);
    const auto value = TestFixture::random_value(random);
    const bool adds = random() % 3 != 0;
    Status changed = adds ? this->fib.set(prefix, value) : this->fib.erase(prefix);
    if (changed) {
      adds ? model.set(prefix, value) : model.erase(prefix);
    } else {
      EXPECT_EQ(changed.error().code, ENOBUFS);
      ++failures;
    }
    if (step % 10 == 0) {
      for (const auto address : TestFixture::random_addresses(random, 50)) {
        const auto wanted = model.lookup(address);
        const auto* found = this->fib.lookup_edit(address);
        ASSERT_EQ(found != nullptr, wanted.has_value());
        if (wanted) {
          ASSERT_EQ(*found, *wanted);
        }
      }
    }
    if (random() % 50 == 0) {
      if (random() % 2 == 0) {
        this->fib.abort();
        model = committed;
      } else {
        this->commit();
        committed = model;
      }
      ASSERT_NO_FATAL_FAILURE(this->expect_equal(committed, {}));
      this->wait_for_teardown();
      for (size_t size = 0; size < kSizes.size(); ++size)
        while (Retired* block = pools.allocate(kSizes[size])) taken[size].push_back(block);
    }
  }
  EXPECT_GT(failures, 100U);
  this->fib.abort();
  for (auto& blocks : taken)
    for (Retired* block : blocks) pools.free_unpublished(*block);
}

// Every edit moves all prefixes to the next generation at once, so a reader must never see two of them in one
// vector, nor a block that was given back.
TYPED_TEST(FibTest, ReadersSeeWholeEdits) {
  std::mt19937_64 random(seed_of_this_run());
  std::vector<typename TestFixture::Prefix> prefixes;
  std::vector<typename TestFixture::Address> addresses;
  for (int i = 0; i < 64; ++i) {
    const auto [high, low] = TestFixture::random_bits(random);
    prefixes.push_back(TestFixture::make_prefix(high, low, 1 + random() % TestFixture::kBits));
    addresses.push_back(prefixes.back().address);
  }
  const auto write_generation = [&](uint32_t generation) {
    for (const auto& prefix : prefixes)
      ASSERT_TRUE(this->fib.set(prefix, TestFixture::value_of(generation)).has_value());
    // Nodes come and go beside them.
    const auto visitor =
        TestFixture::make_prefix(random(), random(), 9 + random() % (TestFixture::kBits - 8));
    if (std::ranges::find(prefixes, visitor) == prefixes.end()) {
      ASSERT_TRUE(this->fib.set(visitor, TestFixture::value_of(generation)).has_value());
      this->commit();
      ASSERT_TRUE(this->fib.erase(visitor).has_value());
    }
    this->commit();
  };
  write_generation(1);

  std::atomic<bool> stop = false;
  std::atomic<uint64_t> torn = 0;
  std::atomic<uint64_t> vectors = 0;
  std::thread reader([&] {
    rcu_register_worker();
    std::vector<const typename TestFixture::Value*> values(addresses.size());
    uint32_t newest = 0;
    while (!stop.load(std::memory_order_relaxed)) {
      this->fib.lookup_bulk(addresses.data(), values.data(), static_cast<unsigned>(values.size()));
      const uint32_t generation = values[0] != nullptr ? values[0]->oif : 0;
      for (const auto* value : values)
        if (value == nullptr || value->oif != generation || value->gateway != TypeParam::gateway(~generation))
          ++torn;
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
  EXPECT_EQ(this->fib.lookup(addresses[0])->oif, generation - 1);
}

}  // namespace
}  // namespace mayfly
