// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// A network namespace: interfaces, addresses, routes and neighbours of its own.
//
// Workers read the namespace of a packet once, at classify (Interface::netns), and use its fib and fib6.
// Everything else is the control thread's. Only `default` exists so far; the structure is per namespace all
// the same, so that named ones need no change here.

#include <cstdint>
#include <string>

#include "fib/fib.hpp"
#include "fib/rib.hpp"

namespace mayfly {

struct Netns {
  Netns(std::string netns_name, BlockPools& blocks, RouteTable& routes)
      : name(std::move(netns_name)), fib(blocks), fib6(blocks), rib(routes, fib, fib6) {}

  // Publishes the open edits of both FIBs.
  void commit(RetireList& retired) noexcept {
    fib.commit(retired);
    fib6.commit(retired);
  }

  std::string name;
  Fib fib;
  Fib6 fib6;
  Rib rib;
};

}  // namespace mayfly
