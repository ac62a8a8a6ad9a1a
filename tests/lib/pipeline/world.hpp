// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// A worker between three devices that tests fill and empty by hand (net_ring), with the tables of the control
// thread around it. One thread plays both: a test changes tables, puts frames in, steps the worker, looks at
// what leaves.

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>

#include "frames.hpp"
#include "iface/address_list.hpp"
#include "neigh/neighbours.hpp"
#include "netns/netns.hpp"
#include "pipeline/worker.hpp"
#include "reclaim/reclaim.hpp"
#include "ring_ports.hpp"

namespace mayfly::testing {

struct WorldSettings {
  uint32_t parked_limit = 64;
  uint32_t originate_mbufs = 63;  // of a pool of their own
};

class World {
 public:
  explicit World(const WorldSettings& settings = {});
  // Stops the worker and checks that every mbuf is back.
  ~World();

  // Control. Ports 0 .. 2 have interfaces port0 .. port2 (MAC 02:00:00:00:00:01 .. 03, MTU 1500, up) from the
  // start.
  uint32_t port(uint16_t number) const { return port_ifindex_[number]; }
  uint32_t add_vlan(uint16_t port, uint16_t outer, uint16_t inner = 0, uint16_t protocol = 0x8100,
                    uint32_t mtu = 0, Netns* netns = nullptr);
  uint32_t add_dummy();
  // The interface's only address: local and connected route, as the control thread makes them.
  void set_address(uint32_t ifindex, const char* prefix);
  // One more address, of either family, with a local and a connected route; a link-local one has neither.
  void add_address(uint32_t ifindex, const char* prefix, uint8_t flags = 0);
  void add_addresses(uint32_t ifindex, std::span<const InterfaceAddress> more);
  void set_route(const char* prefix, const RouteValue& value, Netns* netns = nullptr);
  void set_route6(const char* prefix, const RouteValue6& value, Netns* netns = nullptr);
  void erase_route(const char* prefix);
  void set_neighbour(uint32_t ifindex, Ipv4 address, Mac mac,
                     NeighbourState state = NeighbourState::kPermanent);
  void set_neighbour(uint32_t ifindex, Ipv6 address, Mac mac,
                     NeighbourState state = NeighbourState::kPermanent);
  // Two ends, up, with MACs 02:00:00:00:01:01 and so on.
  std::array<uint32_t, 2> add_veth(Netns* left = nullptr, Netns* right = nullptr);
  void set_unnumbered(uint32_t ifindex, uint32_t lender);
  void set_flag(uint32_t ifindex, uint32_t setting, bool on = true) {
    table().set_flag(ifindex, setting, on);
  }
  void remove_neighbour(uint32_t ifindex, Ipv4 address);
  void set_up(uint32_t ifindex, bool up) { table().set_admin_up(ifindex, up); }
  // With the routes through it, as the control thread does, or without them, as workers may meet it for a
  // moment.
  void retire(uint32_t ifindex, bool with_routes = true);
  // Lets the worker pass quiescent states until everything retired is reclaimed; false when that does not
  // happen.
  bool reclaimed();
  void withdraw_port(uint16_t port);
  Netns& add_netns();

  // Devices.
  void put(uint16_t port, const Bytes& frame) { put_segments(port, {frame}); }
  void put_segments(uint16_t port, const std::vector<Bytes>& segments, uint16_t headroom = 128);
  std::optional<Bytes> take(uint16_t port);
  // Frames that left by the port.
  std::vector<Bytes> take_all(uint16_t port);

  // Worker. Every step checks the balance.
  void step();
  void pass(uint64_t ms);  // time, then a step
  // What one frame came to: put, step.
  DropReason dropped(uint16_t port, const Bytes& frame);            // count: it was not
  Bytes forwarded(uint16_t port, const Bytes& frame, uint16_t to);  // empty: it did not leave there alone
  void stop_worker();
  // From now on the worker runs on a thread of its own, in its own time, until stop_worker(): step() and what
  // calls it are not for this world any more.
  void start_thread();
  Totals published() const;

  std::optional<WorkerMessage> heard();
  void tell(ControlMessage::Type type, uint32_t ifindex, Ipv4 address, Mac mac = 0, Ipv4 source = 0);

  void tell(ControlMessage::Type type, uint32_t ifindex, IpAddress address, Mac mac, IpAddress source);

  InterfaceTable& table() { return *table_; }
  const Interface& interface(uint32_t ifindex) { return table_->interface(ifindex); }
  Netns& netns() { return *netns_; }
  const Totals& totals() const { return statistics_->totals; }
  uint64_t drops(DropReason reason) const { return totals().drops[static_cast<size_t>(reason)]; }
  // To be driven without any of the checks.
  Worker& worker() { return *worker_; }
  WorkerStatistics& statistics() { return *statistics_; }
  uint64_t dropped_by(uint32_t ifindex, DropReason reason);
  uint32_t mbufs_in_use() const;  // of frames put in: not yet sent or dropped
  uint64_t references(uint32_t ifindex) { return table_->references(0)[ifindex].load(); }
  Neighbours& neighbours() { return *neighbours_; }
  uint64_t now_ns() const { return now_ns_; }
  MessageRing<WorkerMessage>& to_control() { return to_control_; }

 private:
  uint32_t create(InterfaceSpec spec, const char* kind);
  void set(Netns& netns, const Ipv4Prefix& prefix, const RouteValue& value);
  void set6(Netns& netns, const Ipv6Prefix& prefix, const RouteValue6& value);
  void enter_neighbour(uint32_t ifindex, IpAddress address, Mac mac, NeighbourState state);
  void commit(Netns& netns);
  void publish_queues(const QueueList& list);
  void erase_routes(uint32_t oif);  // kNoInterface: all of them
  void check_sums();

  rte_mempool* pool_;
  rte_mempool* originate_pool_;
  BlockPools& blocks_;
  Reclaim& reclaim_;
  std::unique_ptr<RouteTable> routes_;
  std::unique_ptr<InterfaceTable> table_;
  std::unique_ptr<Neighbours> neighbours_;
  std::unique_ptr<Netns> netns_;
  std::vector<std::unique_ptr<Netns>> more_netns_;
  std::unique_ptr<WorkerStatistics> statistics_;
  std::unique_ptr<QueueList> queue_list_;
  std::vector<std::unique_ptr<QueueList>> old_lists_;
  PublishedQueueList queues_;
  MessageRing<WorkerMessage> to_control_;
  MessageRing<ControlMessage> from_control_;
  std::unique_ptr<Worker> worker_;
  std::array<uint32_t, kRingPorts> port_ifindex_{};
  struct SetRoute {
    Netns* netns;
    Ipv4Prefix prefix;
    uint32_t oif;
  };
  std::vector<SetRoute> routes_set_;
  struct SetRoute6 {
    Netns* netns;
    Ipv6Prefix prefix;
    uint32_t oif;
  };
  std::vector<SetRoute6> routes6_set_;
  uint32_t veths_ = 0;
  uint64_t now_ns_ = 5 * kNsPerSecond;
  bool interface_lost_ = false;
  bool running_ = false;
  std::thread thread_;
  std::atomic<bool> stop_{false};
};

}  // namespace mayfly::testing
