// SPDX-License-Identifier: BSD-3-Clause
#include "fib/fib.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>

#include "base/check.hpp"

namespace mayfly {
namespace {

constexpr unsigned kSlices = 64;

// The bit of a prefix of `length` (0 .. 5) bits inside a node whose six bits begin with those of slice.
// Longer prefixes have higher bits, so the best match is the highest one set.
constexpr unsigned shorter_bit(unsigned slice, unsigned length) {
  return (1U << length) - 1 + (slice >> (6 - length));
}

// For each slice, pairwise equal: the bits of all prefixes shorter than six bits that contain it.
constexpr std::array<uint64_t, kSlices / 2> kContaining = [] {
  std::array<uint64_t, kSlices / 2> masks{};
  for (unsigned slice = 0; slice < kSlices; slice += 2)
    for (unsigned length = 0; length < 6; ++length)
      masks[slice / 2] |= uint64_t{1} << shorter_bit(slice, length);
  return masks;
}();

constexpr unsigned count_below(uint64_t bits, uint64_t bit) {
  return static_cast<unsigned>(std::popcount(bits & (bit - 1)));
}

}  // namespace

// Where a prefix is kept: in a node of `level`, as `bit` of one of its two bitmaps of prefixes.
template <class Family>
struct BasicFib<Family>::Position {
  unsigned level;
  bool exact;
  uint64_t bit;
};

template <class Family>
struct BasicFib<Family>::Node {
  struct Nothing {};

  Retired retired;
  uint64_t children;   // bit s: slice s has a child
  uint64_t shorter;    // bit shorter_bit(): this prefix, shorter than the stride, has a value
  uint64_t exact;      // bit s: the prefix of the six bits s has a value
  uint64_t edit : 56;  // the edit that made it
  uint64_t level : 8;
  // Where the family skips levels: an address whose bits above those of this level lead here.
  [[no_unique_address]] std::conditional_t<Family::kSkips, Address, Nothing> path;
  // child_count() pointers and value_count() values follow.

  unsigned child_count() const noexcept { return static_cast<unsigned>(std::popcount(children)); }
  unsigned value_count() const noexcept {
    return static_cast<unsigned>(std::popcount(shorter) + std::popcount(exact));
  }
  size_t bytes() const noexcept {
    return sizeof(Node) + child_count() * sizeof(Node*) + value_count() * sizeof(Value);
  }
  Node** child_array() noexcept { return reinterpret_cast<Node**>(this + 1); }
  Node* const* child_array() const noexcept { return reinterpret_cast<Node* const*>(this + 1); }
  Value* values() noexcept { return reinterpret_cast<Value*>(child_array() + child_count()); }
  const Value* values() const noexcept {
    return reinterpret_cast<const Value*>(child_array() + child_count());
  }

  // Whether the bits that were skipped on the way here are those of the address.
  bool leads_here(Address address) const noexcept {
    if constexpr (Family::kSkips)
      return Family::same_above(address, path, (kLevels - static_cast<unsigned>(level)) * kStride);
    else
      return true;
  }
  // The level of a node that was reached as number `depth` of its way.
  unsigned level_at(unsigned depth) const noexcept {
    if constexpr (Family::kSkips) return static_cast<unsigned>(level);
    return depth;
  }

  bool has_child(unsigned slice) const noexcept { return (children >> slice & 1) != 0; }
  Node* const* child_slot(unsigned slice) const noexcept {
    return child_array() + count_below(children, uint64_t{1} << slice);
  }
  Node** child_slot(unsigned slice) noexcept {
    return child_array() + count_below(children, uint64_t{1} << slice);
  }

  bool matches(unsigned slice) const noexcept {
    return ((shorter & kContaining[slice / 2]) | (exact >> slice & 1)) != 0;
  }
  // Only where matches(slice).
  const Value* match(unsigned slice) const noexcept {
    if ((exact >> slice & 1) != 0)
      return values() + std::popcount(shorter) + count_below(exact, uint64_t{1} << slice);
    return values() + count_below(shorter, std::bit_floor(shorter & kContaining[slice / 2]));
  }

  bool has_value(const Position& at) const noexcept { return ((at.exact ? exact : shorter) & at.bit) != 0; }
  Value* value_slot(const Position& at) noexcept {
    return at.exact ? values() + std::popcount(shorter) + count_below(exact, at.bit)
                    : values() + count_below(shorter, at.bit);
  }
  bool holds_only_one_value() const noexcept { return children == 0 && value_count() == 1; }
  bool holds_only_one_child() const noexcept { return value_count() == 0 && std::has_single_bit(children); }

