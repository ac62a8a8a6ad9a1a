// SPDX-License-Identifier: BSD-3-Clause
#include "control/bulk_result.hpp"

#include "base/log.hpp"
#include "base/units.hpp"
#include "control/generic_writer.hpp"

namespace mayfly {
namespace {

using namespace protocol;

constexpr uint64_t kProgressEveryNs = 200 * kNsPerMs;

}  // namespace

void BulkResult::answer(Connection& connection, const nlmsghdr& request, bool forced) const {
  MessageWriter& writer = connection.writer();
  begin_generic(writer, request.nlmsg_seq, kCmdBulkResult, 0);
  writer.put_u64(kBulkMatched, matched);
  writer.put_u64(kBulkChanged, changed);
  writer.put_u64(kBulkFailed, failed_);
  if (replaced) {
    writer.put_u64(kBulkCreated, replaced->created);
    writer.put_u64(kBulkKept, replaced->kept);
    writer.put_u64(kBulkDeleted, replaced->deleted);
  }
  writer.put_u64(kBulkDuration, monotonic_ns() - began_ns_);
  writer.put_u64(kBulkToReclaim, to_reclaim_bytes);
  for (const Failure& failure : failures_) {
    nlattr* nested = writer.begin_nested(kBulkFailure);
    writer.put_string(kFailureName, failure.name);
    writer.put_u32(kFailureErrno, static_cast<uint32_t>(failure.error.code));
    writer.put_string(kFailureText, failure.error.text);
    if (failure.member) writer.put_u64(kFailureMember, *failure.member);
    writer.end_nested(nested);
  }
  writer.end();
  if (failed_ == 0 || forced) {
    if ((request.nlmsg_flags & NLM_F_ACK) != 0) writer.acknowledge(request, nullptr);
    return;
  }
  const Failure& first = failures_.front();
  const Error error{first.error.code,
                    fmt::format("{}: {}{}; {}", first.name, first.error.text,
                                failed_ == 1 ? "" : fmt::format(" (and {} more)", failed_ - 1),
                                incomplete ? "the rest was done" : "nothing was changed")};
  writer.acknowledge(request, &error);
}

void BulkResult::tell_progress(Connection& connection, const nlmsghdr& request, uint64_t done,
                               uint64_t total) {
  const uint64_t now = monotonic_ns();
  if (now - told_ns_ < kProgressEveryNs) return;
  told_ns_ = now;
  MessageWriter& writer = connection.writer();
  begin_generic(writer, request.nlmsg_seq, kCmdBulkProgress, 0);
  writer.put_u64(kBulkDone, done);
  writer.put_u64(kBulkTotal, total);
  writer.end();
}

void BulkResult::log_line(const Connection& connection, std::string_view what) const {
  const std::string others = replaced ? fmt::format("created {} kept {} deleted {} ", replaced->created,
                                                    replaced->kept, replaced->deleted)
                                      : "";
  log(LogLevel::info, "bulk", "{}: matched {} {}changed {} failed {} in {} for {}", what, matched, others,
      changed, failed_, format_duration(monotonic_ns() - began_ns_), connection.describe());
}

}  // namespace mayfly
