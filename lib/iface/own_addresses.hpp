// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Which addresses are an interface's own: those of its list; when it is unnumbered, those of another
// interface as well; and, unless kNoLinkLocal says otherwise, the link-local address of its MAC, which costs
// nothing: it is in no list and no table.
//
// An unnumbered interface names the other one by ifindex and id. The other may be deleted or moved to another
// namespace at any time: it is compared at every use, so that nobody has to look for those who use it.
//
// Worker online (results are valid until its quiescent state) or control thread. `interfaces` is
// InterfaceTable::interfaces().

#include "iface/address_list.hpp"
#include "iface/interface.hpp"

namespace mayfly {

// AddressSanitizer knows free slots as poisoned; looking whether one is live is what flags and id are there
// for.
[[gnu::no_sanitize_address]] inline const AddressList* lent_addresses(const Interface* interfaces,
                                                                      const Interface& interface) noexcept {
  const uint32_t number = interface.unnumbered.load(std::memory_order_relaxed);
  if (number == kNoInterface) [[likely]]
    return nullptr;
  const Interface& lender = interfaces[number];
  uint32_t flags;
  __atomic_load(reinterpret_cast<const uint32_t*>(&lender.flags), &flags, __ATOMIC_ACQUIRE);
  if ((flags & Interface::kLive) == 0 ||
      lender.id != interface.unnumbered_id.load(std::memory_order_relaxed) ||
      lender.netns.read() != interface.netns.read())
    return nullptr;
  return lender.addresses.read();
}

// The list of the interface, else of the one it uses; nullptr when there is neither.
inline const AddressList* addresses_of(const Interface* interfaces, const Interface& interface) noexcept {
  const AddressList* own = interface.addresses.read();
  return own != nullptr ? own : lent_addresses(interfaces, interface);
}

inline bool has_link_local(const Interface& interface) noexcept {
  return (interface.flags.load(std::memory_order_relaxed) & Interface::kNoLinkLocal) == 0;
}
inline bool is_implicit(const Interface& interface, IpAddress address) noexcept {
  return !address.is_v4() && is_link_local(address.v6()) && has_link_local(interface) &&
         address.v6() == link_local_of(interface.mac.load(std::memory_order_relaxed));
}

// Whether packets, ARP requests and solicitations for the address are the interface's own.
inline bool is_own_address(const Interface* interfaces, const Interface& interface,
                           IpAddress address) noexcept {
  if (const AddressList* own = interface.addresses.read(); own != nullptr && own->has(address)) return true;
  if (is_implicit(interface, address)) return true;
  const AddressList* lent = lent_addresses(interfaces, interface);
  return lent != nullptr && lent->has(address);
}

// The source for packets to a neighbour on the interface, none when it has no address of that family: its own
// ones first. IPv6 falls back to the link-local one, and prefers it for a link-local neighbour.
inline IpAddress source_of(const Interface* interfaces, const Interface& interface,
                           IpAddress neighbour) noexcept {
  IpAddress source;
  if (const AddressList* own = interface.addresses.read(); own != nullptr)
    source = own->source_for(neighbour);
  if (source.none())
    if (const AddressList* lent = lent_addresses(interfaces, interface); lent != nullptr)
      source = lent->source_for(neighbour);
  if (neighbour.is_v4() || !has_link_local(interface)) return source;
  const bool wrong_scope = is_link_local(neighbour.v6()) && !is_link_local(source.v6());
  if (!source.none() && !wrong_scope) return source;
  return IpAddress(link_local_of(interface.mac.load(std::memory_order_relaxed)));
}

}  // namespace mayfly
