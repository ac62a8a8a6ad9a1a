// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// All interfaces: numbers, names, parents, groups, and the life of each.
//
//   claim -> commit -> live -> [mark] -> retire -> (teardown) -> number free again
//         -> abandon ----------------------^
//
// claim() does everything that can fail and makes nothing visible; commit() cannot fail. A single create is
// claim and commit in a row; a bulk create claims all, then commits all (lib/control). abandon() takes the
// way through teardown too, because workers may have met the number in a demux.
//
// Every call: control thread, except interfaces(), port_demux(): const reads by workers. Costs are constant
// unless stated.

#include <array>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/index_hash.hpp"
#include "base/slot_space.hpp"
#include "iface/demux.hpp"
#include "iface/interface.hpp"
#include "iface/interface_kind.hpp"
#include "neigh/neighbours.hpp"
#include "reclaim/block_pools.hpp"
#include "stats/worker_statistics.hpp"

namespace mayfly {

constexpr uint16_t kMostPorts = 64;
constexpr uint32_t kLeastMtu = 68;  // RFC 791
constexpr uint32_t kDefaultInterfaceLimit = 4'194'304;

// The MAC addresses of what is stacked on a port, where they are not the port's own: what its device must
// receive beside that. Control thread.
struct OwnMacs {
  std::map<Mac, uint32_t> count;  // interfaces that have it
  uint64_t changes = 0;           // grows when an address appears or goes
};

// Which interface a frame of a port belongs to.
struct PortDemux {
  std::atomic<uint32_t> untagged{kNoInterface};
  VlanDemux vlans;
  OwnMacs own_macs;
};

// 1..15 characters, no '/', no white space, not '.' or '..' (dev_valid_name of the kernel, which also refuses
// ':'), and, unlike there, no control characters: names stand in logs and in files.
Status check_interface_name(std::string_view name);
// At most 255 bytes, none of them a control character.
Status check_interface_alias(std::string_view alias);

class InterfaceTable final : public Returnable {
 public:
  static Result<std::unique_ptr<InterfaceTable>> create(uint32_t limit, uint32_t workers, BlockPools& blocks,
                                                        Neighbours& neighbours);
  ~InterfaceTable() override;

  Interface* interfaces() const noexcept { return interfaces_; }
  Interface& interface(uint32_t ifindex) const noexcept { return interfaces_[ifindex]; }
  InterfaceRecord& record(uint32_t ifindex) const noexcept { return records_[ifindex]; }
  PortDemux& port_demux(uint16_t port) noexcept { return ports_[port]; }
  BlockPools& blocks() const noexcept { return blocks_; }
  Neighbours& neighbours() const noexcept { return neighbours_; }
  // The arrays one worker writes.
  InterfaceCounters* counters(uint32_t worker) const noexcept { return counters_[worker]; }
  References* references(uint32_t worker) const noexcept { return references_[worker]; }

  // Reserves name, key and number. Fails with the errno rtnetlink would give: EEXIST, ENODEV, EINVAL, ERANGE,
  // ENOBUFS (no number left), EBUSY (the ifindex is still in teardown, or the parent is being deleted).
  Result<uint32_t> claim(const InterfaceSpec& spec);
  // Visible to workers and to look-ups from here on; both ends of a pair at once.
  void commit(uint32_t ifindex) noexcept;
  void abandon(uint32_t ifindex, RetireList& list) noexcept;

  // Another namespace: down for workers first (suspend), moved once no worker has a packet of it any more,
  // neither in hand nor parked, then resumed. The name is free there; its lists of routes, neighbours and
  // addresses are empty. What is stacked on it stays where it is.
  void suspend(uint32_t ifindex, bool on) noexcept;
  void move(uint32_t ifindex, Netns* to, std::string_view name) noexcept;
  // No worker holds a reference: no packet of it is parked.
  bool unreferenced(uint32_t ifindex) const noexcept;

  // The victims of a removal, until it commits, and what is being moved: still live for workers and look-ups.
  // `by` is the number of the removal or move.
  void mark(uint32_t ifindex, uint32_t by) noexcept {
    states_[ifindex] = InterfaceState::marked;
    records_[ifindex].marked_by = by;
  }
  bool marked_by(uint32_t ifindex, uint32_t by) const noexcept {
    return states_[ifindex] == InterfaceState::marked && records_[ifindex].marked_by == by;
  }
  void unmark(uint32_t ifindex) noexcept { states_[ifindex] = InterfaceState::live; }
  InterfaceState state(uint32_t ifindex) const noexcept { return states_[ifindex]; }
  // Unlinks name, key, parent and group and retires it. It has no children, routes or timers any more. Name
  // and key are free at once, the number after teardown.
  void retire(uint32_t ifindex, RetireList& list) noexcept;

  // The name is in use in this namespace, by what is only claimed, too.
  bool name_taken(const Netns* netns, std::string_view name) const noexcept {
    return find_any(netns, name) != kNoInterface;
  }
  // Live (or marked) interfaces only. kNoInterface when there is none.
  uint32_t find(const Netns* netns, std::string_view name) const noexcept;
  bool exists(uint32_t ifindex) const noexcept;
  // The lowest live ifindex >= from, kNoInterface at the end: a dump's cursor.
  uint32_t next(uint32_t from) const noexcept;
  // Heads and links of the intrusive lists; claimed ones are in them too (exists() tells).
  uint32_t first_of_group(uint32_t group) const noexcept;
  uint32_t group_size(uint32_t group) const noexcept;
  uint32_t next_of_group(uint32_t ifindex) const noexcept { return records_[ifindex].group_next; }
  uint32_t first_child(uint32_t ifindex) const noexcept { return records_[ifindex].first_child; }
  uint32_t next_sibling(uint32_t ifindex) const noexcept { return records_[ifindex].sibling_next; }
  uint32_t first_of_netns(const Netns* netns) const noexcept;
  uint32_t netns_size(const Netns* netns) const noexcept;
  uint32_t next_of_netns(uint32_t ifindex) const noexcept { return records_[ifindex].netns_next; }
  // The other end of a pair, kNoInterface for all that is none.
  uint32_t peer(uint32_t ifindex) const noexcept {
    return interfaces_[ifindex].peer.load(std::memory_order_relaxed);
  }

