// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The routes of a namespace, of both families, as its users see them: several a prefix, of which the best one
// is in the FIB of its family.
//
// RouteTable, one for the process, holds the memory of all routes and finds them by (namespace, prefix); a
// Rib, one a namespace, is small (an empty one costs its own 72 bytes), since namespaces exist by the ten
// thousand. The best route of a prefix is the one with the lowest metric, among equals the first in the
// kernel's order of add, append, prepend; whenever it changes, the change goes into the edit that is open on
// the namespace's Fib or Fib6. The caller commits. IPv6 routes follow the rules of IPv4 ones in this (the
// kernel makes a second route of equal metric a next hop of the first).
//
//   rib.add({.address = net, .length = 24, .oif = 7}, RouteAdd::create_exclusive(), &interface.routes);
//   rib.remove({.address = net, .length = 24}, nullptr);
//   while (rib.remove_interface(interface.routes, 1024).value_or(false)) ...   every route of a dying
//   interface for (RouteCursor at(rib); const Route* route = at.current(); at.advance()) ...
//
// Each interface has a list of its routes whose head, a uint32_t that begins as zero, lives in the interface
// and must stay where it is while routes point out of it.
//
// All calls: control thread, except dismantle(). Errors are the kernel's for the same request, with a text;
// nothing has changed after one. Cost: 200 ns an add or remove in a bulk edit, whatever the number of routes
// and however many share the prefix (10,000 interfaces with the same address are normal).

#include <cstdint>
#include <optional>

#include "base/index_hash.hpp"
#include "base/result.hpp"
#include "base/slot_space.hpp"
#include "fib/fib.hpp"

namespace mayfly {

// protocol and scope are RTPROT_* and RT_SCOPE_* of rtnetlink: kept and shown, without a meaning here.
// address, gateway and prefsrc are of one family; the default of address is ::.
struct Route {
  IpAddress address = {};
  uint8_t length = 0;
  RouteType type = RouteType::kUnicast;
  uint8_t protocol = 4;  // RTPROT_STATIC
  uint8_t scope = 0;     // RT_SCOPE_UNIVERSE
  bool onlink = false;   // the gateway is in no connected prefix: shown, without a meaning here
  uint32_t metric = 0;
  uint32_t oif = 0;        // ifindex; 0 where the type has none
  IpAddress gateway = {};  // none: on-link
  IpAddress prefsrc = {};

  IpPrefix prefix() const noexcept { return {address, length}; }
  bool operator==(const Route&) const = default;
};
static_assert(sizeof(Route) == 64);

// What a route must look like, beside its prefix; the defaults match everything.
struct RouteMatch {
  IpAddress address = {};
  uint8_t length = 0;
  RouteType type = RouteType::kUnspecified;
  uint8_t protocol = 0;
  uint8_t scope = 255;  // RT_SCOPE_NOWHERE
  uint32_t metric = 0;
  uint32_t oif = 0;
  IpAddress gateway = {};
  IpAddress prefsrc = {};

  IpPrefix prefix() const noexcept { return {address, length}; }
  bool matches(const Route& route) const noexcept;
};

// The NLM_F_ flags of a request to add, with the kernel's meaning. Routes conflict when prefix and metric are
// equal.
struct RouteAdd {
  bool create = false;     // otherwise ENOENT when there is none to replace
  bool exclusive = false;  // EEXIST when there is one
  bool replace = false;    // the first one is replaced
  bool append = false;     // behind the others; without any of the three: before them

  static constexpr RouteAdd create_exclusive() noexcept { return {.create = true, .exclusive = true}; }
  static constexpr RouteAdd create_replace() noexcept { return {.create = true, .replace = true}; }
  static constexpr RouteAdd create_append() noexcept { return {.create = true, .append = true}; }
};

class Rib;
class RouteCursor;

class RouteTable final : public Returnable {
 public:
  static constexpr uint32_t kDefaultLimit = 4'194'304;
  static constexpr size_t kRouteBytes = 128;

  explicit RouteTable(uint32_t limit = kDefaultLimit);
  RouteTable(const RouteTable&) = delete;
  RouteTable& operator=(const RouteTable&) = delete;

  // Routes of all namespaces, those of dead ones that are still in teardown included.
  uint32_t in_use() const noexcept { return pool_.in_use(); }
  uint32_t limit() const noexcept { return limit_; }
  size_t committed_bytes() const noexcept { return pool_.committed_bytes(); }
  bool trim(uint32_t max_chunks) noexcept { return pool_.trim(max_chunks); }

  // Publishes the edits that routes of any Rib of this table made in FIBs: a request need not know which
  // namespaces it touched.
  void commit(RetireList& retired) noexcept;

  // A route of a dead namespace came back from teardown.
  void take_back(uint32_t token) noexcept override;

 private:
  friend class Rib;
  friend class RouteCursor;

  // The number of an entry plus one, so that zeroed memory means none.
  using Link = uint32_t;

  struct Entry;
  struct Chains {
    const Pool* pool;
    uint32_t& next(uint32_t number) const noexcept;
    uint64_t hash(uint32_t number) const noexcept;
  };

  Entry& at(Link link) const noexcept;
  Link link_of(const Entry& entry) const noexcept { return pool_.index_of(&entry) + 1; }
  static uint64_t hash_of(uint64_t rib, const IpPrefix& prefix) noexcept;

