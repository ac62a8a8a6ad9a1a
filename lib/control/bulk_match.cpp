// SPDX-License-Identifier: BSD-3-Clause
#include "control/bulk_match.hpp"

#include "control/link_change.hpp"

namespace mayfly {
namespace {

// Of the settings that the member names, those that the interface has otherwise.
uint32_t other_settings(const Interface& interface, const BulkMember& member) noexcept {
  return (interface.flags.load(std::memory_order_relaxed) ^ member.spec.settings) & member.named.settings;
}

std::string_view alias_of(const InterfaceRecord& record) noexcept {
  return record.alias == nullptr ? std::string_view{} : record.alias;
}

bool equal(const Dataplane& dataplane, const BulkMember& member, uint32_t ifindex) {
  const InterfaceSpec& spec = member.spec;
  const BulkMember::Named& named = member.named;
  const Interface& interface = dataplane.interfaces.interface(ifindex);
  const InterfaceRecord& record = dataplane.interfaces.record(ifindex);
  return !(named.mtu && interface.mtu.load(std::memory_order_relaxed) != spec.mtu) &&
         !(named.mac && interface.mac.load(std::memory_order_relaxed) != spec.mac) &&
         !(named.group && record.group != spec.group) && !(named.alias && alias_of(record) != spec.alias) &&
         !(named.up && !record.admin_up) && !(named.down && record.admin_up) &&
         !(named.unnumbered && dataplane.addressing.lender_of(ifindex) != spec.unnumbered) &&
         other_settings(interface, member) == 0 && member.dressing->worn_by(dataplane, ifindex, member.step);
}

Status check_change(const Dataplane& dataplane, const BulkMember& member, uint32_t ifindex) {
  const InterfaceTable& table = dataplane.interfaces;
  const InterfaceSpec& spec = member.spec;
  if (const uint32_t most = table.most_mtu(ifindex); member.named.mtu && spec.mtu > most)
    return fail(EINVAL, "mtu {}: accepted {}..{}", spec.mtu, kLeastMtu, most);
  if (member.named.mac && (is_multicast(*spec.mac) || *spec.mac == 0))
    return fail(EADDRNOTAVAIL, "address {}: accepted unicast MAC addresses", format_mac(*spec.mac));
  if (member.named.alias)
    if (auto valid = check_interface_alias(spec.alias); !valid) return valid;
  if (!member.named.unnumbered) return {};
  return dataplane.addressing.check_lender(ifindex, spec.unnumbered);
}

Status change_settings(Dataplane& dataplane, const BulkMember& member, uint32_t ifindex,
                       RetireList& retired) {
  InterfaceTable& table = dataplane.interfaces;
  const InterfaceSpec& spec = member.spec;
  const BulkMember::Named& named = member.named;
  if (named.mtu)
    if (auto set = table.set_mtu(ifindex, spec.mtu); !set) return set;
  if (named.mac && table.interface(ifindex).mac.load(std::memory_order_relaxed) != *spec.mac)
    if (auto set = table.set_mac(ifindex, *spec.mac); !set) return set;
  if (named.group && table.record(ifindex).group != spec.group) table.set_group(ifindex, spec.group);
  if (named.alias && alias_of(table.record(ifindex)) != spec.alias)
    if (auto set = table.set_alias(ifindex, spec.alias); !set) return set;
  for (uint32_t others = other_settings(table.interface(ifindex), member); others != 0;
       others &= others - 1) {
    const uint32_t flag = others & -others;
    table.set_flag(ifindex, flag, (spec.settings & flag) != 0);
  }
  if (named.unnumbered && dataplane.addressing.lender_of(ifindex) != spec.unnumbered)
    if (auto set = dataplane.addressing.set_unnumbered(ifindex, spec.unnumbered); !set) return set;
  return member.dressing->apply(dataplane, ifindex, member.step, retired);
}

}  // namespace

Result<Match> match_link(const Dataplane& dataplane, const BulkMember& member, uint32_t ifindex) {
  const InterfaceTable& table = dataplane.interfaces;
  const InterfaceSpec& spec = member.spec;
  const Interface& interface = table.interface(ifindex);
  if (table.state(ifindex) == InterfaceState::marked)
    return fail(EBUSY, "interface '{}' is being deleted or moved", spec.name);
  if (interface.kind != spec.kind || table.record(ifindex).parent != spec.parent ||
      !interface_kinds()[spec.kind]->has_key_of(table, spec, interface))
    return Match::replaced;
  if (equal(dataplane, member, ifindex)) return Match::kept;
  if (auto valid = check_change(dataplane, member, ifindex); !valid) return std::unexpected(valid.error());
  return Match::changed;
}

// Up comes first, which may fail for want of memory; down last, which cannot.
Result<bool> change_link_in_place(Dataplane& dataplane, const BulkMember& member, uint32_t ifindex,
                                  RetireList& retired) {
  if (member.named.up)
    if (auto set = set_link_up(dataplane, ifindex, true, retired); !set) return set;
  if (auto set = change_settings(dataplane, member, ifindex, retired); !set)
    return std::unexpected(set.error());
  Result<bool> done = true;
  if (member.named.down) done = set_link_up(dataplane, ifindex, false, retired);
  dataplane.link_events.changed(dataplane, ifindex);
  return done;
}

}  // namespace mayfly
