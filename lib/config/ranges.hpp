// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// What single values of the configuration may be, for the file and the command line alike. Inclusive bounds.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/log.hpp"

namespace mayfly {

template <class T>
struct Range {
  T least;
  T most;
};

constexpr uint64_t kMiB = uint64_t{1} << 20;

constexpr Range<uint64_t> kEalMemoryRange{64 * kMiB, uint64_t{1} << 40};
constexpr Range<uint32_t> kWorkersRange{1, 64};
constexpr Range<uint32_t> kCpuRange{0, 1'023};  // CPU_SETSIZE - 1
constexpr Range<uint64_t> kIdleAfterRange{1'000, 1'000'000'000};
// A sleeping worker lets packets wait: never longer than a millisecond.
constexpr Range<uint64_t> kIdleSleepRange{1'000, 1'000'000};
constexpr Range<uint32_t> kMbufCountRange{512, 1u << 24};
// The headroom and a small packet, up to what the 16-bit length of an mbuf can say.
constexpr Range<uint64_t> kMbufSizeRange{256, 63 * 1'024};
constexpr Range<uint32_t> kMbufCacheRange{0, 512};  // RTE_MEMPOOL_CACHE_MAX_SIZE
constexpr Range<uint32_t> kQueuesRange{1, 128};
constexpr Range<uint32_t> kDescriptorsRange{32, 32'768};
constexpr Range<uint32_t> kMtuRange{68, 16'000};
constexpr Range<uint32_t> kTableRange{1, 1u << 24};
// What one table holds: Neighbours::kMostInterfaceLimit.
constexpr Range<uint32_t> kInterfaceNeighboursRange{1, 87'000};
constexpr Range<uint32_t> kTeardownWorkersRange{1, 16};
constexpr Range<uint32_t> kNiceRange{0, 19};
constexpr Range<uint64_t> kBacklogObjectsRange{1, uint64_t{1} << 32};
constexpr Range<uint64_t> kBacklogBytesRange{1, uint64_t{1} << 40};

constexpr std::pair<std::string_view, LogLevel> kLogLevels[] = {{"error", LogLevel::error},
                                                                {"warning", LogLevel::warning},
                                                                {"info", LogLevel::info},
                                                                {"debug", LogLevel::debug}};

constexpr size_t kMostPorts = 256;
constexpr size_t kMostEalArgs = 256;
constexpr size_t kMostTextBytes = 1'024;
constexpr size_t kMostSocketPathBytes = 107;  // sockaddr_un.sun_path without its NUL
constexpr size_t kMostGroupBytes = 32;

// What an mbuf holds besides the IP packet: headroom, Ethernet header, two tags.
constexpr uint32_t kMbufHeadroomBytes = 128;
constexpr uint32_t kFrameOverheadBytes = 14 + 2 * 4;
// struct rte_mbuf and the header of a mempool object in front of the data room; objects are whole cache
// lines.
constexpr uint32_t kMbufHeaderBytes = 128 + 64;
constexpr uint32_t kCacheLineBytes = 64;
// What the EAL, the rings and the devices take besides mbufs.
constexpr uint64_t kEalOwnBytes = 24 * kMiB;

constexpr uint64_t kPageBytes = 4'096;

// As MbufPool::needed_bytes has it: without hugepages no mbuf crosses a page, so that one of 2,176 B takes a
// page of its own.
constexpr uint64_t mbuf_pool_bytes(uint64_t count, uint64_t data_room, bool hugepages) noexcept {
  const uint64_t object =
      (data_room + kMbufHeaderBytes + kCacheLineBytes - 1) / kCacheLineBytes * kCacheLineBytes;
  if (hugepages) return count * object;
  if (object > kPageBytes) return count * ((object + kPageBytes - 1) / kPageBytes * kPageBytes);
  const uint64_t mbufs_a_page = kPageBytes / object;
  return (count + mbufs_a_page - 1) / mbufs_a_page * kPageBytes;
}

}  // namespace mayfly
