// SPDX-License-Identifier: BSD-3-Clause
#include "control/interface_removal.hpp"

#include <vector>

#include "base/check.hpp"

namespace mayfly {
namespace {

constexpr uint64_t kStepsPerLook = 64;  // interfaces handled between two looks at the clock

class RemoveOne final : public Operation {
 public:
  RemoveOne(Connection& connection, const nlmsghdr& request)
      : connection_(connection), request_(request), removal_(connection.dataplane()) {}

  InterfaceRemoval& removal() noexcept { return removal_; }

  Progress step(const Deadline& deadline) override {
    if (phase_ == Phase::walk) {
      auto walked = removal_.walk(deadline);
      if (walked && !*walked) return Progress::more;
      if (!walked) connection_.writer().acknowledge(request_, &walked.error());
      phase_ = walked ? Phase::commit : Phase::release;
    }
    if (phase_ == Phase::release) return removal_.release(deadline) ? Progress::done : Progress::more;
    const bool done = removal_.commit(connection_.retired(), deadline);
    connection_.dataplane().commit(connection_.retired());
    if (!done) return Progress::more;
    if ((request_.nlmsg_flags & NLM_F_ACK) != 0) connection_.writer().acknowledge(request_, nullptr);
    return Progress::done;
  }

  bool cancel() override {
    if (phase_ == Phase::walk) phase_ = Phase::release;
    return false;
  }

 private:
  enum class Phase { walk, commit, release };

  Connection& connection_;
  nlmsghdr request_;
  InterfaceRemoval removal_;
  Phase phase_ = Phase::walk;
};

}  // namespace

InterfaceRemoval::~InterfaceRemoval() {
  MAYFLY_DEBUG_CHECK(marked_ == 0, "marked interfaces were forgotten");
}

void InterfaceRemoval::take(uint32_t ifindex) {
  InterfaceTable& table = dataplane_.interfaces;
  size_t level = 0;
  for (uint32_t at = table.record(ifindex).parent; at != kNoInterface; at = table.record(at).parent) ++level;
  if (levels_.size() <= level) levels_.resize(level + 1);
  levels_[level].push_back(ifindex);
  table.mark(ifindex, number_);
  ++marked_;
}

uint32_t InterfaceRemoval::top() noexcept {
  while (levels_.back().empty()) levels_.pop_back();
  return levels_.back().back();
}

uint32_t InterfaceRemoval::pop() noexcept {
  const uint32_t ifindex = top();
  levels_.back().pop_back();
  --marked_;
  return ifindex;
}

Status InterfaceRemoval::add(uint32_t ifindex, bool port_too) {
  InterfaceTable& table = dataplane_.interfaces;
  const char* name = table.record(ifindex).name;
  const uint32_t peer = table.peer(ifindex);
  // The other end of one that was added before.
  if (peer != kNoInterface && table.marked_by(ifindex, number_) && ends_.erase(ifindex) != 0) return {};
  if (table.state(ifindex) == InterfaceState::marked)
    return fail(EBUSY, "interface '{}' is being deleted or moved already", name);
  if (table.interface(ifindex).kind == kPortKind && !port_too)
    return fail(EOPNOTSUPP, "interface '{}': a port's interface goes with its device: mayfly port del {}",
                name, name);
  if (peer != kNoInterface) {
    if (table.state(peer) != InterfaceState::live)
      return fail(EBUSY, "interface '{}', the peer of '{}', is being moved", table.record(peer).name, name);
    take(peer);
    ends_.insert(peer);
  }
  take(ifindex);
  return {};
}

// The cursor stands on a child that is marked, so nobody else can unlink it between two slices; nothing is
// added to a marked parent's list either.
Result<bool> InterfaceRemoval::walk(const Deadline& deadline) {
  InterfaceTable& table = dataplane_.interfaces;
  uint64_t steps = 0;
  for (; walked_level_ < levels_.size(); ++walked_level_, walked_ = 0) {
    for (; walked_ < levels_[walked_level_].size(); ++walked_, last_child_ = kNoInterface) {
      if (++steps % kStepsPerLook == 0 && deadline.over()) return false;
      const uint32_t parent = levels_[walked_level_][walked_];
      uint32_t child =
          last_child_ == kNoInterface ? table.first_child(parent) : table.next_sibling(last_child_);
      for (; child != kNoInterface; child = table.next_sibling(child)) {
        if (table.state(child) == InterfaceState::claimed)
          return fail(EBUSY, "interfaces are being created on '{}'", table.record(parent).name);
        if (table.state(child) == InterfaceState::live)
          take(child);
        else if (!table.marked_by(child, number_))
          return fail(EBUSY, "interface '{}' on '{}' is being deleted or moved", table.record(child).name,
                      table.record(parent).name);
        last_child_ = child;
        if (++steps % kStepsPerLook == 0 && deadline.over()) return false;
      }
    }
  }
  return true;
}

bool InterfaceRemoval::release(const Deadline& deadline) noexcept {
  for (uint64_t steps = 1; marked_ != 0; ++steps) {
    dataplane_.interfaces.unmark(pop());
    if (steps % kStepsPerLook == 0 && deadline.over()) return marked_ == 0;
  }
  return true;
}

bool InterfaceRemoval::commit(RetireList& retired, const Deadline& deadline) noexcept {
  for (uint64_t steps = 1; marked_ != 0; ++steps) {
    if (!dataplane_.addressing.shed_routes(top())) {
      if (deadline.over()) return false;
      continue;
    }
    const uint32_t ifindex = pop();
    // What stands on another victim goes with it, and is not told of.
    if (const uint32_t parent = dataplane_.interfaces.record(ifindex).parent;
        parent == kNoInterface || !dataplane_.interfaces.marked_by(parent, number_))
      dataplane_.link_events.going(dataplane_, ifindex);
    dataplane_.addressing.detach(ifindex, retired);
    dataplane_.interfaces.retire(ifindex, retired);
    ++committed_;
    if (steps % kStepsPerLook == 0 && deadline.over()) return marked_ == 0;
  }
  return true;
}

HandlerResult remove_interface(Connection& connection, const nlmsghdr& request, uint32_t ifindex) {
  Dataplane& dataplane = connection.dataplane();
  const uint32_t peer = dataplane.interfaces.peer(ifindex);
  const bool at_once = dataplane.interfaces.first_child(ifindex) == kNoInterface &&
                       !dataplane.addressing.has_many_routes(ifindex) &&
                       (peer == kNoInterface || !dataplane.addressing.has_many_routes(peer));
  if (at_once) {
    InterfaceRemoval removal(dataplane);
    if (auto added = removal.add(ifindex); !added) return std::unexpected(added.error());
    removal.commit(connection.retired(), Deadline::never());
    return Handled::acknowledge;
  }
  auto operation = std::make_unique<RemoveOne>(connection, request);
  if (auto added = operation->removal().add(ifindex); !added) return std::unexpected(added.error());
  connection.start(std::move(operation));
  return Handled::operation;
}

}  // namespace mayfly