  uint32_t limit_;
  Pool pool_;
  IndexHash<Chains> index_;  // the best route of every prefix
  Rib* edited_ = nullptr;    // Ribs that have changed their FIBs since the last commit
  uint64_t ribs_ = 0;        // numbers of Ribs are never used twice: routes of dead ones may linger
};

class Rib {
 public:
  Rib(RouteTable& table, Fib& fib, Fib6& fib6) noexcept;
  // The Rib must be empty or dismantled.
  ~Rib();
  Rib(const Rib&) = delete;
  Rib& operator=(const Rib&) = delete;

  // oif_routes: the list of interface route.oif, nullptr when that is 0.
  // EINVAL, EEXIST, ENOENT, ENOBUFS (the limit, or no memory for the FIB).
  Status add(const Route& route, RouteAdd how, uint32_t* oif_routes);

  // Removes the first match and returns it; ESRCH when there is none, ENOBUFS when the FIB has no memory for
  // the edit. oif_routes, the list of interface match.oif, is optional and makes the search short where
  // thousands of interfaces have the prefix.
  Result<Route> remove(const RouteMatch& match, const uint32_t* oif_routes);

  // The first match, nullptr when there is none; valid until the next change.
  const Route* find(const RouteMatch& match, const uint32_t* oif_routes) const noexcept;

  // Removes at most max_routes of an interface; true while it has more. ENOBUFS when the FIB has no memory
  // for the edit: those not yet removed are still there, call again. Nothing refers to the list's head once
  // it is zero.
  // keep_local: those of its own addresses stay, which each call passes over.
  Result<bool> remove_interface(uint32_t& routes, uint32_t max_routes, bool keep_local = false);
  // Whether the list has more than so many routes; it looks at one more at most.
  bool has_more_than(uint32_t routes, uint32_t count) const noexcept;

  // The interface through which a gateway is a neighbour: oif, or any when that is 0. oif_routes as in
  // remove(). ENETUNREACH when the gateway is in no connected prefix (there), EINVAL when it is an address of
  // our own. A link-local gateway is a neighbour on every interface, so EINVAL without oif.
  Result<uint32_t> interface_of_gateway(IpAddress gateway, uint32_t oif, const uint32_t* oif_routes) const;

  uint32_t size() const noexcept { return size_; }
  // What they occupy, beside the FIB.
  size_t bytes() const noexcept { return size_ * RouteTable::kRouteBytes; }

  // The namespace is about to be retired: open dumps end here. Its interfaces' lists need not be emptied,
  // they are never looked at again.
  void detach() noexcept;
  // Teardown worker, after detach() and the grace period: its routes go back to the RouteTable.
  void dismantle(Returns& returns) noexcept;

 private:
  friend class RouteCursor;
  friend class RouteTable;
  using Link = RouteTable::Link;
  using Entry = RouteTable::Entry;

  Link first_of(const IpPrefix& prefix) const noexcept;
  template <class Predicate>
  Link find_first(const IpPrefix& prefix, uint32_t oif, const uint32_t* oif_routes,
                  Predicate wanted) const noexcept;
  Link find_match(const RouteMatch& match, const uint32_t* oif_routes) const noexcept;
  Link last_up_to(Link first, uint32_t metric) const noexcept;
  Status insert(const Route& route, Link first, Link before, uint32_t* oif_routes);
  Status replace(Entry& entry, const Route& route, uint32_t* oif_routes);
  Status remove_entry(Link link);
  void begin_edit() noexcept;
  Status publish(const Route& route);
  Status withdraw(const IpPrefix& prefix);
  void join_prefix(Entry& entry, Link first, Link before) noexcept;
  void leave_prefix(Entry& entry) noexcept;
  void join_interface(Entry& entry, uint32_t* oif_routes) noexcept;
  void leave_interface(Entry& entry) noexcept;

  RouteTable& table_;
  Fib& fib_;
  Fib6& fib6_;
  uint64_t number_;
  Link newest_ = 0;
  Link oldest_ = 0;
  uint32_t size_ = 0;
  uint32_t changes_ = 0;
  RouteCursor* cursors_ = nullptr;
  Rib* next_edited_ = nullptr;
  bool edited_ = false;
};

static_assert(sizeof(Rib) == 72);

// An incremental dump: the routes there when it began, oldest first, each once however long the dump takes
// and whatever changes meanwhile; those removed in time are left out. Control thread. The Rib may go before
// it.
class RouteCursor {
 public:
  explicit RouteCursor(Rib& rib) noexcept;
  ~RouteCursor();
  RouteCursor(const RouteCursor&) = delete;
  RouteCursor& operator=(const RouteCursor&) = delete;

  // nullptr at the end.
  const Route* current() const noexcept;
  // Where the current route stands among those of its prefix: a number that is its own as long as it is
  // there, and that of the next better one, 0 for the best. Nothing where it is the only one.
  struct Place {
    uint32_t number;
    uint32_t behind;
  };
  std::optional<Place> place() const noexcept;
  void advance() noexcept;
  // Whether the set changed since the dump began (NLM_F_DUMP_INTR).
  bool changed() const noexcept { return changed_ || (rib_ != nullptr && rib_->changes_ != changes_); }

 private:
  friend class Rib;
  void entry_goes(RouteTable::Link link) noexcept;
  void end() noexcept;

  Rib* rib_;
  RouteTable::Link current_;
  RouteTable::Link last_;
  uint32_t changes_;
  bool changed_ = false;
  RouteCursor* next_cursor_;
};

}  // namespace mayfly
