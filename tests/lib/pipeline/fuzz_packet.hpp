// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// One arbitrary frame through a whole worker: the entry of a fuzzer, and of the loop in test_garbage.cpp.

#include <cstddef>
#include <cstdint>

namespace mayfly::testing {

// Puts the frame (at most 1,900 bytes count) into the first port of a small router that exists once per
// process, steps its worker, and takes out what leaves. Aborts when a packet was lost count of or an mbuf
// leaked. The first two bits of the first byte choose how the frame is cut into segments; the frame itself
// begins behind it.
void fuzz_one_packet(const uint8_t* data, size_t bytes);

}  // namespace mayfly::testing
