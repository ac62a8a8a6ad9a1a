// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// What the bulk commands have in common: their switches, carrying them out, and printing what came of them.

#include <functional>
#include <string>
#include <string_view>

#include "plan.hpp"

namespace mayfly::cli {

// Where a member was described, "plan.csv:17"; empty when that is nowhere.
using MemberPlace = std::function<std::string(uint64_t member)>;

struct BulkOperation {
  std::string name;      // "link del group 7"
  std::string_view did;  // "created", "deleted"
  bool deletes = false;
  bool replaces = false;
  bool dry_run = false;
  MemberPlace place = {};
};

void put_switches(RequestMessage& message, bool dry_run, bool force);
// Sends the request and prints its result; the exit status.
Result<int> carry_out(Session& session, RequestMessage& message, const BulkOperation& operation);
Presenter presenter_of(BulkOperation operation);

// link bulk del (bulk_delete.cpp); add and replace (bulk_add.cpp).
Status parse_bulk_delete(Words& words, const Options& options, Plan& plan);
Status parse_bulk_add(Words& words, const Options& options, Plan& plan);
Status parse_bulk_replace(Words& words, const Options& options, Plan& plan);

}  // namespace mayfly::cli
