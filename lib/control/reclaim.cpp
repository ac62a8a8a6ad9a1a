// SPDX-License-Identifier: BSD-3-Clause
// `reclaim show` and `reclaim wait`.
#include <linux/genetlink.h>

#include "base/units.hpp"
#include "control/generic_writer.hpp"
#include "control/handlers.hpp"

namespace mayfly {
namespace {

using namespace protocol;

constexpr uint64_t kDefaultTimeoutNs = 60 * kNsPerSecond;

constexpr AttributeSpec kWaitSpecs[] = {{kReclaimTimeout, AttributeSpec::Type::u64, "timeout"}};

class ReclaimWait final : public Operation {
 public:
  ReclaimWait(Connection& connection, const nlmsghdr& request, uint64_t timeout_ns)
      : connection_(connection),
        request_(request),
        number_(connection.dataplane().reclaim.barrier()),
        timeout_ns_(timeout_ns),
        deadline_(Deadline::after_ns(timeout_ns)) {}

  Progress step(const Deadline&) override {
    const Reclaim& reclaim = connection_.dataplane().reclaim;
    if (reclaim.barrier_passed(number_)) {
      if ((request_.nlmsg_flags & NLM_F_ACK) != 0) connection_.writer().acknowledge(request_, nullptr);
      return Progress::done;
    }
    if (!deadline_.over()) return Progress::waiting;
    std::string holders;
    for (const WaitingObject& waiting : reclaim.statistics().waiting) {
      holders += fmt::format("; {} held by", waiting.object);
      for (const Holder& holder : waiting.holders)
        holders += fmt::format(" worker {} ({} of {})", holder.worker, holder.references, holder.what);
    }
    const Error error{ETIMEDOUT,
                      fmt::format("{} objects are still in teardown after {}{}", reclaim.backlog().objects,
                                  format_duration(timeout_ns_), holders)};
    connection_.writer().acknowledge(request_, &error);
    return Progress::done;
  }

  bool cancel() override { return true; }

 private:
  Connection& connection_;
  nlmsghdr request_;
  uint32_t number_;
  uint64_t timeout_ns_;
  Deadline deadline_;
};

void write_waiting(MessageWriter& writer, const WaitingObject& waiting) {
  nlattr* nested = writer.begin_nested(kReclaimWaiting);
  writer.put_string(kReclaimObject, waiting.object);
  writer.put_u64(kReclaimAge, waiting.age_ns);
  writer.put_u64(kReclaimRetryIn, waiting.retry_in_ns);
  if (!waiting.holders.empty()) {
    const Holder& holder = waiting.holders.front();
    writer.put_u32(kReclaimHolderWorker, holder.worker);
    writer.put_u64(kReclaimHolderReferences, holder.references);
    writer.put_string(kReclaimHolderWhat, holder.what);
  }
  writer.end_nested(nested);
}

}  // namespace

HandlerResult handle_reclaim_wait(Connection& connection, const Request& request) {
  auto attributes = request.attributes<genlmsghdr>(kWaitSpecs);
  if (!attributes) return std::unexpected(attributes.error());
  // What this connection deleted before belongs to what is waited for, an open batch included.
  connection.dataplane().commit(connection.retired());
  connection.start(std::make_unique<ReclaimWait>(
      connection, request.header, attributes->u64(kReclaimTimeout).value_or(kDefaultTimeoutNs)));
  return Handled::operation;
}

HandlerResult handle_reclaim_show(Connection& connection, const Request& request) {
  const Reclaim& reclaim = connection.dataplane().reclaim;
  const ReclaimStatistics statistics = reclaim.statistics();
  const TeardownConfig& config = reclaim.config();
  MessageWriter& writer = connection.writer();
  begin_generic(writer, request.header.nlmsg_seq, kCmdReclaimShow, 0);
  writer.put_u64(kReclaimBatches, statistics.batches);
  writer.put_u64(kReclaimRetired, statistics.objects_retired);
  writer.put_u64(kReclaimReclaimed, statistics.objects_reclaimed);
  writer.put_u64(kReclaimBacklogObjects, statistics.backlog.objects);
  writer.put_u64(kReclaimBacklogBytes, statistics.backlog.bytes);
  writer.put_u64(kReclaimHighObjects, config.high_objects);
  writer.put_u64(kReclaimHighBytes, config.high_bytes);
  writer.put_u64(kReclaimLastBatch, statistics.last_batch_objects);
  writer.put_u64(kReclaimLastGrace, statistics.last_grace_ns);
  writer.put_u64(kReclaimLastDismantle, statistics.last_dismantle_ns);
  writer.put(kReclaimGraceHistogram, statistics.grace_us.data(), sizeof statistics.grace_us);
  writer.put_u64(kReclaimWaitingCount, statistics.waiting_objects);
  writer.put_string(kReclaimPolicy, config.block ? "block" : "fail");
  writer.put_u32(kReclaimWorkers, config.workers);
  if (statistics.grace_running) writer.put_u64(kReclaimGraceRunning, statistics.grace_running_ns);
  for (const WaitingObject& waiting : statistics.waiting) write_waiting(writer, waiting);
  writer.end();
  return Handled::acknowledge;
}

}  // namespace mayfly
