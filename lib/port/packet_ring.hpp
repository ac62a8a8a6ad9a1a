// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The rings of net_af_packet: what its arguments must be so that the driver and the kernel accept them.
//
// Each queue pair has a receive and a transmit ring of framecnt frames of framesz bytes, in blocks of
// blocksz. The driver takes the rings for one array of frames, so a block must be an exact number of frames;
// the kernel wants blocks of whole pages, framesz a multiple of 16, and framecnt an exact number of blocks.
// The driver copies frames whole: framesz must fit an mbuf. Its own default of 512 frames is 5 ms of traffic
// at 100,000 packets/s, hence 4,096 here: 16 MiB a queue pair, locked in memory.
//
// Port thread or tests; pure.

#include <cstdint>
#include <string>
#include <vector>

#include "port/devargs.hpp"
#include "port/port.hpp"

namespace mayfly {

struct PacketRing {
  // Of a frame, what the kernel's header takes: on receive up to the Ethernet header (tpacket2_hdr,
  // sockaddr_ll, alignment, measured from the frame's start), on transmit less.
  static constexpr uint32_t kReceiveHeaderBytes = 66;
  static constexpr uint32_t kTransmitHeaderBytes = 32;
  static constexpr uint32_t kDefaultFrames = 4'096;
  static constexpr uint32_t kDefaultFrameBytes = 2'048;

  uint32_t queue_pairs = 1;
  uint32_t frames = kDefaultFrames;
  uint32_t frame_bytes = kDefaultFrameBytes;
  uint32_t block_bytes = 0;

  // Largest Ethernet frame it takes in both directions, all tags counted.
  uint32_t most_frame() const noexcept { return frame_bytes - kReceiveHeaderBytes; }
};

// buffer_bytes: what an mbuf holds beside its headroom. Adds the arguments that are absent to devargs and
// says so in notes. The error names the argument and what would be accepted.
Result<PacketRing> complete_packet_ring(Devargs& devargs, const PortSettings& settings, uint32_t buffer_bytes,
                                        std::vector<std::string>& notes);

}  // namespace mayfly
