// SPDX-License-Identifier: BSD-3-Clause
#include "model.hpp"

#include <algorithm>

namespace mayfly::testing {
namespace {

constexpr uint64_t kBroadcast = 0xffffffffffff;

Outcome dropped(DropReason reason) {
  return {.kind = Outcome::Kind::dropped, .reason = reason};
}

bool in(Ipv4 address, const char* prefix) {
  return parse_prefix("model", prefix)->contains(address);
}

bool contains(const std::vector<Ipv4>& list, Ipv4 address) {
  return std::find(list.begin(), list.end(), address) != list.end();
}

}  // namespace

ModelInterface* Model::find(int port, const std::vector<Tag>& tags) {
  for (ModelInterface& interface : interfaces) {
    if (interface.port != port || interface.tags.size() != tags.size()) continue;
    bool same = true;
    for (size_t i = 0; i < tags.size(); ++i)
      same = same && tags[i].protocol == interface.tags[i].protocol &&
             (tags[i].control & 0xfff) == interface.tags[i].control;
    if (same) return &interface;
  }
  return nullptr;
}

ModelInterface& Model::at(uint32_t ifindex) {
  return *std::find_if(interfaces.begin(), interfaces.end(),
                       [&](const ModelInterface& interface) { return interface.ifindex == ifindex; });
}

const ModelInterface& Model::port_of(const ModelInterface& interface) const {
  return *std::find_if(interfaces.begin(), interfaces.end(), [&](const ModelInterface& candidate) {
    return candidate.port == interface.port && candidate.tags.empty();
  });
}

bool Model::can_send(const ModelInterface& interface) const {
  return interface.up && (interface.port < 0 || port_of(interface).up);
}

const RouteValue* Model::look_up(int netns, Ipv4 address) const {
  const ModelRoute* best = nullptr;
  for (const ModelRoute& route : routes)
    if (route.netns == netns && route.prefix.contains(address) &&
        (best == nullptr || route.prefix.length >= best->prefix.length))
      best = &route;
  return best == nullptr ? nullptr : &best->value;
}

std::vector<Outcome> Model::receive(int port, const std::vector<Bytes>& frames, uint64_t now_ns) {
  now_ns_ = now_ns;
  std::vector<Outcome> outcomes;
  const auto each = [&](std::vector<Held>& held, auto what) {
    for (const Held& of : held) outcomes.push_back(what(of));
    held.clear();
  };
  for (const Bytes& frame : frames) outcomes.push_back(receive_one(port, frame));
  each(ipv6_, [&](const Held& held) { return receive_ipv6(held); });
  each(link6_, [&](const Held& held) { return receive_own6(held); });
  each(own6_, [&](const Held& held) { return receive_own6(held); });
  each(answers6_, [&](const Held& held) { return forward6(*held.from, held.packet, true); });
  each(own_, [&](const Held& held) { return receive_own(*held.from, held.packet); });
  each(answers_, [&](const Held& held) { return forward(*held.from, held.packet, true); });
  each(errors_, [&](const Held& held) { return forward(*held.from, held.packet, true); });
  each(errors6_, [&](const Held& held) { return forward6(*held.from, held.packet, true); });
  return outcomes;
}

Outcome Model::receive_one(int port, const Bytes& frame) {
  ModelInterface& port_interface = *find(port, {});
  if (!port_interface.up) return dropped(DropReason::port_down);
  if (frame.size() < 14) return dropped(DropReason::truncated);
  size_t at = 12;
  size_t seen = 0;
  std::vector<Tag> tags;
  bool impossible = false;
  while (get(frame, at, 2) == 0x8100 || get(frame, at, 2) == 0x88a8) {
    if (++seen > 4) return dropped(DropReason::unknown_tag);
    if (frame.size() < at + 6) return dropped(DropReason::truncated);
    const Tag tag{static_cast<uint16_t>(get(frame, at, 2)), static_cast<uint16_t>(get(frame, at + 2, 2))};
    if ((tag.control & 0xfff) != 0) tags.push_back(tag);
    if (tags.size() > 2 || (tags.size() == 2 && tags[1].protocol != 0x8100)) impossible = true;
    if (impossible) return dropped(DropReason::unknown_tag);
    at += 4;
  }
  ModelInterface* interface = find(port, tags);
  if (interface == nullptr) return dropped(DropReason::unknown_tag);
  if (!interface->up) return dropped(DropReason::interface_down);
  const uint64_t to = get(frame, 0, 6);
  const bool to_group = (frame[0] & 1) != 0;
  if (to != interface->mac && !to_group) return dropped(DropReason::other_host);
  const uint64_t protocol = get(frame, at, 2);
  const Bytes packet(frame.begin() + static_cast<long>(at) + 2, frame.end());
  if (protocol == 0x0806) return receive_arp(*interface, to_group, packet);
  if (protocol == 0x0800) return receive_ipv4(*interface, to_group, packet);
  if (protocol == 0x86dd) {
    ipv6_.push_back({interface, packet, to_group, get(frame, 6, 6)});
    return {.kind = Outcome::Kind::later};
  }
  return dropped(DropReason::unknown_protocol);
}

Outcome Model::receive_arp(ModelInterface& interface, bool to_group, const Bytes& packet) {
  if (packet.size() < 28) return dropped(DropReason::truncated);
  const uint64_t operation = get(packet, 6, 2);
  const Mac sender_mac = get(packet, 8, 6);
  const auto sender = static_cast<Ipv4>(get(packet, 14, 4));
  const auto target = static_cast<Ipv4>(get(packet, 24, 4));
  if (get(packet, 0, 6) != 0x000108000604) return dropped(DropReason::arp_invalid);
  if (operation != 1 && operation != 2) return dropped(DropReason::arp_invalid);
  if (sender_mac == 0 || (packet[8] & 1) != 0) return dropped(DropReason::arp_invalid);
  for (const Ipv4 address : {sender, target})
    if (in(address, "224.0.0.0/4") || in(address, "127.0.0.0/8") || in(address, "255.255.255.255"))
      return dropped(DropReason::arp_invalid);
  if (operation == 2 && sender == 0) return dropped(DropReason::arp_invalid);
  if (contains(interface.addresses, sender)) return dropped(DropReason::arp_invalid);
  const bool ours = contains(interface.addresses, target);
  if (operation == 1 && ours)
    return send(interface, sender_mac, 0x0806, arp(2, interface.mac, target, sender_mac, sender));
  const auto known = interface.neighbours.find(IpAddress(sender));
  const bool confirms = operation == 2 && ours && !to_group;
  if (known != interface.neighbours.end() && (confirms || known->second != sender_mac))
    return {.kind = Outcome::Kind::punted};
  return dropped(DropReason::arp_other_host);
}

Outcome Model::receive_ipv4(ModelInterface& interface, bool to_group, Bytes packet) {
  if (packet.size() < 20) return dropped(DropReason::truncated);
  const size_t header = (packet[0] & 0xfu) * 4u;
  if (packet[0] >> 4 != 4 || header < 20) return dropped(DropReason::ip_header);
  if (packet.size() < header) return dropped(DropReason::truncated);
  if (checksum(packet, 0, header) != 0) return dropped(DropReason::ip_checksum);
  const size_t total = get(packet, 2, 2);
  if (total < header) return dropped(DropReason::ip_header);
  if (total > packet.size()) return dropped(DropReason::ip_length);
  packet.resize(total);
  const auto source = static_cast<Ipv4>(get(packet, 12, 4));
  const auto destination = static_cast<Ipv4>(get(packet, 16, 4));
  if (source == 0 && in(destination, "255.255.255.255")) return dropped(DropReason::multicast);
  for (const char* martian : {"0.0.0.0/8", "127.0.0.0/8", "224.0.0.0/4", "240.0.0.0/4"})
    if (in(source, martian)) return dropped(DropReason::martian_source);
  if (in(destination, "224.0.0.0/4") || in(destination, "255.255.255.255"))
    return dropped(DropReason::multicast);
  for (const char* martian : {"0.0.0.0/8", "127.0.0.0/8", "240.0.0.0/4"})
    if (in(destination, martian)) return dropped(DropReason::martian_destination);
  if (to_group) return dropped(DropReason::multicast);
  if (contains(interface.addresses, source)) return dropped(DropReason::spoofed_source);
  const RouteValue* route = look_up(interface.netns, destination);
  if (route == nullptr || route->type != RouteType::kLocal) return forward(interface, packet, false);
  own_.push_back({&interface, packet});
  return {.kind = Outcome::Kind::later};
}

Outcome Model::receive_own(const ModelInterface& from, Bytes packet) {
  const size_t header = (packet[0] & 0xfu) * 4u;
  if ((get(packet, 6, 2) & 0x3fff) != 0) return dropped(DropReason::local_unknown);
  if (packet[9] != 1) {
    const bool has_ports = packet[9] == 6 || packet[9] == 17;
    complain(from, packet, 3, has_ports ? 3 : 2, 0, static_cast<Ipv4>(get(packet, 16, 4)));
    return dropped(DropReason::local_unknown);
  }
  if (packet.size() < header + 8) return dropped(DropReason::icmp_invalid);
  if (checksum(packet, header, packet.size() - header) != 0) return dropped(DropReason::icmp_invalid);
  if (packet[header] != 8) return dropped(DropReason::local_unknown);
  packet[header] = 0;
  set(packet, header + 2, 0, 2);
  set(packet, header + 2, checksum(packet, header, packet.size() - header), 2);
  const uint64_t asker = get(packet, 12, 4);
  set(packet, 12, get(packet, 16, 4), 4);
  set(packet, 16, asker, 4);
  packet[8] = 64;
  fix_ipv4_checksum(packet);
  answers_.push_back({&from, packet});
  return {.kind = Outcome::Kind::later};
}

Outcome Model::forward(const ModelInterface& from, Bytes packet, bool ours) {
  const auto say = [&](uint8_t type, uint8_t code, uint32_t rest = 0) {
    if (!ours) complain(from, packet, type, code, rest);
  };
  const auto destination = static_cast<Ipv4>(get(packet, 16, 4));
  const RouteValue* route = look_up(from.netns, destination);
  if (route == nullptr) {
    say(3, 0);
    return dropped(DropReason::no_route);
  }
  switch (route->type) {
    case RouteType::kBlackhole:
      return dropped(DropReason::blackhole);
    case RouteType::kUnreachable:
      say(3, 1);
      return dropped(DropReason::unreachable);
    case RouteType::kProhibit:
      say(3, 13);
      return dropped(DropReason::prohibited);
    case RouteType::kBroadcast:
      return dropped(DropReason::multicast);
    case RouteType::kLocal:
      return dropped(DropReason::spoofed_source);
    default:
      break;
  }
  ModelInterface& by = at(route->oif);
  if (!can_send(by)) {
    say(3, 0);
    return dropped(DropReason::interface_down);
  }
  if (!ours && packet[8] <= 1) {
    say(11, 0);
    return dropped(DropReason::ttl_exceeded);
  }
  const uint32_t most = by.port >= 0 ? std::min(by.mtu, port_of(by).mtu) : by.mtu;
  if (packet.size() > most) {
    if ((packet[6] & 0x40) != 0) say(3, 4, most);
    return dropped(DropReason::mtu_exceeded);
  }
  if (!ours) packet = one_hop_further(packet);
  return pass_on(by, IpAddress(route->gateway != 0 ? route->gateway : destination), packet);
}

Outcome Model::pass_on(ModelInterface& by, IpAddress next_hop, const Bytes& packet) {
  const uint16_t protocol = next_hop.is_v4() ? 0x0800 : 0x86dd;
  const auto known = by.neighbours.find(next_hop);
  if (known != by.neighbours.end()) return send(by, known->second, protocol, packet);
  if (by.port < 0) return {.kind = Outcome::Kind::swallowed};
  if (next_hop.is_v4() && by.addresses.empty()) return dropped(DropReason::neighbour_no_source);
  std::vector<Bytes>& queue = parking_[{by.ifindex, next_hop}];
  queue.push_back(packet);
  Outcome outcome{.kind = Outcome::Kind::parked};
  if (queue.size() > 3) {
    queue.erase(queue.begin());
    outcome.displaced = true;
  }
  return outcome;
}

Outcome Model::send(const ModelInterface& by, Mac to, uint16_t protocol, const Bytes& packet) const {
  if (by.port < 0) return {.kind = Outcome::Kind::swallowed};
  return {
      .kind = Outcome::Kind::sent, .port = by.port, .frame = ethernet(to, by.mac, by.tags, protocol, packet)};
}

std::vector<Outcome> Model::resolve(uint32_t ifindex, IpAddress address, Mac mac) {
  std::vector<Outcome> outcomes;
  ModelInterface& by = at(ifindex);
  by.neighbours[address] = mac;
  for (const Bytes& packet : parking_[{ifindex, address}])
    outcomes.push_back(send(by, mac, address.is_v4() ? 0x0800 : 0x86dd, packet));
  parking_.erase({ifindex, address});
  return outcomes;
}

size_t Model::parked() const {
  size_t packets = 0;
  for (const auto& [key, queue] : parking_) packets += queue.size();
  return packets;
}

std::vector<std::pair<uint32_t, IpAddress>> Model::waiting() const {
  std::vector<std::pair<uint32_t, IpAddress>> keys;
  for (const auto& [key, queue] : parking_) keys.push_back(key);
  return keys;
}

}  // namespace mayfly::testing
