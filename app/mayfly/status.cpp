// SPDX-License-Identifier: BSD-3-Clause
#include <linux/genetlink.h>

#include <array>

#include "base/clock.hpp"
#include "base/units.hpp"
#include "session.hpp"

namespace mayfly::cli {
namespace {

constexpr std::string_view kHelp = "Usage: mayfly status     the daemon on one page\n";

Json status_json(const Attributes& answer) {
  const auto number = [&answer](uint16_t attribute) { return answer.number_or(attribute, 0); };
  Json json{{"daemon", answer.string(protocol::kStatusDaemon)},
            {"pid", number(protocol::kStatusPid)},
            {"uptime_ns", number(protocol::kStatusUptime)},
            {"socket", answer.string(protocol::kStatusSocket)},
            {"clients", number(protocol::kStatusClients)},
            {"workers", number(protocol::kStatusWorkers)},
            {"idle", answer.string(protocol::kStatusIdle)},
            {"hugepages", number(protocol::kStatusHugepages) != 0},
            {"ports", number(protocol::kStatusPorts)},
            {"interfaces", number(protocol::kStatusInterfaces)},
            {"interfaces_limit", number(protocol::kStatusInterfacesLimit)},
            {"addresses", number(protocol::kStatusAddresses)},
            {"routes", number(protocol::kStatusRoutes)},
            {"neighbours", number(protocol::kStatusNeighbours)},
            {"mbufs", number(protocol::kStatusMbufs)},
            {"mbufs_free", number(protocol::kStatusMbufsFree)},
            {"table_bytes", number(protocol::kStatusTableBytes)},
            {"blocks", number(protocol::kStatusBlocks)},
            {"backlog_objects", number(protocol::kStatusBacklogObjects)},
            {"slice_max_ns", number(protocol::kStatusSliceMax)},
            {"boot_id", answer.string(protocol::kStatusBootId)}};
  if (!answer.string(protocol::kStatusImbalance).empty())
    json.set("imbalance", answer.string(protocol::kStatusImbalance));
  return json;
}

std::string uptime_text(uint64_t ns) {
  const uint64_t seconds = ns / kNsPerSecond;
  if (seconds < 120) return fmt::format("{} s", seconds);
  if (seconds < 7200) return fmt::format("{} min {} s", seconds / 60, seconds % 60);
  if (seconds < 2 * 86400) return fmt::format("{} h {} min", seconds / 3600, seconds / 60 % 60);
  return fmt::format("{} d {} h", seconds / 86400, seconds / 3600 % 24);
}

void print_status(Output& out, const Attributes& answer) {
  const auto number = [&answer](uint16_t attribute) { return answer.number_or(attribute, 0); };
  const auto count = [&number](uint16_t attribute) { return format_count(number(attribute)); };
  const uint64_t mbufs = number(protocol::kStatusMbufs);
  out.print("{}, pid {}, up {}, boot id {}\n", answer.string(protocol::kStatusDaemon),
            number(protocol::kStatusPid), uptime_text(number(protocol::kStatusUptime)),
            answer.string(protocol::kStatusBootId));
  out.print("  socket      {}, {} client{}\n", answer.string(protocol::kStatusSocket),
            count(protocol::kStatusClients), number(protocol::kStatusClients) == 1 ? "" : "s");
  out.print("  workers     {}, {}, {}\n", number(protocol::kStatusWorkers),
            answer.string(protocol::kStatusIdle),
            number(protocol::kStatusHugepages) != 0 ? "hugepages" : "no hugepages");
  if (!answer.string(protocol::kStatusImbalance).empty())
    out.print("  balance     {}\n", answer.string(protocol::kStatusImbalance));
  out.print("  ports       {}\n", count(protocol::kStatusPorts));
  out.print("  interfaces  {} of {}\n", count(protocol::kStatusInterfaces),
            count(protocol::kStatusInterfacesLimit));
  out.print("  addresses   {}\n", count(protocol::kStatusAddresses));
  out.print("  routes      {}\n", count(protocol::kStatusRoutes));
  out.print("  neighbours  {}\n", count(protocol::kStatusNeighbours));
  out.print("  mbufs       {} of {} free ({} %)\n", count(protocol::kStatusMbufsFree), format_count(mbufs),
            mbufs == 0 ? 0 : number(protocol::kStatusMbufsFree) * 100 / mbufs);
  out.print("  memory      {} in tables and pools, {} blocks\n",
            format_bytes(number(protocol::kStatusTableBytes)), count(protocol::kStatusBlocks));
  out.print("  backlog     {} objects to reclaim\n", count(protocol::kStatusBacklogObjects));
  out.print("  control     longest slice {}\n", format_duration(number(protocol::kStatusSliceMax)));
}

Result<int> show_status(Session& session, Plan& plan) {
  const Status done = session.request(plan.family, plan.message, [&session](const nlmsghdr& message) {
    const Attributes answer(message, sizeof(genlmsghdr));
    if (session.options().json)
      session.out().write_json(status_json(answer), session.options().pretty);
    else
      print_status(session.out(), answer);
  });
  if (!done) return std::unexpected(done.error());
  return kExitOk;
}

Status parse_show(Words& words, const Options&, Plan& plan) {
  if (!words.done()) return words.unknown();
  plan.begin_generic(protocol::kCmdStatus);
  plan.present = show_status;
  return {};
}

constexpr std::array kCommands = {CommandEntry{"show", parse_show}};

}  // namespace

Status parse_status(Words& words, const Options& options, Plan& plan) {
  return parse_in_table(kCommands, "command of status", "show", kHelp, words, options, plan);
}

}  // namespace mayfly::cli
