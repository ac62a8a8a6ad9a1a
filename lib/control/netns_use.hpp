// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Held by a bulk request for each namespace it is at work in: that namespace is not deleted meanwhile
// (EBUSY). One that is being deleted already can be held by nobody any more: whoever takes a request that
// outlives its handler asks check_stays() first. Control thread.

#include "base/check.hpp"
#include "base/result.hpp"
#include "netns/netns.hpp"

namespace mayfly {

inline Status check_stays(const Netns& netns) {
  if (netns.dying) return fail(EBUSY, "netns '{}' is being deleted", netns.name);
  return {};
}

class NetnsUse {
 public:
  explicit NetnsUse(Netns& netns) noexcept : netns_(netns) {
    MAYFLY_DEBUG_CHECK(!netns.dying, "a namespace was held that is being deleted");
    ++netns_.bulk_requests;
  }
  ~NetnsUse() { --netns_.bulk_requests; }
  NetnsUse(const NetnsUse&) = delete;
  NetnsUse& operator=(const NetnsUse&) = delete;

 private:
  Netns& netns_;
};

}  // namespace mayfly
