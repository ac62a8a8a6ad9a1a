// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// A network namespace: interfaces, addresses, routes and neighbours of its own.
//
// Workers read the namespace of a packet once, at classify (Interface::netns), and use its fib. Everything
// else is the control thread's. Only `default` exists so far; the structure is per namespace all the same, so
// that named ones need no change here.

#include <cstdint>
#include <string>

#include "fib/fib.hpp"
#include "fib/rib.hpp"

namespace mayfly {

struct Netns {
  Netns(std::string netns_name, BlockPools& blocks, RouteTable& routes)
      : name(std::move(netns_name)), fib(blocks), rib(routes, fib) {}

  std::string name;
  Fib fib;
  Rib rib;
};

}  // namespace mayfly
