// SPDX-License-Identifier: BSD-3-Clause
// classify: (port, tags) -> interface. Three passes over the vector, so that the cache misses of one packet
// overlap with those of the others: frame -> demux entry -> interface and its counters.
#include <rte_prefetch.h>

#include "pipeline/accept.hpp"
#include "pipeline/stages.hpp"
#include "pipeline/wire.hpp"

namespace mayfly {
namespace {

// What the frame says before anything is looked up.
struct Tags {
  enum class Count : uint8_t { none, one, two, too_many, truncated };
  Count count = Count::none;
  TagProtocol outer_protocol = TagProtocol::c_tag;
  uint16_t outer = 0;
  uint16_t inner = 0;
  uint16_t protocol = 0;
  uint16_t header_bytes = 0;
};

// Two tags that count and two priority tags.
constexpr uint32_t kLongestHeader = kEthernetBytes + 4 * kTagBytes;

// Counts received frames of one interface, written when the next one has another interface.
struct ReceiveRun {
  const Interface* interface = nullptr;
  uint64_t packets = 0;
  uint64_t bytes = 0;

  void add(Path& path, const Interface& of, uint32_t frame_bytes) noexcept {
    if (interface != &of) {
      settle(path);
      interface = &of;
    }
    ++packets;
    bytes += frame_bytes;
  }

  void settle(Path& path) noexcept {
    if (packets == 0) return;
    InterfaceCounters& counters = path.counters(*interface);
    bump(counters.rx_packets, packets);
    bump(counters.rx_bytes, bytes);
    counters.last_rx_ns.store(path.now_ns, std::memory_order_relaxed);
    packets = bytes = 0;
  }
};

// Any sequence of tags. A priority tag (VID 0) says nothing about the interface: it is skipped wherever it
// stands.
Tags parse_any_tags(const uint8_t* frame, uint32_t bytes) noexcept {
  Tags tags{};
  if (bytes < kEthernetBytes) return {.count = Tags::Count::truncated};
  tags.protocol = load_be16(frame + 2 * kMacBytes);
  tags.header_bytes = kEthernetBytes;
  while (is_tag(tags.protocol)) {
    if (tags.header_bytes == kLongestHeader) return {.count = Tags::Count::too_many};
    if (bytes < tags.header_bytes + kTagBytes) return {.count = Tags::Count::truncated};
    const auto vid = static_cast<uint16_t>(load_be16(frame + tags.header_bytes) & (kTagValues - 1));
    if (vid != 0) {
      if (tags.count == Tags::Count::none) {
        tags.count = Tags::Count::one;
        tags.outer_protocol = tag_protocol_of(tags.protocol);
        tags.outer = vid;
      } else if (tags.count == Tags::Count::one && tags.protocol == kProtocolCTag) {
        tags.count = Tags::Count::two;
        tags.inner = vid;
      } else {
        return {.count = Tags::Count::too_many};
      }
    }
    tags.protocol = load_be16(frame + tags.header_bytes + 2);
    tags.header_bytes = static_cast<uint16_t>(tags.header_bytes + kTagBytes);
  }
  return tags;
}

// One load for what nearly every frame is: untagged, or with one tag.
inline Tags parse_tags(const uint8_t* frame, uint32_t bytes) noexcept {
  if (bytes < kEthernetBytes + 2 * kTagBytes) [[unlikely]]
    return parse_any_tags(frame, bytes);
  uint64_t word;
  std::memcpy(&word, frame + 2 * kMacBytes, sizeof word);
  word = __builtin_bswap64(word);
  const auto first = static_cast<uint16_t>(word >> 48);
  const auto vid = static_cast<uint16_t>(word >> 32 & (kTagValues - 1));
  const auto second = static_cast<uint16_t>(word >> 16);
  if (!is_tag(first)) return {.protocol = first, .header_bytes = kEthernetBytes};
  if (vid == 0 || is_tag(second)) [[unlikely]]
    return parse_any_tags(frame, bytes);
  return {.count = Tags::Count::one,
          .outer_protocol = tag_protocol_of(first),
          .outer = vid,
          .protocol = second,
          .header_bytes = kEthernetBytes + kTagBytes};
}

uint32_t find_interface(const PortDemux& demux, const Tags& tags) noexcept {
  if (tags.count == Tags::Count::one) [[likely]]
    return demux.vlans.find_outer(tags.outer_protocol, tags.outer);
  if (tags.count == Tags::Count::none) return demux.untagged.load(std::memory_order_acquire);
  if (tags.count == Tags::Count::two)
    return demux.vlans.find_inner(tags.outer_protocol, tags.outer, tags.inner);
  return kNoInterface;
}

// What only a look-up of the interface that the tags belong to can tell.
DropReason judge(Packet& packet, const Interface& interface, const Interface& port,
                 Tags::Count tags) noexcept {
  const uint32_t flags = interface.flags.load(std::memory_order_acquire);
  if ((flags & Interface::kLive) != 0) [[likely]]
    return accept(packet, interface, flags);
  // Nobody's tags: the frame is the port's. Interface 0 is never live.
  packet.ingress = &port;
  return tags == Tags::Count::truncated ? DropReason::truncated : DropReason::unknown_tag;
}

void drop_all(Path& path, rte_mbuf* const* mbufs, uint32_t count, const Interface& port,
              DropReason reason) noexcept {
  const Interface* at = port.live() ? &port : nullptr;
  ReceiveRun run;
  for (uint32_t i = 0; i < count; ++i) {
    if (at != nullptr) run.add(path, *at, mbufs[i]->pkt_len);
    drop(path, mbufs[i], at, Side::rx, reason);
  }
  run.settle(path);
}

}  // namespace

void classify(Path& path, const QueueList::RxQueue& from, rte_mbuf* const* mbufs, uint32_t count,
              PacketVector& packets) noexcept {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < count; ++i) {
    rte_prefetch0(rte_pktmbuf_mtod(mbufs[i], const void*));
    bytes += mbufs[i]->pkt_len;
  }
  path.statistics.totals.rx += count;
  path.statistics.totals.rx_bytes += bytes;
  packets.count = 0;
  const Interface& port = path.interface(from.ifindex);
  if (!port.live_and_up()) return drop_all(path, mbufs, count, port, DropReason::port_down);

