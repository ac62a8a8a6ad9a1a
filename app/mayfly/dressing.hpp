// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// What the members of a bulk request wear, on the command line and in a file:
//
//   addr PREFIX [step S] [nodad]    route PREFIX [step S]    neigh ADDRESS [step S] lladdr MAC [step N]
//
// A step follows the value it moves and says how far it is from one member's to the next one's: S is a number
// of addresses, or /LENGTH, one network of that length ("addr 2001:db8::1/64 step /64"). Without a step all
// members have the same. In a file there are no steps: each row says its own.

#include <vector>

#include "base/ip_address.hpp"
#include "control/client.hpp"
#include "words.hpp"

namespace mayfly::cli {

struct DressingSpec {
  struct Step {
    uint64_t step = 0;
    uint8_t shift = 0;  // times 2^shift
  };
  struct Address {
    IpPrefix prefix;
    Step step;
    bool nodad = false;
  };
  struct Neighbour {
    IpAddress address;
    Step step;
    Mac mac = 0;
    uint64_t mac_step = 0;
  };
  std::vector<Address> addresses;
  std::vector<Address> routes;
  std::vector<Neighbour> neighbours;

  bool empty() const noexcept { return addresses.empty() && routes.empty() && neighbours.empty(); }
};

// Takes one part; false when the next word begins none.
bool take_dressing_word(Words& words, DressingSpec& dressing);
// All the values of a column of a file: addresses, routes or neighbours with blanks between.
bool take_dressing_cell(std::string_view column, Words& words, DressingSpec& dressing);

void put_dressing(RequestMessage& message, const DressingSpec& dressing);

}  // namespace mayfly::cli
