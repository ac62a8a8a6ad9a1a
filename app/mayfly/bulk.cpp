// SPDX-License-Identifier: BSD-3-Clause
#include "bulk.hpp"

#include <libmnl/libmnl.h>
#include <linux/genetlink.h>

#include <cstring>

#include "base/units.hpp"
#include "link.hpp"
#include "progress.hpp"
#include "session.hpp"

namespace mayfly::cli {
namespace {

constexpr size_t kFailuresShown = 10;

struct Failure {
  std::string name;
  std::string text;
  int code = 0;
  std::string place;
};

struct BulkResult {
  bool received = false;
  uint64_t matched = 0;
  uint64_t changed = 0;
  uint64_t failed = 0;
  uint64_t created = 0;
  uint64_t kept = 0;
  uint64_t deleted = 0;
  uint64_t duration_ns = 0;
  uint64_t to_reclaim = 0;
  std::vector<Failure> failures;
};

BulkResult read_result(const nlmsghdr& answer, const MemberPlace& place) {
  const Attributes attributes(answer, sizeof(genlmsghdr));
  BulkResult result;
  result.received = true;
  result.matched = attributes.number_or(protocol::kBulkMatched, 0);
  result.changed = attributes.number_or(protocol::kBulkChanged, 0);
  result.failed = attributes.number_or(protocol::kBulkFailed, 0);
  result.created = attributes.number_or(protocol::kBulkCreated, 0);
  result.kept = attributes.number_or(protocol::kBulkKept, 0);
  result.deleted = attributes.number_or(protocol::kBulkDeleted, 0);
  result.duration_ns = attributes.number_or(protocol::kBulkDuration, 0);
  result.to_reclaim = attributes.number_or(protocol::kBulkToReclaim, 0);
  attributes.each(protocol::kBulkFailure, [&](const Attributes& failure) {
    const auto member = failure.number(protocol::kFailureMember);
    result.failures.push_back({.name = std::string(failure.string(protocol::kFailureName)),
                               .text = std::string(failure.string(protocol::kFailureText)),
                               .code = static_cast<int>(failure.number_or(protocol::kFailureErrno, 0)),
                               .place = member && place ? place(*member) : std::string{}});
  });
  return result;
}

std::string prefix_of(const Failure& failure) {
  return failure.place.empty() ? std::string{} : failure.place + ": ";
}

void print_text(Output& out, const BulkOperation& operation, const BulkResult& result) {
  if (operation.replaces)
    out.print("{}: matched {} created {} kept {} changed {} deleted {} failed {} in {}", operation.name,
              result.matched, result.created, result.kept, result.changed, result.deleted, result.failed,
              format_duration(result.duration_ns));
  else
    out.print("{}: matched {} {} {} failed {} in {}", operation.name, result.matched, operation.did,
              result.changed, result.failed, format_duration(result.duration_ns));
  if (operation.dry_run)
    out.write(" (dry run: nothing changed)\n");
  else if (operation.deletes || result.deleted > 0)
    out.print("; {} to reclaim (reclaim wait)\n", format_bytes(result.to_reclaim));
  else
    out.write("\n");
  for (size_t at = 0; at < result.failures.size() && at < kFailuresShown; ++at) {
    const Failure& failure = result.failures[at];
    out.print("  {}{}: {}\n", prefix_of(failure), failure.name,
              failure.text.empty() ? strerror(failure.code) : failure.text);
  }
  const size_t shown = std::min(result.failures.size(), kFailuresShown);
  if (shown > 0 && result.failed > shown) out.print("  and {} more\n", result.failed - shown);
}

Json result_json(const BulkOperation& operation, const BulkResult& result, std::string_view boot_id) {
  Json failures = Json::array();
  for (const Failure& failure : result.failures) {
    Json entry{{"ifname", failure.name}, {"errno", failure.code}, {"text", failure.text}};
    if (!failure.place.empty()) entry.set("place", failure.place);
    failures.push_back(entry);
  }
  Json document{{"operation", operation.name}, {"dry_run", operation.dry_run}, {"matched", result.matched}};
  if (operation.replaces)
    document.update({{"created", result.created},
                     {"kept", result.kept},
                     {"changed", result.changed},
                     {"deleted", result.deleted}});
  else
    document.set(operation.did, result.changed);
  document.set("failed", result.failed);
  document.set("duration_ns", result.duration_ns);
  if (operation.deletes || operation.replaces) document.set("to_reclaim_bytes", result.to_reclaim);
  document.set("failures", failures);
  document.set("boot_id", boot_id);
  return document;
}

constexpr std::array kCommands = {
    CommandEntry{"add", parse_bulk_add},
    CommandEntry{"replace", parse_bulk_replace},
    CommandEntry{"delete", parse_bulk_delete},
};

}  // namespace

void put_switches(RequestMessage& message, bool dry_run, bool force) {
  if (force) message.put_flag(protocol::kBulkForce);
  if (dry_run) message.put_flag(protocol::kBulkDryRun);
  if (ProgressBar::wanted()) message.put_flag(protocol::kBulkWantProgress);
}

Result<int> carry_out(Session& session, RequestMessage& message, const BulkOperation& operation) {
  BulkResult result;
  ProgressBar bar(operation.name);
  const Status done = session.request(Plan::Family::generic, message, [&](const nlmsghdr& answer) {
    if (mnl_nlmsg_get_payload_len(&answer) < sizeof(genlmsghdr)) return;
    const auto* generic = static_cast<const genlmsghdr*>(mnl_nlmsg_get_payload(&answer));
    if (generic->cmd == protocol::kCmdBulkResult) {
      result = read_result(answer, operation.place);
    } else if (generic->cmd == protocol::kCmdBulkProgress) {
      const Attributes attributes(answer, sizeof(genlmsghdr));
      bar.update(attributes.number_or(protocol::kBulkDone, 0), attributes.number_or(protocol::kBulkTotal, 0));
    }
  });
  bar.clear();
  if (result.received) {
    if (session.options().json)
      session.out().write_json(result_json(operation, result, session.boot_id()), session.options().pretty);
    else
      print_text(session.out(), operation, result);
  }
  if (!done && !result.failures.empty())
    return fail(done.error().code, "{}{}", prefix_of(result.failures.front()), done.error().text);
  if (!done) return std::unexpected(done.error());
  return result.failed == 0 ? kExitOk : kExitRefused;
}

Presenter presenter_of(BulkOperation operation) {
  return [operation = std::move(operation)](Session& session, Plan& plan) {
    return carry_out(session, plan.message, operation);
  };
}

Status parse_link_bulk(Words& words, const Options& options, Plan& plan) {
  static const std::string help = link_help();
  if (words.done()) return fail(EINVAL, "expected 'link bulk add', 'link bulk replace' or 'link bulk del'");
  return parse_in_table(kCommands, "command of link bulk", "help", help, words, options, plan);
}

}  // namespace mayfly::cli
