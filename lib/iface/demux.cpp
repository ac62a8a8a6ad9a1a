// SPDX-License-Identifier: BSD-3-Clause
#include "iface/demux.hpp"

#include <cstring>

#include "base/check.hpp"

namespace mayfly {
namespace {

// A table of zeros; only its header is left as the pool filled it in.
template <class Table>
Table* allocate_zeroed(BlockPools& blocks) noexcept {
  auto* table = blocks.allocate<Table>();
  if (table == nullptr) return nullptr;
  std::memset(reinterpret_cast<std::byte*>(table) + sizeof(Retired), 0, sizeof(Table) - sizeof(Retired));
  return table;
}

std::unexpected<Error> no_block() {
  return fail(ENOBUFS, "no memory for a table of VLAN tags");
}

}  // namespace

VlanDemux::OuterTable* VlanDemux::outer_table(TagProtocol protocol, BlockPools& blocks) noexcept {
  RcuPointer<OuterTable>& pointer = outer_[static_cast<size_t>(protocol)];
  if (pointer.own() == nullptr)
    if (auto* table = allocate_zeroed<OuterTable>(blocks)) pointer.publish(table);
  return pointer.own();
}

Status VlanDemux::insert(const TagKey& key, uint32_t ifindex, BlockPools& blocks) noexcept {
  OuterTable* table = outer_table(key.protocol, blocks);
  if (table == nullptr) return no_block();
  if (key.inner != 0) return insert_inner(*table, key, ifindex, blocks);
  OuterEntry& entry = table->entries[key.outer];
  MAYFLY_DEBUG_CHECK(entry.ifindex.load(std::memory_order_relaxed) == 0, "a tag was given to two interfaces");
  if (entry.inner.own() == nullptr) ++table->used;
  entry.ifindex.store(ifindex, std::memory_order_release);
  return {};
}

Status VlanDemux::insert_inner(OuterTable& table, const TagKey& key, uint32_t ifindex,
                               BlockPools& blocks) noexcept {
  OuterEntry& entry = table.entries[key.outer];
  InnerTable* inners = entry.inner.own();
  Chunk* chunk = inners == nullptr ? nullptr : inners->chunks[key.inner / kChunkTags].own();
  if (chunk != nullptr) {
    MAYFLY_DEBUG_CHECK(chunk->ifindex[key.inner % kChunkTags].load(std::memory_order_relaxed) == 0,
                       "a tag was given to two interfaces");
    ++chunk->used;
    chunk->ifindex[key.inner % kChunkTags].store(ifindex, std::memory_order_release);
    return {};
  }
  chunk = allocate_zeroed<Chunk>(blocks);
  if (chunk == nullptr) return no_block();
  chunk->used = 1;
  chunk->ifindex[key.inner % kChunkTags].store(ifindex, std::memory_order_relaxed);
  if (inners != nullptr) {
    ++inners->used;
    inners->chunks[key.inner / kChunkTags].publish(chunk);
    return {};
  }
  inners = allocate_zeroed<InnerTable>(blocks);
  if (inners == nullptr) {
    blocks.free_unpublished(chunk->retired);
    return no_block();
  }
  inners->used = 1;
  inners->chunks[key.inner / kChunkTags].publish(chunk);
  if (entry.ifindex.load(std::memory_order_relaxed) == 0) ++table.used;
  entry.inner.publish(inners);
  return {};
}

void VlanDemux::erase(const TagKey& key, BlockPools& blocks, RetireList& list) noexcept {
  RcuPointer<OuterTable>& pointer = outer_[static_cast<size_t>(key.protocol)];
  OuterTable* table = pointer.own();
  MAYFLY_CHECK(table != nullptr, "a tag was erased from a port that has none");
  OuterEntry& entry = table->entries[key.outer];
  if (key.inner != 0)
    erase_inner(*table, key, blocks, list);
  else {
    entry.ifindex.store(0, std::memory_order_release);
    if (entry.inner.own() == nullptr) --table->used;
  }
  if (table->used != 0) return;
  pointer.publish(nullptr);
  blocks.retire(table->retired, list);
}

void VlanDemux::erase_inner(OuterTable& table, const TagKey& key, BlockPools& blocks,
                            RetireList& list) noexcept {
  OuterEntry& entry = table.entries[key.outer];
  InnerTable* inners = entry.inner.own();
  MAYFLY_CHECK(inners != nullptr, "an inner tag was erased where none is");
  Chunk* chunk = inners->chunks[key.inner / kChunkTags].own();
  MAYFLY_CHECK(chunk != nullptr, "an inner tag was erased where none is");
  chunk->ifindex[key.inner % kChunkTags].store(0, std::memory_order_release);
  if (--chunk->used != 0) return;
  inners->chunks[key.inner / kChunkTags].publish(nullptr);
  blocks.retire(chunk->retired, list);
  if (--inners->used != 0) return;
  entry.inner.publish(nullptr);
  blocks.retire(inners->retired, list);
  if (entry.ifindex.load(std::memory_order_relaxed) == 0) --table.used;
}

bool VlanDemux::empty() const noexcept {
  for (const auto& table : outer_)
    if (table.own() != nullptr) return false;
  return true;
}

}  // namespace mayfly
