// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// All neighbours of all interfaces as the control thread changes them: added by users, learned from
// ARP and neighbour discovery, checked and forgotten by timers.
//
// The life of a learned neighbour:
//
//   resolve -> INCOMPLETE --3 questions to all, 1 s each--> FAILED --1 s--> removed
//                  | learn
//                  v
//              REACHABLE --30 s--> STALE --used--> DELAY --5 s--> PROBE --3 requests, 1 s each--> removed
//                  ^                 | 60 s unused                  | learn
//                  |                 +--> removed                   |
//                  +------------------------------------------------+
//
// Every timeout is a queue of its own, first in, first out: a change of state is a move between two queues,
// and tick() looks at their heads alone. Only a stale neighbour is visited without a reason, every five
// seconds, to see whether workers used it.
//
// Anybody who asks for an address of ours becomes a neighbour, under any name. So a limit that is reached
// stops nobody: the neighbour that has been of no use for longest makes room, a failed one or a stale one
// that was not used since it was looked at. Only when all that are there are in use is a new one refused.
//
// An interface holds RcuPointer<NeighbourTable>, null at first, which must stay where it is while it is not
// null; all calls take it together with the ifindex. They publish tables and retire old ones on the caller's
// list.
//
// Control thread: everything but dismantle(). No call reads the clock: now_ns is CLOCK_MONOTONIC and never
// goes back. Cost: constant, except where said; growing a table copies its pointers, an eighth more a time at
// least.

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "neigh/neighbour.hpp"
#include "reclaim/block_pools.hpp"

namespace mayfly {

struct NeighbourConfig {
  uint32_t limit = 1'048'576;  // of all interfaces
  // Of one interface: the hosts of a /20 in both families. A table is one block: at most kMostInterfaceLimit.
  uint32_t interface_limit = 8192;
  uint64_t reachable_ns = 30 * kNsPerSecond;
  uint64_t delay_ns = 5 * kNsPerSecond;
  uint64_t retry_ns = 1 * kNsPerSecond;  // from a request to the next one
  uint64_t failed_ns = 1 * kNsPerSecond;
  uint64_t stale_check_ns = 5 * kNsPerSecond;
  uint64_t unused_ns = 60 * kNsPerSecond;
  uint8_t requests = 3;
};

// The NLM_F_ flags of a request to add.
struct NeighbourAdd {
  bool create = false;   // otherwise ENOENT when there is none
  bool replace = false;  // otherwise EEXIST when there is one

  static constexpr NeighbourAdd create_exclusive() noexcept { return {.create = true}; }
  static constexpr NeighbourAdd create_replace() noexcept { return {.create = true, .replace = true}; }
};

// What a packet says about a neighbour beside its MAC, in the words of RFC 4861 7.2.5.
struct NeighbourEvidence {
  bool solicited = false;  // an answer to our question: both directions work
  bool overrides = true;   // counts against another MAC that is known
  bool creates = false;    // a new neighbour may come of it, as when it asked for one of our own addresses
  std::optional<bool> router = {};

  // An ARP reply to us; any other ARP packet, or a neighbour solicitation.
  static constexpr NeighbourEvidence answer() noexcept { return {.solicited = true}; }
  static constexpr NeighbourEvidence other(bool creates) noexcept { return {.creates = creates}; }
};

struct NeighbourChange {
  bool known = false;     // there is such a neighbour now, with this MAC
  bool resolved = false;  // it had no MAC before: parked packets can go
  bool changed = false;   // MAC or state is another one
};

enum class NeighbourResolution : uint8_t {
  kStarted,  // the caller sends the first request, to everyone
  kRunning,
  kUsable,  // there is a MAC already
};

struct NeighbourAction {
  enum class Kind : uint8_t {
    kAskEveryone,  // send an ARP request by broadcast, a solicitation to its group
    kAskDirectly,  // send it to mac
    kFailed,       // nobody answered: packets parked for it are dropped; after PROBE it is removed, too
    kForgotten,    // removed: stale and unused, or failed a second ago
  };
  Kind kind;
  uint32_t ifindex;
  IpAddress address;
  Mac mac;
};

struct NeighbourInfo {
  IpAddress address = {};
  Mac mac = 0;
  NeighbourState state = NeighbourState::kFailed;
  uint8_t protocol = 0;
  bool router = false;
};

class Neighbours {
 public:
  using Table = RcuPointer<NeighbourTable>;

  static constexpr uint32_t kMostInterfaceLimit = 87'000;

  explicit Neighbours(BlockPools& pools, NeighbourConfig config = {});
  Neighbours(const Neighbours&) = delete;
  Neighbours& operator=(const Neighbours&) = delete;

