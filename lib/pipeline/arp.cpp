// SPDX-License-Identifier: BSD-3-Clause
// ARP (RFC 826): answers for an interface's own addresses, tells control what others say, and asks when
// control wants.
//
// What is learned follows the kernel: a request for one of our addresses tells us its sender; any other
// packet only updates a neighbour that is known. A worker tells control of what it does not know already, so
// that the chatter of a shared segment costs a look-up and no message.
#include <optional>

#include "neigh/neighbour.hpp"
#include "pipeline/family.hpp"
#include "pipeline/own.hpp"
#include "pipeline/stages.hpp"

namespace mayfly {
namespace {

constexpr Ipv4 kLimitedBroadcast = 0xffff'ffff;

constexpr bool is_group_or_loopback(Ipv4 address) noexcept {
  return address >> 28 == 0xe || address == kLimitedBroadcast || address >> 24 == 127;
}

struct Arp {
  bool reply;
  Mac sender_mac;
  Ipv4 sender;
  Ipv4 target;
};

std::optional<Arp> parse(const uint8_t* network) noexcept {
  ArpPacket packet;
  std::memcpy(&packet, network, sizeof packet);
  if (packet.hardware != swap16(kArpEthernet) || packet.protocol != swap16(kProtocolIpv4) ||
      packet.hardware_bytes != kMacBytes || packet.protocol_bytes != sizeof packet.sender)
    return std::nullopt;
  const uint16_t operation = swap16(packet.operation);
  if (operation != kArpRequest && operation != kArpReply) return std::nullopt;
  const Arp arp{operation == kArpReply, load_mac(packet.sender_mac), swap32(packet.sender),
                swap32(packet.target)};
  if (is_multicast(arp.sender_mac) || arp.sender_mac == 0) return std::nullopt;
  if (is_group_or_loopback(arp.sender) || is_group_or_loopback(arp.target)) return std::nullopt;
  // Only who probes for an address before using it (RFC 5227) has none.
  if (arp.reply && arp.sender == 0) return std::nullopt;
  return arp;
}

void tell_control(Path& path, const Interface& interface, const Arp& arp, bool solicited) noexcept {
  path.to_control.push({.type = WorkerMessage::Type::neighbour_seen,
                        .solicited = solicited,
                        .creates = !solicited,
                        .ifindex = interface.ifindex,
                        .id = interface.id,
                        .mac = arp.sender_mac,
                        .address = IpAddress(arp.sender)});
}

bool is_news(const Neighbour* known, const Arp& arp) noexcept {
  if (known == nullptr) return true;
  const NeighbourWord word = known->read();
  return !word.usable() || word.mac() != arp.sender_mac;
}

void write_arp(uint8_t* network, uint16_t operation, Mac sender_mac, Ipv4 sender, Mac target_mac,
               Ipv4 target) noexcept {
  ArpPacket packet{};
  packet.hardware = swap16(kArpEthernet);
  packet.protocol = swap16(kProtocolIpv4);
  packet.hardware_bytes = kMacBytes;
  packet.protocol_bytes = sizeof packet.sender;
  packet.operation = swap16(operation);
  store_mac(packet.sender_mac, sender_mac);
  packet.sender = swap32(sender);
  store_mac(packet.target_mac, target_mac);
  packet.target = swap32(target);
  std::memcpy(network, &packet, sizeof packet);
}

void answer(const Packet& request, const Arp& arp, PacketVector& answers) noexcept {
  const auto before = static_cast<uint32_t>(request.network - rte_pktmbuf_mtod(request.mbuf, const uint8_t*));
  trim(request.mbuf, before + sizeof(ArpPacket));
  write_arp(request.network, kArpReply, request.ingress->mac.load(std::memory_order_relaxed), arp.target,
            arp.sender_mac, arp.sender);
  Packet packet = request;
  packet.egress = request.ingress;
  packet.destination_mac = arp.sender_mac;
  packet.from_us = true;
  answers.append(packet);
}

// What a proxy answers for: the route leads elsewhere. Whoever asks for its own address, or has none yet,
// wants to know of others on its own link (RFC 5227).
bool is_proxied(const Packet& packet, const Arp& arp) noexcept {
  const Interface& ingress = *packet.ingress;
  if ((ingress.flags.load(std::memory_order_relaxed) & Interface::kProxyArp) == 0) return false;
  if (arp.sender == 0 || arp.sender == arp.target) return false;
  const RouteValue* route = packet.netns->fib.lookup(arp.target);
  return route != nullptr && route->type == RouteType::kUnicast && route->oif != ingress.ifindex;
}

// rp_filter strict holds for those who ask, too: they would become neighbours. As in the kernel, probes pass.
bool is_routed_elsewhere(const Packet& packet, Ipv4 sender) noexcept {
  const Interface& ingress = *packet.ingress;
  if ((ingress.flags.load(std::memory_order_relaxed) & Interface::kRpFilterStrict) == 0 || sender == 0)
    return false;
  const RouteValue* back = packet.netns->fib.lookup(sender);
  return back == nullptr || back->type != RouteType::kUnicast || back->oif != ingress.ifindex;
}

}  // namespace

void input_arp(Path& path, const Packet& packet, PacketVector& answers) noexcept {
  const auto before = static_cast<uint32_t>(packet.network - rte_pktmbuf_mtod(packet.mbuf, const uint8_t*));
  if (packet.mbuf->data_len < before + sizeof(ArpPacket)) return drop(path, packet, DropReason::truncated);
  const std::optional<Arp> arp = parse(packet.network);
  const Interface& interface = *packet.ingress;
  // Somebody who uses an address of ours teaches us nothing.
  if (!arp || is_own(path.interfaces, interface, IpAddress(arp->sender)))
    return drop(path, packet, DropReason::arp_invalid);
  const Neighbour* known = find_neighbour(interface.neighbours.read(), IpAddress(arp->sender));
  const bool for_us = is_own(path.interfaces, interface, IpAddress(arp->target));
  if (!arp->reply && (for_us || is_proxied(packet, *arp))) {
    if (is_routed_elsewhere(packet, arp->sender)) return drop(path, packet, DropReason::rp_filter);
    if (arp->sender != 0 && is_news(known, *arp)) tell_control(path, interface, *arp, false);
    return answer(packet, *arp, answers);
  }
  const bool solicited = arp->reply && for_us && !packet.to_group;
  if (known == nullptr || (!solicited && !is_news(known, *arp)))
    return drop(path, packet, DropReason::arp_other_host);
  tell_control(path, interface, *arp, solicited);
  punt(path, packet.mbuf);
}

void send_arp_request(Path& path, const ControlMessage& message) noexcept {
  const Interface* egress = find_live(path, message.ifindex, message.id);
  if (egress == nullptr || path.queues == nullptr || sendable_bytes(path, *egress) == 0) return;
  Packet packet{.egress = egress, .destination_mac = message.mac, .protocol = kProtocolArp, .from_us = true};
  if (!originate(path, packet, sizeof(ArpPacket))) return;
  write_arp(packet.network, kArpRequest, egress->mac.load(std::memory_order_relaxed),
            message.source.none() ? 0 : message.source.v4(), message.mac == kBroadcastMac ? 0 : message.mac,
            message.address.v4());
  PacketVector packets;
  packets.append(packet);
  encapsulate_aside(path, packets);
}

}  // namespace mayfly
