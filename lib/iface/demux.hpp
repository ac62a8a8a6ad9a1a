// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// From (port, tags) to interface: a radix of small arrays per port, no hash.
//
//   port -> outer[802.1Q | 802.1ad] -> entry[VID] -> ifindex                         one tag
//                                                 -> inner table -> chunk[VID / 64] -> ifindex    two tags
//
// A worker needs one load for an untagged frame, two for one tag, four for two. Every change is a single
// pointer or ifindex store. A reserved key (claimed by a bulk create) is an ifindex whose Interface is not
// live yet: workers see it and drop, control sees a conflict.
//
// The outer table is 64 KiB per (port, protocol) in use, an inner table 768 B per outer tag that has inner
// ones, a chunk 384 B per 64 neighbouring inner tags. All are RCU blocks (lib/reclaim).

#include <array>
#include <atomic>
#include <cstdint>

#include "base/result.hpp"
#include "rcu/rcu.hpp"
#include "reclaim/block_pools.hpp"

namespace mayfly {

constexpr uint32_t kTagValues = 4096;

// The outer protocols a frame can be tagged with, as an index.
enum class TagProtocol : uint8_t { c_tag, s_tag, s_tag_9100, count };
constexpr size_t kTagProtocols = static_cast<size_t>(TagProtocol::count);

// Their EtherTypes, by index: 802.1Q, 802.1ad, and what QinQ was before 802.1ad.
constexpr std::array<uint16_t, kTagProtocols> kTagEthertypes = {0x8100, 0x88a8, 0x9100};

// TagProtocol::count when the EtherType is that of no tag.
constexpr TagProtocol tag_protocol_of(uint16_t ethertype) noexcept {
  if (ethertype == kTagEthertypes[0]) return TagProtocol::c_tag;
  if (ethertype == kTagEthertypes[1]) return TagProtocol::s_tag;
  if (ethertype == kTagEthertypes[2]) return TagProtocol::s_tag_9100;
  return TagProtocol::count;
}
constexpr bool is_tag(uint16_t ethertype) noexcept {
  return tag_protocol_of(ethertype) != TagProtocol::count;
}
constexpr uint16_t ethertype_of(TagProtocol protocol) noexcept {
  return kTagEthertypes[static_cast<size_t>(protocol)];
}

struct TagKey {
  TagProtocol protocol = TagProtocol::c_tag;
  uint16_t outer = 0;  // 1 .. 4094
  uint16_t inner = 0;  // 0: one tag only

  bool operator==(const TagKey&) const = default;
};

class VlanDemux {
 public:
  // Worker, online; prefetchable in two steps by the caller. 0 when nobody owns the tags.
  uint32_t find_outer(TagProtocol protocol, uint16_t outer) const noexcept {
    const OuterTable* table = outer_[static_cast<size_t>(protocol)].read();
    return table == nullptr ? 0 : table->entries[outer].ifindex.load(std::memory_order_acquire);
  }
  uint32_t find_inner(TagProtocol protocol, uint16_t outer, uint16_t inner) const noexcept {
    const OuterTable* table = outer_[static_cast<size_t>(protocol)].read();
    if (table == nullptr) return 0;
    const InnerTable* inners = table->entries[outer].inner.read();
    if (inners == nullptr) return 0;
    const Chunk* chunk = inners->chunks[inner / kChunkTags].read();
    return chunk == nullptr ? 0 : chunk->ifindex[inner % kChunkTags].load(std::memory_order_acquire);
  }
  uint32_t find(const TagKey& key) const noexcept {
    return key.inner == 0 ? find_outer(key.protocol, key.outer)
                          : find_inner(key.protocol, key.outer, key.inner);
  }
  void prefetch(TagProtocol protocol, uint16_t outer) const noexcept {
    const OuterTable* table = outer_[static_cast<size_t>(protocol)].read();
    if (table != nullptr) __builtin_prefetch(&table->entries[outer]);
  }

  // Control thread. insert: the key is free (find() said 0); ENOBUFS when there is no block for a table.
  Status insert(const TagKey& key, uint32_t ifindex, BlockPools& blocks) noexcept;
  // Empty tables are unlinked and retired on the list.
  void erase(const TagKey& key, BlockPools& blocks, RetireList& list) noexcept;
  bool empty() const noexcept;

 private:
  static constexpr uint32_t kChunkTags = 64;
  struct Chunk {
    Retired retired;
    uint32_t used;
    std::atomic<uint32_t> ifindex[kChunkTags];
  };
  struct InnerTable {
    Retired retired;
    uint32_t used;  // chunks
    RcuPointer<Chunk> chunks[kTagValues / kChunkTags];
  };
  struct OuterEntry {
    std::atomic<uint32_t> ifindex;
    RcuPointer<InnerTable> inner;
  };
  struct OuterTable {
    Retired retired;
    uint32_t used;  // entries with an interface or an inner table
    OuterEntry entries[kTagValues];
  };

  OuterTable* outer_table(TagProtocol protocol, BlockPools& blocks) noexcept;
  Status insert_inner(OuterTable& table, const TagKey& key, uint32_t ifindex, BlockPools& blocks) noexcept;
  void erase_inner(OuterTable& table, const TagKey& key, BlockPools& blocks, RetireList& list) noexcept;

  std::array<RcuPointer<OuterTable>, kTagProtocols> outer_;
};

}  // namespace mayfly
