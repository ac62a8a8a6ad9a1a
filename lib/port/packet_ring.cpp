// SPDX-License-Identifier: BSD-3-Clause
#include "port/packet_ring.hpp"

#include <unistd.h>

#include <algorithm>
#include <numeric>

namespace mayfly {
namespace {

constexpr uint32_t kFrameAlignment = 16;  // TPACKET_ALIGNMENT
// Frame sizes to try: a multiple of the first gives small blocks, one of the second wastes less of an mbuf.
constexpr uint32_t kFrameSteps[] = {1'024, 32};

constexpr uint32_t round_up(uint32_t value, uint32_t step) {
  return (value + step - 1) / step * step;
}

uint32_t default_frame_bytes(uint32_t mtu, uint32_t buffer_bytes) {
  const uint32_t needed =
      mtu + kEthernetHeaderBytes + kMostTags * kVlanTagBytes + PacketRing::kReceiveHeaderBytes;
  for (const uint32_t step : kFrameSteps) {
    const uint32_t size = std::max(round_up(needed, step), PacketRing::kDefaultFrameBytes);
    if (size - PacketRing::kTransmitHeaderBytes <= buffer_bytes) return size;
  }
  return round_up(needed, kFrameSteps[1]);
}

// Takes the argument from the devargs, or the value that is there already as its default, and notes that it
// was added.
Status take(Devargs& devargs, const char* name, uint32_t& value, std::vector<std::string>& added) {
  const auto given = devargs.number(name);
  if (!given) return std::unexpected(given.error());
  if (*given) {
    value = **given;
    return {};
  }
  devargs.add(name, fmt::format("{}", value));
  added.push_back(fmt::format("{}={}", name, value));
  return {};
}

Status check_ring(const PacketRing& ring, const PortSettings& settings, uint32_t buffer_bytes) {
  const auto page = static_cast<uint32_t>(sysconf(_SC_PAGESIZE));
  const uint32_t most = buffer_bytes + PacketRing::kTransmitHeaderBytes;
  if (ring.frame_bytes > most)
    return fail(EINVAL,
                "framesz={} (for mtu {}) does not fit mbufs of {} B: set mbufs.size: {} or more, or "
                "framesz={} or less",
                ring.frame_bytes, settings.mtu, buffer_bytes,
                ring.frame_bytes - PacketRing::kTransmitHeaderBytes + 128,
                most / kFrameAlignment * kFrameAlignment);
  if (ring.frame_bytes % kFrameAlignment != 0 || ring.frame_bytes < 128)
    return fail(EINVAL, "framesz={}: accepted multiples of {}, 128 and above", ring.frame_bytes,
                kFrameAlignment);
  if (ring.block_bytes % page != 0 || ring.block_bytes % ring.frame_bytes != 0)
    return fail(EINVAL, "blocksz={}: accepted multiples of the page ({}) and of framesz ({}): {} for one",
                ring.block_bytes, page, ring.frame_bytes, std::lcm(page, ring.frame_bytes));
  const uint32_t frames_a_block = ring.block_bytes / ring.frame_bytes;
  if (ring.frames % frames_a_block != 0)
    return fail(EINVAL, "framecnt={}: accepted multiples of {} (blocksz / framesz)", ring.frames,
                frames_a_block);
  // The driver computes the size of both rings in 32 bits.
  if (uint64_t{2} * ring.frames * ring.frame_bytes > UINT32_MAX)
    return fail(EINVAL, "framecnt={}: accepted at most {} with framesz={}", ring.frames,
                UINT32_MAX / 2 / ring.frame_bytes / frames_a_block * frames_a_block, ring.frame_bytes);
  return {};
}

}  // namespace

Result<PacketRing> complete_packet_ring(Devargs& devargs, const PortSettings& settings, uint32_t buffer_bytes,
                                        std::vector<std::string>& notes) {
  PacketRing ring;
  ring.queue_pairs = std::max(settings.rx_queues, settings.tx_queues);
  ring.frame_bytes = default_frame_bytes(settings.mtu, buffer_bytes);
  std::vector<std::string> added;
  if (auto taken = take(devargs, "qpairs", ring.queue_pairs, added); !taken)
    return std::unexpected(taken.error());
  if (auto taken = take(devargs, "framecnt", ring.frames, added); !taken)
    return std::unexpected(taken.error());
  if (auto taken = take(devargs, "framesz", ring.frame_bytes, added); !taken)
    return std::unexpected(taken.error());
  ring.block_bytes = static_cast<uint32_t>(
      std::min<uint64_t>(UINT32_MAX / 4096 * 4096,
                         std::lcm(static_cast<uint64_t>(sysconf(_SC_PAGESIZE)), uint64_t{ring.frame_bytes})));
  if (auto taken = take(devargs, "blocksz", ring.block_bytes, added); !taken)
    return std::unexpected(taken.error());
  if (auto checked = check_ring(ring, settings, buffer_bytes); !checked)
    return std::unexpected(checked.error());
  if (!added.empty()) notes.push_back(fmt::format("added to the devargs: {}", fmt::join(added, ",")));
  return ring;
}

}  // namespace mayfly
