// SPDX-License-Identifier: BSD-3-Clause
#include <linux/genetlink.h>

#include <array>
#include <cstring>

#include "base/clock.hpp"
#include "base/units.hpp"
#include "session.hpp"

namespace mayfly::cli {
namespace {

constexpr std::string_view kHelp = R"(Usage: mayfly reclaim show
       mayfly reclaim wait [timeout 60s]     returns once all that was deleted before is reclaimed
)";

constexpr uint64_t kMaxTimeoutNs = 24 * 3600 * kNsPerSecond;

std::vector<uint64_t> grace_histogram(const Attributes& answer) {
  const std::span<const uint8_t> bytes = answer.bytes(protocol::kReclaimGraceHistogram);
  std::vector<uint64_t> buckets(bytes.size() / sizeof(uint64_t));
  if (!buckets.empty()) memcpy(buckets.data(), bytes.data(), buckets.size() * sizeof(uint64_t));
  return buckets;
}

// The upper bound, in us, of the bucket that holds the given share; 0 when nothing was counted.
uint64_t percentile_us(const std::vector<uint64_t>& buckets, double share) {
  uint64_t all = 0;
  for (const uint64_t count : buckets) all += count;
  if (all == 0) return 0;
  uint64_t seen = 0;
  for (size_t bucket = 0; bucket < buckets.size(); ++bucket) {
    seen += buckets[bucket];
    if (static_cast<double>(seen) >= share * static_cast<double>(all)) return uint64_t{2} << bucket;
  }
  return uint64_t{1} << buckets.size();
}

Json waiting_json(const Attributes& answer) {
  Json list = Json::array();
  answer.each(protocol::kReclaimWaiting, [&list](const Attributes& object) {
    list.push_back({{"object", object.string(protocol::kReclaimObject)},
                    {"age_ns", object.number_or(protocol::kReclaimAge, 0)},
                    {"retry_in_ns", object.number_or(protocol::kReclaimRetryIn, 0)},
                    {"worker", object.number_or(protocol::kReclaimHolderWorker, 0)},
                    {"references", object.number_or(protocol::kReclaimHolderReferences, 0)},
                    {"holder", object.string(protocol::kReclaimHolderWhat)}});
  });
  return list;
}

Json reclaim_json(const Attributes& answer, std::string_view boot_id) {
  const auto number = [&answer](uint16_t attribute) { return answer.number_or(attribute, 0); };
  const std::vector<uint64_t> histogram = grace_histogram(answer);
  Json document{{"policy", answer.string(protocol::kReclaimPolicy)},
                {"workers", number(protocol::kReclaimWorkers)},
                {"batches", number(protocol::kReclaimBatches)},
                {"retired", number(protocol::kReclaimRetired)},
                {"reclaimed", number(protocol::kReclaimReclaimed)},
                {"backlog_objects", number(protocol::kReclaimBacklogObjects)},
                {"backlog_bytes", number(protocol::kReclaimBacklogBytes)},
                {"high_objects", number(protocol::kReclaimHighObjects)},
                {"high_bytes", number(protocol::kReclaimHighBytes)},
                {"last_batch_objects", number(protocol::kReclaimLastBatch)},
                {"last_grace_ns", number(protocol::kReclaimLastGrace)},
                {"last_dismantle_ns", number(protocol::kReclaimLastDismantle)}};
  if (const auto running = answer.number(protocol::kReclaimGraceRunning))
    document.set("grace_running_ns", *running);
  document.set("grace_p50_us", percentile_us(histogram, 0.5));
  document.set("grace_p99_us", percentile_us(histogram, 0.99));
  document.set("grace_histogram_log2_us", histogram);
  document.set("waiting_count", number(protocol::kReclaimWaitingCount));
  document.set("waiting", waiting_json(answer));
  document.set("boot_id", boot_id);
  return document;
}

void print_waiting(Output& out, const Attributes& answer) {
  const uint64_t waiting = answer.number_or(protocol::kReclaimWaitingCount, 0);
  out.print("  waiting   {} object{}\n", format_count(waiting), waiting == 1 ? "" : "s");
  answer.each(protocol::kReclaimWaiting, [&out](const Attributes& object) {
    out.print(
        "    {}: {} old, {} reference{} held by worker {} ({}), next try in {}\n",
        object.string(protocol::kReclaimObject), format_duration(object.number_or(protocol::kReclaimAge, 0)),
        object.number_or(protocol::kReclaimHolderReferences, 0),
        object.number_or(protocol::kReclaimHolderReferences, 0) == 1 ? "" : "s",
        object.number_or(protocol::kReclaimHolderWorker, 0), object.string(protocol::kReclaimHolderWhat),
        format_duration(object.number_or(protocol::kReclaimRetryIn, 0)));
  });
}

void print_reclaim(Output& out, const Attributes& answer) {
  const auto number = [&answer](uint16_t attribute) { return answer.number_or(attribute, 0); };
  const auto running = answer.number(protocol::kReclaimGraceRunning);
  const uint64_t objects = number(protocol::kReclaimBacklogObjects);
  out.print("reclaim: {}, {} teardown workers, past the mark: {}\n",
            objects == 0 ? "nothing to do" : "working", number(protocol::kReclaimWorkers),
            answer.string(protocol::kReclaimPolicy));
  out.print("  backlog   {} of {} objects, {} of {}\n", format_count(objects),
            format_count(number(protocol::kReclaimHighObjects)),
            format_bytes(number(protocol::kReclaimBacklogBytes)),
            format_bytes(number(protocol::kReclaimHighBytes)));
  out.print("  so far    {} retired, {} reclaimed, in {} batches\n",
            format_count(number(protocol::kReclaimRetired)),
            format_count(number(protocol::kReclaimReclaimed)),
            format_count(number(protocol::kReclaimBatches)));
  out.print("  last      {} objects: grace period {}, dismantled in {}\n",
            format_count(number(protocol::kReclaimLastBatch)),
            format_duration(number(protocol::kReclaimLastGrace)),
            format_duration(number(protocol::kReclaimLastDismantle)));
  const std::vector<uint64_t> histogram = grace_histogram(answer);
  out.print("  grace     p50 <= {}, p99 <= {}; {}\n",
            format_duration(percentile_us(histogram, 0.5) * kNsPerUs),
            format_duration(percentile_us(histogram, 0.99) * kNsPerUs),
            running ? fmt::format("one runs since {}", format_duration(*running)) : "none runs");
  print_waiting(out, answer);
}

Result<int> show_reclaim(Session& session, Plan& plan) {
  const Status done = session.request(plan.family, plan.message, [&session](const nlmsghdr& message) {
    const Attributes answer(message, sizeof(genlmsghdr));
    if (session.options().json)
      session.out().write_json(reclaim_json(answer, session.boot_id()), session.options().pretty);
    else
      print_reclaim(session.out(), answer);
  });
  if (!done) return std::unexpected(done.error());
  return kExitOk;
}

Status parse_show(Words& words, const Options&, Plan& plan) {
  if (!words.done()) return words.unknown();
  plan.begin_generic(protocol::kCmdReclaimShow);
  plan.present = show_reclaim;
  return {};
}

Result<int> wait_for_reclaim(Session& session, Plan& plan) {
  const uint64_t started_ns = monotonic_ns();
  const Status done = session.request(plan.family, plan.message);
  if (!done) return std::unexpected(done.error());
  const uint64_t waited_ns = monotonic_ns() - started_ns;
  if (session.options().json)
    session.out().write_json(Json{{"operation", "reclaim wait"}, {"duration_ns", waited_ns}},
                             session.options().pretty);
  else
    session.out().print("reclaim wait: all that was deleted before is reclaimed, after {}\n",
                        format_duration(waited_ns));
  return kExitOk;
}

Status parse_wait(Words& words, const Options&, Plan& plan) {
  std::optional<uint64_t> timeout_ns;
  while (!words.done()) {
    if (!words.take("timeout")) return words.unknown();
    timeout_ns = words.duration(1, kMaxTimeoutNs);
  }
  if (Status understood = words.status(); !understood) return understood;
  plan.begin_generic(protocol::kCmdReclaimWait);
  if (timeout_ns) plan.message.put_u64(protocol::kReclaimTimeout, *timeout_ns);
  plan.present = wait_for_reclaim;
  return {};
}

constexpr std::array kCommands = {CommandEntry{"show", parse_show}, CommandEntry{"wait", parse_wait}};

}  // namespace

Status parse_reclaim(Words& words, const Options& options, Plan& plan) {
  return parse_in_table(kCommands, "command of reclaim", "show", kHelp, words, options, plan);
}

}  // namespace mayfly::cli
