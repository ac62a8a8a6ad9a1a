// SPDX-License-Identifier: BSD-3-Clause
// Random frames through a random network, against the slow model: what leaves, byte by byte, and every
// reason.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "base/seed.hpp"
#include "model.hpp"
#include "world.hpp"

namespace mayfly::testing {
namespace {

constexpr int kNetworks = 12;
constexpr int kBursts = 60;
constexpr uint64_t kStepNs = 1'000;  // what a step of the world takes

class RandomNetwork {
 public:
  explicit RandomNetwork(std::mt19937_64& random)
      : random_(random), world_({.parked_limit = 512, .originate_mbufs = 1023}) {
    Netns& other = world_.add_netns();
    netns_ = {nullptr, &other};
    for (uint16_t port = 0; port < kRingPorts; ++port) add(world_.port(port), port, {}, 0);
    for (uint16_t i = 0; i < 12; ++i) add_vlan();
    add(world_.add_dummy(), -1, {}, 0);
    give_addresses();
    for (int i = 0; i < 20; ++i) add_route();
    for (int i = 0; i < 12; ++i) add_route6();
  }

  void run_burst() {
    const auto count = below(3) == 0 ? 1 + below(64) : 1 + below(5);
    const auto port = static_cast<uint16_t>(below(kRingPorts));
    std::vector<Bytes> frames;
    for (uint64_t i = 0; i < count; ++i) {
      frames.push_back(random_frame(port));
      world_.put(port, frames.back());
    }
    Expected expected;
    for (const Outcome& outcome : model_.receive(port, frames, world_.now_ns() + kStepNs))
      expected.add(outcome);
    compare(expected);
    if (below(4) == 0) resolve_one();
    if (below(6) == 0) toggle_one();
  }

 private:
  // What all frames of a burst came to; answers may overtake, so the order is not compared.
  struct Expected {
    std::array<std::vector<std::string>, kRingPorts> sent;
    std::array<uint64_t, kDropReasons> drops{};
    uint64_t tx = 0;
    uint64_t punted = 0;

    void add(const Outcome& outcome) {
      if (outcome.kind == Outcome::Kind::dropped) ++drops[static_cast<size_t>(outcome.reason)];
      if (outcome.displaced) ++drops[static_cast<size_t>(DropReason::neighbour_queue_full)];
      if (outcome.kind == Outcome::Kind::punted) ++punted;
      if (outcome.kind == Outcome::Kind::sent)
        sent[static_cast<size_t>(outcome.port)].push_back(hex(outcome.frame));
      if (outcome.kind == Outcome::Kind::sent || outcome.kind == Outcome::Kind::swallowed) ++tx;
    }
  };

  uint64_t below(uint64_t limit) { return random_() % limit; }
  template <class T>
  const T& any(const std::vector<T>& list) {
    return list[below(list.size())];
  }

  void compare(Expected& expected) {
    const Totals before = world_.totals();
    world_.step();
    for (uint16_t port = 0; port < kRingPorts; ++port) {
      std::vector<std::string> sent;
      for (const Bytes& frame : world_.take_all(port)) sent.push_back(hex(frame));
      std::sort(sent.begin(), sent.end());
      std::sort(expected.sent[port].begin(), expected.sent[port].end());
      std::vector<std::string> missing, surplus;
      std::ranges::set_difference(expected.sent[port], sent, std::back_inserter(missing));
      std::ranges::set_difference(sent, expected.sent[port], std::back_inserter(surplus));
      ASSERT_TRUE(missing.empty() && surplus.empty())
          << "port " << port << "\nmissing " << fmt::format("{}", fmt::join(missing, "\n        "))
          << "\nsurplus " << fmt::format("{}", fmt::join(surplus, "\n        "));
    }
    for (size_t i = 0; i < kDropReasons; ++i)
      ASSERT_EQ(world_.totals().drops[i] - before.drops[i], expected.drops[i])
          << describe(static_cast<DropReason>(i)).name;
    ASSERT_EQ(world_.totals().tx - before.tx, expected.tx);
    ASSERT_EQ(world_.totals().punted - before.punted, expected.punted);
    ASSERT_EQ(world_.totals().parked, model_.parked());
    const std::array errors = {world_.totals().icmp_errors_sent, world_.totals().icmp_errors_limited,
                               world_.totals().icmp_errors_unsent};
    ASSERT_EQ(errors, (std::array{model_.errors_sent, model_.errors_limited, model_.errors_unsent}));
    while (world_.heard()) {
    }
  }

