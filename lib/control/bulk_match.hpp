// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// What a bulk replace finds under a member's name, and what it changes there in place.
//
// Only what the request names is compared. An interface that is equal in it is not touched at all: id,
// counters, addresses, parked packets and every block that workers read stay as they are.
//
// Control thread; constant time, but for an interface's own lists.

#include "control/bulk_members.hpp"

namespace mayfly {

enum class Match : uint8_t {
  missing,
  kept,      // equal
  changed,   // differs in what can be changed in place
  replaced,  // differs in type, parent or key: it would have to be deleted
};

// The interface has the member's name and namespace. ENODEV, EINVAL, EBUSY when it cannot be given what the
// member names, or is being deleted or moved.
Result<Match> match_link(const Dataplane& dataplane, const BulkMember& member, uint32_t ifindex);

// Gives a `changed` one what the member names. ENOBUFS, or as match_link when it is another one by now.
// False: it is going down (control/link_change).
Result<bool> change_link_in_place(Dataplane& dataplane, const BulkMember& member, uint32_t ifindex,
                                  RetireList& retired);

}  // namespace mayfly
