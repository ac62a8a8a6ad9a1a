// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Which interfaces a command means: conditions that are ANDed, and a walk over what matches.
//
// The walk is a cursor over ifindexes, which survives every change between two slices: it meets each
// interface that existed all the time exactly once. A selection that an index narrows to a few thousand
// candidates (a small group or namespace, a parent with few children) costs those only; everything else costs
// about 10 ns per live interface.

#include <optional>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "iface/interface_table.hpp"

namespace mayfly {

struct TagRange {
  uint16_t first = 0, last = 0;
  bool contains(uint16_t tag) const noexcept { return first <= tag && tag <= last; }
};

struct Selector {
  const Netns* netns = nullptr;
  std::optional<uint32_t> group;
  std::optional<uint32_t> parent;  // ifindex
  std::optional<KindId> kind;
  std::optional<TagRange> outer;
  std::optional<TagRange> inner;
  std::optional<bool> admin_up;

  static Selector everything_in(const Netns& netns) {
    Selector selector;
    selector.netns = &netns;
    return selector;
  }
  // No condition but the namespace.
  bool empty() const noexcept { return !group && !parent && !kind && !outer && !inner && !admin_up; }
  bool matches(const InterfaceTable& table, uint32_t ifindex) const noexcept;
};

class SelectorWalk {
 public:
  SelectorWalk(const InterfaceTable& table, const Selector& selector);
  // The next match; kNoInterface at the end, or when the deadline came first (done() tells).
  uint32_t next(const Deadline& deadline) noexcept;
  bool done() const noexcept { return done_; }

 private:
  static constexpr uint32_t kMostCandidates = 4096;
  template <class First, class Next>
  void gather(First first, Next next);

  const InterfaceTable& table_;
  Selector selector_;
  std::optional<std::vector<uint32_t>> candidates_;  // ids are compared: a candidate may die meanwhile
  std::vector<uint64_t> candidate_ids_;
  uint32_t cursor_ = 0;  // ifindex, or an index into the candidates
  bool done_ = false;
};

}  // namespace mayfly