  void add(uint32_t ifindex, int port, const std::vector<Tag>& tags, int netns) {
    const Interface& interface = world_.interface(ifindex);
    model_.interfaces.push_back({.ifindex = ifindex,
                                 .port = port,
                                 .tags = tags,
                                 .mac = interface.mac.load(),
                                 .mtu = interface.mtu.load(),
                                 .netns = netns});
  }

  void add_vlan() {
    const auto port = static_cast<uint16_t>(below(kRingPorts));
    const auto outer = static_cast<uint16_t>(1 + below(3));
    const auto inner = static_cast<uint16_t>(below(3));
    const uint16_t protocol = below(2) == 0 ? 0x8100 : 0x88a8;
    std::vector<Tag> tags = {{protocol, outer}};
    if (inner != 0) tags.push_back({0x8100, inner});
    for (const ModelInterface& interface : model_.interfaces)
      if (interface.port == port && interface.tags.size() == tags.size() &&
          interface.tags[0].protocol == protocol && interface.tags[0].control == outer &&
          (inner == 0 || interface.tags[1].control == inner))
        return;
    const int netns = below(4) == 0 ? 1 : 0;
    const uint32_t mtu = below(3) == 0 ? 100 : 0;
    add(world_.add_vlan(port, outer, inner, protocol, mtu, netns_[static_cast<size_t>(netns)]), port, tags,
        netns);
  }

