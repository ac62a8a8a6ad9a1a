// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The forwarding table of one namespace: longest prefix match that workers read while the control thread
// edits.
//
// A tree bitmap (Eatherton, Varghese, Dittia 2004) of stride 6 with copy-on-write nodes. A node is three
// bitmaps
// - which of its 64 slices have a child, which prefixes end inside the node, which end exactly below it -
// followed by the child pointers and the values, both found by counting bits. It is as long as its content,
// so memory is proportional to the routes (16 B a route where host routes lie side by side) and an empty
// table costs no block. The short level is the first, so that host routes are the exact prefixes of the last
// level, 64 to a node.
//
//   fib.set(prefix, value); fib.erase(prefix); ...    control thread: one edit, of any number of changes
//   fib.commit(retire_list);                          it becomes visible with one store, all at once
//   fib.lookup(address)                               worker, online
//
// An edit clones each node of the published tree at most once; its own nodes it changes in place. What it
// replaced is retired by commit(), never before: after abort() nothing has changed and nothing was retired.
//
// Control thread: everything but lookup and dismantle. An edit may stay open over slices of long work.
// Failure: ENOBUFS when BlockPools has no block; the change is not made, the edit's earlier ones stand.
// Cost: a change clones up to kLevels nodes the first time (about a microsecond); in a bulk edit 100 ns.
//
// The address family is a parameter. Where it says kSkips (IPv6), a node with nothing but one child does not
// exist: the node below carries its level and the bits that lead to it, which a look-up compares. So a lone
// /128 costs one node instead of 22, and memory is proportional to the routes whatever their addresses.

#include <bit>
#include <cstdint>

#include "base/ip_address.hpp"
#include "base/result.hpp"
#include "rcu/rcu.hpp"
#include "reclaim/block_pools.hpp"

namespace mayfly {

// The numbers are RTN_* of rtnetlink.
enum class RouteType : uint8_t {
  kUnspecified = 0,
  kUnicast = 1,
  kLocal = 2,
  kBroadcast = 3,
  kBlackhole = 6,
  kUnreachable = 7,
  kProhibit = 8,
};

// What a worker needs to know of a route.
struct RouteValue {
  uint32_t oif = 0;  // ifindex; 0 for blackhole, unreachable and prohibit
  Ipv4 gateway = 0;  // 0: on-link, the neighbour is the destination itself
  RouteType type = RouteType::kUnicast;
  uint8_t reserved[3] = {};

  bool operator==(const RouteValue&) const = default;
};
static_assert(sizeof(RouteValue) == 12);

struct Ipv4Family {
  using Address = Ipv4;
  using Prefix = Ipv4Prefix;
  using Value = RouteValue;
  static constexpr unsigned kBits = 32;
  static constexpr bool kSkips = false;
  // Six bits of the address, the lowest of them being bit `shift`; zero where they reach over its top.
  static constexpr unsigned slice(Address address, unsigned shift) noexcept { return address >> shift & 63; }
  static std::string text(const Prefix& prefix) { return format_prefix(prefix); }
};

// The same in IPv6.
struct RouteValue6 {
  uint32_t oif = 0;
  RouteType type = RouteType::kUnicast;
  uint8_t reserved[3] = {};
  Ipv6 gateway = {};  // all zero: on-link

  bool operator==(const RouteValue6&) const = default;
};
static_assert(sizeof(RouteValue6) == 24);

struct Ipv6Family {
  using Address = Ipv6;
  using Prefix = Ipv6Prefix;
  using Value = RouteValue6;
  static constexpr unsigned kBits = 128;
  static constexpr bool kSkips = true;
  static constexpr unsigned slice(Address address, unsigned shift) noexcept {
    if (shift >= 64) return static_cast<unsigned>(address.high >> (shift - 64) & 63);
    const uint64_t low = address.low >> shift;
    return static_cast<unsigned>((shift > 58 ? low | address.high << (64 - shift) : low) & 63);
  }
  // Whether two addresses differ in nothing but their last `bits` bits, an even number of at most 254.
  static constexpr bool same_above(Address a, Address b, unsigned bits) noexcept {
    const uint64_t high = a.high ^ b.high;
    const uint64_t low = a.low ^ b.low;
    if (bits < 64) return (high | low >> bits) == 0;
    // In two steps, since all of it may be shifted out.
    const unsigned half = (bits - 64) / 2;
    return bits >= 128 || high >> half >> half == 0;
  }
  // Bits that they have in common, from the first on.
  static constexpr unsigned common(Address a, Address b) noexcept {
    const uint64_t high = a.high ^ b.high;
    return static_cast<unsigned>(high != 0 ? std::countl_zero(high) : 64 + std::countl_zero(a.low ^ b.low));
  }
  static std::string text(const Prefix& prefix) { return format_prefix(prefix); }
};

template <class Family>
class BasicFib {
 public:
  using Address = typename Family::Address;
  using Prefix = typename Family::Prefix;
  using Value = typename Family::Value;