  Status rename(uint32_t ifindex, std::string_view name);
  void set_group(uint32_t ifindex, uint32_t group) noexcept;
  Status set_alias(uint32_t ifindex, std::string_view alias);
  Status set_mtu(uint32_t ifindex, uint32_t mtu);
  Status set_mac(uint32_t ifindex, Mac mac);
  // Walks the VLANs stacked on a VLAN (at most 4094), never those of a port.
  void set_admin_up(uint32_t ifindex, bool up) noexcept;
  // One of Interface::kSettings; before commit, too.
  void set_flag(uint32_t ifindex, uint32_t setting, bool on) noexcept;
  // It uses the addresses of that interface as its own; kNoInterface ends that.
  void set_unnumbered(uint32_t ifindex, uint32_t lender) noexcept;
  // Ports: the device has a link, or cannot tell. Constant time: nothing is walked.
  void set_carrier(uint32_t ifindex, bool carrier) noexcept;
  bool has_carrier(uint32_t ifindex) const noexcept {
    return (interfaces_[ifindex].flags.load(std::memory_order_relaxed) & Interface::kNoCarrier) == 0;
  }
  // Ports: what one tag and two tags take from the longest IP packet, at most 15 bytes each.
  void set_tag_losses(uint32_t ifindex, uint32_t one_tag, uint32_t two_tags) noexcept;
  // It has the address of the port it is stacked on, and follows it.
  bool shares_port_mac(uint32_t ifindex) const noexcept;
  // The largest MTU it can be given now: the parent's, or what its kind allows.
  uint32_t most_mtu(uint32_t ifindex) const noexcept;
  // Admin up with a carrier, and every interface it is stacked on too; of a pair both ends.
  bool oper_up(uint32_t ifindex) const noexcept;

  // Sums over all workers: one cache line each.
  InterfaceSums sums(uint32_t ifindex) const noexcept;

  uint32_t live() const noexcept { return live_; }
  // Grows with every interface that appears, goes or changes its name: for NLM_F_DUMP_INTR.
  uint64_t changes() const noexcept { return changes_; }
  uint32_t in_use() const noexcept { return slots_.in_use() - 1; }  // the retired ones included
  uint32_t limit() const noexcept { return slots_.limit() - 1; }
  uint32_t workers() const noexcept { return static_cast<uint32_t>(counters_.size()); }
  // What one interface accounts for, its share of the demux left out.
  uint32_t interface_bytes() const noexcept;
  size_t committed_bytes() const noexcept { return slots_.committed_bytes(); }
  bool trim(uint32_t max_chunks) noexcept { return slots_.trim(max_chunks); }

  void take_back(uint32_t ifindex) noexcept override;

 private:
  struct Group {
    uint32_t first = kNoInterface;
    uint32_t size = 0;
  };
  struct NameTraits {
    InterfaceTable* table;
    uint32_t& next(uint32_t ifindex) const noexcept { return table->records_[ifindex].name_next; }
    uint64_t hash(uint32_t ifindex) const noexcept { return table->records_[ifindex].name_hash; }
  };

  InterfaceTable(uint32_t limit, BlockPools& blocks, Neighbours& neighbours);
  Status check_spec(const InterfaceSpec& spec) const;
  void initialise(uint32_t ifindex, const InterfaceSpec& spec) noexcept;
  uint32_t find_any(const Netns* netns, std::string_view name) const noexcept;
  void unlink_name_and_lists(uint32_t ifindex) noexcept;
  void enter_name(uint32_t ifindex, std::string_view name) noexcept;
  void enter(Group& list, uint32_t ifindex, uint32_t InterfaceRecord::*prev,
             uint32_t InterfaceRecord::*next) noexcept;
  bool leave(Group& list, uint32_t ifindex, uint32_t InterfaceRecord::*prev,
             uint32_t InterfaceRecord::*next) noexcept;
  void enter_group(uint32_t ifindex) noexcept;
  void leave_group(uint32_t ifindex) noexcept;
  void enter_netns(uint32_t ifindex) noexcept;
  void leave_netns(uint32_t ifindex) noexcept;
  void commit_one(uint32_t ifindex) noexcept;
  void enter_parent(uint32_t ifindex) noexcept;
  void leave_parent(uint32_t ifindex) noexcept;
  void update_up_flag(uint32_t ifindex) noexcept;
  void enter_mac(uint32_t ifindex);
  void leave_mac(uint32_t ifindex) noexcept;

  SlotSpace slots_;
  BlockPools& blocks_;
  Neighbours& neighbours_;
  Interface* interfaces_ = nullptr;
  InterfaceRecord* records_ = nullptr;
  // Apart from the records, which belong to teardown once retired.
  InterfaceState* states_ = nullptr;
  std::vector<InterfaceCounters*> counters_;
  std::vector<References*> references_;
  std::array<PortDemux, kMostPorts> ports_;
  IndexHash<NameTraits> names_;
  std::map<uint32_t, Group> groups_;
  std::unordered_map<const Netns*, Group> netns_;
  uint64_t next_id_ = 1;
  uint32_t live_ = 0;
  uint64_t changes_ = 0;
};

}  // namespace mayfly
