// SPDX-License-Identifier: BSD-3-Clause
#include "netns/addressing.hpp"

#include <linux/rtnetlink.h>

#include <algorithm>

#include "base/check.hpp"

namespace mayfly {
namespace {

constexpr uint32_t kMostAddresses = 4096;  // of one interface: a list is copied for every change
constexpr uint32_t kRoutesPerStep = 1024;

bool is_host(const Ipv4Prefix& prefix) {
  return prefix.length >= 31;
}

Ipv4Prefix host_prefix(Ipv4 address) {
  return {address, 32};
}

Ipv4 first_of(const Ipv4Prefix& prefix) {
  return prefix.network();
}
Ipv4 last_of(const Ipv4Prefix& prefix) {
  return prefix.network() | ~prefix_mask(prefix.length);
}

Status check_address(const Ipv4Prefix& prefix) {
  const unsigned first_octet = prefix.address >> 24;
  if (prefix.address == 0 || first_octet == 127 || first_octet >= 224)
    return fail(EADDRNOTAVAIL,
                "address {}: accepted unicast addresses, not 0.0.0.0, 127.0.0.0/8 or 224.0.0.0/3",
                format_prefix(prefix));
  return {};
}

Route kernel_route(uint32_t ifindex, const Ipv4Prefix& prefix, RouteType type, Ipv4 source) {
  Route route;
  route.address = prefix.network();
  route.length = prefix.length;
  route.type = type;
  route.protocol = RTPROT_KERNEL;
  route.scope = type == RouteType::kLocal ? RT_SCOPE_HOST : RT_SCOPE_LINK;
  route.oif = ifindex;
  route.prefsrc = source;
  return route;
}

}  // namespace

Status Addressing::add_local_route(uint32_t ifindex, const Ipv4Prefix& prefix) {
  return rib_of(ifindex).add(
      kernel_route(ifindex, host_prefix(prefix.address), RouteType::kLocal, prefix.address),
      RouteAdd::create_append(), &interfaces_.record(ifindex).routes);
}

// All or none of the subnet's routes.
Status Addressing::add_subnet_routes(uint32_t ifindex, const Ipv4Prefix& prefix) {
  if (prefix.length == 32) return {};
  uint32_t* routes = &interfaces_.record(ifindex).routes;
  Rib& rib = rib_of(ifindex);
  const Ipv4Prefix subnet{prefix.network(), prefix.length};
  auto added = rib.add(kernel_route(ifindex, subnet, RouteType::kUnicast, prefix.address),
                       RouteAdd::create_append(), routes);
  if (!added || is_host(prefix)) return added;
  for (const Ipv4 broadcast : {first_of(prefix), last_of(prefix)}) {
    added = rib.add(kernel_route(ifindex, host_prefix(broadcast), RouteType::kBroadcast, prefix.address),
                    RouteAdd::create_append(), routes);
    if (added) continue;
    remove_route(ifindex, subnet, RouteType::kUnicast);
    if (broadcast == last_of(prefix))
      remove_route(ifindex, host_prefix(first_of(prefix)), RouteType::kBroadcast);
    return added;
  }
  return {};
}

void Addressing::remove_route(uint32_t ifindex, const Ipv4Prefix& prefix, RouteType type) noexcept {
  RouteMatch match;
  match.address = prefix.network();
  match.length = prefix.length;
  match.type = type;
  match.protocol = RTPROT_KERNEL;
  match.oif = ifindex;
  const auto removed = rib_of(ifindex).remove(match, &interfaces_.record(ifindex).routes);
  // ESRCH: the user removed a connected route by hand.
  MAYFLY_CHECK(removed.has_value() || removed.error().code == ESRCH,
               "no memory to take a route out of a FIB");
}

void Addressing::remove_subnet_routes(uint32_t ifindex, const Ipv4Prefix& prefix) noexcept {
  if (prefix.length == 32) return;
  remove_route(ifindex, prefix, RouteType::kUnicast);
  if (is_host(prefix)) return;
  remove_route(ifindex, host_prefix(first_of(prefix)), RouteType::kBroadcast);
  remove_route(ifindex, host_prefix(last_of(prefix)), RouteType::kBroadcast);
}

Status Addressing::publish(uint32_t ifindex, const AddressList* old, const Ipv4Prefix* add,
                           const Ipv4Prefix* remove, RetireList& retired) {
  Interface& interface = interfaces_.interface(ifindex);
  const uint32_t count =
      (old == nullptr ? 0 : old->count) + (add != nullptr ? 1 : 0) - (remove != nullptr ? 1 : 0);
  AddressList* next = nullptr;
  if (count > 0) {
    next = blocks_.allocate<AddressList>(count * sizeof(Ipv4Prefix));
    if (next == nullptr)
      return fail(ENOBUFS, "no memory for the addresses of '{}'", interfaces_.record(ifindex).name);
    next->count = 0;
    if (old != nullptr)
      for (const Ipv4Prefix& prefix : old->all())
        if (remove == nullptr || prefix != *remove) next->prefixes[next->count++] = prefix;
    if (add != nullptr) next->prefixes[next->count++] = *add;
  }
  AddressList* const last = interface.addresses.own();
  interface.addresses.publish(next);
  if (last != nullptr) blocks_.retire(last->retired, retired);
  return {};
}

Status Addressing::add(uint32_t ifindex, const Ipv4Prefix& prefix, RetireList& retired) {
  if (auto valid = check_address(prefix); !valid) return valid;
  const char* name = interfaces_.record(ifindex).name;
  const AddressList* old = interfaces_.interface(ifindex).addresses.own();
  bool known_local = false;
  bool known_subnet = false;
  if (old != nullptr) {
    if (old->count == kMostAddresses)
      return fail(ENOBUFS, "address {}: '{}' has {} addresses, the most an interface can have",
                  format_prefix(prefix), name, kMostAddresses);
    for (const Ipv4Prefix& other : old->all()) {
      if (other == prefix)
        return fail(EEXIST, "address {}: '{}' has it already", format_prefix(prefix), name);
      known_local |= other.address == prefix.address;
      known_subnet |= other.length == prefix.length && other.contains(prefix.address);
    }
  }
  if (!known_local)
    if (auto added = add_local_route(ifindex, prefix); !added) return added;
  if (!known_subnet && interfaces_.record(ifindex).admin_up)
    if (auto added = add_subnet_routes(ifindex, prefix); !added) {
      if (!known_local) remove_route(ifindex, host_prefix(prefix.address), RouteType::kLocal);
      return added;
    }
  if (auto published = publish(ifindex, old, &prefix, nullptr, retired); !published) {
    if (!known_local) remove_route(ifindex, host_prefix(prefix.address), RouteType::kLocal);
    if (!known_subnet && interfaces_.record(ifindex).admin_up) remove_subnet_routes(ifindex, prefix);
    return published;
  }
  ++addresses_;
  return {};
}

Status Addressing::remove(uint32_t ifindex, const Ipv4Prefix& prefix, RetireList& retired) {
  const AddressList* old = interfaces_.interface(ifindex).addresses.own();
  if (old == nullptr || std::ranges::find(old->all(), prefix) == old->all().end())
    return fail(EADDRNOTAVAIL, "address {}: '{}' does not have it", format_prefix(prefix),
                interfaces_.record(ifindex).name);
  bool local_needed = false;
  bool subnet_needed = prefix.length == 32;
  for (const Ipv4Prefix& other : old->all()) {
    if (other == prefix) continue;
    local_needed |= other.address == prefix.address;
    subnet_needed |= other.length == prefix.length && other.contains(prefix.address);
  }
  if (auto published = publish(ifindex, old, nullptr, &prefix, retired); !published) return published;
  if (!local_needed) remove_route(ifindex, host_prefix(prefix.address), RouteType::kLocal);
  if (!subnet_needed && interfaces_.record(ifindex).admin_up) remove_subnet_routes(ifindex, prefix);
  --addresses_;
  return {};
}

Status Addressing::came_up(uint32_t ifindex) {
  const AddressList* list = interfaces_.interface(ifindex).addresses.own();
  if (list == nullptr) return {};
  const auto all = list->all();
  for (size_t i = 0; i < all.size(); ++i) {
    const auto same_subnet = [&](const Ipv4Prefix& other) {
      return other.length == all[i].length && other.contains(all[i].address);
    };
    if (std::ranges::any_of(all.first(i), same_subnet)) continue;
    if (auto added = add_subnet_routes(ifindex, all[i]); !added) return added;
  }
  return {};
}

void Addressing::remove_all_routes(uint32_t ifindex) noexcept {
  uint32_t& routes = interfaces_.record(ifindex).routes;
  while (routes != 0) {
    const auto more = rib_of(ifindex).remove_interface(routes, kRoutesPerStep);
    MAYFLY_CHECK(more.has_value(), "no memory to take routes out of a FIB");
  }
}

void Addressing::went_down(uint32_t ifindex, RetireList& retired) {
  remove_all_routes(ifindex);
  if (const AddressList* list = interfaces_.interface(ifindex).addresses.own(); list != nullptr)
    for (size_t i = 0; i < list->count; ++i) {
      if (std::ranges::count(list->all().first(i), list->prefixes[i].address, &Ipv4Prefix::address) != 0)
        continue;
      const auto kept = add_local_route(ifindex, list->prefixes[i]);
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
  // The routes of a dying namespace go with its tables, all at once.
  if (interfaces_.interface(ifindex).netns.own()->dying)
    routes = 0;
  else if (routes != 0)
    remove_all_routes(ifindex);
  Interface& interface = interfaces_.interface(ifindex);
  if (const AddressList* list = interface.addresses.own(); list != nullptr) addresses_ -= list->count;
  if (interface.neighbours.own() != nullptr) neighbours_.detach(interface.neighbours);
}

}  // namespace mayfly
