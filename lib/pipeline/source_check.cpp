// SPDX-License-Identifier: BSD-3-Clause
// Sources: not our own addresses, and, where the interface says rp_filter strict, only those that are routed
// back to it (RFC 3704 section 2.2).
//
// A look-up of every source would cost as much as that of the destination. So it is made only for interfaces
// that are strict; on all others a source is compared with the addresses of the interface it came by. What
// claims another address of ours and is for us is found out when it is answered (route.cpp).
#include <rte_prefetch.h>

#include <algorithm>
#include <bit>

#include "pipeline/family.hpp"
#include "pipeline/own.hpp"
#include "pipeline/stages.hpp"

namespace mayfly {
namespace {

bool is_strict(const Packet& packet) noexcept {
  return (packet.ingress->flags.load(std::memory_order_relaxed) & Interface::kRpFilterStrict) != 0;
}

template <class Family>
DropReason judge(const Packet& packet, const typename Family::Value* back) noexcept {
  if (back != nullptr && back->type == RouteType::kLocal) return DropReason::spoofed_source;
  if (!is_strict(packet)) return kNoDrop;
  return back != nullptr && back->type == RouteType::kUnicast && back->oif == packet.ingress->ifindex
             ? kNoDrop
             : DropReason::rp_filter;
}

// Looks up those of `pending` that are of the first one's namespace.
template <class Family>
void look_up_sources(const PacketVector& packets, uint64_t& pending, DropReason* reasons) noexcept {
  typename Family::Address sources[kVectorSize]{};
  const typename Family::Value* values[kVectorSize];
  uint8_t members[kVectorSize];
  unsigned count = 0;
  const Netns* netns = packets.packets[static_cast<uint32_t>(std::countr_zero(pending))].netns;
  for (uint64_t rest = pending; rest != 0; rest &= rest - 1) {
    const auto number = static_cast<uint32_t>(std::countr_zero(rest));
    if (packets.packets[number].netns != netns) continue;
    sources[count] = Family::source(packets.packets[number]);
    members[count++] = static_cast<uint8_t>(number);
    pending &= ~(uint64_t{1} << number);
  }
  Family::fib(*netns).lookup_bulk(sources, values, count);
  for (unsigned i = 0; i < count; ++i)
    reasons[members[i]] = judge<Family>(packets.packets[members[i]], values[i]);
}

template <class Family>
void drop_spoofed(Path& path, PacketVector& packets, uint64_t doubtful) noexcept {
  DropReason reasons[kVectorSize];
  std::fill(reasons, reasons + packets.count, kNoDrop);
  for (uint64_t pending = doubtful; pending != 0;) look_up_sources<Family>(packets, pending, reasons);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < packets.count; ++i)
    if (reasons[i] == kNoDrop)
      packets.keep(packets.packets[i], kept);
    else
      drop(path, packets.packets[i], reasons[i]);
  packets.count = kept;
}

}  // namespace

template <class Family>
void check_sources(Path& path, PacketVector& packets) noexcept {
  for (const Packet& packet : packets) rte_prefetch0(packet.ingress->addresses.read());
  uint64_t doubtful = 0;
  for (uint32_t i = 0; i < packets.count; ++i) {
    const Packet& packet = packets.packets[i];
    const auto source = Family::source(packet);
    if (Family::is_scoped(source)) continue;
    const AddressList* own = packet.ingress->addresses.read();
    const bool few = own == nullptr || own->count <= kFewAddresses;
    // One that is ours is doubtful, too, so that there is one place where packets are dropped.
    if (is_strict(packet) || !few || (own != nullptr && own->has(IpAddress(source)))) [[unlikely]]
      doubtful |= uint64_t{1} << i;
  }
  if (doubtful != 0) [[unlikely]]
    drop_spoofed<Family>(path, packets, doubtful);
}

template void check_sources<V4>(Path&, PacketVector&) noexcept;
template void check_sources<V6>(Path&, PacketVector&) noexcept;

}  // namespace mayfly
