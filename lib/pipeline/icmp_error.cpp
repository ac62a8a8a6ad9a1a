// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline/icmp_error.hpp"

#include <rte_ip.h>

#include <algorithm>

#include "iface/own_addresses.hpp"
#include "pipeline/family.hpp"
#include "pipeline/headers.hpp"
#include "pipeline/path.hpp"

namespace mayfly {
namespace {

// RFC 1812 section 4.3.2.3 and RFC 4443 section 2.4 (c): the whole error is no longer than this.
constexpr uint32_t most_bytes(V4) noexcept {
  return 576;
}
constexpr uint32_t most_bytes(V6) noexcept {
  return 1280;
}

// RFC 1812 section 4.3.2.5: precedence INTERNETWORK CONTROL, and the packet's own type of service.
constexpr uint8_t kErrorPrecedence = 0xc0;
constexpr uint8_t kServiceMask = 0x1e;

// The ICMP messages that are no errors: echo, timestamp, information and mask, request and reply.
constexpr uint32_t kQueries = 1u << 0 | 1u << 8 | 0x3fu << 13;

bool may_be_reported(const Packet& packet, V4) noexcept {
  const Ipv4Header& header = V4::header(packet);
  if ((swap16(header.fragment) & kFragmentOffsetMask) != 0) return false;
  if (header.protocol != kProtocolIcmp) return true;
  const uint32_t header_bytes = (header.version_words & 0xf) * 4u;
  if (in_segment(packet) < header_bytes + 1) return false;
  const uint8_t type = packet.network[header_bytes];
  return type < 32 && (kQueries >> type & 1) != 0;
}

bool may_be_reported(const Packet& packet, V6) noexcept {
  const UpperHeader upper = find_upper_header(packet);
  if (upper.protocol != kProtocolIcmpv6) return true;
  if (upper.is_later_fragment || in_segment(packet) < upper.offset + 1) return false;
  const uint8_t type = packet.network[upper.offset];
  return type >= kEchoRequest6 && type != kRedirect;
}

// The first `bytes` of the packet, from its network header on.
void copy_start(const Packet& packet, uint8_t* to, uint32_t bytes) noexcept {
  const rte_mbuf* segment = packet.mbuf;
  const uint8_t* from = packet.network;
  uint32_t left = in_segment(packet);
  for (;;) {
    const uint32_t part = std::min(left, bytes);
    std::memcpy(to, from, part);
    to += part;
    bytes -= part;
    if (bytes == 0) return;
    segment = segment->next;
    from = rte_pktmbuf_mtod(segment, const uint8_t*);
    left = segment->data_len;
  }
}

void write_headers(uint8_t* network, uint32_t bytes, const Packet& about, IcmpError error, Ipv4 from,
                   uint16_t id) noexcept {
  const Ipv4Header& reported = V4::header(about);
  auto& header = *reinterpret_cast<Ipv4Header*>(network);
  header = {.version_words = 0x45,
            .service = static_cast<uint8_t>(kErrorPrecedence | (reported.service & kServiceMask)),
            .total_length = swap16(static_cast<uint16_t>(bytes)),
            .id = swap16(id),
            .fragment = 0,
            .ttl = kOwnTtl,
            .protocol = kProtocolIcmp,
            .checksum = 0,
            .source = swap32(from),
            .destination = reported.source};
  header.checksum = static_cast<uint16_t>(~sum_header(network, kIpv4Bytes / 4));
  auto& icmp = *reinterpret_cast<IcmpHeader*>(network + kIpv4Bytes);
  icmp = {.type = error.type, .code = error.code, .checksum = 0, .rest = swap32(error.rest)};
  icmp.checksum = static_cast<uint16_t>(~rte_raw_cksum(&icmp, bytes - kIpv4Bytes));
}

void write_headers(uint8_t* network, uint32_t bytes, const Packet& about, IcmpError error, Ipv6 from,
                   uint16_t) noexcept {
  auto& header = *reinterpret_cast<Ipv6Header*>(network);
  header.version_class_flow = swap32(kIpv6Version);
  header.payload_length = swap16(static_cast<uint16_t>(bytes - kIpv6Bytes));
  header.next_header = kProtocolIcmpv6;
  header.hop_limit = kOwnTtl;
  store_ipv6(header.source, from);
  std::memcpy(header.destination, V6::header(about).source, sizeof header.destination);
  auto& icmp = *reinterpret_cast<IcmpHeader*>(network + kIpv6Bytes);
  icmp = {.type = error.type, .code = error.code, .checksum = 0, .rest = swap32(error.rest)};
  const uint32_t message_bytes = bytes - kIpv6Bytes;
  icmp.checksum = static_cast<uint16_t>(~fold_sum(sum_pseudo_header(header, message_bytes, kProtocolIcmpv6) +
                                                  rte_raw_cksum(&icmp, message_bytes)));
}

Ipv4 value_of(IpAddress address, V4) noexcept {
  return address.v4();
}
Ipv6 value_of(IpAddress address, V6) noexcept {
  return address.v6();
}
PacketVector& errors_of(Path& path, V4) noexcept {
  return path.errors;
}
PacketVector& errors_of(Path& path, V6) noexcept {
  return path.errors6;
}

// A link-local source is no way back to a sender that is not (RFC 4291 section 2.5.6).
bool in_scope(IpAddress source, IpAddress sender) noexcept {
  return source.is_v4() || !is_link_local(source.v6()) || is_link_local(sender.v6());
}

struct WayBack {
  const Interface* egress = nullptr;  // for a link-local sender, whom no route leads to
  IpAddress source;                   // none: there is no way
};

template <class Family>
WayBack find_way_back(const Path& path, const Packet& packet, IpAddress from) noexcept {
  const auto sender = Family::source(packet);
  const IpAddress to(sender);
  if (Family::is_scoped(sender)) {
    if (packet.ingress == nullptr) return {};
    return {packet.ingress, from.none() ? source_of(path.interfaces, *packet.ingress, to) : from};
  }
  const auto* back = Family::fib(*packet.netns).lookup(sender);
  if (back == nullptr || back->type != RouteType::kUnicast) return {};
  if (!from.none()) return {nullptr, from};
  const Interface& egress = path.interface(back->oif);
  if (egress.live())
    if (const IpAddress source = source_of(path.interfaces, egress, to);
        !source.none() && in_scope(source, to))
      return {nullptr, source};
  const Interface& met = packet.ingress != nullptr ? *packet.ingress : *packet.egress;
  const IpAddress source = source_of(path.interfaces, met, to);
  return {nullptr, !source.none() && in_scope(source, to) ? source : IpAddress()};
}

template <class Family>
bool make_error(Path& path, const Packet& about, IcmpError error, const WayBack& back) noexcept {
  constexpr uint32_t kBefore = Family::kHeaderBytes + kIcmpBytes;
  rte_mbuf* const mbuf = rte_pktmbuf_alloc(path.pool);
  if (mbuf == nullptr) return false;
  const uint32_t room = std::min<uint32_t>(most_bytes(Family{}), rte_pktmbuf_tailroom(mbuf));
  const uint32_t bytes = std::min(kBefore + Family::bytes(about), room);
  auto* const network = reinterpret_cast<uint8_t*>(rte_pktmbuf_append(mbuf, static_cast<uint16_t>(bytes)));
  copy_start(about, network + kBefore, bytes - kBefore);
  Totals& totals = path.statistics.totals;
  write_headers(network, bytes, about, error, value_of(back.source, Family{}),
                static_cast<uint16_t>(totals.icmp_errors_sent));
  Packet packet{.mbuf = mbuf,
                .network = network,
                .netns = about.netns,
                .egress = back.egress,
                .protocol = Family::kProtocol,
                .from_us = true};
  if constexpr (Family::kProtocol == kProtocolIpv4) packet.address = Family::source(about);
  errors_of(path, Family{}).append(packet);
  ++totals.originated;
  ++totals.icmp_errors_sent;
  return true;
}

}  // namespace

template <class Family>
void report(Path& path, const Packet& packet, IcmpError error, IpAddress from) noexcept {
  if (packet.from_us || packet.to_group || !may_be_reported(packet, Family{})) return;
  Totals& totals = path.statistics.totals;
  const uint32_t ifindex = (packet.ingress != nullptr ? packet.ingress : packet.egress)->ifindex;
  if (!path.error_limit.allows(path.now_ns, ifindex) || errors_of(path, Family{}).full()) {
    ++totals.icmp_errors_limited;
    return;
  }
  const WayBack back = find_way_back<Family>(path, packet, from);
  if (back.source.none() || !make_error<Family>(path, packet, error, back)) {
    ++totals.icmp_errors_unsent;
    return;
  }
  path.error_limit.take(path.now_ns, ifindex);
}

template void report<V4>(Path&, const Packet&, IcmpError, IpAddress) noexcept;
template void report<V6>(Path&, const Packet&, IcmpError, IpAddress) noexcept;

}  // namespace mayfly
