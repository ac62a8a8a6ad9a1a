// SPDX-License-Identifier: BSD-3-Clause
// The packet path: one frame of any bytes through a whole worker between ring devices. No packet may be lost
// count of and no mbuf may leak.

#include <cstddef>
#include <cstdint>

#include "fuzz_packet.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  mayfly::testing::fuzz_one_packet(data, size);
  return 0;
}
