// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "../base/seed.hpp"
#include "iface/demux.hpp"
#include "reclaim/reclaim.hpp"

namespace mayfly {
namespace {

using Key = std::tuple<TagProtocol, uint16_t, uint16_t>;

TagKey tag_key(const Key& key) {
  return {std::get<0>(key), std::get<1>(key), std::get<2>(key)};
}

TEST(VlanDemux, AgreesWithAMapAndGivesAllBlocksBack) {
  std::mt19937_64 random = testing::seeded_random();
  BlockPools blocks;
  Reclaim reclaim{TeardownConfig{}};
  ASSERT_TRUE(reclaim.start());
  VlanDemux demux;
  std::map<Key, uint32_t> model;
  // Few outer tags, so that inner tables fill, empty and come again; the boundaries are among them.
  const uint16_t outers[] = {1, 2, 63, 64, 65, 2000, 4093, 4094};
  const auto random_key = [&] {
    const auto protocol = random() % 2 == 0 ? TagProtocol::c_tag : TagProtocol::s_tag;
    const auto inner = static_cast<uint16_t>(random() % 3 == 0 ? 0 : 1 + random() % 4094);
    return Key{protocol, outers[random() % std::size(outers)], inner};
  };
  for (int step = 0; step < 100'000; ++step) {
    RetireList list;
    const Key key = random_key();
    const bool growing = step / 10'000 % 2 == 0;
    if (const auto known = model.find(key); known == model.end()) {
      ASSERT_EQ(demux.find(tag_key(key)), 0u);
      const auto ifindex = static_cast<uint32_t>(1 + random() % 1'000'000);
      ASSERT_TRUE(demux.insert(tag_key(key), ifindex, blocks));
      model[key] = ifindex;
    } else {
      ASSERT_EQ(demux.find(tag_key(key)), known->second);
    }
    if (!model.empty() && (!growing || step % 3 == 0)) {
      auto victim = model.lower_bound(random_key());
      if (victim == model.end()) victim = model.begin();
      demux.erase(tag_key(victim->first), blocks, list);
      ASSERT_EQ(demux.find(tag_key(victim->first)), 0u);
      model.erase(victim);
    }
    reclaim.submit(list);
    if (step % 16 == 0) reclaim.collect(Deadline::never());
  }
  for (const auto& [key, ifindex] : model) EXPECT_EQ(demux.find(tag_key(key)), ifindex);
  RetireList list;
  for (const auto& [key, ifindex] : model) demux.erase(tag_key(key), blocks, list);
  reclaim.submit(list);
  EXPECT_TRUE(demux.empty());
  EXPECT_TRUE(reclaim.stop(60 * kNsPerSecond));
  EXPECT_EQ(blocks.blocks_in_use(), 0u);
}

}  // namespace
}  // namespace mayfly
