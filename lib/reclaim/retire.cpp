// SPDX-License-Identifier: BSD-3-Clause
#include "reclaim/retire.hpp"

#include <algorithm>
#include <array>

#include "base/check.hpp"

namespace mayfly {
namespace {

constexpr size_t kMostKinds = 256;
std::array<const RetiredKind*, kMostKinds> kinds;

}  // namespace

void Returns::group_of(Returnable& owner) {
  const auto found = std::ranges::find(groups_, &owner, &Group::owner);
  if (found == groups_.end())
    groups_.push_back({&owner, {}});
  else
    std::swap(*found, groups_.back());
}

RetiredKind::RetiredKind(std::string_view name) : name_(name) {
  const auto free = std::ranges::find(kinds, nullptr);
  MAYFLY_CHECK(free != kinds.end(), "more kinds of retired objects than there are numbers for");
  *free = this;
  id_ = static_cast<RetiredKindId>(free - kinds.begin());
}

RetiredKind::~RetiredKind() {
  kinds[id_] = nullptr;
}

bool RetiredKind::drained(const Retired&) const {
  return true;
}

std::string RetiredKind::describe(const Retired&) const {
  return std::string(name_);
}

std::vector<Holder> RetiredKind::holders(const Retired&) const {
  return {};
}

const RetiredKind& RetiredKind::of(RetiredKindId id) noexcept {
  MAYFLY_CHECK(id < kMostKinds && kinds[id] != nullptr, "a retired object of an unknown kind");
  return *kinds[id];
}

RetireList::RetireList() noexcept {
  __cds_wfcq_init(&head_, &tail_);
}

RetireList::~RetireList() {
  MAYFLY_CHECK(objects_ == 0, "a request ended without submitting what it retired");
}

void RetireList::retire(Retired& object) noexcept {
  cds_wfcq_node_init(&object.link);
  cds_wfcq_enqueue(__cds_wfcq_head_cast(&head_), &tail_, &object.link);
  ++objects_;
  bytes_ += object.bytes;
}

}  // namespace mayfly
