// SPDX-License-Identifier: BSD-3-Clause
#include <unistd.h>

#include <libmnl/libmnl.h>
#include <linux/genetlink.h>

#include <cstring>

#include "base/units.hpp"
#include "link.hpp"
#include "link_spec.hpp"
#include "progress.hpp"
#include "session.hpp"

namespace mayfly::cli {
namespace {

constexpr size_t kFailuresShown = 10;
constexpr size_t kInputChunk = 64 * 1024;

struct Failure {
  std::string name;
  std::string text;
  int code = 0;
};

struct BulkResult {
  bool received = false;
  uint64_t matched = 0;
  uint64_t changed = 0;
  uint64_t failed = 0;
  uint64_t duration_ns = 0;
  uint64_t to_reclaim = 0;
  std::vector<Failure> failures;
};

struct BulkOperation {
  std::string name;      // "link del group 7"
  std::string_view did;  // "created", "deleted"
  bool deletes = false;
  bool dry_run = false;
};

BulkResult read_result(const nlmsghdr& answer) {
  const Attributes attributes(answer, sizeof(genlmsghdr));
  BulkResult result;
  result.received = true;
  result.matched = attributes.number_or(protocol::kBulkMatched, 0);
  result.changed = attributes.number_or(protocol::kBulkChanged, 0);
  result.failed = attributes.number_or(protocol::kBulkFailed, 0);
  result.duration_ns = attributes.number_or(protocol::kBulkDuration, 0);
  result.to_reclaim = attributes.number_or(protocol::kBulkToReclaim, 0);
  attributes.each(protocol::kBulkFailure, [&result](const Attributes& failure) {
    result.failures.push_back({.name = std::string(failure.string(protocol::kFailureName)),
                               .text = std::string(failure.string(protocol::kFailureText)),
                               .code = static_cast<int>(failure.number_or(protocol::kFailureErrno, 0))});
  });
  return result;
}

void print_text(Output& out, const BulkOperation& operation, const BulkResult& result) {
  out.print("{}: matched {} {} {} failed {} in {}", operation.name, result.matched, operation.did,
            result.changed, result.failed, format_duration(result.duration_ns));
  if (operation.dry_run) {
    out.write(" (dry run: nothing changed)\n");
  } else if (operation.deletes) {
    out.print("; {} to reclaim (reclaim wait)\n", format_bytes(result.to_reclaim));
  } else {
    out.write("\n");
  }
  for (size_t at = 0; at < result.failures.size() && at < kFailuresShown; ++at) {
    const Failure& failure = result.failures[at];
    out.print("  {}: {}\n", failure.name, failure.text.empty() ? strerror(failure.code) : failure.text);
  }
  const size_t shown = std::min(result.failures.size(), kFailuresShown);
  if (shown > 0 && result.failed > shown) out.print("  and {} more\n", result.failed - shown);
}

Json result_json(const BulkOperation& operation, const BulkResult& result, std::string_view boot_id) {
  Json failures = Json::array();
  for (const Failure& failure : result.failures)
    failures.push_back({{"ifname", failure.name}, {"errno", failure.code}, {"text", failure.text}});
  Json document{{"operation", operation.name}, {"dry_run", operation.dry_run},
                {"matched", result.matched},   {std::string(operation.did), result.changed},
                {"failed", result.failed},     {"duration_ns", result.duration_ns}};
  if (operation.deletes) document["to_reclaim_bytes"] = result.to_reclaim;
  document["failures"] = std::move(failures);
  document["boot_id"] = boot_id;
  return document;
}

Result<int> carry_out(Session& session, RequestMessage& message, const BulkOperation& operation) {
  BulkResult result;
  ProgressBar bar(operation.name);
  const Status done = session.request(Plan::Family::generic, message, [&](const nlmsghdr& answer) {
    if (mnl_nlmsg_get_payload_len(&answer) < sizeof(genlmsghdr)) return;
    const auto* generic = static_cast<const genlmsghdr*>(mnl_nlmsg_get_payload(&answer));
    if (generic->cmd == protocol::kCmdBulkResult) {
      result = read_result(answer);
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
  if (!done) return std::unexpected(done.error());
  return result.failed == 0 ? kExitOk : kExitRefused;
}

void put_switches(RequestMessage& message, bool dry_run, bool force) {
  if (force) message.put_flag(protocol::kBulkForce);
  if (dry_run) message.put_flag(protocol::kBulkDryRun);
  if (ProgressBar::wanted()) message.put_flag(protocol::kBulkWantProgress);
}

Presenter presenter_of(BulkOperation operation) {
  return [operation = std::move(operation)](Session& session, Plan& plan) {
    return carry_out(session, plan.message, operation);
  };
}

// ------------------------------------------------------------------------------------------------------ bulk
// add

Status parse_bulk_add(Words& words, const Options& options, Plan& plan) {
  LinkSpec spec;
  std::string_view pattern;
  std::optional<uint64_t> count;
  bool dry_run = false;
  bool force = options.force;
  while (!words.done()) {
    if (words.take("count")) {
      count = words.number(1, UINT64_MAX);
    } else if (words.take("name")) {
      pattern = words.text();
    } else if (words.take({"--dry-run", "-dry-run"})) {
      dry_run = true;
    } else if (words.take({"-force", "--force"})) {
      force = true;
    } else if (!take_link_word(words, true, spec)) {
      return words.unknown();
    }
  }
  if (Status understood = words.status(); !understood) return understood;
  if (Status complete = check_complete(spec); !complete) return complete;
  if (spec.address) return fail(EINVAL, "'address' would be the same for all: leave it to the daemon");
  if (!count && !spec.has_range()) return fail(EINVAL, "how many: 'count N' or a range like 'id 1-4000'");
  spec.name = pattern;
  plan.family = Plan::Family::generic;
  begin_link_bulk_add(plan.message, spec, count);
  put_switches(plan.message, dry_run, force);
  plan.present = presenter_of({.name = "link bulk add", .did = "created", .dry_run = dry_run});
  return {};
}

// ------------------------------------------------------------------------------------------------------ bulk
// del

void begin_names(RequestMessage& message) {
  message.begin_generic(protocol::kCmdLinkBulkNames);
}

// Sends a list in messages as full as they get.
class NameList {
 public:
  explicit NameList(Session& session) : session_(session) { begin_names(message_); }

  Status add(std::string_view name) {
    if (message_.room() < name.size() + 1 + NLA_HDRLEN + NLA_ALIGNTO && count_ > 0)
      if (Status sent = send(); !sent) return sent;
    message_.put_string(protocol::kBulkNameEntry, name);
    ++count_;
    return {};
  }
  Status send() {
    if (count_ == 0) return {};
    Status sent = session_.request(Plan::Family::generic, message_);
    begin_names(message_);
    count_ = 0;
    return sent;
  }

 private:
  Session& session_;
  RequestMessage message_;
  size_t count_ = 0;
};

// Names separated by white space.
Status send_names_from(int fd, NameList& list) {
  std::string text;
  std::vector<char> chunk(kInputChunk);
  for (;;) {
    const ssize_t got = read(fd, chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(errno, "standard input: {}", strerror(errno));
    text.append(chunk.data(), static_cast<size_t>(got));
    if (got == 0) text += '\n';
    size_t start = 0;
    for (size_t at = 0; at < text.size(); ++at) {
      if (strchr(" \t\r\n", text[at]) == nullptr) continue;
      if (at > start)
        if (Status added = list.add(std::string_view(text).substr(start, at - start)); !added) return added;
      start = at + 1;
    }
    text.erase(0, start);
    if (got == 0) return list.send();
  }
}

void plan_listed(Plan& plan, BulkOperation operation, bool force, std::function<Status(NameList&)> fill) {
  plan.begin_generic(protocol::kCmdLinkBulkDel);
  plan.message.put_flag(protocol::kBulkListed);
  put_switches(plan.message, operation.dry_run, force);
  plan.present = [operation = std::move(operation), fill = std::move(fill)](Session& session,
                                                                            Plan& self) -> Result<int> {
    NameList list(session);
    if (Status sent = fill(list); !sent) return std::unexpected(sent.error());
    return carry_out(session, self.message, operation);
  };
}

struct BulkDeleteWords {
  std::string_view pattern;
  std::optional<uint64_t> count;
  bool listed = false;
  bool dry_run = false;
  bool force = false;
  Selector selector;
};

Status read_bulk_delete(Words& words, BulkDeleteWords& asked) {
  while (!words.done()) {
    if (words.take("name")) {
      asked.pattern = words.text();
    } else if (words.take("count")) {
      asked.count = words.number(1, UINT64_MAX);
    } else if (words.take("-")) {
      asked.listed = true;
    } else if (words.take({"--dry-run", "-dry-run"})) {
      asked.dry_run = true;
    } else if (words.take({"-force", "--force"})) {
      asked.force = true;
    } else if (!take_condition(words, asked.selector)) {
      return words.unknown();
    }
  }
  if (Status understood = words.status(); !understood) return understood;
  const int ways =
      (asked.pattern.empty() ? 0 : 1) + (asked.listed ? 1 : 0) + (asked.selector.empty() ? 0 : 1);
  if (ways > 1) return fail(EINVAL, "one of: 'name PATTERN count N', '-', a selector");
  if (asked.pattern.empty() == asked.count.has_value())
    return fail(EINVAL, "'name PATTERN' and 'count N' go together");
  if (ways == 0 || !asked.selector.empty()) return check_deletable(asked.selector);
  return {};
}

Status parse_bulk_delete(Words& words, const Options& options, Plan& plan) {
  BulkDeleteWords asked;
  asked.force = options.force;
  if (Status understood = read_bulk_delete(words, asked); !understood) return understood;
  BulkOperation operation{
      .name = "link bulk del", .did = "deleted", .deletes = true, .dry_run = asked.dry_run};
  if (asked.listed) {
    plan_listed(plan, std::move(operation), asked.force,
                [](NameList& list) { return send_names_from(STDIN_FILENO, list); });
    return {};
  }
  if (!asked.selector.empty()) {
    plan_delete_selected(plan, asked.selector, operation.name, asked.dry_run, asked.force);
    return {};
  }
  plan.begin_generic(protocol::kCmdLinkBulkDel);
  plan.message.put_string(protocol::kBulkName, asked.pattern);
  plan.message.put_u64(protocol::kBulkCount, *asked.count);
  put_switches(plan.message, asked.dry_run, asked.force);
  plan.present = presenter_of(std::move(operation));
  return {};
}

constexpr std::array kCommands = {
    CommandEntry{"add", parse_bulk_add},
    CommandEntry{"delete", parse_bulk_delete},
};

}  // namespace

void plan_delete_selected(Plan& plan, const Selector& selector, std::string operation, bool dry_run,
                          bool force) {
  plan.begin_generic(protocol::kCmdLinkBulkDel);
  put_selector(plan.message, protocol::kBulkSelector, selector);
  put_switches(plan.message, dry_run, force);
  plan.present =
      presenter_of({.name = std::move(operation), .did = "deleted", .deletes = true, .dry_run = dry_run});
}

void plan_flush(Plan& plan, std::string_view netns, bool dry_run, bool force) {
  plan.begin_generic(protocol::kCmdLinkBulkDel);
  plan.message.put_flag(protocol::kBulkFlush);
  put_switches(plan.message, dry_run, force);
  plan.present = presenter_of({.name = fmt::format("-n {} link flush", netns),
                               .did = "deleted",
                               .deletes = true,
                               .dry_run = dry_run});
}

void plan_delete_named(Plan& plan, std::string_view name, bool force) {
  plan_listed(plan,
              {.name = fmt::format("link del {}", name), .did = "deleted", .deletes = true, .dry_run = true},
              force, [name](NameList& list) {
                Status added = list.add(name);
                return added ? list.send() : added;
              });
}

Status parse_link_bulk(Words& words, const Options& options, Plan& plan) {
  static const std::string help = link_help();
  if (words.done()) return fail(EINVAL, "expected 'link bulk add' or 'link bulk del'");
  return parse_in_table(kCommands, "command of link bulk", "help", help, words, options, plan);
}

}  // namespace mayfly::cli
