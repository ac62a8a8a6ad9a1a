// SPDX-License-Identifier: BSD-3-Clause
#include "control/bulk_dressing.hpp"

#include <linux/if_addr.h>
#include <linux/rtnetlink.h>

#include <algorithm>

#include "control/protocol.hpp"

namespace mayfly {
namespace {

using namespace protocol;

constexpr uint32_t kDefaultMetric6 = 1024;  // the kernel's
constexpr uint64_t kMostMacStep = 0xffff'ffff'ffff;
constexpr uint8_t kLinkLocalLength = 10;

constexpr AttributeSpec kAddressSpecs[] = {
    {kDressAddress, AttributeSpec::Type::address, "addr"},
    {kDressLength, AttributeSpec::Type::u8, "prefix length"},
    {kDressStep, AttributeSpec::Type::u64, "step"},
    {kDressStepShift, AttributeSpec::Type::u8, "step shift"},
    {kDressFlags, AttributeSpec::Type::u32, "addr flags"},
};

constexpr AttributeSpec kRouteSpecs[] = {
    {kDressAddress, AttributeSpec::Type::address, "route"},
    {kDressLength, AttributeSpec::Type::u8, "prefix length"},
    {kDressStep, AttributeSpec::Type::u64, "step"},
    {kDressStepShift, AttributeSpec::Type::u8, "step shift"},
};

constexpr AttributeSpec kNeighbourSpecs[] = {
    {kDressAddress, AttributeSpec::Type::address, "neigh"},
    {kDressStep, AttributeSpec::Type::u64, "step"},
    {kDressStepShift, AttributeSpec::Type::u8, "step shift"},
    {kDressLladdr, AttributeSpec::Type::binary, "lladdr", 6},
    {kDressLladdrStep, AttributeSpec::Type::u64, "lladdr step"},
};

using Wide = unsigned __int128;

Wide number_of(IpAddress address) {
  return address.is_v4() ? Wide{address.v4()} : Wide{address.v6().high} << 64 | address.v6().low;
}

IpAddress address_of(Wide number, bool v4) {
  return v4 ? IpAddress(static_cast<Ipv4>(number))
            : IpAddress(Ipv6{static_cast<uint64_t>(number >> 64), static_cast<uint64_t>(number)});
}

// Whether first + step * 2^shift * (members - 1) is an address.
bool fits(const SteppedAddress& address, uint64_t members) {
  if (address.step == 0 || members < 2) return true;
  const unsigned bits = address.first.is_v4() ? 32 : 128;
  if (address.shift >= bits) return false;
  const Wide most = address.first.is_v4() ? Wide{UINT32_MAX} : ~Wide{0};
  // The product of two 64-bit numbers has at most 128 bits.
  const Wide steps = Wide{address.step} * (members - 1);
  return steps <= (most - number_of(address.first)) >> address.shift;
}

Result<SteppedAddress> read_address(const RequestAttributes& attributes, const char* what, uint64_t members) {
  const auto first = attributes.address(kDressAddress);
  if (!first) return fail(EINVAL, "{}: the address is missing", what);
  SteppedAddress address;
  address.first = *first;
  const uint8_t most = IpPrefix(*first, 0).most_length();
  address.length = attributes.u8(kDressLength).value_or(most);
  if (address.length > most)
    return fail(EINVAL, "{} {}: prefix length {}, accepted 0..{}", what, format_address(*first),
                address.length, most);
  address.step = attributes.u64(kDressStep).value_or(0);
  address.shift = attributes.u8(kDressStepShift).value_or(0);
  if (address.shift >= most)
    return fail(ERANGE, "{} {}: step shift {}, accepted 0..{}", what, format_address(*first), address.shift,
                most - 1);
  if (!fits(address, members))
    return fail(ERANGE, "{} {} step {}{}: the last of {} members would be beyond the last address", what,
                format_address(*first), address.step,
                address.shift == 0 ? "" : fmt::format(" * 2^{}", address.shift), members);
  return address;
}

Status check_route(const IpPrefix& prefix) {
  if (prefix.network() != prefix.address)
    return fail(EINVAL, "route {}: bits behind the prefix length are set", format_prefix(prefix));
  if (!prefix.is_v4() && (is_multicast(prefix.address.v6()) ||
                          (is_link_local(prefix.address.v6()) && prefix.length >= kLinkLocalLength)))
    return fail(EINVAL, "route {}: fe80::/10 and ff00::/8 are not routed, they belong to each interface",
                format_prefix(prefix));
  return {};
}

Status check_neighbour(IpAddress address) {
  return Addressing::check({address, IpPrefix(address, 0).most_length()});
}

Result<SteppedNeighbour> read_neighbour(const RequestAttributes& attributes, uint64_t members) {
  auto address = read_address(attributes, "neigh", members);
  if (!address) return std::unexpected(address.error());
  SteppedNeighbour neighbour;
  neighbour.address = *address;
  const std::string text = format_address(address->first);
  if (!attributes.has(kDressLladdr)) return fail(EINVAL, "neigh {}: lladdr is missing", text);
  neighbour.first = load_mac(reinterpret_cast<const uint8_t*>(attributes.binary(kDressLladdr).data()));
  neighbour.step = attributes.u64(kDressLladdrStep).value_or(0);
  if (is_multicast(neighbour.first) || neighbour.first == 0)
    return fail(EADDRNOTAVAIL, "neigh {} lladdr {}: accepted unicast MAC addresses", text,
                format_mac(neighbour.first));
  // Within the same first octet, so that all of them are unicast.
  const Mac most = (neighbour.first & ~(kMostMacStep >> 8)) | kMostMacStep >> 8;
  if (neighbour.step > kMostMacStep ||
      Wide{neighbour.step} * (members == 0 ? 0 : members - 1) > most - neighbour.first)
    return fail(ERANGE, "neigh {} lladdr {} step {}: the last of {} members would be beyond {}", text,
                format_mac(neighbour.first), neighbour.step, members, format_mac(most));
  return neighbour;
}

Route route_to(uint32_t ifindex, const IpPrefix& prefix) {
  Route route;
  route.address = prefix.address;
  route.length = prefix.length;
  route.type = RouteType::kUnicast;
  route.protocol = RTPROT_STATIC;
  route.oif = ifindex;
  if (prefix.is_v4())
    route.scope = RT_SCOPE_LINK;
  else
    route.metric = kDefaultMetric6;
  return route;
}

bool has_route(const Dataplane& dataplane, uint32_t ifindex, const IpPrefix& prefix) {
  const Route route = route_to(ifindex, prefix);
  RouteMatch match;
  match.address = route.address;
  match.length = route.length;
  match.type = route.type;
  match.protocol = route.protocol;
  match.metric = route.metric;
  match.oif = ifindex;
  return dataplane.interfaces.interface(ifindex).netns.own()->rib.find(
             match, &dataplane.interfaces.record(ifindex).routes) != nullptr;
}

bool has_neighbour(const Dataplane& dataplane, uint32_t ifindex, IpAddress address, Mac mac) {
  const auto info = Neighbours::get(dataplane.interfaces.interface(ifindex).neighbours, address);
  return info && info->mac == mac && info->state == NeighbourState::kPermanent;
}

// Reads every nested attribute of a number.
template <class T, class Read>
Status read_all(const RequestAttributes& attributes, uint16_t number, const char* what,
                std::span<const AttributeSpec> specs, std::vector<T>& all, Read read) {
  Status status;
  size_t count = 0;
  attributes.each(number, [&count](const nlattr&) { ++count; });
  if (count > Dressing::kMostOfEach)
    return fail_attribute(number, E2BIG, "{}: given {} times, accepted 0..{}", what, count,
                          Dressing::kMostOfEach);
  attributes.each(number, [&](const nlattr& nested) {
    if (!status) return;
    const auto parsed = RequestAttributes::parse_nested(nested, specs);
    if (!parsed) {
      status = std::unexpected(parsed.error());
      return;
    }
    auto one = read(*parsed);
    if (one)
      all.push_back(*one);
    else
      status = std::unexpected(one.error());
  });
  return status;
}

}  // namespace

IpPrefix SteppedAddress::of(uint64_t member) const noexcept {
  return {address_of(number_of(first) + (Wide{step} * member << shift), first.is_v4()), length};
}

const std::array<AttributeSpec, Dressing::kSpecs>& Dressing::specs() noexcept {
  static constexpr std::array<AttributeSpec, kSpecs> kAll = {{
      {kBulkAddress, AttributeSpec::Type::nested, "addr", 0, true},
      {kBulkRoute, AttributeSpec::Type::nested, "route", 0, true},
      {kBulkNeighbour, AttributeSpec::Type::nested, "neigh", 0, true},
  }};
  return kAll;
}

Result<Dressing> Dressing::parse(const RequestAttributes& attributes, uint64_t members) {
  Dressing dressing;
  Status read =
      read_all(attributes, kBulkAddress, "addr", kAddressSpecs, dressing.addresses_,
               [members](const RequestAttributes& nested) -> Result<SteppedAddress> {
                 auto address = read_address(nested, "addr", members);
                 if (!address) return address;
                 const uint32_t flags = nested.u32(kDressFlags).value_or(0);
                 if ((flags & ~uint32_t{IFA_F_NODAD}) != 0)
                   return fail(EOPNOTSUPP, "addr flags {:#x}: accepted nodad ({:#x})", flags, IFA_F_NODAD);
                 if (flags != 0 && !address->first.is_v4()) address->flags = InterfaceAddress::kNoDad;
                 return address;
               });
  if (read)
    read = read_all(
        attributes, kBulkRoute, "route", kRouteSpecs, dressing.routes_,
        [members](const RequestAttributes& nested) { return read_address(nested, "route", members); });
  if (read)
    read = read_all(attributes, kBulkNeighbour, "neigh", kNeighbourSpecs, dressing.neighbours_,
                    [members](const RequestAttributes& nested) { return read_neighbour(nested, members); });
  if (!read) return std::unexpected(read.error());
  if (auto valid = dressing.check(0); !valid) return std::unexpected(valid.error());
  return dressing;
}

Status Dressing::check(uint64_t member) const {
  for (size_t i = 0; i < addresses_.size(); ++i) {
    const IpPrefix prefix = addresses_[i].of(member);
    if (auto valid = Addressing::check(prefix); !valid) return valid;
    for (size_t other = 0; other < i; ++other)
      if (addresses_[other].of(member) == prefix)
        return fail(EEXIST, "addr {}: given twice", format_prefix(prefix));
  }
  for (size_t i = 0; i < routes_.size(); ++i) {
    const IpPrefix prefix = routes_[i].of(member);
    if (auto valid = check_route(prefix); !valid) return valid;
    for (size_t other = 0; other < i; ++other)
      if (routes_[other].of(member) == prefix)
        return fail(EEXIST, "route {}: given twice", format_prefix(prefix));
  }
  for (size_t i = 0; i < neighbours_.size(); ++i) {
    const IpAddress address = neighbours_[i].address.of(member).address;
    if (auto valid = check_neighbour(address); !valid) return valid;
    for (size_t other = 0; other < i; ++other)
      if (neighbours_[other].address.of(member).address == address)
        return fail(EEXIST, "neigh {}: given twice", format_address(address));
  }
  return {};
}

bool Dressing::names_family(IpFamily family) const noexcept {
  return std::ranges::any_of(
      addresses_, [family](const SteppedAddress& address) { return address.first.family() == family; });
}

bool Dressing::names(const IpPrefix& prefix, uint64_t member) const noexcept {
  return std::ranges::any_of(addresses_,
                             [&](const SteppedAddress& address) { return address.of(member) == prefix; });
}

bool Dressing::worn_by(const Dataplane& dataplane, uint32_t ifindex, uint64_t member) const noexcept {
  const AddressList* list = dataplane.interfaces.interface(ifindex).addresses.own();
  const auto has = [list](const IpPrefix& prefix) {
    return list != nullptr &&
           std::ranges::find(list->all(), prefix, &InterfaceAddress::prefix) != list->all().end();
  };
  for (const SteppedAddress& address : addresses_)
    if (!has(address.of(member))) return false;
  if (list != nullptr)
    for (const InterfaceAddress& entry : list->all())
      if (names_family(entry.address.family()) && !names(entry.prefix(), member)) return false;
  for (const SteppedAddress& route : routes_)
    if (!has_route(dataplane, ifindex, route.of(member))) return false;
  for (const SteppedNeighbour& neighbour : neighbours_)
    if (!has_neighbour(dataplane, ifindex, neighbour.address.of(member).address, neighbour.mac_of(member)))
      return false;
  return true;
}

// What goes, goes first: it may be the same address with another length.
Status Dressing::apply_addresses(Dataplane& dataplane, uint32_t ifindex, uint64_t member,
                                 RetireList& retired) const {
  const auto list = [&] { return dataplane.interfaces.interface(ifindex).addresses.own(); };
  for (size_t at = 0; list() != nullptr && at < list()->count;) {
    const InterfaceAddress entry = list()->entries[at];
    if (!names_family(entry.address.family()) || names(entry.prefix(), member)) {
      ++at;
      continue;
    }
    if (auto removed = dataplane.addressing.remove(ifindex, entry.prefix(), retired); !removed)
      return removed;
  }
  for (const SteppedAddress& address : addresses_) {
    auto added = dataplane.addressing.add(ifindex, address.of(member), address.flags, retired);
    if (!added && added.error().code != EEXIST) return added;
  }
  return {};
}

Status Dressing::apply_routes(Dataplane& dataplane, uint32_t ifindex, uint64_t member) const {
  for (const SteppedAddress& route : routes_) {
    const IpPrefix prefix = route.of(member);
    if (has_route(dataplane, ifindex, prefix)) continue;
    auto added = dataplane.interfaces.interface(ifindex).netns.own()->rib.add(
        route_to(ifindex, prefix), {.create = true}, &dataplane.interfaces.record(ifindex).routes);
    if (!added) return added;
  }
  return {};
}

Status Dressing::apply_neighbours(Dataplane& dataplane, uint32_t ifindex, uint64_t member,
                                  RetireList& retired) const {
  Interface& interface = dataplane.interfaces.interface(ifindex);
  for (const SteppedNeighbour& neighbour : neighbours_) {
    NeighbourInfo info;
    info.address = neighbour.address.of(member).address;
    info.mac = neighbour.mac_of(member);
    info.state = NeighbourState::kPermanent;
    info.protocol = RTPROT_STATIC;
    if (has_neighbour(dataplane, ifindex, info.address, info.mac)) continue;
    auto added = dataplane.neighbours.add(interface.neighbours, ifindex, info, NeighbourAdd::create_replace(),
                                          monotonic_ns(), retired);
    if (!added) return std::unexpected(added.error());
    if (!dataplane.interfaces.exists(ifindex)) continue;
    ControlMessage message{};
    message.type = ControlMessage::Type::neighbour_resolved;
    message.ifindex = ifindex;
    message.id = interface.id;
    message.address = info.address;
    message.mac = info.mac;
    dataplane.tell_workers(message);
  }
  return {};
}

Status Dressing::apply(Dataplane& dataplane, uint32_t ifindex, uint64_t member, RetireList& retired) const {
  Status done = apply_addresses(dataplane, ifindex, member, retired);
  if (done) done = apply_routes(dataplane, ifindex, member);
  if (done) done = apply_neighbours(dataplane, ifindex, member, retired);
  if (!done && !dataplane.interfaces.exists(ifindex)) dataplane.addressing.detach(ifindex, retired);
  return done;
}

}  // namespace mayfly
