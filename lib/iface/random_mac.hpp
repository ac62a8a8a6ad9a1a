// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// A MAC for an interface that got none: locally administered, unicast, as eth_hw_addr_random of the kernel
// gives. Control thread.

#include <random>

#include "base/address.hpp"

namespace mayfly {

inline Mac random_mac() {
  static std::mt19937_64 generator{std::random_device{}()};
  return (generator() & 0xfcff'ffff'ffffULL) | 0x0200'0000'0000ULL;
}

}  // namespace mayfly
