// SPDX-License-Identifier: BSD-3-Clause
#include "port/frame_limits.hpp"

#include <algorithm>

namespace mayfly {
namespace {

constexpr uint32_t kMbufHeadroomBytes = 128;
// A kernel interface takes one 802.1Q tag beside its MTU, no second one.
constexpr uint32_t kKernelFreeTags = 1;

// Of drivers that count tags and a header of their own it is 30. net_vmxnet3 tells of frames of 16 KiB with
// an MTU of 9,000, which are two limits and not one.
constexpr uint32_t kMostOverheadBytes = 64;

struct Limit {
  uint32_t mtu;
  std::string why;
};

constexpr uint32_t without(uint32_t bytes, uint32_t headers) {
  return bytes > headers ? bytes - headers : 0;
}

// The tightest bound on the MTU of untagged packets.
Limit tightest(uint32_t wanted, const FrameRoom& room) {
  Limit limit{room.most_mtu, fmt::format("{} takes no more", room.device)};
  const auto bound = [&limit](uint32_t mtu, std::string why) {
    if (mtu < limit.mtu) limit = {mtu, std::move(why)};
  };
  if (room.kernel_mtu)
    bound(*room.kernel_mtu,
          fmt::format("{} has an MTU of {}: ip link set dev {} mtu {}", room.kernel_interface,
                      *room.kernel_mtu, room.kernel_interface, wanted));
  const uint32_t all_headers = kEthernetHeaderBytes + kMostTags * kVlanTagBytes;
  if (room.ring_frame)
    bound(without(*room.ring_frame, all_headers), "a larger one needs a larger framesz= in the devargs");
  if (!room.scatter && room.buffer_bytes != 0)
    bound(without(room.buffer_bytes, all_headers),
          fmt::format("a larger one needs larger mbufs: set mbufs.size: {} or more",
                      wanted + all_headers + kMbufHeadroomBytes));
  return limit;
}

}  // namespace

uint32_t frame_overhead(uint32_t most_frame, uint32_t most_mtu) noexcept {
  const bool known = most_mtu != UINT16_MAX && most_frame > most_mtu;
  const uint32_t overhead = known ? most_frame - most_mtu : 0;
  return known && overhead <= kMostOverheadBytes ? overhead : kEthernetHeaderBytes + kFcsBytes;
}

Result<FrameLimits> plan_frames(uint32_t mtu, const FrameRoom& room) {
  const Limit limit = tightest(mtu, room);
  if (mtu < room.least_mtu || mtu > limit.mtu)
    return fail(ERANGE, "mtu {}: accepted {}..{}{}{}", mtu, room.least_mtu, limit.mtu,
                mtu > limit.mtu ? ": " : "", mtu > limit.mtu ? limit.why : "");

  FrameLimits limits;
  limits.most_mtu = limit.mtu;
  const uint32_t all_headers = kEthernetHeaderBytes + kMostTags * kVlanTagBytes;
  const uint32_t missing = all_headers > room.header_bytes ? all_headers - room.header_bytes : 0;
  limits.device_mtu = std::min(mtu + missing, room.most_mtu);
  const uint32_t frame = limits.device_mtu + room.header_bytes;
  limits.needs_scatter = room.scatter && room.buffer_bytes != 0 && frame > room.buffer_bytes;
  for (uint32_t tags = 0; tags <= kMostTags; ++tags) {
    uint32_t fits = std::min(mtu, frame - kEthernetHeaderBytes - tags * kVlanTagBytes);
    if (room.kernel_mtu && tags > kKernelFreeTags)
      fits = std::min(fits, *room.kernel_mtu - (tags - kKernelFreeTags) * kVlanTagBytes);
    limits.mtu_by_tags[tags] = fits;
  }
  return limits;
}

}  // namespace mayfly
