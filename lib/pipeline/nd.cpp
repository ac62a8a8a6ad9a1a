// SPDX-License-Identifier: BSD-3-Clause
// Neighbour discovery (RFC 4861 section 7.2): what ARP is for IPv4 (arp.cpp), and the questions of duplicate
// address detection (RFC 4862 section 5.4).
//
// What is learned follows the RFC: a solicitation for one of our addresses tells us its sender, an
// advertisement only updates a neighbour that is known. As with ARP, control is told of news alone.
#include <optional>

#include "neigh/neighbour.hpp"
#include "pipeline/family.hpp"
#include "pipeline/headers.hpp"
#include "pipeline/own.hpp"
#include "pipeline/stages.hpp"

namespace mayfly {
namespace {

constexpr Ipv6 kAllNodes{0xff02'0000'0000'0000ULL, 1};
constexpr Mac kAllNodesMac = multicast_mac_of(kAllNodes);
constexpr uint32_t kAdvertisementBytes = sizeof(NdMessage) + kLinkLayerOptionBytes;

// A solicitation or an advertisement that is valid (RFC 4861 sections 7.1.1 and 7.1.2).
struct Nd {
  bool advertisement;
  Ipv6 source;
  Ipv6 destination;
  Ipv6 target;
  uint32_t flags;
  Mac link_layer;  // 0: it does not say
  // Somebody wants to use the target and asks whether another does already.
  bool is_probe() const noexcept { return source == Ipv6{}; }
};

// The MAC in the option of this type, 0 when there is none; nullopt when the options are malformed.
std::optional<Mac> find_link_layer(const uint8_t* options, uint32_t bytes, uint8_t type) noexcept {
  Mac mac = 0;
  while (bytes != 0) {
    if (bytes < kLinkLayerOptionBytes) return std::nullopt;
    const uint32_t length = options[1] * 8u;
    if (length == 0 || length > bytes) return std::nullopt;
    if (options[0] == type && length == kLinkLayerOptionBytes) mac = load_mac(options + 2);
    options += length;
    bytes -= length;
  }
  return mac;
}

std::optional<Nd> parse(const Packet& packet, uint32_t offset) noexcept {
  const uint32_t bytes = V6::bytes(packet) - offset;
  if (bytes < sizeof(NdMessage) || V6::header(packet).hop_limit != kNdHopLimit) return std::nullopt;
  const uint8_t* const at = packet.network + offset;
  NdMessage message;
  std::memcpy(&message, at, sizeof message);
  const bool advertisement = message.type == kNeighbourAdvertisement;
  const auto link_layer = find_link_layer(at + sizeof message, bytes - sizeof message,
                                          advertisement ? kOptionTargetLinkLayer : kOptionSourceLinkLayer);
  if (message.code != 0 || !link_layer || is_multicast(*link_layer)) return std::nullopt;
  const Nd nd{.advertisement = advertisement,
              .source = V6::source(packet),
              .destination = V6::destination(packet),
              .target = load_ipv6(message.target),
              .flags = advertisement ? swap32(message.flags) : 0,
              .link_layer = *link_layer};
  const bool to_group = is_multicast(nd.destination);
  if (is_multicast(nd.target) || IpAddress(nd.target).is_v4() || nd.target == Ipv6{}) return std::nullopt;
  if (advertisement && (nd.is_probe() || (to_group && (nd.flags & kNdSolicited) != 0))) return std::nullopt;
  if (!advertisement && nd.is_probe() &&
      (nd.destination != solicited_node_of(nd.target) || nd.link_layer != 0))
    return std::nullopt;
  return nd;
}

// Nobody has settled yet whether the interface may use it (RFC 4429).
bool is_optimistic(const Path& path, const Interface& interface, Ipv6 address) noexcept {
  const AddressList* list = addresses_of(path.interfaces, interface);
  if (list == nullptr || list->optimistic == 0) return false;
  for (const InterfaceAddress& entry : list->all())
    if (entry.address == IpAddress(address)) return (entry.flags & InterfaceAddress::kOptimistic) != 0;
  return false;
}

bool tell_control(Path& path, const Interface& interface, WorkerMessage message) noexcept {
  message.ifindex = interface.ifindex;
  message.id = interface.id;
  return path.to_control.push(message);
}

bool is_news(const Neighbour* known, Mac mac) noexcept {
  if (known == nullptr) return true;
  const NeighbourWord word = known->read();
  return !word.usable() || word.mac() != mac;
}

Mac frame_source(const Packet& packet) noexcept {
  return load_mac(rte_pktmbuf_mtod(packet.mbuf, const uint8_t*) + kMacBytes);
}

// Writes a solicitation or advertisement with its option, or without one when `link_layer` is 0.
void write_nd(uint8_t* network, const Nd& nd, uint8_t option) noexcept {
  const uint32_t bytes = nd.link_layer == 0 ? sizeof(NdMessage) : kAdvertisementBytes;
  auto& header = *reinterpret_cast<Ipv6Header*>(network);
  header.version_class_flow = swap32(kIpv6Version);
  header.payload_length = swap16(static_cast<uint16_t>(bytes));
  header.next_header = kProtocolIcmpv6;
  header.hop_limit = kNdHopLimit;
  store_ipv6(header.source, nd.source);
  store_ipv6(header.destination, nd.destination);
  auto& message = *reinterpret_cast<NdMessage*>(network + kIpv6Bytes);
  message.type = nd.advertisement ? kNeighbourAdvertisement : kNeighbourSolicitation;
  message.code = 0;
  message.checksum = 0;
  message.flags = swap32(nd.flags);
  store_ipv6(message.target, nd.target);
  uint8_t* const options = network + kIpv6Bytes + sizeof message;
  if (nd.link_layer != 0) {
    options[0] = option;
    options[1] = kLinkLayerOptionBytes / 8;
    store_mac(options + 2, nd.link_layer);
  }
  const uint32_t sum =
      sum_pseudo_header(header, bytes, kProtocolIcmpv6) + sum_header(network + kIpv6Bytes, bytes / 4);
  message.checksum = static_cast<uint16_t>(~fold_sum(sum));
}

// Who stands in for another station does not claim to be a router in its name, nor to be right (7.2.8).
uint32_t flags_of_answer(const Path& path, const Interface& interface, const Nd& asked, bool own) noexcept {
  const uint32_t solicited = asked.is_probe() ? 0 : kNdSolicited;
  if (!own) return solicited;
  return solicited | kNdRouter | (is_optimistic(path, interface, asked.target) ? 0 : kNdOverride);
}

// The request becomes the answer.
void answer(Path& path, const Packet& request, const Nd& asked, bool own, PacketVector& answers) noexcept {
  const Interface& interface = *request.ingress;
  Nd said{.advertisement = true,
          .source = asked.target,
          .destination = asked.is_probe() ? kAllNodes : asked.source,
          .target = asked.target,
          .flags = flags_of_answer(path, interface, asked, own),
          .link_layer = interface.mac.load(std::memory_order_relaxed)};
  // A proxy speaks with an address of its own (7.2.8).
  if (!own) said.source = source_of(path.interfaces, interface, IpAddress(said.destination)).v6();
  Packet packet = request;
  packet.egress = &interface;
  packet.from_us = true;
  packet.destination_mac = asked.is_probe()        ? kAllNodesMac
                           : asked.link_layer != 0 ? asked.link_layer
                                                   : frame_source(request);
  constexpr uint32_t kBytes = kIpv6Bytes + kAdvertisementBytes;
  const uint32_t present = in_segment(packet);
  if (present > kBytes)
    trim(packet.mbuf, packet.mbuf->data_len - (present - kBytes));
  else if (rte_pktmbuf_append(packet.mbuf, static_cast<uint16_t>(kBytes - present)) == nullptr)
    return drop(path, request, DropReason::no_headroom);
  write_nd(packet.network, said, kOptionTargetLinkLayer);
  answers.append(packet);
}

// The route to it is unicast and leaves by another interface.
bool is_proxied(const Packet& packet, Ipv6 target) noexcept {
  const Interface& ingress = *packet.ingress;
  if ((ingress.flags.load(std::memory_order_relaxed) & Interface::kProxyNd) == 0) return false;
  if (is_link_local(target) || target == V6::source(packet)) return false;
  const RouteValue6* route = packet.netns->fib6.lookup(target);
  return route != nullptr && route->type == RouteType::kUnicast && route->oif != ingress.ifindex;
}

void input_solicitation(Path& path, const Packet& packet, const Nd& nd, PacketVector& answers) noexcept {
  const Interface& interface = *packet.ingress;
  // Somebody who uses an address of ours teaches us nothing.
  if (is_own(path.interfaces, interface, IpAddress(nd.source)))
    return drop(path, packet, DropReason::nd_invalid);
  const bool own = is_own(path.interfaces, interface, IpAddress(nd.target));
  if (!own && !is_proxied(packet, nd.target)) return drop(path, packet, DropReason::nd_other_host);
  if (own && nd.is_probe() && is_optimistic(path, interface, nd.target)) {
    // Two want it at the same time: neither gets it (RFC 4862 section 5.4.3).
    tell_control(path, interface,
                 {.type = WorkerMessage::Type::address_conflict,
                  .ifindex = 0,
                  .id = 0,
                  .mac = frame_source(packet),
                  .address = IpAddress(nd.target)});
    return punt(path, packet.mbuf);
  }
  const Neighbour* known = find_neighbour(interface.neighbours.read(), IpAddress(nd.source));
  if (!nd.is_probe() && nd.link_layer != 0 && is_news(known, nd.link_layer))
    tell_control(path, interface,
                 {.type = WorkerMessage::Type::neighbour_seen,
                  .creates = true,
                  .ifindex = 0,
                  .id = 0,
                  .mac = nd.link_layer,
                  .address = IpAddress(nd.source)});
  answer(path, packet, nd, own, answers);
}

void input_advertisement(Path& path, const Packet& packet, const Nd& nd) noexcept {
  const Interface& interface = *packet.ingress;
  if (is_own(path.interfaces, interface, IpAddress(nd.target))) {
    if (!is_optimistic(path, interface, nd.target)) return drop(path, packet, DropReason::nd_invalid);
    tell_control(path, interface,
                 {.type = WorkerMessage::Type::address_conflict,
                  .ifindex = 0,
                  .id = 0,
                  .mac = nd.link_layer != 0 ? nd.link_layer : frame_source(packet),
                  .address = IpAddress(nd.target)});
    return punt(path, packet.mbuf);
  }
  if (is_own(path.interfaces, interface, IpAddress(nd.source)))
    return drop(path, packet, DropReason::nd_invalid);
  const Neighbour* known = find_neighbour(interface.neighbours.read(), IpAddress(nd.target));
  const bool solicited = (nd.flags & kNdSolicited) != 0;
  // Without a MAC it confirms the one that is known.
  Mac mac = nd.link_layer;
  if (known != nullptr && mac == 0 && known->read().usable()) mac = known->read().mac();
  if (known == nullptr || mac == 0 || (!solicited && !is_news(known, mac)))
    return drop(path, packet, DropReason::nd_other_host);
  tell_control(path, interface,
               {.type = WorkerMessage::Type::neighbour_seen,
                .solicited = solicited,
                .overrides = (nd.flags & kNdOverride) != 0,
                .tells_router = true,
                .router = (nd.flags & kNdRouter) != 0,
                .ifindex = 0,
                .id = 0,
                .mac = mac,
                .address = IpAddress(nd.target)});
  punt(path, packet.mbuf);
}

}  // namespace

// local6 has checked the ICMPv6 checksum, and that the first eight octets are there.
void input_nd(Path& path, const Packet& packet, uint32_t offset, PacketVector& answers) noexcept {
  const uint8_t type = packet.network[offset];
  if (type != kNeighbourSolicitation && type != kNeighbourAdvertisement)
    return drop(path, packet, DropReason::nd_unwanted);
  if (in_segment(packet) < V6::bytes(packet)) return drop(path, packet, DropReason::truncated);
  const std::optional<Nd> nd = parse(packet, offset);
  if (!nd) return drop(path, packet, DropReason::nd_invalid);
  if (nd->advertisement) return input_advertisement(path, packet, *nd);
  input_solicitation(path, packet, *nd, answers);
}

void send_solicitation(Path& path, const ControlMessage& message) noexcept {
  const Interface* egress = find_live(path, message.ifindex, message.id);
  if (egress == nullptr || path.queues == nullptr || sendable_bytes(path, *egress) == 0) return;
  const Ipv6 target = message.address.v6();
  const bool to_group = message.mac == kBroadcastMac;
  const Nd nd{.advertisement = false,
              .source = message.source.v6(),
              .destination = to_group ? solicited_node_of(target) : target,
              .target = target,
              .flags = 0,
              .link_layer = message.source.none() ? 0 : egress->mac.load(std::memory_order_relaxed)};
  Packet packet{.egress = egress,
                .destination_mac = to_group ? multicast_mac_of(nd.destination) : message.mac,
                .protocol = kProtocolIpv6,
                .from_us = true};
  const uint32_t bytes = nd.link_layer == 0 ? sizeof(NdMessage) : kAdvertisementBytes;
  if (!originate(path, packet, kIpv6Bytes + bytes)) return;
  write_nd(packet.network, nd, kOptionSourceLinkLayer);
  PacketVector packets;
  packets.append(packet);
  encapsulate_aside(path, packets);
}

}  // namespace mayfly