  void give_addresses() {
    for (size_t i = 0; i < model_.interfaces.size(); ++i) {
      if (below(5) == 0) continue;
      ModelInterface& interface = model_.interfaces[i];
      const Ipv4 own = ip("10.0.0.1") + (static_cast<uint32_t>(i) << 16);
      world_.set_address(interface.ifindex, fmt::format("{}/24", format_ipv4(own)).c_str());
      interface.addresses.push_back(own);
      model_.routes.push_back({interface.netns, {own & ~0xffu, 24}, {.oif = interface.ifindex}});
      model_.routes.push_back(
          {interface.netns, {own, 32}, {.oif = interface.ifindex, .type = RouteType::kLocal}});
      model_.routes.push_back(
          {interface.netns, {own | 0xff, 32}, {.oif = interface.ifindex, .type = RouteType::kBroadcast}});
      for (uint32_t host = 2; host < 6; ++host) {
        addresses_.push_back(own + host);
        if (below(2) == 0) learn(interface, own + host);
      }
      addresses_.push_back(own);
      addresses_.push_back(own | 0xff);
    }
    for (size_t i = 0; i < model_.interfaces.size(); ++i) {
      ModelInterface& interface = model_.interfaces[i];
      addresses6_.push_back(link_local_of(interface.mac));
      if (below(5) == 0) continue;
      const Ipv6 own{0x2001'0db8'0000'0000 | i, 1};
      world_.add_address(interface.ifindex, fmt::format("{}/64", format_ipv6(own)).c_str());
      interface.addresses6.push_back(own);
      model_.routes6.push_back(
          {interface.netns, {{own.high, 0}, 64}, {.oif = interface.ifindex, .gateway = {}}});
      model_.routes6.push_back({interface.netns,
                                {own, 128},
                                {.oif = interface.ifindex, .type = RouteType::kLocal, .gateway = {}}});
      for (uint64_t host = 2; host < 6; ++host) {
        addresses6_.push_back({own.high, host});
        if (below(2) == 0) learn(interface, IpAddress(Ipv6{own.high, host}));
      }
      addresses6_.push_back(own);
    }
  }

  static Mac mac_of(IpAddress address) { return 0x0a0000000000 | (address.v6().low & 0xffffffff); }

  void learn(ModelInterface& interface, Ipv4 address) { learn(interface, IpAddress(address)); }
  void learn(ModelInterface& interface, IpAddress address) {
    if (address.is_v4())
      world_.set_neighbour(interface.ifindex, address.v4(), mac_of(address));
    else
      world_.set_neighbour(interface.ifindex, address.v6(), mac_of(address));
    interface.neighbours[address] = mac_of(address);
  }

  void add_route6() {
    const auto length = static_cast<uint8_t>(below(3) == 0 ? 3 : 33 + below(96));
    Ipv6 address{0x2001'0db9'0000'0000 | below(4) << 28, random_()};
    address = Ipv6Prefix{address, length}.network();
    const ModelInterface& by = any(model_.interfaces);
    RouteValue6 value{.oif = by.ifindex, .gateway = below(2) == 0 ? Ipv6{} : any(addresses6_)};
    const RouteType special[] = {RouteType::kBlackhole, RouteType::kUnreachable, RouteType::kProhibit};
    if (below(4) == 0) value = {.type = special[below(3)], .gateway = {}};
    world_.set_route6(fmt::format("{}/{}", format_ipv6(address), length).c_str(), value,
                      netns_[static_cast<size_t>(by.netns)]);
    model_.routes6.push_back({by.netns, {address, length}, value});
    addresses6_.push_back({address.high, address.low | below(1000)});
  }

  void add_route() {
    const auto length = static_cast<uint8_t>(below(3) == 0 ? below(9) : 8 + below(25));
    const Ipv4 address = (ip("20.0.0.0") | static_cast<uint32_t>(below(1u << 28))) & prefix_mask(length);
    const ModelInterface& by = any(model_.interfaces);
    RouteValue value{.oif = by.ifindex, .gateway = below(2) == 0 ? 0 : any(addresses_)};
    const RouteType special[] = {RouteType::kBlackhole, RouteType::kUnreachable, RouteType::kProhibit};
    if (below(4) == 0) value = {.type = special[below(3)]};
    const int netns = by.netns;
    const std::string text = fmt::format("{}/{}", format_ipv4(address), length);
    world_.set_route(text.c_str(), value, netns_[static_cast<size_t>(netns)]);
    model_.routes.push_back({netns, {address, length}, value});
    addresses_.push_back(address | static_cast<uint32_t>(below(1000)));
  }

  void resolve_one() {
    const auto waiting = model_.waiting();
    if (waiting.empty()) return;
    const auto [ifindex, address] = any(waiting);
    const Ipv6 whole = address.v6();
    if (!address.is_v4() && (whole.high == 0 || is_multicast(whole)))
      return;  // control has no such neighbours
    for (ModelInterface& interface : model_.interfaces)
      if (interface.ifindex == ifindex) {
        if (!interface.up ||
            !world_.interface(world_.port(static_cast<uint16_t>(interface.port))).live_and_up())
          return;
        learn(interface, address);
      }
    Expected expected;
    for (const Outcome& outcome : model_.resolve(ifindex, address, mac_of(address))) expected.add(outcome);
    world_.tell(ControlMessage::Type::neighbour_resolved, ifindex, address, 0, {});
    compare(expected);
  }

  // Only interfaces that nothing waits on: what is parked there would be dropped by the next tick.
  void toggle_one() {
    ModelInterface& interface = model_.interfaces[below(model_.interfaces.size())];
    if (model_.parked() != 0 || interface.tags.empty()) return;
    interface.up = !interface.up;
    world_.set_up(interface.ifindex, interface.up);
  }

  Bytes random_packet(const ModelInterface& interface) {
    Ipv4Fields fields{.source = any(addresses_),
                      .destination = any(addresses_),
                      .ttl = static_cast<uint8_t>(below(8) == 0 ? below(3) : below(256)),
                      .payload = Bytes(below(below(4) == 0 ? 1200 : 60), static_cast<uint8_t>(random_()))};
    if (below(10) == 0) fields.source = static_cast<uint32_t>(random_());
    if (below(10) == 0) fields.destination = static_cast<uint32_t>(random_());
    if (below(6) == 0) fields.options = Bytes(4 * below(11), 1);
    if (below(10) == 0) fields.fragment = static_cast<uint16_t>(random_());
    if (below(3) == 0 && !interface.addresses.empty()) {
      fields.destination = interface.addresses[0];
      fields.protocol = 1;
      fields.payload = icmp_echo(below(6) == 0 ? 3 : 8, static_cast<uint16_t>(random_()), fields.payload);
    }
    return ipv4(fields);
  }

  Bytes random_packet6(const ModelInterface& interface) {
    Ipv6Fields fields{.source = any(addresses6_),
                      .destination = any(addresses6_),
                      .hop_limit = static_cast<uint8_t>(below(8) == 0 ? below(3) : below(256)),
                      .payload = Bytes(below(below(4) == 0 ? 1400 : 60), static_cast<uint8_t>(random_()))};
    const Ipv6 odd[] = {{},
                        {0, 1},
                        {0, 0xffff'0a00'0001},
                        ip6("ff02::1"),
                        ip6("ff02::2"),
                        ip6("ff05::2"),
                        ip6("fe80::77"),
                        link_local_of(interface.mac)};
    if (below(10) == 0) fields.source = odd[below(8)];
    if (below(8) == 0) fields.destination = odd[below(8)];
    const Ipv6 own = interface.addresses6.empty() || below(3) == 0 ? link_local_of(interface.mac)
                                                                   : interface.addresses6[0];
    if (below(4) == 0) fields.destination = own;
    if (below(8) == 0) {
      const uint8_t chains[] = {0, 43, 44, 60, 58, 59, 6};
      fields.next_header = chains[below(7)];
      for (uint8_t& octet : fields.payload)
        octet = static_cast<uint8_t>(below(2) == 0 ? 0 : chains[below(7)]);
      return ipv6(fields);
    }
    if (below(5) == 0) {
      const Ipv6 target = below(4) == 0 ? any(addresses6_) : own;
      const Ipv6 source = below(5) == 0 ? Ipv6{} : fields.source;
      return nd(135, source, below(3) == 0 ? target : solicited_node_of(target), target,
                below(5) == 0 ? 0 : random_() & 0xffffffffffff);
    }
    if (below(3) == 0) return echo6(fields, below(6) == 0 ? 3 : 128, static_cast<uint16_t>(random_()));
    return ipv6(fields);
  }

  Bytes random_arp(const ModelInterface& interface) {
    const Ipv4 sender = below(8) == 0 ? 0 : any(addresses_);
    const Ipv4 target =
        below(2) == 0 && !interface.addresses.empty() ? interface.addresses[0] : any(addresses_);
    const Mac mac = below(3) == 0 ? random_() & 0xffffffffffff : 0x0a0000000000 | sender;
    return arp(static_cast<uint16_t>(1 + below(2)), mac, sender, interface.mac, target);
  }

  Bytes random_frame(uint16_t port) {
    std::vector<const ModelInterface*> of_port;
    for (const ModelInterface& interface : model_.interfaces)
      if (interface.port == port) of_port.push_back(&interface);
    const ModelInterface& interface = *any(of_port);
    std::vector<Tag> tags = interface.tags;
    if (below(20) == 0)
      tags.insert(tags.begin() + static_cast<long>(below(tags.size() + 1)), Tag{0x8100, 0x6000});
    if (below(20) == 0)
      tags.push_back({below(2) == 0 ? uint16_t{0x8100} : uint16_t{0x88a8}, static_cast<uint16_t>(random_())});
    const Mac to = below(10) == 0   ? kBroadcastMac
                   : below(20) == 0 ? random_() & 0xffffffffffff
                                    : interface.mac;
    const uint64_t sort = below(12);
    Bytes frame = sort < 2   ? ethernet(to, 0x0a0000000099, tags, 0x0806, random_arp(interface))
                  : sort < 7 ? ethernet(to, 0x0a0000000099, tags, 0x86dd, random_packet6(interface))
                             : ethernet(to, 0x0a0000000099, tags, 0x0800, random_packet(interface));
    if (below(8) == 0) frame[below(frame.size())] = static_cast<uint8_t>(random_());
    if (below(20) == 0) frame.resize(1 + below(frame.size()));
    if (below(6) == 0) frame.resize(frame.size() + below(30));
    return frame;
  }

  std::mt19937_64& random_;
  World world_;
  Model model_;
  std::vector<Netns*> netns_;
  std::vector<Ipv4> addresses_;
  std::vector<Ipv6> addresses6_;
};

TEST(Random, AgreesWithTheModel) {
  auto random = seeded_random();
  for (int network = 0; network < kNetworks; ++network) {
    RandomNetwork of_this_round(random);
    for (int burst = 0; burst < kBursts; ++burst) {
      of_this_round.run_burst();
      if (HasFatalFailure()) FAIL() << "network " << network << " burst " << burst;
    }
  }
}

}  // namespace
}  // namespace mayfly::testing
