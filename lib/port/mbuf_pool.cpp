// SPDX-License-Identifier: BSD-3-Clause
#include "port/mbuf_pool.hpp"

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <unistd.h>

#include <algorithm>

#include "base/units.hpp"
#include "port/eal_log.hpp"

namespace mayfly {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
// What DPDK itself, ring pointers and devices' queues take beside the pool.
constexpr uint64_t kOtherBytes = 32 * kMiB;
// The mempool flushes a cache at one and a half times its size, and refuses one that could hold everything.
constexpr uint32_t kCacheShareNumerator = 2, kCacheShareDenominator = 3;

}  // namespace

uint64_t MbufPool::needed_bytes(const MbufPoolSettings& settings) noexcept {
  rte_mempool_objsz sizes{};
  const uint32_t object = rte_mempool_calc_obj_size(
      static_cast<uint32_t>(sizeof(rte_mbuf)) + settings.data_room_bytes, 0, &sizes);
  const uint64_t ring = uint64_t{rte_align32pow2(settings.count + 1)} * sizeof(void*);
  // Without hugepages no mbuf crosses a page, so that a page of 4 KiB often holds a single one.
  if (rte_eal_has_hugepages() != 0) return uint64_t{settings.count} * object + ring;
  const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  if (object > page) return settings.count * ((object + page - 1) / page) * page + ring;
  const uint64_t mbufs_a_page = page / object;
  return (settings.count + mbufs_a_page - 1) / mbufs_a_page * page + ring;
}

Result<std::unique_ptr<MbufPool>> MbufPool::create(const std::string& name,
                                                   const MbufPoolSettings& settings) {
  if (settings.count == 0) return fail(EINVAL, "mbufs.count 0: accepted 1 and above");
  if (settings.data_room_bytes <= RTE_PKTMBUF_HEADROOM || settings.data_room_bytes > UINT16_MAX)
    return fail(EINVAL, "mbufs.size {}: accepted {}..{} B, the headroom of {} B included",
                settings.data_room_bytes, RTE_PKTMBUF_HEADROOM + 1, UINT16_MAX, RTE_PKTMBUF_HEADROOM);
  const uint32_t most_cache = std::min<uint32_t>(
      RTE_MEMPOOL_CACHE_MAX_SIZE,
      static_cast<uint32_t>(uint64_t{settings.count} * kCacheShareNumerator / kCacheShareDenominator));
  if (settings.cache > most_cache)
    return fail(EINVAL, "mbufs.cache {}: accepted 0..{} with mbufs.count {}", settings.cache, most_cache,
                settings.count);

  EalErrorScope words;
  rte_mempool* pool =
      rte_pktmbuf_pool_create(name.c_str(), settings.count, settings.cache, 0,
                              static_cast<uint16_t>(settings.data_room_bytes), settings.numa_node);
  if (pool != nullptr) return std::unique_ptr<MbufPool>(new MbufPool(pool, settings.count));
  if (rte_errno == EEXIST) return fail(EEXIST, "mbuf pool '{}': one of this name exists", name);
  const uint64_t needed = needed_bytes(settings);
  return fail(
      ENOMEM,
      "mbufs: {} of {} B need {}, which the EAL does not have: set eal.memory: {}MiB or more, or a lower "
      "mbufs.count{}",
      settings.count, settings.data_room_bytes, format_bytes(needed), (needed + kOtherBytes) / kMiB + 1,
      words.reason());
}

MbufPool::~MbufPool() {
  rte_mempool_free(pool_);
}

uint32_t MbufPool::available() const noexcept {
  return rte_mempool_avail_count(pool_);
}
uint32_t MbufPool::in_use() const noexcept {
  return rte_mempool_in_use_count(pool_);
}

}  // namespace mayfly
