// SPDX-License-Identifier: BSD-3-Clause
// The lists an interface is in (its group's, its namespace's, its parent's), and what follows from its
// parent's state.
#include <algorithm>

#include "base/check.hpp"
#include "iface/interface_table.hpp"

namespace mayfly {

void InterfaceTable::unlink_name_and_lists(uint32_t ifindex) noexcept {
  names_.erase(ifindex);
  leave_group(ifindex);
  leave_netns(ifindex);
  leave_parent(ifindex);
  leave_mac(ifindex);
}

uint32_t InterfaceTable::first_of_group(uint32_t group) const noexcept {
  const auto found = groups_.find(group);
  return found == groups_.end() ? kNoInterface : found->second.first;
}

uint32_t InterfaceTable::group_size(uint32_t group) const noexcept {
  const auto found = groups_.find(group);
  return found == groups_.end() ? 0 : found->second.size;
}

uint32_t InterfaceTable::first_of_netns(const Netns* netns) const noexcept {
  const auto found = netns_.find(netns);
  return found == netns_.end() ? kNoInterface : found->second.first;
}

uint32_t InterfaceTable::netns_size(const Netns* netns) const noexcept {
  const auto found = netns_.find(netns);
  return found == netns_.end() ? 0 : found->second.size;
}

// Enters the list whose links are these two fields of the records.
void InterfaceTable::enter(Group& list, uint32_t ifindex, uint32_t InterfaceRecord::*prev,
                           uint32_t InterfaceRecord::*next) noexcept {
  InterfaceRecord& record = records_[ifindex];
  record.*prev = kNoInterface;
  record.*next = list.first;
  if (list.first != kNoInterface) records_[list.first].*prev = ifindex;
  list.first = ifindex;
  ++list.size;
}

// True when the list is empty afterwards.
bool InterfaceTable::leave(Group& list, uint32_t ifindex, uint32_t InterfaceRecord::*prev,
                           uint32_t InterfaceRecord::*next) noexcept {
  const InterfaceRecord& record = records_[ifindex];
  if (record.*next != kNoInterface) records_[record.*next].*prev = record.*prev;
  if (record.*prev != kNoInterface)
    records_[record.*prev].*next = record.*next;
  else
    list.first = record.*next;
  return --list.size == 0;
}

void InterfaceTable::enter_group(uint32_t ifindex) noexcept {
  enter(groups_[records_[ifindex].group], ifindex, &InterfaceRecord::group_prev,
        &InterfaceRecord::group_next);
}

void InterfaceTable::leave_group(uint32_t ifindex) noexcept {
  const auto group = groups_.find(records_[ifindex].group);
  if (leave(group->second, ifindex, &InterfaceRecord::group_prev, &InterfaceRecord::group_next))
    groups_.erase(group);
}

void InterfaceTable::enter_netns(uint32_t ifindex) noexcept {
  enter(netns_[interfaces_[ifindex].netns.own()], ifindex, &InterfaceRecord::netns_prev,
        &InterfaceRecord::netns_next);
}

void InterfaceTable::leave_netns(uint32_t ifindex) noexcept {
  const auto netns = netns_.find(interfaces_[ifindex].netns.own());
  if (leave(netns->second, ifindex, &InterfaceRecord::netns_prev, &InterfaceRecord::netns_next))
    netns_.erase(netns);
}

void InterfaceTable::set_group(uint32_t ifindex, uint32_t group) noexcept {
  leave_group(ifindex);
  records_[ifindex].group = group;
  enter_group(ifindex);
}

void InterfaceTable::enter_parent(uint32_t ifindex) noexcept {
  InterfaceRecord& record = records_[ifindex];
  if (record.parent == kNoInterface) return;
  InterfaceRecord& parent = records_[record.parent];
  record.sibling_prev = kNoInterface;
  record.sibling_next = parent.first_child;
  if (parent.first_child != kNoInterface) records_[parent.first_child].sibling_prev = ifindex;
  parent.first_child = ifindex;
  ++parent.children;
}

void InterfaceTable::leave_parent(uint32_t ifindex) noexcept {
  const InterfaceRecord& record = records_[ifindex];
  if (record.parent == kNoInterface) return;
  InterfaceRecord& parent = records_[record.parent];
  if (record.sibling_next != kNoInterface) records_[record.sibling_next].sibling_prev = record.sibling_prev;
  if (record.sibling_prev != kNoInterface)
    records_[record.sibling_prev].sibling_next = record.sibling_next;
  else
    parent.first_child = record.sibling_next;
  --parent.children;
}

void InterfaceTable::set_admin_up(uint32_t ifindex, bool up) noexcept {
  records_[ifindex].admin_up = up;
  update_up_flag(ifindex);
  if (interfaces_[ifindex].kind == kPortKind) return;
  for (uint32_t child = first_child(ifindex); child != kNoInterface; child = next_sibling(child))
    if (exists(child)) update_up_flag(child);
}

// A port's own state is looked at once per vector by workers and is not copied to its VLANs.
void InterfaceTable::update_up_flag(uint32_t ifindex) noexcept {
  const InterfaceRecord& record = records_[ifindex];
  bool up = record.admin_up && !record.suspended;
  if (record.parent != kNoInterface && interfaces_[record.parent].kind != kPortKind)
    up = up && (interfaces_[record.parent].flags.load(std::memory_order_relaxed) & Interface::kUp) != 0;
  std::atomic<uint32_t>& flags = interfaces_[ifindex].flags;
  const uint32_t others = flags.load(std::memory_order_relaxed) & ~(Interface::kLive | Interface::kUp);
  flags.store(others | Interface::kLive | (up ? Interface::kUp : 0), std::memory_order_release);
}

void InterfaceTable::set_flag(uint32_t ifindex, uint32_t setting, bool on) noexcept {
  MAYFLY_DEBUG_CHECK((setting & ~Interface::kSettings) == 0, "not a setting");
  std::atomic<uint32_t>& flags = interfaces_[ifindex].flags;
  const uint32_t now = flags.load(std::memory_order_relaxed);
  flags.store(on ? now | setting : now & ~setting, std::memory_order_release);
}

// A worker that reads the new number beside the old id finds that they do not match, and takes it for none.
void InterfaceTable::set_unnumbered(uint32_t ifindex, uint32_t lender) noexcept {
  Interface& interface = interfaces_[ifindex];
  interface.unnumbered_id.store(lender == kNoInterface ? 0 : interfaces_[lender].id,
                                std::memory_order_relaxed);
  interface.unnumbered.store(lender, std::memory_order_release);
}

void InterfaceTable::set_carrier(uint32_t ifindex, bool carrier) noexcept {
  std::atomic<uint32_t>& flags = interfaces_[ifindex].flags;
  const uint32_t others = flags.load(std::memory_order_relaxed) & ~Interface::kNoCarrier;
  flags.store(others | (carrier ? 0 : Interface::kNoCarrier), std::memory_order_release);
}

void InterfaceTable::set_tag_losses(uint32_t ifindex, uint32_t one_tag, uint32_t two_tags) noexcept {
  constexpr uint32_t kAll = (1u << 12) - 1;
  std::atomic<uint32_t>& flags = interfaces_[ifindex].flags;
  const uint32_t losses =
      std::min(one_tag, Interface::kTagLossMask) << 4 | std::min(two_tags, Interface::kTagLossMask) << 8;
  const uint32_t others = flags.load(std::memory_order_relaxed) & ~(kAll << Interface::kTagLossShift);
  flags.store(others | losses << Interface::kTagLossShift, std::memory_order_release);
}

uint32_t InterfaceTable::most_mtu(uint32_t ifindex) const noexcept {
  const InterfaceRecord& record = records_[ifindex];
  return record.parent == kNoInterface ? record.mtu_limit
                                       : interfaces_[record.parent].mtu.load(std::memory_order_relaxed);
}

bool InterfaceTable::shares_port_mac(uint32_t ifindex) const noexcept {
  const Interface& interface = interfaces_[ifindex];
  return interface.port != kNoPort && interface.kind != kPortKind && !records_[ifindex].own_mac;
}

// Only an address of its own costs anything: a subscriber nearly always has the port's.
void InterfaceTable::enter_mac(uint32_t ifindex) {
  const Interface& interface = interfaces_[ifindex];
  if (interface.port == kNoPort || interface.kind == kPortKind) return;
  PortDemux& demux = ports_[interface.port];
  const uint32_t port = demux.untagged.load(std::memory_order_relaxed);
  const Mac mac = interface.mac.load(std::memory_order_relaxed);
  if (port == kNoInterface || interfaces_[port].mac.load(std::memory_order_relaxed) == mac) return;
  records_[ifindex].own_mac = true;
  if (++demux.own_macs.count[mac] == 1) ++demux.own_macs.changes;
}

void InterfaceTable::leave_mac(uint32_t ifindex) noexcept {
  if (!records_[ifindex].own_mac) return;
  records_[ifindex].own_mac = false;
  OwnMacs& macs = ports_[interfaces_[ifindex].port].own_macs;
  const auto found = macs.count.find(interfaces_[ifindex].mac.load(std::memory_order_relaxed));
  if (--found->second != 0) return;
  macs.count.erase(found);
  ++macs.changes;
}

bool InterfaceTable::oper_up(uint32_t ifindex) const noexcept {
  if (interfaces_[ifindex].kind == kVethKind) {
    const uint32_t other = peer(ifindex);
    return records_[ifindex].admin_up && other != kNoInterface && records_[other].admin_up;
  }
  for (; ifindex != kNoInterface; ifindex = records_[ifindex].parent)
    if (!records_[ifindex].admin_up || !has_carrier(ifindex)) return false;
  return true;
}

}  // namespace mayfly
