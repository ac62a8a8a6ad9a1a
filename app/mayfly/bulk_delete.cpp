// SPDX-License-Identifier: BSD-3-Clause
// link bulk del, and "link del" by selector or in a dry run.
#include <unistd.h>

#include <cstring>

#include "bulk.hpp"
#include "link.hpp"
#include "session.hpp"

namespace mayfly::cli {
namespace {

constexpr size_t kInputChunk = 64 * 1024;

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

}  // namespace

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

}  // namespace mayfly::cli
