// SPDX-License-Identifier: BSD-3-Clause
#include "netns/addressing.hpp"

#include <linux/rtnetlink.h>

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>
#include <utility>

#include "base/check.hpp"

namespace mayfly {
namespace {

constexpr uint32_t kConnectedMetric6 = 256;  // the kernel's

// First and last address of the subnet are broadcast addresses.
bool has_broadcast(const IpPrefix& prefix) {
  return prefix.is_v4() && prefix.length < 31;
}
bool has_subnet(const IpPrefix& prefix) {
  return prefix.length < prefix.most_length() && !(!prefix.is_v4() && is_link_local(prefix.address.v6()));
}
bool is_routed(IpAddress address) {
  return address.is_v4() || !is_link_local(address.v6());
}

IpPrefix host_prefix(IpAddress address) {
  IpPrefix prefix(address, 0);
  prefix.length = prefix.most_length();
  return prefix;
}

IpAddress first_of(const IpPrefix& prefix) {
  return prefix.network();
}
IpAddress last_of(const IpPrefix& prefix) {
  return IpAddress(prefix.v4().network() | ~prefix_mask(prefix.length));
}

bool same_subnet(const IpPrefix& a, const IpPrefix& b) {
  return a.length == b.length && a.contains(b.address);
}

// Of the entries that give the same prefix the first, in the order of the list; those that give none are left
// out. n log n: a list has thousands of them.
template <class PrefixOf>
std::vector<const InterfaceAddress*> first_of_each(const AddressList& list, PrefixOf prefix_of) {
  std::vector<std::pair<IpPrefix, const InterfaceAddress*>> given;
  for (const InterfaceAddress& entry : list.all())
    if (const auto prefix = prefix_of(entry)) given.emplace_back(*prefix, &entry);
  const auto key = [](const auto& each) {
    const Ipv6 address = each.first.address.v6();
    return std::tuple(address.high, address.low, each.first.length);
  };
  const auto order = [&](const auto& each) { return std::tuple_cat(key(each), std::tuple(each.second)); };
  std::ranges::sort(given, {}, order);
  const auto repeated = std::ranges::unique(given, {}, key);
  given.erase(repeated.begin(), repeated.end());
  std::vector<const InterfaceAddress*> first;
  for (const auto& each : given) first.push_back(each.second);
  std::ranges::sort(first);
  return first;
}

Route kernel_route(uint32_t ifindex, const IpPrefix& prefix, RouteType type, IpAddress source) {
  Route route;
  route.address = prefix.network();
  route.length = prefix.length;
  route.type = type;
  route.protocol = RTPROT_KERNEL;
  route.oif = ifindex;
  if (prefix.is_v4()) {
    route.scope = type == RouteType::kLocal ? RT_SCOPE_HOST : RT_SCOPE_LINK;
    route.prefsrc = source;
  } else if (type == RouteType::kUnicast) {
    route.metric = kConnectedMetric6;
  }
  return route;
}

}  // namespace

Status Addressing::check(const IpPrefix& prefix) {
  if (prefix.length > prefix.most_length())
    return fail(EINVAL, "prefix length {}: accepted 0..{}", prefix.length, prefix.most_length());
  if (!prefix.is_v4()) {
    const Ipv6 address = prefix.address.v6();
    if (prefix.address.none() || address == Ipv6{0, 1} || is_multicast(address))
      return fail(EADDRNOTAVAIL, "address {}: accepted unicast addresses, not ::, ::1 or ff00::/8",
                  format_prefix(prefix));
    return {};
  }
  const unsigned first_octet = prefix.address.v4() >> 24;
  if (prefix.address.v4() == 0 || first_octet == 127 || first_octet >= 224)
    return fail(EADDRNOTAVAIL,
                "address {}: accepted unicast addresses, not 0.0.0.0, 127.0.0.0/8 or 224.0.0.0/3",
                format_prefix(prefix));
  return {};
}

Status Addressing::add_local_route(uint32_t ifindex, IpAddress address) {
  if (!is_routed(address)) return {};
  return rib_of(ifindex).add(kernel_route(ifindex, host_prefix(address), RouteType::kLocal, address),
                             RouteAdd::create_append(), &interfaces_.record(ifindex).routes);
}

void Addressing::remove_local_route(uint32_t ifindex, IpAddress address) noexcept {
  if (is_routed(address)) remove_route(ifindex, host_prefix(address), RouteType::kLocal);
}

// All or none of the subnet's routes. As in the kernel one that is there already is as good: an address with
// two prefix lengths has the same broadcast route twice.
Status Addressing::add_subnet_routes(uint32_t ifindex, const IpPrefix& prefix) {
  if (!has_subnet(prefix)) return {};
  const auto route_to = [&](const IpPrefix& to, RouteType type) {
    return kernel_route(ifindex, to, type, prefix.address);
  };
  std::array<Route, 3> routes{route_to(prefix, RouteType::kUnicast)};
  size_t count = 1;
  if (has_broadcast(prefix))
    for (const IpAddress broadcast : {first_of(prefix), last_of(prefix)})
      routes[count++] = route_to(host_prefix(broadcast), RouteType::kBroadcast);
  std::array<bool, 3> made{};
  for (size_t i = 0; i < count; ++i) {
    auto added =
        rib_of(ifindex).add(routes[i], RouteAdd::create_append(), &interfaces_.record(ifindex).routes);
    made[i] = added.has_value();
    if (made[i] || added.error().code == EEXIST) continue;
    while (i-- > 0)
      if (made[i]) remove_route(ifindex, routes[i].prefix(), routes[i].type, routes[i].prefsrc);
    return added;
  }
  return {};
}

bool Addressing::remove_route(uint32_t ifindex, const IpPrefix& prefix, RouteType type,
                              IpAddress source) noexcept {
  RouteMatch match;
  match.address = prefix.network();
  match.length = prefix.length;
  match.type = type;
  match.protocol = RTPROT_KERNEL;
  match.oif = ifindex;
  match.prefsrc = source;
  const auto removed = rib_of(ifindex).remove(match, &interfaces_.record(ifindex).routes);
  // ESRCH: the user removed a connected route by hand.
  MAYFLY_CHECK(removed.has_value() || removed.error().code == ESRCH,
               "no memory to take a route out of a FIB");
  return removed.has_value();
}

// After the address has left the list. What another subnet there has as its broadcast address stays one.
void Addressing::remove_subnet_routes(uint32_t ifindex, const IpPrefix& prefix) noexcept {
  if (!has_subnet(prefix)) return;
  remove_route(ifindex, prefix, RouteType::kUnicast);
  if (!has_broadcast(prefix)) return;
  for (const IpAddress broadcast : {first_of(prefix), last_of(prefix)}) {
    if (is_broadcast(ifindex, broadcast)) continue;
    while (remove_route(ifindex, host_prefix(broadcast), RouteType::kBroadcast)) {
    }
  }
}

bool Addressing::is_broadcast(uint32_t ifindex, IpAddress address) const noexcept {
  const AddressList* list = list_of(ifindex);
  return list != nullptr && std::ranges::any_of(list->all(), [&](const InterfaceAddress& entry) {
           const IpPrefix prefix = entry.prefix();
           return has_broadcast(prefix) && (first_of(prefix) == address || last_of(prefix) == address);
         });
}

// The interface's list, not published, with room for so many more.
Result<AddressList*> Addressing::copy_list(uint32_t ifindex, uint32_t more) {
  const AddressList* old = list_of(ifindex);
  const uint32_t count = old == nullptr ? 0 : old->count;
  auto* copy = blocks_.allocate<AddressList>((count + more) * sizeof(InterfaceAddress));
  if (copy == nullptr)
    return fail(ENOBUFS, "no memory for the addresses of '{}'", interfaces_.record(ifindex).name);
  copy->count = count;
  if (old != nullptr) std::ranges::copy(old->all(), copy->entries);
  return copy;
}

void Addressing::publish(uint32_t ifindex, AddressList* next, RetireList& retired) noexcept {
  if (next->count == 0) {
    blocks_.free_unpublished(next->retired);
    next = nullptr;
  }
  if (next != nullptr) next->count_kinds();
  auto& addresses = interfaces_.interface(ifindex).addresses;
  AddressList* const last = addresses.own();
  addresses.publish(next);
  if (last != nullptr) blocks_.retire(last->retired, retired);
}

Status Addressing::add(uint32_t ifindex, const IpPrefix& prefix, uint8_t flags, RetireList& retired) {
  if (auto valid = check(prefix); !valid) return valid;
  const InterfaceRecord& record = interfaces_.record(ifindex);
  bool known_local = false;
  bool known_subnet = false;
  if (const AddressList* old = list_of(ifindex); old != nullptr) {
    if (old->count == kMostAddresses)
      return fail(ENOBUFS, "address {}: '{}' has {} addresses, the most an interface can have",
                  format_prefix(prefix), record.name, kMostAddresses);
    for (const InterfaceAddress& other : old->all()) {
      if (other.prefix() == prefix)
        return fail(EEXIST, "address {}: '{}' has it already", format_prefix(prefix), record.name);
      if (other.address == prefix.address) {
        known_local = true;
        flags = static_cast<uint8_t>(flags | (other.flags & ~InterfaceAddress::kNoDad));
      }
      known_subnet |= same_subnet(other.prefix(), prefix);
    }
  }
  const auto next = copy_list(ifindex, 1);
  if (!next) return std::unexpected(next.error());
  Status added = known_local ? Status{} : add_local_route(ifindex, prefix.address);
  if (added && !known_subnet && record.admin_up) {
    added = add_subnet_routes(ifindex, prefix);
    if (!added && !known_local) remove_local_route(ifindex, prefix.address);
  }
  if (!added) {
    blocks_.free_unpublished((*next)->retired);
    return added;
  }
  InterfaceAddress entry{prefix.address, prefix.length, flags};
  if (!known_local && record.admin_up && ask_about(ifindex, entry))
    entry.flags |= InterfaceAddress::kOptimistic;
  (*next)->entries[(*next)->count++] = entry;
  publish(ifindex, *next, retired);
  ++addresses_;
  return {};
}

Status Addressing::remove(uint32_t ifindex, const IpPrefix& prefix, RetireList& retired) {
  const AddressList* old = list_of(ifindex);
  if (old == nullptr || std::ranges::find(old->all(), prefix, &InterfaceAddress::prefix) == old->all().end())
    return fail(EADDRNOTAVAIL, "address {}: '{}' does not have it", format_prefix(prefix),
                interfaces_.record(ifindex).name);
  bool local_needed = false;
  bool subnet_needed = false;
  for (const InterfaceAddress& other : old->all()) {
    if (other.prefix() == prefix) continue;
    local_needed |= other.address == prefix.address;
    subnet_needed |= same_subnet(other.prefix(), prefix);
  }
  const auto next = copy_list(ifindex, 0);
  if (!next) return std::unexpected(next.error());
  const std::span<InterfaceAddress> entries((*next)->entries, (*next)->count);
  const auto gone = std::ranges::find(entries, prefix, &InterfaceAddress::prefix);
  std::copy(gone + 1, entries.end(), gone);
  --(*next)->count;
  publish(ifindex, *next, retired);
  if (!local_needed) remove_local_route(ifindex, prefix.address);
  if (!subnet_needed && interfaces_.record(ifindex).admin_up) remove_subnet_routes(ifindex, prefix);
  --addresses_;
  return {};
}

Status Addressing::came_up(uint32_t ifindex, RetireList& retired) {
  const AddressList* list = list_of(ifindex);
  if (list == nullptr) return {};
  const auto subnet_of = [](const InterfaceAddress& entry) -> std::optional<IpPrefix> {
    if (!has_subnet(entry.prefix())) return std::nullopt;
    return IpPrefix(entry.prefix().network(), entry.length);
  };
  for (const InterfaceAddress* entry : first_of_each(*list, subnet_of))
    if (auto added = add_subnet_routes(ifindex, entry->prefix()); !added) return added;
  return ask_about_all(ifindex, retired);
}

void Addressing::remove_all_routes(uint32_t ifindex) noexcept {
  uint32_t& routes = interfaces_.record(ifindex).routes;
  while (routes != 0) {
    const auto more = rib_of(ifindex).remove_interface(routes, kRoutesPerStep);
    MAYFLY_CHECK(more.has_value(), "no memory to take routes out of a FIB");
  }
}

bool Addressing::shed_routes(uint32_t ifindex) noexcept {
  uint32_t& routes = interfaces_.record(ifindex).routes;
  if (routes == 0 || interfaces_.interface(ifindex).netns.own()->doomed) return true;
  const auto more = rib_of(ifindex).remove_interface(routes, kRoutesPerStep, true);
  MAYFLY_CHECK(more.has_value(), "no memory to take routes out of a FIB");
  return !*more;
}

bool Addressing::has_many_routes(uint32_t ifindex) const noexcept {
  const Netns& netns = *interfaces_.interface(ifindex).netns.own();
  return !netns.doomed && netns.rib.has_more_than(interfaces_.record(ifindex).routes, kRoutesPerStep);
}

void Addressing::went_down(uint32_t ifindex, RetireList& retired) {
  remove_all_routes(ifindex);
  const auto address_of = [](const InterfaceAddress& entry) -> std::optional<IpPrefix> {
    if (!entry.usable()) return std::nullopt;
    return host_prefix(entry.address);
  };
  if (const AddressList* list = list_of(ifindex); list != nullptr)
    for (const InterfaceAddress* entry : first_of_each(*list, address_of)) {
      const auto kept = add_local_route(ifindex, entry->address);
      MAYFLY_CHECK(kept.has_value(), "no memory to keep the local route of an address");
    }
  neighbours_.flush(interfaces_.interface(ifindex).neighbours, Neighbours::Flush::kAll, retired);
}

void Addressing::clear(uint32_t ifindex, RetireList& retired) {
  Interface& interface = interfaces_.interface(ifindex);
  remove_all_routes(ifindex);
  neighbours_.flush(interface.neighbours, Neighbours::Flush::kAll, retired);
  if (AddressList* list = interface.addresses.own(); list != nullptr) {
    addresses_ -= list->count;
    interface.addresses.publish(nullptr);
    blocks_.retire(list->retired, retired);
  }
  interfaces_.set_unnumbered(ifindex, kNoInterface);
}

void Addressing::detach(uint32_t ifindex, RetireList&) {
  uint32_t& routes = interfaces_.record(ifindex).routes;
  // Not while its deletion may still be refused: the number will be another's.
  if (interfaces_.interface(ifindex).netns.own()->doomed)
    routes = 0;
  else if (routes != 0)
    remove_all_routes(ifindex);
  Interface& interface = interfaces_.interface(ifindex);
  size_t bytes = Neighbours::bytes_of(interface.neighbours);
  if (const AddressList* list = interface.addresses.own(); list != nullptr) {
    addresses_ -= list->count;
    bytes += BlockPools::capacity_of(list->retired);
  }
  if (interface.neighbours.own() != nullptr) neighbours_.detach(interface.neighbours);
  interfaces_.record(ifindex).retired.bytes += static_cast<uint32_t>(bytes);
}

// A circle would be one that nobody can create from a file: each would need the next one first.
Status Addressing::check_lender(uint32_t ifindex, uint32_t lender) const {
  if (lender == kNoInterface) return {};
  const char* name = interfaces_.record(lender).name;
  if (lender == ifindex)
    return fail(EINVAL, "unnumbered: '{}' cannot use its own addresses as another's", name);
  uint32_t lenders = 1;
  for (uint32_t at = lender_of(lender); at != kNoInterface; at = lender_of(at)) {
    if (at == ifindex)
      return fail(EINVAL, "unnumbered '{}': that uses the addresses of '{}' itself, directly or over others",
                  name, interfaces_.record(ifindex).name);
    if (++lenders > kMostLenders)
      return fail(EINVAL, "unnumbered '{}': more than {} interfaces use each other's addresses in a row",
                  name, kMostLenders);
  }
  return {};
}

Status Addressing::set_unnumbered(uint32_t ifindex, uint32_t lender) {
  if (lender != kNoInterface) {
    if (auto valid = check_lender(ifindex, lender); !valid) return valid;
    if (interfaces_.interface(lender).netns.own() != interfaces_.interface(ifindex).netns.own())
      return fail(EINVAL, "unnumbered '{}': of another namespace", interfaces_.record(lender).name);
  }
  interfaces_.set_unnumbered(ifindex, lender);
  return {};
}

uint32_t Addressing::lender_of(uint32_t ifindex) const noexcept {
  const Interface& interface = interfaces_.interface(ifindex);
  const uint32_t lender = interface.unnumbered.load(std::memory_order_relaxed);
  if (lender == kNoInterface || !interfaces_.exists(lender)) return kNoInterface;
  const Interface& from = interfaces_.interface(lender);
  const bool same = from.id == interface.unnumbered_id.load(std::memory_order_relaxed) &&
                    from.netns.own() == interface.netns.own();
  return same ? lender : kNoInterface;
}

// Whether the address counts as optimistic now.
bool Addressing::ask_about(uint32_t ifindex, const InterfaceAddress& entry) {
  if (entry.address.is_v4() || (entry.flags & InterfaceAddress::kNoDad) != 0) return false;
  if (questions_.size() + asked_.size() >= kMostQuestions) return false;
  questions_.push_back({ifindex, interfaces_.interface(ifindex).id, entry.address.v6()});
  return true;
}

Status Addressing::ask_about_all(uint32_t ifindex, RetireList& retired) {
  const auto asks = [](const InterfaceAddress& entry) {
    return !entry.address.is_v4() && (entry.flags & InterfaceAddress::kNoDad) == 0;
  };
  if (std::ranges::none_of(list_of(ifindex)->all(), asks)) return {};
  const auto next = copy_list(ifindex, 0);
  if (!next) return std::unexpected(next.error());
  for (InterfaceAddress& entry : std::span((*next)->entries, (*next)->count)) {
    if (!asks(entry)) continue;
    if (!entry.usable())
      if (auto added = add_local_route(ifindex, entry.address); !added && added.error().code != EEXIST) {
        blocks_.free_unpublished((*next)->retired);
        return added;
      }
    entry.flags = ask_about(ifindex, entry) ? InterfaceAddress::kOptimistic : 0;
  }
  publish(ifindex, *next, retired);
  return {};
}

bool Addressing::conflict(uint32_t ifindex, Ipv6 address, RetireList& retired) {
  const auto concerned = [&](const InterfaceAddress& entry) {
    return entry.address == IpAddress(address) && (entry.flags & InterfaceAddress::kOptimistic) != 0;
  };
  const AddressList* list = list_of(ifindex);
  if (list == nullptr || std::ranges::none_of(list->all(), concerned)) return false;
  const auto next = copy_list(ifindex, 0);
  if (!next) return false;
  for (InterfaceAddress& entry : std::span((*next)->entries, (*next)->count))
    if (concerned(entry)) entry.flags = InterfaceAddress::kDuplicate;
  publish(ifindex, *next, retired);
  remove_local_route(ifindex, IpAddress(address));
  return true;
}

void Addressing::tick(uint64_t now_ns, std::vector<AddressQuestion>& questions, RetireList& retired) {
  const auto exists = [&](const AddressQuestion& question) {
    return interfaces_.exists(question.ifindex) && interfaces_.interface(question.ifindex).id == question.id;
  };
  for (uint32_t left = kQuestionsPerTick; left != 0 && !questions_.empty(); --left) {
    const AddressQuestion question = questions_.front();
    questions_.pop_front();
    if (!exists(question)) continue;
    questions.push_back(question);
    asked_.push_back({question, now_ns});
  }
  for (uint32_t left = kSettledPerTick;
       left != 0 && !asked_.empty() && now_ns - asked_.front().at_ns >= kAnswerNs; --left) {
    if (exists(asked_.front().question)) settle(asked_.front().question, retired);
    asked_.pop_front();
  }
}

// Without memory the address stays optimistic, which only makes it a less preferred source.
void Addressing::settle(const AddressQuestion& question, RetireList& retired) noexcept {
  const auto concerned = [&](const InterfaceAddress& entry) {
    return entry.address == IpAddress(question.address) && (entry.flags & InterfaceAddress::kOptimistic) != 0;
  };
  const AddressList* list = list_of(question.ifindex);
  if (list == nullptr || std::ranges::none_of(list->all(), concerned)) return;
  const auto next = copy_list(question.ifindex, 0);
  if (!next) return;
  for (InterfaceAddress& entry : std::span((*next)->entries, (*next)->count))
    if (concerned(entry)) entry.flags &= static_cast<uint8_t>(~InterfaceAddress::kOptimistic);
  publish(question.ifindex, *next, retired);
}

}  // namespace mayfly