  // A neighbour given by a user: state PERMANENT, REACHABLE, STALE, DELAY or PROBE, and protocol RTPROT_*.
  // EINVAL, EEXIST, ENOENT, ENOBUFS (limits, or no memory).
  Result<NeighbourChange> add(Table& table, uint32_t ifindex, const NeighbourInfo& given, NeighbourAdd how,
                              uint64_t now_ns, RetireList& retired);
  // ENOENT when there is none. Returns what it was.
  Result<NeighbourInfo> remove(Table& table, IpAddress address, RetireList& retired);

  // A packet from a neighbour. Permanent ones never change. ENOBUFS as for add; a MAC that no station has is
  // ignored.
  Result<NeighbourChange> learn(Table& table, uint32_t ifindex, IpAddress address, Mac mac,
                                NeighbourEvidence evidence, uint64_t now_ns, RetireList& retired);
  // A worker has packets for an address without a MAC. ENOBUFS as for add.
  Result<NeighbourResolution> resolve(Table& table, uint32_t ifindex, IpAddress address, uint64_t now_ns,
                                      RetireList& retired);

  // The interface went down, by its user (the kernel forgets all) or by loss of its carrier (it keeps
  // permanent ones). Walks the table. Returns how many neighbours went.
  enum class Flush : uint8_t { kAll, kKeepPermanent };
  uint32_t flush(Table& table, Flush what, RetireList& retired);

  // Handles at most `limit` timers that are due; true while there are more. Actions are appended.
  bool tick(uint64_t now_ns, uint32_t limit, std::vector<NeighbourAction>& actions, RetireList& retired);
  // When tick() will have something to do, UINT64_MAX when never.
  uint64_t next_due_ns(uint64_t now_ns) const noexcept;

  static std::optional<NeighbourInfo> get(const Table& table, IpAddress address) noexcept;
  // A dump: begins with cursor 0, appends the next few neighbours and moves the cursor on; false once it was
  // the last part. A neighbour that is there all the time is reported exactly once, whatever else changes.
  static bool dump(const Table& table, uint64_t& cursor, std::vector<NeighbourInfo>& neighbours);

  // The interface is about to be retired, with its table in it: its neighbours leave the timers and the
  // count. Walks the table, which workers may still read.
  void detach(Table& table) noexcept;
  // Teardown worker, after detach() and the grace period: table and neighbours go back.
  void dismantle(Table& table, Returns& returns) const noexcept;

  uint32_t count() const noexcept { return count_; }
  static uint32_t count_of(const Table& table) noexcept {
    const NeighbourTable* own = table.own();
    return own == nullptr ? 0 : own->count;
  }

  // What table and neighbours occupy: their part of a dead interface in the backlog.
  static size_t bytes_of(const Table& table) noexcept {
    const NeighbourTable* own = table.own();
    return own == nullptr ? 0 : own->retired.bytes + own->count * sizeof(Neighbour);
  }

 private:
  enum Queue : uint8_t { kIncomplete, kReachable, kStale, kDelay, kProbe, kFailed, kQueues };
  static constexpr uint8_t kNoQueue = kQueues;
  // The number of a block plus one, so that 0 means none.
  using Link = uint32_t;
  struct Timers {
    Link first = 0;
    Link last = 0;
    uint32_t timeout_ms = 0;
  };

  static Queue queue_of(NeighbourState state) noexcept;
  Neighbour& at(Link link) const noexcept {
    return *reinterpret_cast<Neighbour*>(pools_.at(sizeof(Neighbour), link - 1));
  }
  Link link_of(const Neighbour& neighbour) const noexcept { return pools_.number_of(neighbour.retired) + 1; }
  Result<Neighbour*> create(Table& table, uint32_t ifindex, IpAddress address, NeighbourWord word,
                            uint64_t now_ns, RetireList& retired);
  bool make_room(uint64_t now_ns, RetireList& retired);
  bool make_room_on(Table& table, IpAddress comer, uint64_t now_ns, RetireList& retired);
  uint32_t unused_ms(const Neighbour& stale, uint64_t now_ns) const noexcept;
  bool insert(Table& table, uint32_t ifindex, Neighbour& neighbour, RetireList& retired) noexcept;
  NeighbourTable* build(uint32_t ifindex, uint32_t count, const NeighbourTable* from) noexcept;
  void erase(Neighbour& neighbour, RetireList& retired) noexcept;
  void take_out(NeighbourTable& table, Neighbour& neighbour, RetireList& retired) noexcept;
  void shrink(Table& table, RetireList& retired) noexcept;

  void change(Neighbour& neighbour, NeighbourWord word, uint64_t now_ns) noexcept;
  void enqueue(Neighbour& neighbour, uint8_t queue, uint64_t now_ns) noexcept;
  void dequeue(Neighbour& neighbour) noexcept;
  void expire(Neighbour& neighbour, uint64_t now_ns, std::vector<NeighbourAction>& actions,
              RetireList& retired);

  BlockPools& pools_;
  NeighbourConfig config_;
  uint32_t unused_checks_ = 1;
  uint32_t count_ = 0;
  std::array<Timers, kQueues> queues_;
};

}  // namespace mayfly