  const PortDemux& demux = path.table.port_demux(from.port);
  Tags tags[kVectorSize];
  for (uint32_t i = 0; i < count; ++i) {
    tags[i] = parse_tags(rte_pktmbuf_mtod(mbufs[i], const uint8_t*), mbufs[i]->data_len);
    demux.vlans.prefetch(tags[i].outer_protocol, tags[i].outer);
  }

  const Interface* interfaces[kVectorSize];
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t ifindex = find_interface(demux, tags[i]);
    interfaces[i] = &path.interface(ifindex);
    rte_prefetch0(interfaces[i]);
    rte_prefetch0(&path.statistics.interfaces[ifindex]);
  }

  ReceiveRun run;
  for (uint32_t i = 0; i < count; ++i) {
    Packet& packet = packets.packets[packets.count];
    packet.mbuf = mbufs[i];
    packet.network = rte_pktmbuf_mtod_offset(mbufs[i], uint8_t*, tags[i].header_bytes);
    packet.ingress = interfaces[i];
    packet.protocol = tags[i].protocol;
    packet.to_group = packet.from_us = false;
    const DropReason reason = judge(packet, *interfaces[i], port, tags[i].count);
    run.add(path, *packet.ingress, mbufs[i]->pkt_len);
    if (reason == kNoDrop) [[likely]]
      ++packets.count;
    else
      drop(path, packet, reason);
  }
  run.settle(path);
}

}  // namespace mayfly
