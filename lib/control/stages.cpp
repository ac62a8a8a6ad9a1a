// SPDX-License-Identifier: BSD-3-Clause
// `stats stages`: where the workers' time goes.
#include <linux/genetlink.h>
#include <rte_cycles.h>

#include "base/clock.hpp"
#include "control/generic_writer.hpp"
#include "control/handlers.hpp"

namespace mayfly {
namespace {

using namespace protocol;

constexpr AttributeSpec kSetSpecs[] = {
    {kStagesOn, AttributeSpec::Type::u8, "on"},
    {kStagesReset, AttributeSpec::Type::flag, "reset"},
};

void write_stage(MessageWriter& writer, Stage stage, const StageSum& sum) {
  const StageDescription& description = describe(stage);
  nlattr* nested = writer.begin_nested(kStagesStage);
  writer.put_string(kStageName, description.name);
  writer.put_u8(kStageKind, static_cast<uint8_t>(description.kind));
  writer.put_u64(kStageVectors, sum.vectors);
  writer.put_u64(kStagePackets, sum.packets);
  writer.put_u64(kStageClocks, sum.clocks);
  writer.end_nested(nested);
}

}  // namespace

HandlerResult handle_stages(Connection& connection, const Request& request) {
  const Dataplane& dataplane = connection.dataplane();
  MessageWriter& writer = connection.writer();
  for (size_t worker = 0; worker < dataplane.workers.size(); ++worker) {
    const StageSums sums = dataplane.stages.of_worker(worker, dataplane.workers);
    begin_generic(writer, request.header.nlmsg_seq, kCmdStages, NLM_F_MULTI);
    writer.put_u8(kStagesOn, dataplane.stages.on() ? 1 : 0);
    writer.put_u64(kStagesCounted, dataplane.stages.counted_ns(monotonic_ns()));
    writer.put_u64(kStagesClockHz, rte_get_tsc_hz());
    writer.put_u32(kStagesWorker, static_cast<uint32_t>(worker));
    for (size_t stage = 0; stage < kStages; ++stage)
      write_stage(writer, static_cast<Stage>(stage), sums[stage]);
    writer.end();
  }
  writer.done(request.header.nlmsg_seq, false);
  return Handled::operation;
}

HandlerResult handle_stages_set(Connection& connection, const Request& request) {
  auto attributes = request.attributes<genlmsghdr>(kSetSpecs);
  if (!attributes) return std::unexpected(attributes.error());
  const auto on = attributes->u8(kStagesOn);
  if (!on && !attributes->has(kStagesReset)) return fail(EINVAL, "stages: neither 'on' nor 'reset' is given");
  if (on && *on > 1) return fail(EINVAL, "on {}: accepted 0 and 1", *on);
  Dataplane& dataplane = connection.dataplane();
  if (on) dataplane.stages.switch_to(*on == 1, dataplane.workers, monotonic_ns());
  if (attributes->has(kStagesReset)) dataplane.stages.reset(dataplane.workers, monotonic_ns());
  return Handled::acknowledge;
}

}  // namespace mayfly
