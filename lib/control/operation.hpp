// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Work that one request asks for and that takes longer than a slice: bulk changes, dumps, waits.
//
// step() works until the deadline and says where it stands. An operation that changes things holds them
// whole: when its client dies, cancel() undoes what was only claimed; what is being committed is finished
// first (abandoned() returns false until then).

#include "base/clock.hpp"

namespace mayfly {

class Operation {
 public:
  enum class Progress {
    more,     // has work for another slice
    waiting,  // for time or teardown; looked at again once a round
    done,     // answered
  };
  virtual ~Operation() = default;
  virtual Progress step(const Deadline& deadline) = 0;
  // It only reads the connection's namespace, and ends when that is deleted.
  virtual bool ends_with_netns() const { return false; }
  // The client is gone. True when nothing is left to do; otherwise step() is called until done.
  virtual bool cancel() = 0;
};

}  // namespace mayfly