  static constexpr unsigned kStride = 6;
  static constexpr unsigned kLevels = (Family::kBits + kStride - 1) / kStride;

  explicit BasicFib(BlockPools& pools) noexcept : pools_(pools) {}
  // The table must be empty or dismantled, and its edit committed or aborted.
  ~BasicFib();
  BasicFib(const BasicFib&) = delete;
  BasicFib& operator=(const BasicFib&) = delete;

  // Adds the prefix or replaces its value. The host bits of prefix are zero.
  Status set(const Prefix& prefix, const Value& value);
  // Nothing happens when the prefix is not there. May need memory, too: nodes are cloned.
  Status erase(const Prefix& prefix);
  // Publishes the edit and retires what it replaced.
  void commit(RetireList& retired) noexcept;
  // Forgets the edit.
  void abort() noexcept;
  // Longest match in the edit in progress, visible to workers or not.
  const Value* lookup_edit(Address address) const noexcept { return lookup_below(edit_root_, address); }

  // What the published nodes occupy: the part of a dead namespace's FIB in the backlog.
  size_t bytes() const noexcept { return bytes_; }

  // Worker, online: longest match, nullptr when there is none; valid until its next quiescent state.
  const Value* lookup(Address address) const noexcept { return lookup_below(root_.read(), address); }
  // The same for a vector, its cache misses overlapped: about two per level that is not in the cache.
  void lookup_bulk(const Address* addresses, const Value** values, unsigned count) const noexcept;

  // Teardown worker, once the namespace's grace period is over: gives back every node.
  void dismantle(Returns& returns) noexcept;

 private:
  // Zero bits in front of every address, so that all levels have the same stride.
  static constexpr unsigned kPadding = kLevels * kStride - Family::kBits;

  struct Node;
  struct Position;

  static Position position_of(const Prefix& prefix) noexcept;
  static unsigned slice_of(Address address, unsigned level) noexcept {
    return Family::slice(address, (kLevels - 1 - level) * kStride);
  }
  static const Value* lookup_below(const Node* node, Address address) noexcept;
  static void lookup_lanes(const Node* root, const Address* addresses, const Value** values,
                           unsigned count) noexcept;

  Node* allocate(size_t bytes) noexcept;
  Node* own(Node* node, size_t extra_bytes) noexcept;
  Node* shrink(Node* node) noexcept;
  void discard(Node* node) noexcept;
  Node* chain(const Prefix& prefix, const Position& position, unsigned level, const Value& value) noexcept;
  Node* fork(Address path, unsigned level, Node* below, size_t extra_bytes) noexcept;
  Status set_skipping(const Prefix& prefix, const Position& position, const Value& value);
  Status erase_skipping(const Prefix& prefix, const Position& position);
  void free_edit(Node* node) noexcept;
  void give_back(Node* node, Returns& returns) noexcept;

  RcuPointer<Node> root_;
  Node* edit_root_ = nullptr;
  uint64_t edit_ = 1;  // nodes that carry this number belong to the edit in progress
  cds_wfcq_node* replaced_ =
      nullptr;  // published nodes to be retired by commit, linked through their headers
  size_t bytes_ = 0;
  size_t edit_bytes_ = 0;
  BlockPools& pools_;
};

extern template class BasicFib<Ipv4Family>;
extern template class BasicFib<Ipv6Family>;
using Fib = BasicFib<Ipv4Family>;
using Fib6 = BasicFib<Ipv6Family>;

}  // namespace mayfly
