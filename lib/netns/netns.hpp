// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// A network namespace: interfaces, addresses, routes and neighbours of its own.
//
// Workers read the namespace of a packet once, at classify (Interface::netns), and use its FIBs. Everything
// else is the control thread's. NetnsTable owns all of them; an empty one costs its own bytes and nothing
// else.

#include <cstdint>
#include <string>

#include "fib/fib.hpp"
#include "fib/rib.hpp"

namespace mayfly {

struct Netns {
  Netns(std::string netns_name, BlockPools& blocks, RouteTable& routes)
      : name(std::move(netns_name)), fib(blocks), fib6(blocks), rib(routes, fib, fib6) {}

  Retired retired{};
  std::string name;
  Fib fib;
  Fib6 fib6;
  Rib rib;

  // Control only.
  uint64_t id = 0;  // never reused
  uint32_t number = 0;
  uint32_t name_next = 0;
  uint32_t bulk_requests = 0;  // at work in it: it is not deleted meanwhile
  bool dying = false;          // being deleted, which may still be refused: nothing may come into it
  bool doomed = false;         // that is certain: routes of its interfaces go with its tables, all at once
};

}  // namespace mayfly
