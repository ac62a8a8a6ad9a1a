// SPDX-License-Identifier: BSD-3-Clause
#include <linux/genetlink.h>

#include <array>

#include "base/clock.hpp"
#include "base/units.hpp"
#include "session.hpp"
#include "stages.hpp"

namespace mayfly::cli {
namespace {

constexpr std::string_view kHelp =
    R"(Usage: mayfly stats             packets of all workers, and of each; the balance
       mayfly stats drops       why packets were dropped; with -d also reasons that never happened
       mayfly stats stages      where the workers' time goes; with -d also stages that met no packet
       mayfly stats stages on|off|reset
'on' counts vectors, packets and clocks of every stage from now on, at 3 clocks a packet in full vectors and up to 160
where each comes alone; 'off' stops and keeps the counts; 'reset' counts from nothing.
)";

struct Balance {
  uint64_t rx = 0;
  uint64_t originated = 0;
  uint64_t tx = 0;
  uint64_t drops = 0;
  uint64_t punted = 0;
  uint64_t parked = 0;

  int64_t difference() const noexcept {
    return static_cast<int64_t>(rx + originated - tx - drops - punted - parked);
  }
};

Balance read_balance(const Attributes& attributes) {
  return {.rx = attributes.number_or(protocol::kStatsRx, 0),
          .originated = attributes.number_or(protocol::kStatsOriginated, 0),
          .tx = attributes.number_or(protocol::kStatsTx, 0),
          .drops = attributes.number_or(protocol::kStatsDrops, 0),
          .punted = attributes.number_or(protocol::kStatsPunted, 0),
          .parked = attributes.number_or(protocol::kStatsParked, 0)};
}

void print_balance(Output& out, const Balance& balance) {
  out.print("rx {} + originated {} = tx {} + drops {} + punted {} + parked {}, difference {}\n", balance.rx,
            balance.originated, balance.tx, balance.drops, balance.punted, balance.parked,
            balance.difference());
}

Json balance_json(const Balance& balance) {
  return {{"rx", balance.rx},
          {"originated", balance.originated},
          {"tx", balance.tx},
          {"drops", balance.drops},
          {"punted", balance.punted},
          {"parked", balance.parked},
          {"difference", balance.difference()}};
}

void print_errors_and_crossings(Output& out, const Attributes& stats) {
  const auto number = [&stats](uint16_t attribute) { return stats.number_or(attribute, 0); };
  out.print(
      "ICMP errors: {} sent, {} suppressed by the rate limits, {} without a way back; veth crossings: {}\n",
      number(protocol::kStatsIcmpErrorsSent), number(protocol::kStatsIcmpErrorsLimited),
      number(protocol::kStatsIcmpErrorsUnsent), number(protocol::kStatsVethCrossings));
}

Json errors_json(const Attributes& stats) {
  return {{"sent", stats.number_or(protocol::kStatsIcmpErrorsSent, 0)},
          {"limited", stats.number_or(protocol::kStatsIcmpErrorsLimited, 0)},
          {"unsent", stats.number_or(protocol::kStatsIcmpErrorsUnsent, 0)}};
}

Json worker_json(const Attributes& worker) {
  const auto number = [&worker](uint16_t attribute) { return worker.number_or(attribute, 0); };
  return {{"worker", number(protocol::kStatsWorkerIndex)},
          {"rx", number(protocol::kStatsRx)},
          {"rx_bytes", number(protocol::kStatsRxBytes)},
          {"originated", number(protocol::kStatsOriginated)},
          {"tx", number(protocol::kStatsTx)},
          {"tx_bytes", number(protocol::kStatsTxBytes)},
          {"drops", number(protocol::kStatsDrops)},
          {"punted", number(protocol::kStatsPunted)},
          {"parked", number(protocol::kStatsParked)},
          {"loops", number(protocol::kStatsLoops)},
          {"busy_loops", number(protocol::kStatsBusyLoops)},
          {"sleeps", number(protocol::kStatsSleeps)},
          {"veth_crossings", number(protocol::kStatsVethCrossings)},
          {"icmp_errors_sent", number(protocol::kStatsIcmpErrorsSent)},
          {"icmp_errors_limited", number(protocol::kStatsIcmpErrorsLimited)},
          {"icmp_errors_unsent", number(protocol::kStatsIcmpErrorsUnsent)}};
}

void print_workers(Output& out, const Attributes& stats) {
  out.print("{:<7} {:>14} {:>14} {:>12} {:>10} {:>8} {:>16} {:>6} {:>12}\n", "worker", "rx", "tx", "drops",
            "punted", "parked", "loops", "busy", "sleeps");
  stats.each(protocol::kStatsWorker, [&out](const Attributes& worker) {
    const auto number = [&worker](uint16_t attribute) { return worker.number_or(attribute, 0); };
    const uint64_t loops = number(protocol::kStatsLoops);
    const double busy = loops == 0 ? 0
                                   : 100.0 * static_cast<double>(number(protocol::kStatsBusyLoops)) /
                                         static_cast<double>(loops);
    out.print("{:<7} {:>14} {:>14} {:>12} {:>10} {:>8} {:>16} {:>4.1f} % {:>11}\n",
              number(protocol::kStatsWorkerIndex), number(protocol::kStatsRx), number(protocol::kStatsTx),
              number(protocol::kStatsDrops), number(protocol::kStatsPunted), number(protocol::kStatsParked),
              loops, busy, number(protocol::kStatsSleeps));
  });
}

Result<int> show_stats(Session& session, Plan& plan) {
  const Status done = session.request(plan.family, plan.message, [&session](const nlmsghdr& answer) {
    const Attributes stats(answer, sizeof(genlmsghdr));
    const Balance balance = read_balance(stats);
    if (!session.options().json) {
      print_workers(session.out(), stats);
      print_errors_and_crossings(session.out(), stats);
      print_balance(session.out(), balance);
      return;
    }
    Json workers = Json::array();
    stats.each(protocol::kStatsWorker,
               [&workers](const Attributes& worker) { workers.push_back(worker_json(worker)); });
    session.out().write_json(Json{{"balance", balance_json(balance)},
                                  {"rx_bytes", stats.number_or(protocol::kStatsRxBytes, 0)},
                                  {"tx_bytes", stats.number_or(protocol::kStatsTxBytes, 0)},
                                  {"veth_crossings", stats.number_or(protocol::kStatsVethCrossings, 0)},
                                  {"icmp_errors", errors_json(stats)},
                                  {"workers", workers},
                                  {"boot_id", session.boot_id()}},
                             session.options().pretty);
  });
  if (!done) return std::unexpected(done.error());
  return kExitOk;
}

struct Drop {
  std::string reason;
  std::string stage;
  std::string top_name;
  std::string hint;
  uint64_t total = 0;
  uint64_t per_second = 0;
  uint64_t top_count = 0;
  uint64_t last_seen_ns = 0;
};

Drop read_drop(const Attributes& attributes) {
  return {.reason = std::string(attributes.string(protocol::kReasonName)),
          .stage = std::string(attributes.string(protocol::kReasonStage)),
          .top_name = std::string(attributes.string(protocol::kReasonTopName)),
          .hint = std::string(attributes.string(protocol::kReasonHint)),
          .total = attributes.number_or(protocol::kReasonTotal, 0),
          .per_second = attributes.number_or(protocol::kReasonPerSecond, 0),
          .top_count = attributes.number_or(protocol::kReasonTopCount, 0),
          .last_seen_ns = attributes.number_or(protocol::kReasonLastSeen, 0)};
}

double share_of(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

void print_drops(Output& out, const std::vector<Drop>& drops, uint64_t all, bool details) {
  const uint64_t now_ns = realtime_ns();
  out.print("{:<18} {:<11} {:>14} {:>10} {:>7}  {:<15} {:<12} {}\n", "reason", "stage", "total", "per s",
            "share", "top interface", "last seen", "look at");
  for (const Drop& drop : drops) {
    if (drop.total == 0 && !details) continue;
    out.print("{:<18} {:<11} {:>14} {:>10} {:>5.1f} %  {:<15} {:<12} {}\n", drop.reason, drop.stage,
              format_count(drop.total), format_count(drop.per_second), share_of(drop.total, all),
              drop.top_name.empty() ? "-" : drop.top_name, format_age(drop.last_seen_ns, now_ns), drop.hint);
  }
}

Json drop_json(const Drop& drop, uint64_t all) {
  Json document{{"reason", drop.reason},
                {"stage", drop.stage},
                {"total", drop.total},
                {"per_second", drop.per_second},
                {"share_percent", share_of(drop.total, all)}};
  if (!drop.top_name.empty()) document.update({{"top_ifname", drop.top_name}, {"top_total", drop.top_count}});
  if (drop.last_seen_ns != 0) document.set("last_seen_ns", drop.last_seen_ns);
  document.set("hint", drop.hint);
  return document;
}

Result<int> show_drops(Session& session, Plan& plan) {
  std::vector<Drop> drops;
  uint64_t all = 0;
  Status done = session.request(plan.family, plan.message, [&](const nlmsghdr& answer) {
    drops.push_back(read_drop(Attributes(answer, sizeof(genlmsghdr))));
    all += drops.back().total;
  });
  if (!done) return std::unexpected(done.error());
  Balance balance;
  plan.begin_generic(protocol::kCmdStats);
  done = session.request(plan.family, plan.message, [&balance](const nlmsghdr& answer) {
    balance = read_balance(Attributes(answer, sizeof(genlmsghdr)));
  });
  if (!done) return std::unexpected(done.error());
  if (!session.options().json) {
    print_drops(session.out(), drops, all, session.options().details);
    print_balance(session.out(), balance);
    return kExitOk;
  }
  Json list = Json::array();
  for (const Drop& drop : drops) list.push_back(drop_json(drop, all));
  session.out().write_json(
      Json{{"drops", list}, {"balance", balance_json(balance)}, {"boot_id", session.boot_id()}},
      session.options().pretty);
  return kExitOk;
}

Status parse_show(Words& words, const Options&, Plan& plan) {
  if (!words.done()) return words.unknown();
  plan.begin_generic(protocol::kCmdStats);
  plan.present = show_stats;
  return {};
}

Status parse_drops(Words& words, const Options&, Plan& plan) {
  if (!words.done()) return words.unknown();
  plan.begin_generic(protocol::kCmdDrops, NLM_F_DUMP);
  plan.present = show_drops;
  return {};
}

constexpr std::array kCommands = {CommandEntry{"show", parse_show}, CommandEntry{"drops", parse_drops},
                                  CommandEntry{"stages", parse_stages}};

}  // namespace

Status parse_stats(Words& words, const Options& options, Plan& plan) {
  return parse_in_table(kCommands, "command of stats", "show", kHelp, words, options, plan);
}

}  // namespace mayfly::cli
