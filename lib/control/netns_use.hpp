// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Held by a bulk request for each namespace it is at work in: that namespace is not deleted meanwhile
// (EBUSY). Control thread.

#include "netns/netns.hpp"

namespace mayfly {

class NetnsUse {
 public:
  explicit NetnsUse(Netns& netns) noexcept : netns_(netns) { ++netns_.bulk_requests; }
  ~NetnsUse() { --netns_.bulk_requests; }
  NetnsUse(const NetnsUse&) = delete;
  NetnsUse& operator=(const NetnsUse&) = delete;

 private:
  Netns& netns_;
};

}  // namespace mayfly
