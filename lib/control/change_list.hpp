// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Makes a row of changes (control/change.hpp), all or none: one after the other through the handlers that
// clients' messages go through, on a connection without a socket. At the first refusal what was done is
// undone in reverse; what somebody else prevents from that (an interface that is being deleted or moved) is
// logged and counted.
//
//   ChangeList list(dataplane, std::move(changes), "configuration mayfly.yaml");
//   while ((progress = list.step(Deadline::after_ns(...))) != Operation::Progress::done) ...
//   list.outcome();     "mayfly.yaml:12: addr add ...: interface 'x' does not exist"
//
// A removal of what is gone already is no refusal. What an undone change cannot bring back: counters and
// numbers of interfaces that were deleted, and what hung on them without being in a change. Control thread;
// a step ends with its deadline, as the handlers' operations do.

#include <string>
#include <utility>
#include <vector>

#include "control/change.hpp"
#include "control/configuration.hpp"
#include "control/connection.hpp"
#include "control/operation.hpp"

namespace mayfly {

class ChangeList {
 public:
  ChangeList(Dataplane& dataplane, Changes changes, std::string description);
  ChangeList(Dataplane& dataplane, std::vector<Change> changes, std::string description);
  ~ChangeList();
  ChangeList(const ChangeList&) = delete;
  ChangeList& operator=(const ChangeList&) = delete;

  Operation::Progress step(const Deadline& deadline);
  // After done.
  const Status& outcome() const noexcept { return outcome_; }
  // Changes that others stood in the way of undoing; the log says which.
  size_t not_undone() const noexcept { return not_undone_; }
  size_t size() const noexcept { return changes_.size(); }
  // The changes, for whoever frees them; the list is of no further use.
  Changes take_changes() noexcept { return std::exchange(changes_, {}); }

 private:
  enum class Phase : uint8_t { forward, backward, done };

  // The next message of the present change goes to the connection; false when it has no more.
  bool send_next();
  void take_answer();
  void refused(const Error& error);
  void next_change();

  Dataplane& dataplane_;
  Changes changes_;
  std::vector<bool> gone_;  // removals that found nothing: nothing to undo
  Connection connection_;
  Phase phase_ = Phase::forward;
  bool answer_due_ = false;
  size_t at_ = 0;
  size_t offset_ = 0;  // in the messages of the change
  Status outcome_;
  size_t not_undone_ = 0;
};

}  // namespace mayfly
