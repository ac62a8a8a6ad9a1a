// SPDX-License-Identifier: BSD-3-Clause
#include "fuzz_packet.hpp"

#include <gtest/gtest.h>
#include <rte_mempool.h>

#include <algorithm>

#include "base/check.hpp"
#include "world.hpp"

namespace mayfly::testing {
namespace {

constexpr size_t kMostBytes = 1'900;

// port0 with VLANs of each sort, addresses of both families and routes; a host 10.100.0.9, 2001:db8:64::9 on
// port1; everything else is behind it, or, 66.0.0.0/8 and 2001:db8:66::/48, in circles through a veth. One of
// the VLANs is a strict proxy.
struct Router {
  Router() {
    // Every check of the World counts, though no test runs.
    GTEST_FLAG_SET(break_on_failure, true);
    for (const uint32_t ifindex : {world.add_vlan(0, 1), world.add_vlan(0, 1, 0, 0x88a8),
                                   world.add_vlan(0, 1, 1), world.add_vlan(1, 1, 1, 0x88a8)})
      give_addresses(ifindex);
    world.set_address(world.port(0), "10.0.0.1/24");
    world.set_address(world.port(1), "10.100.0.1/24");
    world.set_neighbour(world.port(1), ip("10.100.0.9"), 0x0a0000000009);
    world.set_route("0.0.0.0/0", {.oif = world.port(1), .gateway = ip("10.100.0.9")});
    world.add_address(world.port(0), "2001:db8::1/64");
    world.add_address(world.port(1), "2001:db8:64::1/64");
    world.set_neighbour(world.port(1), ip6("2001:db8:64::9"), 0x0a0000000009);
    world.set_route6("2000::/3", {.oif = world.port(1), .gateway = ip6("2001:db8:64::9")});
    world.set_route6("2001:db8:b::/48", {.type = RouteType::kUnreachable, .gateway = {}});
    const uint32_t strict = world.add_vlan(0, 2);
    give_addresses(strict);
    for (const uint32_t setting : {Interface::kRpFilterStrict, Interface::kProxyArp, Interface::kProxyNd})
      world.set_flag(strict, setting);
    const auto ends = world.add_veth();
    for (const uint32_t end : ends) {
      const uint32_t other = end == ends[0] ? ends[1] : ends[0];
      const Mac mac = world.interface(other).mac.load();
      world.add_address(end, fmt::format("10.{}.0.1/24", 200 + end % 2).c_str());
      world.set_neighbour(end, ip("66.0.0.1"), mac);
      world.set_neighbour(end, link_local_of(mac), mac);
    }
    world.set_route("66.0.0.0/8", {.oif = ends[0], .gateway = ip("66.0.0.1")});
    world.set_route6("2001:db8:66::/48",
                     {.oif = ends[0], .gateway = link_local_of(world.interface(ends[1]).mac.load())});
  }
  void give_addresses(uint32_t ifindex) {
    world.set_address(ifindex, fmt::format("10.{}.0.1/24", ifindex).c_str());
    world.add_address(ifindex, fmt::format("2001:db8:{:x}::1/64", ifindex).c_str());
  }
  World world;
};

}  // namespace

void fuzz_one_packet(const uint8_t* data, size_t bytes) {
  if (bytes < 2) return;
  static Router router;
  World& world = router.world;
  const Bytes frame(data + 1, data + std::min(bytes, kMostBytes));
  std::vector<Bytes> segments = {frame};
  const size_t pieces = 1 + (data[0] & 3);
  if (pieces > 1 && frame.size() > pieces) {
    segments.clear();
    const size_t size = frame.size() / pieces;
    for (size_t i = 0; i < pieces; ++i)
      segments.emplace_back(
          frame.begin() + static_cast<long>(i * size),
          i + 1 == pieces ? frame.end() : frame.begin() + static_cast<long>((i + 1) * size));
  }
  world.put_segments(0, segments);
  world.pass(1);
  MAYFLY_CHECK(world.totals().difference() == 0, "a packet was lost count of");
  for (uint16_t port = 0; port < kRingPorts; ++port) world.take_all(port);
  while (world.heard()) {
  }
  const uint64_t out = kMbufs - rte_mempool_avail_count(ring_ports().pool);
  MAYFLY_CHECK(out <= world.totals().parked * 4, "an mbuf leaked");
}

}  // namespace mayfly::testing
