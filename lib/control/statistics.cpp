// SPDX-License-Identifier: BSD-3-Clause
// `stats`, `stats drops` and `status`.
#include <linux/genetlink.h>
#include <rte_mempool.h>
#include <unistd.h>

#include <unordered_map>

#include "control/generic_writer.hpp"
#include "control/handlers.hpp"

namespace mayfly {
namespace {

using namespace protocol;

void write_totals(MessageWriter& writer, const Totals& totals) {
  writer.put_u64(kStatsRx, totals.rx);
  writer.put_u64(kStatsOriginated, totals.originated);
  writer.put_u64(kStatsTx, totals.tx);
  writer.put_u64(kStatsDrops, totals.dropped());
  writer.put_u64(kStatsPunted, totals.punted);
  writer.put_u64(kStatsParked, totals.parked);
  writer.put_u64(kStatsRxBytes, totals.rx_bytes);
  writer.put_u64(kStatsTxBytes, totals.tx_bytes);
  writer.put_u64(kStatsLoops, totals.loops);
  writer.put_u64(kStatsBusyLoops, totals.busy_loops);
  writer.put_u64(kStatsSleeps, totals.sleeps);
  writer.put_u64(kStatsIcmpErrorsSent, totals.icmp_errors_sent);
  writer.put_u64(kStatsIcmpErrorsLimited, totals.icmp_errors_limited);
  writer.put_u64(kStatsIcmpErrorsUnsent, totals.icmp_errors_unsent);
  writer.put_u64(kStatsVethCrossings, totals.veth_crossings);
}

// For each reason the interface that lost most.
struct TopLoser {
  uint64_t id = 0;
  uint32_t ifindex = kNoInterface;
  uint64_t packets = 0;
};

std::array<TopLoser, kDropReasons> top_losers(const Dataplane& dataplane) {
  std::array<std::unordered_map<uint64_t, TopLoser>, kDropReasons> losers;
  for (const WorkerLink& worker : dataplane.workers)
    worker.statistics->drops.for_each(
        [&](uint64_t id, uint32_t ifindex, DropReason reason, uint64_t packets) {
          TopLoser& loser = losers[static_cast<size_t>(reason)][id];
          loser = {id, ifindex, loser.packets + packets};
        });
  std::array<TopLoser, kDropReasons> top;
  for (size_t reason = 0; reason < kDropReasons; ++reason)
    for (const auto& [id, loser] : losers[reason])
      if (loser.packets > top[reason].packets) top[reason] = loser;
  return top;
}

std::string name_of(const InterfaceTable& table, const TopLoser& loser) {
  if (table.exists(loser.ifindex) && table.interface(loser.ifindex).id == loser.id)
    return table.record(loser.ifindex).name;
  return fmt::format("(deleted, id {})", loser.id);
}

}  // namespace

HandlerResult handle_statistics(Connection& connection, const Request& request) {
  const Dataplane& dataplane = connection.dataplane();
  MessageWriter& writer = connection.writer();
  std::vector<Totals> of_worker(dataplane.workers.size());
  Totals all;
  for (size_t i = 0; i < of_worker.size(); ++i) {
    dataplane.workers[i].statistics->published.read(&of_worker[i]);
    all += of_worker[i];
  }
  begin_generic(writer, request.header.nlmsg_seq, kCmdStats, 0);
  write_totals(writer, all);
  for (size_t i = 0; i < of_worker.size(); ++i) {
    nlattr* nested = writer.begin_nested(kStatsWorker);
    writer.put_u32(kStatsWorkerIndex, static_cast<uint32_t>(i));
    write_totals(writer, of_worker[i]);
    writer.end_nested(nested);
  }
  writer.end();
  return Handled::acknowledge;
}

HandlerResult handle_drops(Connection& connection, const Request& request) {
  const Dataplane& dataplane = connection.dataplane();
  MessageWriter& writer = connection.writer();
  const Totals totals = dataplane.totals();
  const auto top = top_losers(dataplane);
  const uint64_t wall_offset = realtime_ns() - monotonic_ns();
  for (size_t reason = 0; reason < kDropReasons; ++reason) {
    const DropReasonDescription& description = describe(static_cast<DropReason>(reason));
    begin_generic(writer, request.header.nlmsg_seq, kCmdDrops, NLM_F_MULTI);
    writer.put_string(kReasonName, description.name);
    writer.put_string(kReasonStage, description.stage);
    writer.put_u64(kReasonTotal, totals.drops[reason]);
    writer.put_u64(kReasonPerSecond, dataplane.drop_rates.per_second[reason]);
    if (totals.drop_last_ns[reason] != 0)
      writer.put_u64(kReasonLastSeen, totals.drop_last_ns[reason] + wall_offset);
    if (top[reason].packets > 0) {
      writer.put_string(kReasonTopName, name_of(dataplane.interfaces, top[reason]));
      writer.put_u64(kReasonTopCount, top[reason].packets);
    }
    writer.put_string(kReasonHint, description.hint);
    writer.end();
  }
  writer.done(request.header.nlmsg_seq, false);
  return Handled::operation;
}

HandlerResult handle_status(Connection& connection, const Request& request) {
  Dataplane& dataplane = connection.dataplane();
  MessageWriter& writer = connection.writer();
  begin_generic(writer, request.header.nlmsg_seq, kCmdStatus, 0);
  writer.put_string(kStatusDaemon, dataplane.daemon_name);
  writer.put_string(kStatusBootId, dataplane.boot_id);
  writer.put_u32(kStatusPid, static_cast<uint32_t>(getpid()));
  writer.put_u64(kStatusUptime, monotonic_ns() - dataplane.started_ns);
  writer.put_u32(kStatusWorkers, static_cast<uint32_t>(dataplane.workers.size()));
  writer.put_string(kStatusIdle, dataplane.adaptive_idle ? "adaptive" : "poll");
  writer.put_u8(kStatusHugepages, dataplane.hugepages ? 1 : 0);
  writer.put_u32(kStatusPorts, static_cast<uint32_t>(dataplane.ports.all().size()));
  writer.put_u64(kStatusInterfaces, dataplane.interfaces.live());
  writer.put_u64(kStatusInterfacesLimit, dataplane.interfaces.limit());
  writer.put_u64(kStatusRoutes, dataplane.routes.in_use());
  writer.put_u64(kStatusNeighbours, dataplane.neighbours.count());
  writer.put_u64(kStatusAddresses, dataplane.addressing.addresses());
  if (dataplane.mbufs != nullptr) {
    writer.put_u64(kStatusMbufs, dataplane.mbufs->size);
    writer.put_u64(kStatusMbufsFree, rte_mempool_avail_count(dataplane.mbufs));
  }
  writer.put_u64(kStatusTableBytes, dataplane.interfaces.committed_bytes() +
                                        dataplane.blocks.committed_bytes() +
                                        dataplane.routes.committed_bytes());
  writer.put_u64(kStatusBacklogObjects, dataplane.reclaim.backlog().objects);
  writer.put_u32(kStatusClients, dataplane.clients);
  writer.put_u64(kStatusSliceMax, dataplane.longest_slice_ns);
  writer.put_string(kStatusSocket, dataplane.socket_path);
  if (dataplane.balance.imbalance())
    writer.put_string(kStatusImbalance, dataplane.balance.imbalance()->describe());
  writer.put_u64(kStatusBlocks, dataplane.blocks.blocks_in_use());
  writer.end();
  return Handled::acknowledge;
}

}  // namespace mayfly