  // The four changes of a node nobody else sees; there is room.
  void put_value(const Position& at, const Value& value) noexcept {
    Value* slot = value_slot(at);
    if (!has_value(at)) {
      open_gap(slot, sizeof(Value));
      (at.exact ? exact : shorter) |= at.bit;
    }
    *slot = value;
  }
  void remove_value(const Position& at) noexcept {
    close_gap(value_slot(at), sizeof(Value));
    (at.exact ? exact : shorter) &= ~at.bit;
  }
  void put_child(unsigned slice, Node* child) noexcept {
    Node** slot = child_slot(slice);
    open_gap(slot, sizeof(Node*));
    children |= uint64_t{1} << slice;
    *slot = child;
  }
  void remove_child(unsigned slice) noexcept {
    close_gap(child_slot(slice), sizeof(Node*));
    children &= ~(uint64_t{1} << slice);
  }

 private:
  std::byte* end() noexcept { return reinterpret_cast<std::byte*>(this) + bytes(); }
  void open_gap(void* at, size_t gap) noexcept {
    auto* from = static_cast<std::byte*>(at);
    std::memmove(from + gap, from, static_cast<size_t>(end() - from));
  }
  void close_gap(void* at, size_t gap) noexcept {
    auto* to = static_cast<std::byte*>(at);
    std::memmove(to, to + gap, static_cast<size_t>(end() - to) - gap);
  }
};

template <class Family>
BasicFib<Family>::~BasicFib() {
  MAYFLY_DEBUG_CHECK(root_.own() == nullptr && edit_root_ == nullptr && replaced_ == nullptr,
                     "a FIB was destroyed with nodes in it");
}

template <class Family>
auto BasicFib<Family>::position_of(const Prefix& prefix) noexcept -> Position {
  const unsigned length = prefix.length + kPadding;
  const unsigned level = length == 0 ? 0 : (length - 1) / kStride;
  const unsigned inside = length - level * kStride;
  const unsigned slice = slice_of(prefix.address, level);
  if (inside == kStride) return {level, true, uint64_t{1} << slice};
  return {level, false, uint64_t{1} << shorter_bit(slice, inside)};
}

template <class Family>
auto BasicFib<Family>::allocate(size_t bytes) noexcept -> Node* {
  static_assert(sizeof(Node) == (Family::kSkips ? 64 : 48) && alignof(Value) <= alignof(Node*));
  static_assert(sizeof(Node) + kSlices * sizeof(Node*) + 2 * kSlices * sizeof(Value) <=
                BlockPools::kMostBytes);
  auto* node = reinterpret_cast<Node*>(pools_.allocate(bytes));
  if (node == nullptr) return nullptr;
  node->children = node->shorter = node->exact = 0;
  node->edit = edit_;
  node->level = 0;
  edit_bytes_ += BlockPools::capacity_of(node->retired);
  return node;
}

// The node as one of this edit with extra_bytes of room: itself or a copy, for which it was discarded.
// nullptr without memory, and then nothing has changed.
template <class Family>
auto BasicFib<Family>::own(Node* node, size_t extra_bytes) noexcept -> Node* {
  const size_t bytes = node->bytes();
  if (node->edit == edit_ && bytes + extra_bytes <= BlockPools::capacity_of(node->retired)) return node;
  Node* copy = allocate(bytes + extra_bytes);
  if (copy == nullptr) return nullptr;
  std::memcpy(&copy->children, &node->children, bytes - offsetof(Node, children));
  copy->edit = edit_;
  discard(node);
  return copy;
}

// A node of this edit, moved to a smaller block when it fills less than half of the one it has.
template <class Family>
auto BasicFib<Family>::shrink(Node* node) noexcept -> Node* {
  const size_t bytes = node->bytes();
  const size_t least = sizeof(Node) + sizeof(Value);
  if (2 * std::max(bytes, least) > BlockPools::capacity_of(node->retired)) return node;
  Node* copy = allocate(bytes);
  if (copy == nullptr) return node;
  std::memcpy(&copy->children, &node->children, bytes - offsetof(Node, children));
  discard(node);
  return copy;
}

template <class Family>
void BasicFib<Family>::discard(Node* node) noexcept {
  edit_bytes_ -= BlockPools::capacity_of(node->retired);
  if (node->edit == edit_) {
    pools_.free_unpublished(node->retired);
    return;
  }
  node->retired.link.next = replaced_;
  replaced_ = &node->retired.link;
}

// The nodes from level down to the prefix's, each with one child, the last with the value.
template <class Family>
auto BasicFib<Family>::chain(const Prefix& prefix, const Position& position, unsigned level,
                             const Value& value) noexcept -> Node* {
  Node* node = allocate(sizeof(Node) + sizeof(Value));
  if (node == nullptr) return nullptr;
  node->put_value(position, value);
  if constexpr (Family::kSkips) {
    node->level = position.level;
    node->path = prefix.address;
    return node;
  }
  for (unsigned above = position.level; above-- > level;) {
    Node* parent = allocate(sizeof(Node) + sizeof(Node*));
    if (parent == nullptr) {
      free_edit(node);
      return nullptr;
    }
    parent->put_child(slice_of(prefix.address, above), node);
    node = parent;
  }
  return node;
}

template <class Family>
Status BasicFib<Family>::set(const Prefix& prefix, const Value& value) {
  const auto no_memory = [&] {
    return fail(ENOBUFS, "route {}: no memory for its FIB node", Family::text(prefix));
  };
  const Position position = position_of(prefix);
  if constexpr (Family::kSkips) return set_skipping(prefix, position, value);
  if (edit_root_ == nullptr) {
    edit_root_ = chain(prefix, position, 0, value);
    if (edit_root_ == nullptr) return no_memory();
    return {};
  }
  Node** link = &edit_root_;
  for (unsigned level = 0;; ++level) {
    const unsigned slice = slice_of(prefix.address, level);
    const bool last = level == position.level;
    const bool branches = !last && !(*link)->has_child(slice);
    size_t extra_bytes = 0;
    if (last && !(*link)->has_value(position)) extra_bytes = sizeof(Value);
    if (branches) extra_bytes = sizeof(Node*);
    Node* node = own(*link, extra_bytes);
    if (node == nullptr) return no_memory();
    *link = node;
    if (last) {
      node->put_value(position, value);
      return {};
    }
    if (branches) {
      Node* child = chain(prefix, position, level + 1, value);
      if (child == nullptr) return no_memory();
      node->put_child(slice, child);
      return {};
    }
    link = node->child_slot(slice);
  }
}

template <class Family>
Status BasicFib<Family>::erase(const Prefix& prefix) {
  const Position position = position_of(prefix);
  if constexpr (Family::kSkips) return erase_skipping(prefix, position);
  std::array<Node*, kLevels> path;
  Node* node = edit_root_;
  for (unsigned level = 0;; ++level) {
    if (node == nullptr) return {};
    path[level] = node;
    if (level == position.level) break;
    const unsigned slice = slice_of(prefix.address, level);
    node = node->has_child(slice) ? *node->child_slot(slice) : nullptr;
  }
  if (!node->has_value(position)) return {};

  // The nodes from level `kept` downwards hold nothing else and go, too.
  unsigned kept = position.level + 1;
  if (node->holds_only_one_value()) {
    kept = position.level;
    while (kept > 0 && path[kept - 1]->holds_only_one_child()) --kept;
  }
  Node** link = &edit_root_;
  Node** last_link = link;
  for (unsigned level = 0; level < kept; ++level) {
    Node* mine = own(path[level], 0);
    if (mine == nullptr) return fail(ENOBUFS, "route {}: no memory for removing it", Family::text(prefix));
    *link = path[level] = mine;
    last_link = link;
    if (level < position.level) link = mine->child_slot(slice_of(prefix.address, level));
  }
  for (unsigned level = kept; level <= position.level; ++level) discard(path[level]);
  if (kept == 0) {
    edit_root_ = nullptr;
    return {};
  }
  Node* last = path[kept - 1];
  if (kept > position.level)
    last->remove_value(position);
  else
    last->remove_child(slice_of(prefix.address, kept - 1));
  *last_link = shrink(last);
  return {};
}

// A node of a level that is skipped so far, above `below` and with room for more.
template <class Family>
auto BasicFib<Family>::fork(Address path, unsigned level, Node* below, size_t extra_bytes) noexcept -> Node* {
  Node* node = allocate(sizeof(Node) + sizeof(Node*) + extra_bytes);
  if (node == nullptr) return nullptr;
  if constexpr (Family::kSkips) {
    node->level = level;
    node->path = path;
    node->put_child(slice_of(below->path, level), below);
  }
  return node;
}

template <class Family>
Status BasicFib<Family>::set_skipping(const Prefix& prefix, const Position& position, const Value& value) {
  if constexpr (Family::kSkips) {
    const auto no_memory = [&] {
      return fail(ENOBUFS, "route {}: no memory for its FIB node", Family::text(prefix));
    };
    for (Node** link = &edit_root_;;) {
      Node* node = *link;
      Node* leaf = nullptr;
      const auto make_leaf = [&] { return leaf = chain(prefix, position, position.level, value); };
      if (node == nullptr) {
        if (make_leaf() == nullptr) return no_memory();
        *link = leaf;
        return {};
      }
      // The first level in which the ways to the node and to the prefix differ, or where one of them ends.
      const unsigned level = std::min({(Family::common(prefix.address, node->path) + kPadding) / kStride,
                                       static_cast<unsigned>(node->level), position.level});
      const bool ends = level == position.level;
      if (level < node->level) {
        if (!ends && make_leaf() == nullptr) return no_memory();
        node = fork(prefix.address, level, node, ends ? sizeof(Value) : sizeof(Node*));
        if (node == nullptr) {
          free_edit(leaf);
          return no_memory();
        }
        ends ? node->put_value(position, value) : node->put_child(slice_of(prefix.address, level), leaf);
        *link = node;
        return {};
      }
      const unsigned slice = slice_of(prefix.address, level);
      const bool branches = !ends && !node->has_child(slice);
      size_t extra_bytes = branches ? sizeof(Node*) : 0;
      if (ends && !node->has_value(position)) extra_bytes = sizeof(Value);
      node = own(node, extra_bytes);
      if (node == nullptr) return no_memory();
      *link = node;
      if (ends) {
        node->put_value(position, value);
        return {};
      }
      if (branches) {
        if (make_leaf() == nullptr) return no_memory();
        node->put_child(slice, leaf);
        return {};
      }
      link = node->child_slot(slice);
    }
  }
  return {};
}

// The node of the prefix goes when it holds nothing else; then what is left with one child and no value goes,
// too, and its child takes its place.
template <class Family>
Status BasicFib<Family>::erase_skipping(const Prefix& prefix, const Position& position) {
  std::array<Node*, kLevels> path;
  unsigned nodes = 0;
  for (Node* node = edit_root_;;) {
    if (node == nullptr || node->level > position.level || !node->leads_here(prefix.address)) return {};
    path[nodes++] = node;
    if (node->level == position.level) break;
    const unsigned slice = slice_of(prefix.address, static_cast<unsigned>(node->level));
    node = node->has_child(slice) ? *node->child_slot(slice) : nullptr;
  }
  Node* const found = path[nodes - 1];
  if (!found->has_value(position)) return {};

  unsigned kept = nodes;
  Node* replacement = nullptr;
  if (found->value_count() == 1 && found->child_count() <= 1) {
    --kept;
    if (found->child_count() == 1) replacement = found->child_array()[0];
  }
  if (kept < nodes && replacement == nullptr && kept > 0) {
    const Node* above = path[kept - 1];
    if (above->value_count() == 0 && above->child_count() == 2) {
      --kept;
      replacement = above->child_array()[above->child_array()[0] == found ? 1 : 0];
    }
  }
  Node** link = &edit_root_;
  Node** last_link = link;
  for (unsigned i = 0; i < kept; ++i) {
    Node* mine = own(path[i], 0);
    if (mine == nullptr) return fail(ENOBUFS, "route {}: no memory for removing it", Family::text(prefix));
    *link = path[i] = mine;
    last_link = link;
    if (i + 1 < nodes) link = mine->child_slot(slice_of(prefix.address, static_cast<unsigned>(mine->level)));
  }
  for (unsigned i = kept; i < nodes; ++i) discard(path[i]);
  if (kept == nodes) {
    path[kept - 1]->remove_value(position);
    *last_link = shrink(path[kept - 1]);
  } else if (replacement != nullptr || kept == 0) {
    *link = replacement;
  } else {
    Node* above = path[kept - 1];
    above->remove_child(slice_of(prefix.address, static_cast<unsigned>(above->level)));
    *last_link = shrink(above);
  }
  return {};
}

template <class Family>
void BasicFib<Family>::commit(RetireList& retired) noexcept {
  if (edit_root_ != root_.own()) root_.publish(edit_root_);
  bytes_ = edit_bytes_;
  while (replaced_ != nullptr) {
    auto* node = reinterpret_cast<Node*>(replaced_);
    static_assert(offsetof(Node, retired) == 0 && offsetof(Retired, link) == 0);
    replaced_ = replaced_->next;
    pools_.retire(node->retired, retired);
  }
  ++edit_;
}

template <class Family>
void BasicFib<Family>::abort() noexcept {
  free_edit(edit_root_);
  edit_root_ = root_.own();
  edit_bytes_ = bytes_;
  replaced_ = nullptr;
  ++edit_;
}

// Nodes of the edit hang below nodes of the edit only.
template <class Family>
void BasicFib<Family>::free_edit(Node* node) noexcept {
  if (node == nullptr || node->edit != edit_) return;
  for (unsigned child = 0; child < node->child_count(); ++child) free_edit(node->child_array()[child]);
  edit_bytes_ -= BlockPools::capacity_of(node->retired);
  pools_.free_unpublished(node->retired);
}

template <class Family>
void BasicFib<Family>::dismantle(Returns& returns) noexcept {
  MAYFLY_CHECK(edit_root_ == root_.own() && replaced_ == nullptr,
               "a FIB was retired in the middle of an edit");
  give_back(edit_root_, returns);
  bytes_ = edit_bytes_ = 0;
  edit_root_ = nullptr;
  root_.publish(nullptr);
}

template <class Family>
void BasicFib<Family>::give_back(Node* node, Returns& returns) noexcept {
  if (node == nullptr) return;
  for (unsigned child = 0; child < node->child_count(); ++child)
    give_back(node->child_array()[child], returns);
  pools_.give_back(node->retired, returns);
}

template <class Family>
auto BasicFib<Family>::lookup_below(const Node* node, Address address) noexcept -> const Value* {
  const Node* best = nullptr;
  unsigned best_slice = 0;
  for (unsigned depth = 0; node != nullptr && node->leads_here(address); ++depth) {
    const unsigned slice = slice_of(address, node->level_at(depth));
    if (node->matches(slice)) {
      best = node;
      best_slice = slice;
    }
    node = node->has_child(slice) ? *node->child_slot(slice) : nullptr;
  }
  return best != nullptr ? best->match(best_slice) : nullptr;
}

constexpr unsigned kLanes = 32;

// Level by level: all lanes look at their node's header and fetch the pointer of the child, then all lanes
// follow it.
template <class Family>
void BasicFib<Family>::lookup_lanes(const Node* root, const Address* addresses, const Value** values,
                                    unsigned count) noexcept {
  std::array<const Node*, kLanes> node;
  std::array<const Node*, kLanes> best;
  std::array<Node* const*, kLanes> link;
  std::array<uint8_t, kLanes> best_slice;
  std::array<uint8_t, kLanes> lanes;  // those that still descend
  for (unsigned lane = 0; lane < count; ++lane) {
    node[lane] = root;
    best[lane] = nullptr;
    best_slice[lane] = 0;
    lanes[lane] = static_cast<uint8_t>(lane);
  }
  unsigned descending = count;
  for (unsigned depth = 0; descending > 0; ++depth) {
    unsigned next = 0;
    for (unsigned i = 0; i < descending; ++i) {
      const unsigned lane = lanes[i];
      const Node* here = node[lane];
      const unsigned slice = slice_of(addresses[lane], here->level_at(depth));
      const bool leads_here = here->leads_here(addresses[lane]);
      const bool matches = leads_here && here->matches(slice);
      best[lane] = matches ? here : best[lane];
      best_slice[lane] = static_cast<uint8_t>(matches ? slice : best_slice[lane]);
      link[lane] = here->child_slot(slice);
      __builtin_prefetch(link[lane]);
      lanes[next] = static_cast<uint8_t>(lane);
      next += leads_here && here->has_child(slice) ? 1 : 0;
    }
    descending = next;
    for (unsigned i = 0; i < descending; ++i) {
      const unsigned lane = lanes[i];
      node[lane] = *link[lane];
      __builtin_prefetch(node[lane]);
    }
  }
  for (unsigned lane = 0; lane < count; ++lane) {
    values[lane] = best[lane] != nullptr ? best[lane]->match(best_slice[lane]) : nullptr;
    __builtin_prefetch(values[lane]);
  }
}

template <class Family>
void BasicFib<Family>::lookup_bulk(const Address* addresses, const Value** values,
                                   unsigned count) const noexcept {
  const Node* root = root_.read();
  if (root == nullptr) {
    std::fill_n(values, count, nullptr);
    return;
  }
  for (unsigned done = 0; done < count; done += kLanes)
    lookup_lanes(root, addresses + done, values + done, std::min(count - done, kLanes));
}

template class BasicFib<Ipv4Family>;
template class BasicFib<Ipv6Family>;

}  // namespace mayfly
