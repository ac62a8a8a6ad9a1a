// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The further unicast addresses that a device lets pass while it is not promiscuous: one for each address
// that an interface stacked on the port has of its own. What has the port's address needs none.
//
// Port thread only; an ethdev call for each address that appears or goes.

#include <cstdint>
#include <set>
#include <string>

#include "port/port.hpp"

namespace mayfly {

class MacFilter {
 public:
  // Adds or removes one address of a device: 0, or a negative errno. Tests give another than ethdev's.
  using Change = int (*)(uint16_t port, Mac mac, bool add);
  static int change_device(uint16_t port, Mac mac, bool add) noexcept;
  explicit MacFilter(Change change = change_device) noexcept : change_(change) {}

  // Makes the device's filter this set. room: how many the device has place for. Empty when it receives all
  // of them; otherwise why it does not, and then the filter is empty.
  std::string apply(uint16_t port, const MacFilterRequest& wanted, uint32_t room);
  void clear(uint16_t port);
  uint32_t size() const noexcept { return static_cast<uint32_t>(installed_.size()); }

 private:
  Change change_;
  std::set<Mac> installed_;
};

}  // namespace mayfly
