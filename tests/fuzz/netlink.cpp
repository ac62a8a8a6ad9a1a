// SPDX-License-Identifier: BSD-3-Clause
// The control socket: one datagram of any bytes to a connection of either family. The first byte chooses the
// family. The daemon's tables must stay consistent: every listed interface is found by its name, and after
// deleting all of them everything is back in its pool.

#include <cstddef>
#include <cstdint>

#include "../lib/control/control_world.hpp"
#include "base/log.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mayfly;
  if (size == 0) return 0;
  static ControlWorld* const world = [] {
    set_log_level(LogLevel::error);
    TeardownConfig teardown;
    teardown.high_objects = 1'000;
    teardown.low_objects = 100;
    teardown.block = false;
    return new ControlWorld(teardown, 5'000);
  }();
  {
    TestClient client(*world, data[0] % 2 == 0 ? NETLINK_ROUTE : NETLINK_GENERIC);
    client.exchange({reinterpret_cast<const std::byte*>(data) + 1, size - 1});
  }
  InterfaceTable& table = world->interfaces();
  uint32_t seen = 0;
  for (uint32_t at = table.next(1); at != kNoInterface; at = table.next(at + 1), ++seen) {
    MAYFLY_CHECK(table.find(table.interface(at).netns.own(), table.record(at).name) == at,
                 "a name leads elsewhere");
    MAYFLY_CHECK(table.state(at) == InterfaceState::live, "an interface stayed marked");
  }
  MAYFLY_CHECK(seen == table.live(), "the number of interfaces is wrong");
  world->delete_all(false);
  MAYFLY_CHECK(table.in_use() == 1, "a number was not given back");
  return 0;
}
