// SPDX-License-Identifier: BSD-3-Clause
// The model's IPv6, and the ICMP errors of both families.
#include <algorithm>

#include "model.hpp"

namespace mayfly::testing {
namespace {

Outcome dropped(DropReason reason) {
  return {.kind = Outcome::Kind::dropped, .reason = reason};
}

Ipv6 address_at(const Bytes& packet, size_t at) {
  return {get(packet, at, 8), get(packet, at + 8, 8)};
}
void set_address_at(Bytes& packet, size_t at, Ipv6 address) {
  set(packet, at, address.high, 8);
  set(packet, at + 8, address.low, 8);
}

bool in(Ipv6 address, const char* prefix) {
  return parse_ip_prefix("model", prefix)->v6().contains(address);
}
bool is_mapped(Ipv6 address) {
  return address.high == 0 && address.low >> 32 == 0xffff;
}

struct Upper {
  uint8_t protocol;
  size_t at;
  size_t named_at = 6;
  bool whole = true, fragment = false, later_fragment = false, source_route = false;
  bool behind_fragment_header = false;
};

Upper upper_of(const Bytes& packet) {
  Upper upper{.protocol = packet[6], .at = 40};
  for (int headers = 0;; ++headers) {
    const uint8_t of = upper.protocol;
    if (of != 0 && of != 43 && of != 44 && of != 60) return upper;
    if (headers == 8 || packet.size() < upper.at + 8) {
      upper.whole = false;
      return upper;
    }
    if (of == 44) {
      upper.behind_fragment_header = true;
      upper.fragment |= (get(packet, upper.at + 2, 2) & 0xfff9) != 0;
      upper.later_fragment |= (get(packet, upper.at + 2, 2) & 0xfff8) != 0;
    }
    if (of == 43 && packet[upper.at + 3] != 0) {
      upper.source_route = true;
      upper.named_at = upper.at + 2;
      return upper;
    }
    upper.protocol = packet[upper.at];
    upper.named_at = upper.at;
    upper.at += of == 44 ? 8u : 8u + packet[upper.at + 1] * 8u;
    if (upper.later_fragment) return upper;
  }
}

}  // namespace

const RouteValue6* Model::look_up6(int netns, Ipv6 address) const {
  const ModelRoute6* best = nullptr;
  for (const ModelRoute6& route : routes6)
    if (route.netns == netns && route.prefix.contains(address) &&
        (best == nullptr || route.prefix.length >= best->prefix.length))
      best = &route;
  return best == nullptr ? nullptr : &best->value;
}

bool Model::owns(const ModelInterface& interface, Ipv6 address) const {
  return address == link_local_of(interface.mac) ||
         std::ranges::find(interface.addresses6, address) != interface.addresses6.end();
}

Outcome Model::receive_ipv6(const Held& held) {
  const ModelInterface& interface = *held.from;
  Bytes packet = held.packet;
  if (packet.size() < 40) return dropped(DropReason::truncated);
  if (packet[0] >> 4 != 6) return dropped(DropReason::ip_header);
  const size_t total = 40 + get(packet, 4, 2);
  if (total > packet.size()) return dropped(DropReason::ip_length);
  packet.resize(total);
  const Ipv6 source = address_at(packet, 8);
  const Ipv6 destination = address_at(packet, 24);
  const bool group = in(destination, "ff00::/8");
  if (in(source, "ff00::/8") || in(source, "::1") || is_mapped(source))
    return dropped(DropReason::martian_source);
  if (source == Ipv6{} && !group) return dropped(DropReason::martian_source);
  if (destination == Ipv6{} || in(destination, "::1") || is_mapped(destination))
    return dropped(DropReason::martian_destination);
  if (group && !in(destination, "ff02::1") && !in(destination, "ff02::2") &&
      !in(destination, "ff02::1:ff00:0/104"))
    return dropped(DropReason::multicast);
  if (!group && held.to_group) return dropped(DropReason::multicast);
  if (in(destination, "fe80::/10") && !owns(interface, destination)) return dropped(DropReason::beyond_scope);
  const bool local = group || in(destination, "fe80::/10");
  if (!local && !in(source, "fe80::/10") && owns(interface, source))
    return dropped(DropReason::spoofed_source);
  const RouteValue6* route = look_up6(interface.netns, destination);
  if (!local && (route == nullptr || route->type != RouteType::kLocal))
    return forward6(interface, packet, false);
  (local ? link6_ : own6_).push_back({&interface, packet, held.to_group, held.sender});
  return {.kind = Outcome::Kind::later};
}

Outcome Model::receive_own6(const Held& held) {
  const ModelInterface& from = *held.from;
  Bytes packet = held.packet;
  const Upper upper = upper_of(packet);
  const Ipv6 destination = address_at(packet, 24);
  const bool group = in(destination, "ff00::/8");
  if (!upper.whole) return dropped(DropReason::truncated);
  if (upper.fragment) return dropped(DropReason::local_unknown);
  if (upper.protocol != 58) {
    if (group) return dropped(DropReason::multicast);
    if (upper.source_route)
      complain6(from, packet, 4, 0, static_cast<uint32_t>(upper.named_at), destination);
    else if (upper.protocol == 6 || upper.protocol == 17)
      complain6(from, packet, 1, 4, 0, destination);
    else if (upper.protocol != 59)
      complain6(from, packet, 4, 1, static_cast<uint32_t>(upper.named_at), destination);
    return dropped(DropReason::local_unknown);
  }
  if (packet.size() < upper.at + 8) return dropped(DropReason::icmp_invalid);
  if (with_icmpv6_checksum(packet, upper.at) != packet) return dropped(DropReason::icmp_invalid);
  const uint8_t type = packet[upper.at];
  if (type >= 133 && type <= 137 && upper.behind_fragment_header) return dropped(DropReason::nd_invalid);
  if (type == 135) return receive_solicitation(held, upper.at);
  if (type == 133 || type == 134 || type == 137) return dropped(DropReason::nd_unwanted);
  if (type != 128) return dropped(group ? DropReason::multicast : DropReason::local_unknown);
  if (group && in(destination, "ff02::1:ff00:0/104")) return dropped(DropReason::multicast);
  const Ipv6 asker = address_at(packet, 8);
  if (asker == Ipv6{}) return dropped(DropReason::martian_source);
  Ipv6 own = destination;
  if (group && (in(asker, "fe80::/10") || from.addresses6.empty()))
    own = link_local_of(from.mac);
  else if (group)
    own = from.addresses6[0];
  set_address_at(packet, 8, own);
  set_address_at(packet, 24, asker);
  packet[7] = 64;
  packet[upper.at] = 129;
  answers6_.push_back({&from, with_icmpv6_checksum(packet, upper.at)});
  return {.kind = Outcome::Kind::later};
}

Outcome Model::receive_solicitation(const Held& held, size_t at) {
  const ModelInterface& interface = *held.from;
  const Bytes& packet = held.packet;
  const Ipv6 source = address_at(packet, 8);
  if (packet.size() < at + 24 || packet[7] != 255 || packet[at + 1] != 0)
    return dropped(DropReason::nd_invalid);
  const Ipv6 target = address_at(packet, at + 8);
  Mac mac = 0;
  for (size_t option = at + 24; option != packet.size();) {
    if (option + 8 > packet.size()) return dropped(DropReason::nd_invalid);
    const size_t bytes = packet[option + 1] * 8u;
    if (bytes == 0 || option + bytes > packet.size()) return dropped(DropReason::nd_invalid);
    if (packet[option] == 1 && bytes == 8) mac = get(packet, option + 2, 6);
    option += bytes;
  }
  if ((mac >> 40 & 1) != 0) return dropped(DropReason::nd_invalid);
  if (in(target, "ff00::/8") || target == Ipv6{} || is_mapped(target)) return dropped(DropReason::nd_invalid);
  if (source == Ipv6{} && (address_at(packet, 24) != solicited_node_of(target) || mac != 0))
    return dropped(DropReason::nd_invalid);
  if (owns(interface, source)) return dropped(DropReason::nd_invalid);
  if (!owns(interface, target)) return dropped(DropReason::nd_other_host);
  const bool probe = source == Ipv6{};
  const Ipv6 to = probe ? Ipv6{0xff02'0000'0000'0000, 1} : source;
  const Mac to_mac = probe ? 0x333300000001 : mac != 0 ? mac : held.sender;
  return send(interface, to_mac, 0x86dd,
              nd(136, target, to, target, interface.mac, probe ? 0xa0000000 : 0xe0000000));
}

Outcome Model::forward6(const ModelInterface& from, Bytes packet, bool ours) {
  const auto say = [&](uint8_t type, uint8_t code, uint32_t rest = 0) {
    if (!ours) complain6(from, packet, type, code, rest);
  };
  const Ipv6 destination = address_at(packet, 24);
  const RouteValue6* route = look_up6(from.netns, destination);
  const RouteValue6 on_link{.oif = from.ifindex, .gateway = {}};
  if (ours && in(destination, "fe80::/10")) route = &on_link;
  if (route == nullptr || route->type == RouteType::kUnreachable) say(1, 0);
  if (route == nullptr) return dropped(DropReason::no_route);
  switch (route->type) {
    case RouteType::kBlackhole:
      return dropped(DropReason::blackhole);
    case RouteType::kUnreachable:
      return dropped(DropReason::unreachable);
    case RouteType::kProhibit:
      say(1, 1);
      return dropped(DropReason::prohibited);
    case RouteType::kLocal:
      return dropped(DropReason::spoofed_source);
    default:
      break;
  }
  ModelInterface& by = at(route->oif);
  if (!can_send(by)) {
    say(1, 0);
    return dropped(DropReason::interface_down);
  }
  if (!ours && packet[7] <= 1) {
    say(3, 0);
    return dropped(DropReason::ttl_exceeded);
  }
  if (!ours && in(address_at(packet, 8), "fe80::/10")) {
    say(1, 2);
    return dropped(DropReason::beyond_scope);
  }
  const uint32_t most = by.port >= 0 ? std::min(by.mtu, port_of(by).mtu) : by.mtu;
  if (packet.size() > most) {
    say(2, 0, std::max(most, 1280u));
    return dropped(DropReason::mtu_exceeded);
  }
  if (!ours) packet = one_hop_further6(packet);
  return pass_on(by, IpAddress(route->gateway != Ipv6{} ? route->gateway : destination), packet);
}

bool Model::within_limits(uint32_t ifindex, bool take) {
  const auto look = [&](Allowance& of, uint64_t each_ns, uint64_t burst) {
    if (of.at_ns == 0) of = {burst * each_ns, now_ns_};
    of.ns = std::min(burst * each_ns, of.ns + now_ns_ - of.at_ns);
    of.at_ns = now_ns_;
    if (take) of.ns -= each_ns;
    return take || of.ns >= each_ns;
  };
  const bool in_all = look(in_all_, 1'000'000, 50);
  return look(of_interface_[ifindex], 10'000'000, 10) && in_all;
}

void Model::complain(const ModelInterface& met, const Bytes& packet, uint8_t type, uint8_t code,
                     uint32_t rest, Ipv4 own) {
  const size_t header = (packet[0] & 0xfu) * 4u;
  if ((get(packet, 6, 2) & 0x1fff) != 0) return;
  if (packet[9] == 1) {
    if (packet.size() <= header) return;
    const uint8_t about = packet[header];
    if (about != 0 && about != 8 && (about < 13 || about > 18)) return;
  }
  if (!within_limits(met.ifindex, false)) {
    ++errors_limited;
    return;
  }
  const auto sender = static_cast<Ipv4>(get(packet, 12, 4));
  const RouteValue* back = look_up(met.netns, sender);
  if (back != nullptr && back->type == RouteType::kUnicast && own == 0) {
    const ModelInterface& by = at(back->oif);
    if (!by.addresses.empty())
      own = by.addresses[0];
    else if (!met.addresses.empty())
      own = met.addresses[0];
  }
  if (back == nullptr || back->type != RouteType::kUnicast || own == 0) {
    ++errors_unsent;
    return;
  }
  within_limits(met.ifindex, true);
  Bytes message = {type, code, 0, 0};
  put(message, rest, 4);
  message.insert(message.end(), packet.begin(),
                 packet.begin() + static_cast<long>(std::min<size_t>(packet.size(), 548)));
  set(message, 2, checksum(message, 0, message.size()), 2);
  Bytes error = ipv4({.source = own, .destination = sender, .ttl = 64, .protocol = 1, .payload = message});
  error[1] = static_cast<uint8_t>(0xc0 | (packet[1] & 0x1e));
  set(error, 4, errors_sent++ & 0xffff, 2);
  fix_ipv4_checksum(error);
  errors_.push_back({&met, error});
}

void Model::complain6(const ModelInterface& met, const Bytes& packet, uint8_t type, uint8_t code,
                      uint32_t rest, Ipv6 own) {
  const Upper upper = upper_of(packet);
  if (upper.protocol == 58) {
    if (upper.later_fragment || packet.size() <= upper.at) return;
    if (packet[upper.at] < 128 || packet[upper.at] == 137) return;
  }
  if (!within_limits(met.ifindex, false)) {
    ++errors_limited;
    return;
  }
  const Ipv6 sender = address_at(packet, 8);
  if (in(sender, "fe80::/10")) {
    if (own == Ipv6{}) own = link_local_of(met.mac);
  } else {
    const RouteValue6* back = look_up6(met.netns, sender);
    if (back == nullptr || back->type != RouteType::kUnicast) {
      ++errors_unsent;
      return;
    }
    const ModelInterface& by = at(back->oif);
    if (own == Ipv6{} && !by.addresses6.empty()) own = by.addresses6[0];
    if (own == Ipv6{} && !met.addresses6.empty()) own = met.addresses6[0];
  }
  if (own == Ipv6{}) {
    ++errors_unsent;
    return;
  }
  within_limits(met.ifindex, true);
  ++errors_sent;
  Bytes message;
  put(message, rest, 4);
  message.insert(message.end(), packet.begin(),
                 packet.begin() + static_cast<long>(std::min<size_t>(packet.size(), 1232)));
  errors6_.push_back({&met, icmpv6({.source = own, .destination = sender}, type, code, message)});
}

}  // namespace mayfly::testing
