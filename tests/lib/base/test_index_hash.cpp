// SPDX-License-Identifier: BSD-3-Clause
#include "base/index_hash.hpp"

#include <gtest/gtest.h>

#include <unordered_map>
#include <vector>

#include "seed.hpp"

namespace mayfly {
namespace {

using testing::seeded_random;

struct Element {
  uint64_t key = 0;
  uint32_t next = 0;
};

// buckets: how many hashes there are; few make long chains.
struct Traits {
  std::vector<Element>* elements;
  uint64_t hashes;

  uint32_t& next(uint32_t number) const { return (*elements)[number].next; }
  uint64_t hash_of(uint64_t key) const { return mix_hash(hashes == 0 ? key : key % hashes); }
  uint64_t hash(uint32_t number) const { return hash_of((*elements)[number].key); }
};

class IndexHashModel {
 public:
  IndexHashModel(uint32_t limit, uint64_t hashes)
      : elements_(limit), traits_{&elements_, hashes}, index_(limit, traits_) {}

  uint32_t find(uint64_t key) const {
    return index_.find(traits_.hash_of(key), [&](uint32_t number) { return elements_[number].key == key; });
  }
  void insert(uint32_t number, uint64_t key) {
    elements_[number].key = key;
    index_.insert(number);
    model_[key] = number;
  }
  void erase(uint64_t key) {
    index_.erase(model_.at(key));
    model_.erase(key);
  }
  void compare() const {
    ASSERT_EQ(index_.size(), model_.size());
    for (const auto& [key, number] : model_) ASSERT_EQ(find(key), number);
  }
  const std::unordered_map<uint64_t, uint32_t>& model() const { return model_; }

 private:
  std::vector<Element> elements_;
  Traits traits_;
  IndexHash<Traits> index_;
  std::unordered_map<uint64_t, uint32_t> model_;
};

TEST(IndexHash, EmptyFindsNothing) {
  IndexHashModel index(10, 0);
  EXPECT_EQ(index.find(7), kNoSlot);
}

TEST(IndexHash, GrowsAndShrinksWithoutLosingAnElement) {
  constexpr uint32_t kElements = 200'000;
  IndexHashModel index(kElements, 0);
  for (int round = 0; round < 2; ++round) {
    for (uint32_t i = 0; i < kElements; ++i) index.insert(i, uint64_t{i} * 3 + 1);
    index.compare();
    EXPECT_EQ(index.find(0), kNoSlot);
    for (uint32_t i = 0; i < kElements; ++i) {
      index.erase(uint64_t{i} * 3 + 1);
      if (i % 40'000 == 0) index.compare();
    }
    index.compare();
  }
}

TEST(IndexHash, AgreesWithAnUnorderedMap) {
  auto random = seeded_random();
  for (const uint64_t hashes : {uint64_t{0}, uint64_t{1}, uint64_t{7}, uint64_t{500}}) {
    const uint32_t limit = hashes == 1 ? 500 : 5'000;
    IndexHashModel index(limit, hashes);
    std::vector<uint32_t> free_numbers;
    for (uint32_t i = 0; i < limit; ++i) free_numbers.push_back(i);
    std::vector<uint64_t> keys;
    for (int step = 0; step < 20'000; ++step) {
      const bool grow = step / 4'000 % 2 == 0;
      if (!free_numbers.empty() && (keys.empty() || random() % 10 < (grow ? 8u : 3u))) {
        const uint64_t key = random() % 1'000'000;
        if (index.model().contains(key)) continue;
        index.insert(free_numbers.back(), key);
        free_numbers.pop_back();
        keys.push_back(key);
      } else if (!keys.empty()) {
        std::swap(keys[random() % keys.size()], keys.back());
        free_numbers.push_back(index.model().at(keys.back()));
        index.erase(keys.back());
        ASSERT_EQ(index.find(keys.back()), kNoSlot);
        keys.pop_back();
      }
      if (step % 2'000 == 0) index.compare();
    }
    index.compare();
  }
}

TEST(IndexHashDeathTest, ErasingWhatIsNotInItAborts) {
  std::vector<Element> elements(4);
  IndexHash<Traits> index(4, Traits{&elements, 0});
  index.insert(1);
  elements[2].key = 5;
  EXPECT_DEATH(index.erase(2), "does not hold it");
}

}  // namespace
}  // namespace mayfly
