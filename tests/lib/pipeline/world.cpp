// SPDX-License-Identifier: BSD-3-Clause
#include "world.hpp"

#include <gtest/gtest.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include <algorithm>

#include "base/check.hpp"

namespace mayfly::testing {
namespace {

constexpr uint32_t kInterfaceLimit = 256;
constexpr uint64_t kStepNs = 1'000;

TeardownConfig quick_teardown() {
  TeardownConfig config;
  config.workers = 1;
  config.nice = 0;
  return config;
}

// As in the daemon there is one of each in the process.
BlockPools& block_pools() {
  static BlockPools pools(size_t{16} << 20);
  return pools;
}

Reclaim& started_reclaim() {
  struct Started {
    Started() { MAYFLY_CHECK(reclaim.start().has_value(), "teardown did not start"); }
    ~Started() { reclaim.stop(10 * kNsPerSecond); }
    Reclaim reclaim{quick_teardown()};
  };
  block_pools();
  static Started started;
  return started.reclaim;
}

InterfaceSpec spec_of(const std::string& name, Netns* netns) {
  InterfaceSpec spec;
  spec.name = name;
  spec.netns = netns;
  spec.up = true;
  return spec;
}

void set_value(KindValues& values, const KindDescription& kind, std::string_view word, uint16_t to) {
  for (size_t i = 0; i < kind.parameters.size(); ++i)
    if (kind.parameters[i].word == word) values.set(i, to);
}

}  // namespace

World::World(const WorldSettings& settings)
    : pool_(ring_ports().pool), blocks_(block_pools()), reclaim_(started_reclaim()) {
  originate_pool_ = rte_pktmbuf_pool_create("test_originate", settings.originate_mbufs, 0, 0,
                                            RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
  MAYFLY_CHECK(originate_pool_ != nullptr, "no memory for mbufs");
  routes_ = std::make_unique<RouteTable>(1024);
  neighbours_ = std::make_unique<Neighbours>(blocks_);
  table_ = std::move(*InterfaceTable::create(kInterfaceLimit, 1, blocks_, *neighbours_));
  netns_ = std::make_unique<Netns>("default", blocks_, *routes_);
  statistics_ = std::make_unique<WorkerStatistics>();
  QueueList list{};
  for (uint16_t number = 0; number < kRingPorts; ++number) {
    const std::string name = fmt::format("port{}", number);
    InterfaceSpec spec = spec_of(name, netns_.get());
    spec.mtu = 1500;
    spec.mac = 0x020000000001 + number;
    spec.port = number;
    port_ifindex_[number] = create(spec, "port");
    list.rx[list.rx_count++] = {.port = number, .queue = 0, .ifindex = port_ifindex_[number]};
    list.tx[number] = {.queue = 0, .ifindex = port_ifindex_[number]};
  }
  publish_queues(list);
  worker_ = std::make_unique<Worker>(0, WorkerSettings{.table = *table_,
                                                       .queues = queues_,
                                                       .to_control = to_control_,
                                                       .from_control = from_control_,
                                                       .pool = originate_pool_,
                                                       .parked_limit = settings.parked_limit,
                                                       .statistics = *statistics_});
  worker_->enter(now_ns_);
  running_ = true;
}

World::~World() {
  stop_worker();
  for (uint16_t number = 0; number < kRingPorts; ++number) {
    take_all(number);
    void* unread = nullptr;
    while (rte_ring_dequeue(ring_ports().received[number], &unread) == 0)
      rte_pktmbuf_free(static_cast<rte_mbuf*>(unread));
  }
  erase_routes(kNoInterface);
  for (uint32_t ifindex = table_->next(1), next; ifindex != kNoInterface; ifindex = next) {
    next = table_->next(ifindex + 1);
    if (interface(ifindex).tag_bytes != 0) retire(ifindex);
  }
  while (const uint32_t ifindex = table_->next(1)) retire(ifindex);
  EXPECT_TRUE(reclaimed());
  EXPECT_EQ(table_->in_use(), 0u);
  EXPECT_EQ(rte_mempool_avail_count(pool_), kMbufs) << "an mbuf was lost";
  EXPECT_TRUE(rte_mempool_full(originate_pool_)) << "an mbuf of ours was lost";
  rte_mempool_free(originate_pool_);
}

uint32_t World::mbufs_in_use() const {
  return kMbufs - rte_mempool_avail_count(pool_);
}

uint32_t World::create(InterfaceSpec spec, const char* kind) {
  spec.kind = *find_kind(kind);
  const auto ifindex = table_->claim(spec);
  MAYFLY_CHECK(ifindex.has_value(), "the test's interface was refused");
  table_->commit(*ifindex);
  return *ifindex;
}

uint32_t World::add_vlan(uint16_t port, uint16_t outer, uint16_t inner, uint16_t protocol, uint32_t mtu,
                         Netns* netns) {
  const std::string name = fmt::format("{}.{:x}.{}.{}", port, protocol, outer, inner);
  InterfaceSpec spec = spec_of(name, netns != nullptr ? netns : netns_.get());
  spec.parent = port_ifindex_[port];
  spec.mtu = mtu;
  const KindDescription& kind = interface_kinds()[*find_kind("vlan")]->description();
  set_value(spec.values, kind, "id", outer);
  set_value(spec.values, kind, "protocol", protocol);
  if (inner != 0) set_value(spec.values, kind, "inner", inner);
  return create(spec, "vlan");
}

uint32_t World::add_dummy() {
  return create(spec_of("dummy0", netns_.get()), "dummy");
}

Netns& World::add_netns() {
  more_netns_.push_back(std::make_unique<Netns>("more", blocks_, *routes_));
  return *more_netns_.back();
}

void World::set(Netns& netns, const Ipv4Prefix& prefix, const RouteValue& value) {
  MAYFLY_CHECK(netns.fib.set(prefix, value).has_value(), "no memory for a route");
  routes_set_.push_back({&netns, prefix, value.oif});
}

void World::commit(Netns& netns) {
  RetireList list;
  netns.fib.commit(list);
  netns.fib6.commit(list);
  reclaim_.submit(list);
}

void World::set_address(uint32_t ifindex, const char* prefix) {
  const Ipv4Prefix given = *parse_prefix("test", prefix);
  Interface& interface = table_->interface(ifindex);
  Netns& netns = *interface.netns.own();
  RetireList list;
  auto* addresses = blocks_.allocate<AddressList>(sizeof(InterfaceAddress));
  addresses->count = 1;
  addresses->entries[0] = {IpAddress(given.address), given.length, 0};
  addresses->count_kinds();
  if (AddressList* old = interface.addresses.own(); old != nullptr) blocks_.retire(old->retired, list);
  interface.addresses.publish(addresses);
  reclaim_.submit(list);
  const Ipv4Prefix network{given.network(), given.length};
  const Ipv4 last = given.address | ~prefix_mask(given.length);
  set(netns, network, {.oif = ifindex});
  set(netns, {given.address, 32}, {.oif = ifindex, .type = RouteType::kLocal});
  if (given.length < 31) set(netns, {last, 32}, {.oif = ifindex, .type = RouteType::kBroadcast});
  commit(netns);
}

void World::set_route(const char* prefix, const RouteValue& value, Netns* netns) {
  Netns& in = netns != nullptr ? *netns : *netns_;
  set(in, *parse_prefix("test", prefix), value);
  commit(in);
}

void World::erase_route(const char* prefix) {
  MAYFLY_CHECK(netns_->fib.erase(*parse_prefix("test", prefix)).has_value(), "no memory for a route");
  commit(*netns_);
}

void World::set6(Netns& netns, const Ipv6Prefix& prefix, const RouteValue6& value) {
  MAYFLY_CHECK(netns.fib6.set(prefix, value).has_value(), "no memory for a route");
  routes6_set_.push_back({&netns, prefix, value.oif});
}

void World::set_route6(const char* prefix, const RouteValue6& value, Netns* netns) {
  Netns& in = netns != nullptr ? *netns : *netns_;
  set6(in, parse_ip_prefix("test", prefix)->v6(), value);
  commit(in);
}

void World::add_address(uint32_t ifindex, const char* prefix, uint8_t flags) {
  const IpPrefix given = *parse_ip_prefix("test", prefix);
  const InterfaceAddress entry{given.address, given.length, flags};
  add_addresses(ifindex, {&entry, 1});
}

void World::add_addresses(uint32_t ifindex, std::span<const InterfaceAddress> more) {
  Interface& interface = table_->interface(ifindex);
  Netns& netns = *interface.netns.own();
  AddressList* const old = interface.addresses.own();
  const uint32_t count = old == nullptr ? 0 : old->count;
  auto* addresses = blocks_.allocate<AddressList>((count + more.size()) * sizeof(InterfaceAddress));
  if (old != nullptr) std::copy(old->entries, old->entries + count, addresses->entries);
  std::copy(more.begin(), more.end(), addresses->entries + count);
  addresses->count = count + static_cast<uint32_t>(more.size());
  addresses->count_kinds();
  interface.addresses.publish(addresses);
  RetireList list;
  if (old != nullptr) blocks_.retire(old->retired, list);
  reclaim_.submit(list);
  for (const InterfaceAddress& entry : more) {
    const IpPrefix given = entry.prefix();
    if (given.is_v4()) {
      if (given.length < 32) set(netns, {given.v4().network(), given.length}, {.oif = ifindex});
      if (entry.usable()) set(netns, {given.address.v4(), 32}, {.oif = ifindex, .type = RouteType::kLocal});
    } else if (!is_link_local(given.address.v6())) {
      if (given.length < 128)
        set6(netns, {given.v6().network(), given.length}, {.oif = ifindex, .gateway = {}});
      if (entry.usable())
        set6(netns, {given.address.v6(), 128}, {.oif = ifindex, .type = RouteType::kLocal, .gateway = {}});
    }
  }
  commit(netns);
}

std::array<uint32_t, 2> World::add_veth(Netns* left, Netns* right) {
  const std::string name = fmt::format("veth{}", veths_);
  const std::string peer = fmt::format("veth{}", veths_ + 1);
  InterfaceSpec spec = spec_of(name, left != nullptr ? left : netns_.get());
  spec.mac = 0x020000000101 + veths_;
  spec.peer = PeerSpec{.name = peer,
                       .netns = right != nullptr ? right : netns_.get(),
                       .mac = 0x020000000102 + veths_,
                       .up = true};
  veths_ += 2;
  const uint32_t ifindex = create(spec, "veth");
  return {ifindex, table_->peer(ifindex)};
}

void World::set_unnumbered(uint32_t ifindex, uint32_t lender) {
  table_->interface(ifindex).unnumbered_id.store(interface(lender).id);
  table_->interface(ifindex).unnumbered.store(lender);
}

void World::erase_routes(uint32_t oif) {
  std::erase_if(routes6_set_, [&](const SetRoute6& route) {
    if (oif != kNoInterface && route.oif != oif) return false;
    MAYFLY_CHECK(route.netns->fib6.erase(route.prefix).has_value(), "no memory for a route");
    return true;
  });
  std::erase_if(routes_set_, [&](const SetRoute& route) {
    if (oif != kNoInterface && route.oif != oif) return false;
    MAYFLY_CHECK(route.netns->fib.erase(route.prefix).has_value(), "no memory for a route");
    return true;
  });
  commit(*netns_);
  for (const auto& netns : more_netns_) commit(*netns);
}

void World::set_neighbour(uint32_t ifindex, Ipv4 address, Mac mac, NeighbourState state) {
  enter_neighbour(ifindex, IpAddress(address), mac, state);
}

void World::set_neighbour(uint32_t ifindex, Ipv6 address, Mac mac, NeighbourState state) {
  enter_neighbour(ifindex, IpAddress(address), mac, state);
}

void World::enter_neighbour(uint32_t ifindex, IpAddress address, Mac mac, NeighbourState state) {
  Interface& interface = table_->interface(ifindex);
  RetireList list;
  if (state == NeighbourState::kIncomplete) {
    MAYFLY_CHECK(neighbours_->resolve(interface.neighbours, ifindex, address, now_ns_, list).has_value(),
                 "the test's neighbour was refused");
  } else {
    const NeighbourInfo info{.address = address, .mac = mac, .state = state, .protocol = 4};
    MAYFLY_CHECK(
        neighbours_->add(interface.neighbours, ifindex, info, NeighbourAdd::create_replace(), now_ns_, list)
            .has_value(),
        "the test's neighbour was refused");
  }
  reclaim_.submit(list);
}

void World::remove_neighbour(uint32_t ifindex, Ipv4 address) {
  RetireList list;
  MAYFLY_CHECK(
      neighbours_->remove(table_->interface(ifindex).neighbours, IpAddress(address), list).has_value(),
      "the test's neighbour is not there");
  reclaim_.submit(list);
}

void World::retire(uint32_t ifindex, bool with_routes) {
  interface_lost_ = true;
  if (with_routes) erase_routes(ifindex);
  RetireList list;
  neighbours_->detach(table_->interface(ifindex).neighbours);
  table_->retire(ifindex, list);
  reclaim_.submit(list);
}

bool World::reclaimed() {
  const uint32_t barrier = reclaim_.barrier();
  const Deadline limit = Deadline::after_ns(10 * kNsPerSecond);
  while (!reclaim_.barrier_passed(barrier)) {
    if (limit.over()) return false;
    if (running_) step();
    reclaim_.collect(Deadline::never());
  }
  return true;
}

void World::publish_queues(const QueueList& list) {
  auto next = std::make_unique<QueueList>(list);
  queues_.publish(next.get());
  if (queue_list_) old_lists_.push_back(std::move(queue_list_));
  queue_list_ = std::move(next);
}

void World::withdraw_port(uint16_t port) {
  QueueList list = *queue_list_;
  const auto end = std::remove_if(list.rx.begin(), list.rx.begin() + list.rx_count,
                                  [&](const QueueList::RxQueue& queue) { return queue.port == port; });
  list.rx_count = static_cast<uint32_t>(end - list.rx.begin());
  list.tx[port] = {};
  publish_queues(list);
}

void World::put_segments(uint16_t port, const std::vector<Bytes>& segments, uint16_t headroom) {
  rte_mbuf* first = nullptr;
  for (const Bytes& segment : segments) {
    rte_mbuf* mbuf = rte_pktmbuf_alloc(pool_);
    MAYFLY_CHECK(mbuf != nullptr, "the test ran out of mbufs");
    if (first == nullptr) mbuf->data_off = headroom;
    char* at = rte_pktmbuf_append(mbuf, static_cast<uint16_t>(segment.size()));
    MAYFLY_CHECK(at != nullptr, "the test's frame is too long");
    std::copy(segment.begin(), segment.end(), at);
    if (first == nullptr)
      first = mbuf;
    else
      MAYFLY_CHECK(rte_pktmbuf_chain(first, mbuf) == 0, "the test's frame has too many segments");
  }
  MAYFLY_CHECK(rte_ring_enqueue(ring_ports().received[port], first) == 0, "the test's device is full");
}

std::optional<Bytes> World::take(uint16_t port) {
  void* taken = nullptr;
  if (rte_ring_dequeue(ring_ports().sent[port], &taken) != 0) return std::nullopt;
  auto* mbuf = static_cast<rte_mbuf*>(taken);
  const char* reason = nullptr;
  EXPECT_EQ(rte_mbuf_check(mbuf, 1, &reason), 0) << reason;
  Bytes frame;
  for (const rte_mbuf* segment = mbuf; segment != nullptr; segment = segment->next) {
    const auto* data = rte_pktmbuf_mtod(segment, const uint8_t*);
    frame.insert(frame.end(), data, data + segment->data_len);
  }
  EXPECT_EQ(frame.size(), mbuf->pkt_len);
  rte_pktmbuf_free(mbuf);
  return frame;
}

std::vector<Bytes> World::take_all(uint16_t port) {
  std::vector<Bytes> frames;
  while (auto frame = take(port)) frames.push_back(std::move(*frame));
  return frames;
}

void World::step() {
  now_ns_ += kStepNs;
  worker_->step(now_ns_);
  ASSERT_EQ(totals().difference(), 0);
  check_sums();
}

void World::pass(uint64_t ms) {
  now_ns_ += ms * kNsPerMs;
  step();
}

// What the interfaces counted is what the worker counted, as long as none of them was deleted.
void World::check_sums() {
  if (interface_lost_) return;
  InterfaceSums all;
  for (uint32_t ifindex = table_->next(1); ifindex != kNoInterface; ifindex = table_->next(ifindex + 1)) {
    const InterfaceSums sums = table_->sums(ifindex);
    all.rx_packets += sums.rx_packets;
    all.rx_bytes += sums.rx_bytes;
    all.tx_packets += sums.tx_packets;
    all.tx_bytes += sums.tx_bytes;
    all.rx_dropped += sums.rx_dropped + sums.tx_dropped;
  }
  EXPECT_EQ(all.rx_packets, totals().rx);
  EXPECT_EQ(all.rx_bytes, totals().rx_bytes);
  EXPECT_EQ(all.tx_packets, totals().tx);
  EXPECT_EQ(all.tx_bytes, totals().tx_bytes);
  EXPECT_EQ(all.rx_dropped, totals().dropped());
}

DropReason World::dropped(uint16_t port, const Bytes& frame) {
  const auto before = totals().drops;
  put(port, frame);
  step();
  for (size_t i = 0; i < kDropReasons; ++i)
    if (totals().drops[i] != before[i]) return static_cast<DropReason>(i);
  return DropReason::count;
}

Bytes World::forwarded(uint16_t port, const Bytes& frame, uint16_t to) {
  put(port, frame);
  step();
  Bytes result;
  for (uint16_t number = 0; number < kRingPorts; ++number) {
    const std::vector<Bytes> frames = take_all(number);
    if (number == to && frames.size() == 1)
      result = frames[0];
    else
      EXPECT_TRUE(frames.empty()) << "port " << number << " sent " << frames.size();
  }
  return result;
}

void World::stop_worker() {
  if (thread_.joinable()) {
    stop_.store(true);
    thread_.join();
  } else if (running_) {
    worker_->leave();
  } else {
    return;
  }
  running_ = false;
  EXPECT_EQ(totals().difference(), 0);
  EXPECT_EQ(published().rx, totals().rx);
  EXPECT_EQ(published().difference(), 0);
}

void World::start_thread() {
  worker_->leave();
  running_ = false;
  thread_ = std::thread([this] { worker_->run(stop_); });
}

Totals World::published() const {
  Totals totals;
  EXPECT_TRUE(statistics_->published.read(&totals));
  return totals;
}

std::optional<WorkerMessage> World::heard() {
  WorkerMessage message;
  if (!to_control_.pop(&message)) return std::nullopt;
  return message;
}

void World::tell(ControlMessage::Type type, uint32_t ifindex, Ipv4 address, Mac mac, Ipv4 source) {
  tell(type, ifindex, IpAddress(address), mac, IpAddress(source));
}

void World::tell(ControlMessage::Type type, uint32_t ifindex, IpAddress address, Mac mac, IpAddress source) {
  ASSERT_TRUE(from_control_.push({.type = type,
                                  .ifindex = ifindex,
                                  .id = interface(ifindex).id,
                                  .mac = mac,
                                  .address = address,
                                  .source = source}));
}

uint64_t World::dropped_by(uint32_t ifindex, DropReason reason) {
  uint64_t packets = 0;
  statistics_->drops.for_each([&](uint64_t id, uint32_t, DropReason why, uint64_t count) {
    if (id == interface(ifindex).id && why == reason) packets += count;
  });
  return packets;
}

}  // namespace mayfly::testing
