// SPDX-License-Identifier: BSD-3-Clause
#include "base/units.hpp"
#include "config/config.hpp"
#include "config/ranges.hpp"

namespace mayfly {
namespace {

// The budget of an interface: its two records, counters and references of one worker, its name, its share of
// a demux.
constexpr uint64_t kInterfaceBytes = 512;
// A line of counters and a word of references, for every worker after the first.
constexpr uint64_t kInterfaceBytesPerWorker = 72;
// Its entry of 80 B, its place in the index, and its share of FIB nodes: a route to a host of a prefix that
// has no other needs a node to itself.
constexpr uint64_t kRouteBytes = 192;
// 64 B and its place in the table of its interface, which has four places at least.
constexpr uint64_t kNeighbourBytes = 128;
// An entry of the list of its interface, whose blocks are powers of two, and its routes: its own, the
// subnet's and two for the subnet's ends.
constexpr uint64_t kAddressBytes = 64 + 4 * kRouteBytes;
constexpr uint64_t kNamespaceBytes = 1'024;

std::string describe_network(const NetworkConfig& network, uint64_t interface_bytes) {
  const NetworkSize size = size_of(network);
  const uint64_t bytes = size.interfaces * interface_bytes + size.namespaces * kNamespaceBytes +
                         size.addresses * kAddressBytes + size.routes * kRouteBytes +
                         size.neighbours * kNeighbourBytes;
  return fmt::format(
      "  network      {}: {} interfaces {}, {} addresses {}, {} routes {}, {} neighbours {}, {} namespaces "
      "{}\n",
      format_bytes(bytes), format_count(size.interfaces), format_bytes(size.interfaces * interface_bytes),
      format_count(size.addresses), format_bytes(size.addresses * kAddressBytes), format_count(size.routes),
      format_bytes(size.routes * kRouteBytes), format_count(size.neighbours),
      format_bytes(size.neighbours * kNeighbourBytes), format_count(size.namespaces),
      format_bytes(size.namespaces * kNamespaceBytes));
}

}  // namespace

std::string describe_memory(const Config& config) {
  const uint64_t one = kInterfaceBytes + kInterfaceBytesPerWorker * (config.workers.count - 1);
  const uint64_t pool = mbuf_pool_bytes(config.mbufs.count, config.mbufs.size_bytes, config.eal.hugepages);
  uint64_t descriptors = 0;
  for (const PortConfig& port : config.ports)
    descriptors += uint64_t{config.rx_queues(port)} * port.rx_descriptors;

  std::string out =
      fmt::format("memory with {} worker{}:\n", config.workers.count, config.workers.count == 1 ? "" : "s");
  out += fmt::format("  interface    at most {} each: {} for 100,000, {} for all {} (interfaces.limit)\n",
                     format_bytes(one), format_bytes(100'000 * one),
                     format_bytes(config.limits.interfaces * one), format_count(config.limits.interfaces));
  out +=
      "               address space is reserved for the limit; memory is taken as interfaces are created\n"
      "               and goes back when they are gone\n";
  out +=
      fmt::format("  route        at most {} each: {} for all {} (routes.limit)\n", format_bytes(kRouteBytes),
                  format_bytes(config.limits.routes * kRouteBytes), format_count(config.limits.routes));
  out += fmt::format("  neighbour    at most {} each: {} for all {} (neighbours.limit)\n",
                     format_bytes(kNeighbourBytes), format_bytes(config.limits.neighbours * kNeighbourBytes),
                     format_count(config.limits.neighbours));
  out += describe_network(config.network, one);
  out += fmt::format(
      "  mbufs        {} for {} of {} each, taken at start; receive descriptors hold up to {} of them\n",
      format_bytes(pool), format_count(config.mbufs.count), format_bytes(config.mbufs.size_bytes),
      format_count(descriptors));
  const uint64_t memory = config.eal.memory_or_default();
  out += fmt::format("  EAL          {} {} hugepages (mbufs and rings are inside)\n",
                     memory == 0 ? "what it needs," : format_bytes(memory),
                     config.eal.hugepages ? "in" : "without");
  out += fmt::format("  teardown     at most {} or {} objects retired before creating clients {}\n",
                     format_bytes(config.teardown.high_bytes), format_count(config.teardown.high_objects),
                     config.teardown.block ? "wait" : "are refused");
  return out;
}

}  // namespace mayfly
