// SPDX-License-Identifier: BSD-3-Clause
#include "iface/selector.hpp"

namespace mayfly {
namespace {

constexpr uint32_t kStepsPerLook = 64;  // interfaces visited between two looks at the clock

}  // namespace

bool Selector::matches(const InterfaceTable& table, uint32_t ifindex) const noexcept {
  const InterfaceRecord& record = table.record(ifindex);
  const Interface& interface = table.interface(ifindex);
  if (netns != nullptr && interface.netns.own() != netns) return false;
  if (group && record.group != *group) return false;
  if (parent && record.parent != *parent) return false;
  if (kind && interface.kind != *kind) return false;
  if (outer && (interface.tag_bytes == 0 || !outer->contains(interface.outer_tag()))) return false;
  if (inner && (interface.tag_bytes != 8 || !inner->contains(interface.inner_tag()))) return false;
  return !admin_up || record.admin_up == *admin_up;
}

SelectorWalk::SelectorWalk(const InterfaceTable& table, const Selector& selector)
    : table_(table), selector_(selector) {
  if (selector.parent && table.record(*selector.parent).children <= kMostCandidates)
    gather(table.first_child(*selector.parent),
           [&](uint32_t ifindex) { return table.next_sibling(ifindex); });
  else if (selector.group && table.group_size(*selector.group) <= kMostCandidates)
    gather(table.first_of_group(*selector.group),
           [&](uint32_t ifindex) { return table.next_of_group(ifindex); });
  else if (selector.netns != nullptr && table.netns_size(selector.netns) <= kMostCandidates)
    gather(table.first_of_netns(selector.netns),
           [&](uint32_t ifindex) { return table.next_of_netns(ifindex); });
}

template <class First, class Next>
void SelectorWalk::gather(First first, Next next) {
  candidates_.emplace();
  for (uint32_t ifindex = first; ifindex != kNoInterface; ifindex = next(ifindex)) {
    candidates_->push_back(ifindex);
    candidate_ids_.push_back(table_.interface(ifindex).id);
  }
}

uint32_t SelectorWalk::next(const Deadline& deadline) noexcept {
  for (uint32_t steps = 1; !done_; ++steps) {
    if (steps % kStepsPerLook == 0 && deadline.over()) return kNoInterface;
    uint32_t ifindex = kNoInterface;
    if (candidates_) {
      // The lists put the newest first; people expect the order of creation.
      if (cursor_ == candidates_->size()) break;
      const size_t at = candidates_->size() - ++cursor_;
      ifindex = (*candidates_)[at];
      if (!table_.exists(ifindex) || table_.interface(ifindex).id != candidate_ids_[at]) continue;
    } else {
      ifindex = table_.next(cursor_);
      if (ifindex == kNoInterface) break;
      cursor_ = ifindex + 1;
    }
    if (selector_.matches(table_, ifindex)) return ifindex;
  }
  done_ = true;
  return kNoInterface;
}

}  // namespace mayfly
