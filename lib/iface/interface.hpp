// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// A virtual network device: what workers read of it (Interface) and what control alone keeps
// (InterfaceRecord).
//
// An interface is known by its ifindex, which is also its slot in every array. Memory of one, with one
// worker: 128 B Interface + 128 B InterfaceRecord + 72 B counters and references + 4 B name index + its share
// of a demux chunk; each further worker adds 72 B.
//
// Interface: written by the control thread alone. A worker that got the ifindex from a demux, a route or a
// message finds it at table.interfaces()[ifindex]; it must look at flags first (kLive, kUp) and, when it
// comes from a message or a parked packet, compare id. Fields that change during life are one aligned word or
// an immutable block under RCU.

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/address.hpp"
#include "rcu/rcu.hpp"
#include "reclaim/retire.hpp"

namespace mayfly {

struct AddressList;
struct NeighbourTable;
struct Netns;

constexpr size_t kInterfaceNameBytes = 16;  // IFNAMSIZ, the terminating NUL included
constexpr uint16_t kNoPort = UINT16_MAX;
constexpr uint32_t kNoInterface = 0;  // ifindex 0 is nobody's

using KindId = uint8_t;

struct alignas(128) Interface {
  // Line 0: all that most packets need.
  static constexpr uint32_t kLive = 1;  // exists for workers; a slot without it is nobody's
  static constexpr uint32_t kUp = 2;    // admin up, and so is a VLAN it is stacked on
  // Of a port's own interface only. What is stacked on it looks there when it sends, so that a link going
  // down is one store.
  static constexpr uint32_t kNoCarrier = 4;
  // Likewise: how many bytes shorter than the port's MTU an IP packet must be, four bits for each of no, one
  // and two tags.
  static constexpr uint32_t kTagLossShift = 8;
  static constexpr uint32_t kTagLossMask = 0xf;
  // Settings: InterfaceTable::set_flag.
  static constexpr uint32_t kRpFilterStrict = 1 << 24;  // a source must be routed back to where it came from
  static constexpr uint32_t kProxyArp = 1 << 25;        // answers ARP for what is routed elsewhere
  static constexpr uint32_t kProxyNd = 1 << 26;         // the same for neighbour solicitations
  static constexpr uint32_t kNoLinkLocal = 1 << 27;     // has no link-local address of its own accord
  static constexpr uint32_t kSettings = kRpFilterStrict | kProxyArp | kProxyNd | kNoLinkLocal;

  std::atomic<uint32_t> flags;
  uint32_t ifindex;
  uint64_t id;  // never reused: the generation that messages and parked packets carry
  std::atomic<Mac> mac;
  RcuPointer<Netns> netns;
  std::atomic<uint32_t> mtu;  // bytes of IP packet
  uint16_t port;              // leaves by this ethdev; kNoPort: nowhere (dummy)
  uint8_t tag_bytes;          // 0, 4 or 8
  KindId kind;
  uint8_t tags[8];  // what follows the MAC addresses: TPID, TCI, TPID, TCI in wire order
  RcuPointer<NeighbourTable> neighbours;
  RcuPointer<AddressList> addresses;

  // Line 1: what few packets need.
  alignas(64) std::atomic<uint32_t> peer;  // veth: the other end's ifindex; 0: none, or it is being deleted
  std::atomic<uint32_t> unnumbered;        // the interface whose addresses it uses as its own; 0: none
  std::atomic<uint64_t> unnumbered_id;     // its id then: it may be gone (own_addresses.hpp)
  std::byte reserved[48];

  bool live_and_up() const noexcept {
    return (flags.load(std::memory_order_acquire) & (kLive | kUp)) == (kLive | kUp);
  }
  // Of a port's interface, from its flags: bytes that an IP packet behind so many bytes of tags has less.
  static uint32_t tag_loss(uint32_t flags, uint32_t tag_bytes) noexcept {
    return flags >> (kTagLossShift + tag_bytes) & kTagLossMask;
  }
  bool live() const noexcept { return (flags.load(std::memory_order_acquire) & kLive) != 0; }
  uint16_t outer_tag() const noexcept { return static_cast<uint16_t>((tags[2] & 0x0f) << 8 | tags[3]); }
  uint16_t inner_tag() const noexcept { return static_cast<uint16_t>((tags[6] & 0x0f) << 8 | tags[7]); }
  uint16_t outer_protocol() const noexcept { return static_cast<uint16_t>(tags[0] << 8 | tags[1]); }
};
static_assert(sizeof(Interface) == 128);
static_assert(offsetof(Interface, peer) == 64);

enum class InterfaceState : uint8_t {
  free,
  claimed,  // reserved by a bulk create that has not committed; invisible to look-ups
  live,
  marked,  // a bulk delete that has not committed will take it
  retired,
};

struct InterfaceRecord {
  Retired retired;
  char name[kInterfaceNameBytes];
  char* alias;          // malloc'ed, owned; nullptr: none
  uint64_t created_ns;  // CLOCK_REALTIME
  uint32_t name_next;   // chain of the name index
  uint32_t name_hash;   // of namespace and name: the index never has to look at two lines
  uint32_t group;
  uint32_t group_prev, group_next;
  uint32_t parent;  // ifindex, kNoInterface: none
  uint32_t sibling_prev, sibling_next;
  uint32_t first_child;
  uint32_t children;
  uint32_t routes;     // head of its list in lib/fib, 0: none
  uint32_t mtu_limit;  // largest MTU its kind allows
  uint32_t marked_by;  // the removal or move that marked it
  uint32_t netns_prev, netns_next;
  bool admin_up;
  bool suspended;  // down for workers, while it is moved to another namespace
  bool own_mac;    // it is not the port's, and counted in PortDemux::own_macs
  uint8_t reserved[13];
};
static_assert(sizeof(InterfaceRecord) == 128);

}  // namespace mayfly
