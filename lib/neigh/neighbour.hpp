// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The neighbours of one interface, of both families, as workers see them.
//
// A NeighbourTable is a block with an open-addressed array of pointers, as long as the neighbours need: 48 B
// with one of them, 64 B with up to three, at most three quarters full. The interface holds the pointer to
// it, null when there is none. Control adds and removes with single stores into the array, and publishes
// another table when this one is too small or too large. A Neighbour is a block of its own, one cache line;
// its MAC and state are one word.
//
//   const Neighbour* neighbour = find_neighbour(interface.neighbours.read(), address);
//   if (neighbour != nullptr) { const NeighbourWord word = neighbour->read(); if (word.usable()) ...
//   word.mac() }
//
// Worker, online: everything in this file; the pointers are dead at its next quiescent state. The one word
// that workers write is `used`, and only when it is clear.

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/ip_address.hpp"
#include "rcu/rcu.hpp"
#include "reclaim/retire.hpp"

namespace mayfly {

// The numbers are NUD_* of rtnetlink.
enum class NeighbourState : uint8_t {
  kIncomplete = 0x01,  // everyone was asked, no answer yet
  kReachable = 0x02,
  kStale = 0x04,   // not confirmed for a while: used all the same, and checked when it is
  kDelay = 0x08,   // used while stale: about to be asked
  kProbe = 0x10,   // asked directly
  kFailed = 0x20,  // no answer: packets are dropped, not parked, until control removes it a second later
  kPermanent = 0x80,
};

// MAC and state, as one aligned word that changes with one store.
class NeighbourWord {
 public:
  NeighbourWord(Mac mac, NeighbourState state) noexcept
      : word_(uint64_t{static_cast<uint8_t>(state)} << 48 | mac) {}
  explicit NeighbourWord(uint64_t word) noexcept : word_(word) {}

  uint64_t word() const noexcept { return word_; }
  Mac mac() const noexcept { return word_ & kBroadcastMac; }
  NeighbourState state() const noexcept { return static_cast<NeighbourState>(word_ >> 48); }
  bool is(NeighbourState state) const noexcept { return this->state() == state; }
  // It has a MAC to send to.
  bool usable() const noexcept { return (word_ & kUnusable) == 0; }

 private:
  static constexpr uint64_t kUnusable = uint64_t{static_cast<uint8_t>(NeighbourState::kIncomplete) |
                                                 static_cast<uint8_t>(NeighbourState::kFailed)}
                                        << 48;
  uint64_t word_;
};

struct Neighbour {
  Retired retired;
  IpAddress address;
  std::atomic<uint64_t> word;

  // Control only: its place in the queue of its timer, and the pointer to the table it is in.
  uint32_t next;      // a number of BlockPools plus one, 0: none
  uint32_t previous;  // the same
  RcuPointer<struct NeighbourTable>* table;
  uint32_t since_ms;  // when it joined its queue
  uint8_t tries;      // requests sent, or times a stale one was found unused
  uint8_t queue : 7;
  uint8_t router : 1;  // it said so (IPv6)
  uint8_t protocol;    // RTPROT_* of whoever added it

  mutable std::atomic<bool> used;  // set by workers, cleared by control

  NeighbourWord read() const noexcept { return NeighbourWord(word.load(std::memory_order_acquire)); }
  // A packet was sent to it while it was stale: control will check that it is still there.
  void mark_used() const noexcept {
    if (!used.load(std::memory_order_relaxed)) used.store(true, std::memory_order_relaxed);
  }
};
static_assert(sizeof(Neighbour) == 64);

struct NeighbourTable {
  Retired retired;
  uint32_t capacity;
  // Control only.
  uint32_t count;
  uint32_t filled;  // slots that are not empty: neighbours, and tombstones of removed ones
  uint32_t ifindex;

  using Slot = std::atomic<Neighbour*>;
  Slot* slots() noexcept { return reinterpret_cast<Slot*>(this + 1); }
  const Slot* slots() const noexcept { return reinterpret_cast<const Slot*>(this + 1); }

  // Where a neighbour was removed, so that those behind it are still found.
  static Neighbour* tombstone() noexcept { return reinterpret_cast<Neighbour*>(uintptr_t{1}); }
  // The slot where the search for a hash begins: the order of slots is that of hashes, in every table.
  uint32_t home(uint32_t hash) const noexcept {
    return static_cast<uint32_t>(uint64_t{hash} * capacity >> 32);
  }
};
static_assert(sizeof(NeighbourTable) == 32);

// Unknown outside of the process, so that nobody can choose addresses that collide. Set before threads start.
struct NeighbourHashSeed {
  uint64_t low;
  uint64_t high;
};
extern const NeighbourHashSeed kNeighbourHashSeed;

// Both halves of one long product: a multiplication, whatever the family.
inline uint32_t neighbour_hash(IpAddress address) noexcept {
  __extension__ using Product = unsigned __int128;
  const Ipv6 key = address.v6();
  const Product product = Product{key.low ^ kNeighbourHashSeed.low} * (key.high ^ kNeighbourHashSeed.high);
  return static_cast<uint32_t>((static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64)) >> 32);
}

// Fetches the slot where find_neighbour() will begin. table is not null, and its first line is there.
inline void prefetch_neighbour_slot(const NeighbourTable* table, IpAddress address) noexcept {
  __builtin_prefetch(table->slots() + table->home(neighbour_hash(address)));
}

// nullptr when there is no table or no such neighbour in it. Two loads beyond the table's header, as a rule.
inline const Neighbour* find_neighbour(const NeighbourTable* table, IpAddress address) noexcept {
  if (table == nullptr) return nullptr;
  for (uint32_t slot = table->home(neighbour_hash(address));;) {
    const Neighbour* neighbour = table->slots()[slot].load(std::memory_order_acquire);
    if (neighbour == nullptr) return nullptr;
    if (neighbour != NeighbourTable::tombstone() && neighbour->address == address) return neighbour;
    if (++slot == table->capacity) slot = 0;
  }
}

}  // namespace mayfly
