// SPDX-License-Identifier: BSD-3-Clause
// link bulk add and link bulk replace: members of a template, or rows of a file.
#include <memory>

#include "bulk.hpp"
#include "bulk_file.hpp"
#include "dressing.hpp"
#include "link.hpp"
#include "link_spec.hpp"
#include "session.hpp"

namespace mayfly::cli {
namespace {

struct BulkAddWords {
  LinkSpec spec;
  DressingSpec dressing;
  std::string_view pattern;
  std::string_view file;  // empty: a template
  std::optional<uint64_t> count;
  std::optional<uint32_t> sweep;
  bool dry_run = false;
  bool force = false;
};

Status read_words(Words& words, bool replaces, BulkAddWords& asked) {
  while (!words.done()) {
    if (words.take("count")) {
      asked.count = words.number(1, UINT64_MAX);
    } else if (words.take("name")) {
      asked.pattern = words.text();
    } else if (words.take({"--from", "-from", "from"})) {
      asked.file = words.text();
    } else if (replaces && words.take({"--sweep", "-sweep", "sweep"})) {
      if (!words.take("group")) return fail(EINVAL, "'--sweep': 'group N' must follow");
      asked.sweep = static_cast<uint32_t>(words.number(1, UINT32_MAX));
    } else if (words.take({"--dry-run", "-dry-run"})) {
      asked.dry_run = true;
    } else if (words.take({"-force", "--force"})) {
      asked.force = true;
    } else if (!take_dressing_word(words, asked.dressing) && !take_link_word(words, true, asked.spec)) {
      return words.unknown();
    }
  }
  if (Status understood = words.status(); !understood) return understood;
  if (asked.spec.address) return fail(EINVAL, "'address' would be the same for all: leave it to the daemon");
  return {};
}

void put_request(RequestMessage& message, bool replaces, const BulkAddWords& asked) {
  if (replaces) message.put_flag(protocol::kBulkReplace);
  if (asked.sweep) message.put_u32(protocol::kBulkSweepGroup, *asked.sweep);
  put_switches(message, asked.dry_run, asked.force);
}

Status plan_template(Plan& plan, bool replaces, const BulkAddWords& asked, BulkOperation operation) {
  const LinkSpec& spec = asked.spec;
  if (Status complete = check_complete(spec); !complete) return complete;
  if (!asked.count && !spec.has_range())
    return fail(EINVAL, "how many: 'count N', a range like 'id 1-4000', or '--from FILE'");
  LinkSpec named = spec;
  named.name = asked.pattern;
  plan.family = Plan::Family::generic;
  begin_link_bulk_add(plan.message, named, asked.count);
  put_dressing(plan.message, asked.dressing);
  put_request(plan.message, replaces, asked);
  plan.present = presenter_of(std::move(operation));
  return {};
}

Result<int> send_file(Session& session, Plan& plan, bool replaces, const BulkAddWords& asked,
                      BulkOperation operation) {
  auto read = read_bulk_file(asked.file, asked.spec);
  if (!read) return std::unexpected(read.error());
  const auto file = std::make_shared<BulkFile>(std::move(*read));
  for (RequestMessage& message : file->messages)
    if (Status sent = session.request(Plan::Family::generic, message); !sent)
      return std::unexpected(sent.error());
  file->messages.clear();
  plan.begin_generic(protocol::kCmdLinkBulkAdd);
  plan.message.put_flag(protocol::kBulkListed);
  plan.message.put_u64(protocol::kBulkCount, file->lines.size());
  put_request(plan.message, replaces, asked);
  operation.place = [file](uint64_t member) { return file->place(member); };
  return carry_out(session, plan.message, operation);
}

Status plan_file(Plan& plan, bool replaces, const BulkAddWords& asked, BulkOperation operation) {
  if (asked.count || !asked.pattern.empty() || asked.spec.has_range() || !asked.dressing.empty())
    return fail(EINVAL,
                "--from: count, name, ranges, addr, route and neigh are of templates; in a file each row "
                "says its own");
  plan.reset();
  plan.present = [replaces, asked, operation = std::move(operation)](Session& session, Plan& self) {
    return send_file(session, self, replaces, asked, operation);
  };
  return {};
}

Status parse_bulk(Words& words, const Options& options, bool replaces, Plan& plan) {
  BulkAddWords asked;
  asked.force = options.force;
  if (Status understood = read_words(words, replaces, asked); !understood) return understood;
  BulkOperation operation{.name = replaces ? "link bulk replace" : "link bulk add",
                          .did = "created",
                          .replaces = replaces,
                          .dry_run = asked.dry_run};
  return asked.file.empty() ? plan_template(plan, replaces, asked, std::move(operation))
                            : plan_file(plan, replaces, asked, std::move(operation));
}

}  // namespace

Status parse_bulk_add(Words& words, const Options& options, Plan& plan) {
  return parse_bulk(words, options, false, plan);
}

Status parse_bulk_replace(Words& words, const Options& options, Plan& plan) {
  return parse_bulk(words, options, true, plan);
}

}  // namespace mayfly::cli
