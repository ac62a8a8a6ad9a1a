// SPDX-License-Identifier: BSD-3-Clause
#include "fib/rib.hpp"

#include <linux/rtnetlink.h>

#include <new>
#include <utility>

#include "base/check.hpp"

namespace mayfly {
namespace {

bool needs_interface(RouteType type) {
  return type == RouteType::kUnicast || type == RouteType::kLocal || type == RouteType::kBroadcast;
}

bool discards(RouteType type) {
  return type == RouteType::kBlackhole || type == RouteType::kUnreachable || type == RouteType::kProhibit;
}

bool is_group(IpAddress address) {
  constexpr Ipv4 kFirstMulticast = 0xe0000000;
  return address.is_v4() ? address.v4() >= kFirstMulticast : is_multicast(address.v6());
}

Status validate_gateway(const Route& route) {
  if (route.gateway.none()) return {};
  if (route.gateway.family() != route.address.family())
    return fail_attribute(RTA_GATEWAY, EINVAL, "gateway {}: not of the family of {}",
                          format_address(route.gateway), format_prefix(route.prefix()));
  if (route.type != RouteType::kUnicast)
    return fail_attribute(RTA_GATEWAY, EINVAL, "gateway {}: only unicast routes have one",
                          format_address(route.gateway));
  if (is_group(route.gateway))
    return fail_attribute(RTA_GATEWAY, EINVAL, "gateway {}: a unicast address is needed",
                          format_address(route.gateway));
  return {};
}

Status validate(const Route& route) {
  if (const unsigned most = route.prefix().most_length(); route.length > most)
    return fail_attribute(RTA_DST, EINVAL, "prefix length {}: accepted 0..{}", route.length, most);
  if (const IpAddress network = route.prefix().network(); network != route.address)
    return fail_attribute(RTA_DST, EINVAL, "prefix {}: host bits are set, the network is {}",
                          format_prefix(route.prefix()), format_prefix(IpPrefix(network, route.length)));
  if (!needs_interface(route.type) && !discards(route.type))
    return fail(EINVAL, "route type {}: accepted unicast, local, broadcast, blackhole, unreachable, prohibit",
                static_cast<unsigned>(route.type));
  if (needs_interface(route.type) && route.oif == 0)
    return fail_attribute(RTA_OIF, EINVAL, "route {}: an interface is needed", format_prefix(route.prefix()));
  if (discards(route.type) && route.oif != 0)
    return fail_attribute(RTA_OIF, EINVAL, "route {}: interface {} on a type that discards packets",
                          format_prefix(route.prefix()), route.oif);
  if (!route.prefsrc.none() && route.prefsrc.family() != route.address.family())
    return fail_attribute(RTA_PREFSRC, EINVAL, "src {}: not of the family of {}",
                          format_address(route.prefsrc), format_prefix(route.prefix()));
  return validate_gateway(route);
}

RouteValue value_of(const Route& route) {
  return {.oif = route.oif, .gateway = route.gateway.none() ? 0 : route.gateway.v4(), .type = route.type};
}

RouteValue6 value6_of(const Route& route) {
  return {.oif = route.oif, .type = route.type, .gateway = route.gateway.v6()};
}

}  // namespace

// Two lines of the cache. Routes of one prefix form a list, best first, whose first element is in the index.
struct alignas(64) RouteTable::Entry {
  Route route;
  uint32_t hash_next;
  Link oif_next;
  Link* oif_link;  // what points here in the list of its interface: the head or an oif_next
  uint64_t rib : 63;
  uint64_t indexed : 1;
  Link newer;
  Link older;
  Link prefix_next;      // of the last one: none
  Link prefix_previous;  // of the first one: the last one
};

uint32_t& RouteTable::Chains::next(uint32_t number) const noexcept {
  return static_cast<Entry*>(pool->at(number))->hash_next;
}

uint64_t RouteTable::Chains::hash(uint32_t number) const noexcept {
  const Entry& entry = *static_cast<const Entry*>(pool->at(number));
  return hash_of(entry.rib, entry.route.prefix());
}

uint64_t RouteTable::hash_of(uint64_t rib, const IpPrefix& prefix) noexcept {
  const Ipv6 address = prefix.address.v6();
  const uint64_t high = address.high == 0 ? 0 : mix_hash(address.high);
  return mix_hash((address.low << 8 | address.low >> 56) + (prefix.length + high) +
                  rib * 0x9e3779b97f4a7c15ULL);
}

RouteTable::RouteTable(uint32_t limit)
    : limit_(limit), pool_("routes", sizeof(Entry), limit), index_(limit, Chains{&pool_}) {
  static_assert(sizeof(Entry) == kRouteBytes);
}

RouteTable::Entry& RouteTable::at(Link link) const noexcept {
  return *static_cast<Entry*>(pool_.at(link - 1));
}

void RouteTable::take_back(uint32_t token) noexcept {
  if (static_cast<Entry*>(pool_.at(token))->indexed) index_.erase(token);
  pool_.free_index(token);
}

bool RouteMatch::matches(const Route& route) const noexcept {
  return address == route.address && length == route.length &&
         (type == RouteType::kUnspecified || type == route.type) &&
         (protocol == 0 || protocol == route.protocol) &&
         (scope == RT_SCOPE_NOWHERE || scope == route.scope) && (metric == 0 || metric == route.metric) &&
         (gateway.none() || gateway == route.gateway) && (oif == 0 || oif == route.oif) &&
         (prefsrc.none() || prefsrc == route.prefsrc);
}

void RouteTable::commit(RetireList& retired) noexcept {
  for (Rib* rib = std::exchange(edited_, nullptr); rib != nullptr;
       rib = std::exchange(rib->next_edited_, nullptr)) {
    rib->edited_ = false;
    rib->fib_.commit(retired);
    rib->fib6_.commit(retired);
  }
}

// An edit is open from here on.
void Rib::begin_edit() noexcept {
  if (edited_) return;
  edited_ = true;
  next_edited_ = std::exchange(table_.edited_, this);
}

Rib::Rib(RouteTable& table, Fib& fib, Fib6& fib6) noexcept
    : table_(table), fib_(fib), fib6_(fib6), number_(++table.ribs_) {}

Rib::~Rib() {
  MAYFLY_DEBUG_CHECK(size_ == 0 && cursors_ == nullptr, "a Rib was destroyed with routes in it");
}

Rib::Link Rib::first_of(const IpPrefix& prefix) const noexcept {
  const uint32_t number = table_.index_.find(RouteTable::hash_of(number_, prefix), [&](uint32_t candidate) {
    const Entry& entry = table_.at(candidate + 1);
    return entry.rib == number_ && entry.route.address == prefix.address &&
           entry.route.length == prefix.length;
  });
  return number == kNoSlot ? 0 : number + 1;
}

// Walks the list of the prefix and, where it is given, that of the interface in step: the shorter one
// decides.
template <class Predicate>
Rib::Link Rib::find_first(const IpPrefix& prefix, uint32_t oif, const uint32_t* oif_routes,
                          Predicate wanted) const noexcept {
  const bool both = oif != 0 && oif_routes != nullptr;
  Link of_interface = both ? *oif_routes : 0;
  Link best = 0;
  for (Link of_prefix = first_of(prefix); of_prefix != 0;) {
    const Entry& entry = table_.at(of_prefix);
    if (wanted(entry.route)) return of_prefix;
    of_prefix = entry.prefix_next;
    if (!both) continue;
    if (of_interface == 0) return best;
    // The list of an interface is newest first.
    const Entry& own = table_.at(of_interface);
    if (own.rib == number_ && own.route.prefix() == prefix && wanted(own.route) &&
        (best == 0 || own.route.metric <= table_.at(best).route.metric))
      best = of_interface;
    of_interface = own.oif_next;
  }
  return 0;
}

Rib::Link Rib::find_match(const RouteMatch& match, const uint32_t* oif_routes) const noexcept {
  return find_first(match.prefix(), match.oif, oif_routes,
                    [&](const Route& route) { return match.matches(route); });
}

const Route* Rib::find(const RouteMatch& match, const uint32_t* oif_routes) const noexcept {
  const Link link = find_match(match, oif_routes);
  return link == 0 ? nullptr : &table_.at(link).route;
}

// The last route of a prefix with at most this metric, 0 when there is none.
Rib::Link Rib::last_up_to(Link first, uint32_t metric) const noexcept {
  if (first == 0 || table_.at(first).route.metric > metric) return 0;
  Link last = table_.at(first).prefix_previous;
  while (table_.at(last).route.metric > metric) last = table_.at(last).prefix_previous;
  return last;
}

Status Rib::add(const Route& route, RouteAdd how, uint32_t* oif_routes) {
  if (Status valid = validate(route); !valid) return valid;
  MAYFLY_CHECK((route.oif == 0) == (oif_routes == nullptr),
               "a route with an interface came without its list");
  const Link first = first_of(route.prefix());
  const Link last = last_up_to(first, route.metric);
  const bool conflict = last != 0 && table_.at(last).route.metric == route.metric;
  const auto exists = [&] {
    return fail_attribute(RTA_DST, EEXIST, "route {} metric {} exists", format_prefix(route.prefix()),
                          route.metric);
  };
  if (conflict && how.exclusive) return exists();
  if (!conflict && !how.create)
    return fail_attribute(RTA_DST, ENOENT, "route {} metric {} does not exist", format_prefix(route.prefix()),
                          route.metric);
  if (!conflict) return insert(route, first, last, oif_routes);

  Link before = 0;  // the last one with a lower metric
  Link same = first;
  for (; table_.at(same).route.metric < route.metric; same = table_.at(same).prefix_next) before = same;
  const Link equal =
      find_first(route.prefix(), route.oif, oif_routes, [&](const Route& other) { return other == route; });
  if (how.replace && equal == same) return {};
  if (equal != 0) return exists();
  if (how.replace) return replace(table_.at(same), route, oif_routes);
  return insert(route, first, how.append ? last : before, oif_routes);
}

// Into the list of its prefix, which begins with first, behind `before` (0: as the best one).
Status Rib::insert(const Route& route, Link first, Link before, uint32_t* oif_routes) {
  void* memory = table_.pool_.allocate();
  if (memory == nullptr)
    return fail(ENOBUFS, "route {}: all {} routes of the daemon's limit are in use",
                format_prefix(route.prefix()), table_.limit_);
  if (before == 0)
    if (Status set = publish(route); !set) {
      table_.pool_.free(memory);
      return set;
    }
  Entry& entry = *new (memory) Entry{};
  entry.route = route;
  entry.rib = number_;
  join_prefix(entry, first, before);
  join_interface(entry, oif_routes);
  const Link link = table_.link_of(entry);
  entry.older = newest_;
  (newest_ != 0 ? table_.at(newest_).newer : oldest_) = link;
  newest_ = link;
  ++size_;
  ++changes_;
  return {};
}

Status Rib::replace(Entry& entry, const Route& route, uint32_t* oif_routes) {
  if (entry.indexed)
    if (Status set = publish(route); !set) return set;
  leave_interface(entry);
  entry.route = route;
  join_interface(entry, oif_routes);
  ++changes_;
  return {};
}

Result<Route> Rib::remove(const RouteMatch& match, const uint32_t* oif_routes) {
  const Link link = find_match(match, oif_routes);
  if (link == 0)
    return fail_attribute(RTA_DST, ESRCH, "route {} does not exist", format_prefix(match.prefix()));
  const Route route = table_.at(link).route;
  if (Status removed = remove_entry(link); !removed) return std::unexpected(removed.error());
  return route;
}

Result<bool> Rib::remove_interface(uint32_t& routes, uint32_t max_routes, bool keep_local) {
  Link at = routes;
  while (at != 0 && max_routes > 0) {
    const Entry& entry = table_.at(at);
    const Link next = entry.oif_next;
    if (!keep_local || entry.route.type != RouteType::kLocal) {
      if (Status removed = remove_entry(at); !removed) return std::unexpected(removed.error());
      --max_routes;
    }
    at = next;
  }
  return at != 0;
}

bool Rib::has_more_than(uint32_t routes, uint32_t count) const noexcept {
  for (; routes != 0; routes = table_.at(routes).oif_next)
    if (count-- == 0) return true;
  return false;
}

Status Rib::remove_entry(Link link) {
  Entry& entry = table_.at(link);
  MAYFLY_DEBUG_CHECK(entry.rib == number_, "a route was removed through the Rib of another namespace");
  if (entry.indexed) {
    Status edited =
        entry.prefix_next != 0 ? publish(table_.at(entry.prefix_next).route) : withdraw(entry.route.prefix());
    if (!edited) return edited;
  }
  for (RouteCursor* cursor = cursors_; cursor != nullptr; cursor = cursor->next_cursor_)
    cursor->entry_goes(link);
  leave_prefix(entry);
  leave_interface(entry);
  (entry.newer != 0 ? table_.at(entry.newer).older : newest_) = entry.older;
  (entry.older != 0 ? table_.at(entry.older).newer : oldest_) = entry.newer;
  table_.pool_.free(&entry);
  --size_;
  ++changes_;
  return {};
}

Status Rib::publish(const Route& route) {
  begin_edit();
  const IpPrefix prefix = route.prefix();
  return prefix.is_v4() ? fib_.set(prefix.v4(), value_of(route)) : fib6_.set(prefix.v6(), value6_of(route));
}

Status Rib::withdraw(const IpPrefix& prefix) {
  begin_edit();
  return prefix.is_v4() ? fib_.erase(prefix.v4()) : fib6_.erase(prefix.v6());
}

void Rib::join_prefix(Entry& entry, Link first, Link before) noexcept {
  const Link link = table_.link_of(entry);
  if (before != 0) {
    const Link next = table_.at(before).prefix_next;
    entry.prefix_next = next;
    entry.prefix_previous = before;
    table_.at(before).prefix_next = link;
    table_.at(next != 0 ? next : first).prefix_previous = link;
    return;
  }
  entry.prefix_next = first;
  entry.prefix_previous = link;
  if (first != 0) {
    Entry& second = table_.at(first);
    entry.prefix_previous = std::exchange(second.prefix_previous, link);
    table_.index_.erase(first - 1);
    second.indexed = 0;
  }
  table_.index_.insert(link - 1);
  entry.indexed = 1;
}

void Rib::leave_prefix(Entry& entry) noexcept {
  const Link next = entry.prefix_next;
  if (entry.indexed) {
    table_.index_.erase(table_.link_of(entry) - 1);
    if (next == 0) return;
    table_.at(next).prefix_previous = entry.prefix_previous;
    table_.index_.insert(next - 1);
    table_.at(next).indexed = 1;
    return;
  }
  table_.at(entry.prefix_previous).prefix_next = next;
  table_.at(next != 0 ? next : first_of(entry.route.prefix())).prefix_previous = entry.prefix_previous;
}

void Rib::join_interface(Entry& entry, uint32_t* oif_routes) noexcept {
  entry.oif_link = oif_routes;
  if (oif_routes == nullptr) return;
  entry.oif_next = *oif_routes;
  if (entry.oif_next != 0) table_.at(entry.oif_next).oif_link = &entry.oif_next;
  *oif_routes = table_.link_of(entry);
}

void Rib::leave_interface(Entry& entry) noexcept {
  if (entry.oif_link == nullptr) return;
  *entry.oif_link = entry.oif_next;
  if (entry.oif_next != 0) table_.at(entry.oif_next).oif_link = entry.oif_link;
  entry.oif_next = 0;
}

namespace {

struct Found {
  RouteType type = RouteType::kUnspecified;
  bool neighbour = false;
  uint32_t oif = 0;
};

Found look_up(const Fib& fib, const Fib6& fib6, IpAddress address) {
  if (address.is_v4()) {
    const RouteValue* value = fib.lookup_edit(address.v4());
    return value == nullptr ? Found{} : Found{value->type, value->gateway == 0, value->oif};
  }
  const RouteValue6* value = fib6.lookup_edit(address.v6());
  return value == nullptr ? Found{} : Found{value->type, value->gateway == Ipv6{}, value->oif};
}

}  // namespace

Result<uint32_t> Rib::interface_of_gateway(IpAddress gateway, uint32_t oif,
                                           const uint32_t* oif_routes) const {
  if (!gateway.is_v4() && is_link_local(gateway.v6())) {
    if (oif != 0) return oif;
    return fail_attribute(RTA_GATEWAY, EINVAL, "gateway {}: a link-local address needs dev",
                          format_address(gateway));
  }
  const Found found = look_up(fib_, fib6_, gateway);
  if (found.type == RouteType::kLocal || found.type == RouteType::kBroadcast)
    return fail_attribute(RTA_GATEWAY, EINVAL, "gateway {}: an address of this namespace itself",
                          format_address(gateway));
  const auto connected = [oif](RouteType type, bool neighbour, uint32_t through) {
    return type == RouteType::kUnicast && neighbour && (oif == 0 || through == oif);
  };
  if (connected(found.type, found.neighbour, found.oif)) return found.oif;
  // Another interface may have the same prefix, or a longer one that is no neighbour's.
  IpPrefix prefix(gateway, 0);
  for (unsigned length = prefix.most_length() + 1U; oif != 0 && length-- > 0;) {
    prefix.length = static_cast<uint8_t>(length);
    if (find_first(IpPrefix(prefix.network(), prefix.length), oif, oif_routes, [&](const Route& route) {
          return connected(route.type, route.gateway.none(), route.oif);
        }) != 0)
      return oif;
  }
  if (oif == 0)
    return fail_attribute(RTA_GATEWAY, ENETUNREACH, "gateway {}: in no connected prefix",
                          format_address(gateway));
  return fail_attribute(RTA_GATEWAY, ENETUNREACH, "gateway {}: in no connected prefix of interface {}",
                        format_address(gateway), oif);
}

void Rib::detach() noexcept {
  MAYFLY_CHECK(!edited_, "a namespace was retired before its last edit was committed");
  for (RouteCursor* cursor = cursors_; cursor != nullptr;) {
    RouteCursor* next = cursor->next_cursor_;
    cursor->end();
    cursor = next;
  }
  cursors_ = nullptr;
}

void Rib::dismantle(Returns& returns) noexcept {
  for (Link link = oldest_; link != 0; link = table_.at(link).newer) returns.add(table_, link - 1);
  oldest_ = newest_ = 0;
  size_ = 0;
}

RouteCursor::RouteCursor(Rib& rib) noexcept
    : rib_(&rib),
      current_(rib.oldest_),
      last_(rib.newest_),
      changes_(rib.changes_),
      next_cursor_(rib.cursors_) {
  rib.cursors_ = this;
}

RouteCursor::~RouteCursor() {
  if (rib_ == nullptr) return;
  RouteCursor** link = &rib_->cursors_;
  while (*link != this) link = &(*link)->next_cursor_;
  *link = next_cursor_;
}

const Route* RouteCursor::current() const noexcept {
  return current_ == 0 ? nullptr : &rib_->table_.at(current_).route;
}

std::optional<RouteCursor::Place> RouteCursor::place() const noexcept {
  const RouteTable::Entry& entry = rib_->table_.at(current_);
  if (entry.indexed && entry.prefix_next == 0) return std::nullopt;
  return Place{current_, entry.indexed ? 0 : entry.prefix_previous};
}

void RouteCursor::advance() noexcept {
  if (current_ != 0) current_ = current_ == last_ ? 0 : rib_->table_.at(current_).newer;
}

void RouteCursor::entry_goes(RouteTable::Link link) noexcept {
  if (link == current_) advance();
  if (link == last_) last_ = rib_->table_.at(link).older;
}

// The namespace goes before the dump is over.
void RouteCursor::end() noexcept {
  changed_ = changed_ || current_ != 0 || rib_->changes_ != changes_;
  current_ = 0;
  rib_ = nullptr;
}

}  // namespace mayfly
