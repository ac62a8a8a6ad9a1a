// SPDX-License-Identifier: BSD-3-Clause
#include "stages.hpp"

#include "base/units.hpp"
#include "control/stage_view.hpp"
#include "session.hpp"

namespace mayfly::cli {
namespace {

std::string number_or_dash(std::optional<double> number) {
  return number ? fmt::format("{:.1f}", *number) : "-";
}

Json number_or_null(std::optional<double> number) {
  return number ? Json(*number) : Json(nullptr);
}

std::optional<double> percent(uint64_t part, uint64_t whole) {
  if (whole == 0) return std::nullopt;
  return 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

// Of the time it had something to do.
std::optional<double> share_of(const StageRow& row, const WorkerStages& worker) {
  if (row.kind == StageKind::idle) return std::nullopt;
  return percent(row.sum.clocks, worker.busy_clocks());
}

bool has_packets(const StageRow& row) {
  return row.kind == StageKind::work || row.kind == StageKind::burst;
}

void print_stages(Output& out, const std::string& title, const WorkerStages& stages, bool details) {
  out.print("{:<15} {:>14} {:>14} {:>14} {:>13} {:>13} {:>7}\n", title, "vectors", "packets",
            "packets/vector", "clocks/packet", "clocks/vector", "share");
  for (const StageRow& row : stages.rows) {
    if (row.sum.vectors == 0 && !details) continue;
    const std::optional<double> share = share_of(row, stages);
    out.print("{:<15} {:>14} {:>14} {:>14} {:>13} {:>13} {:>7}\n", row.name, format_count(row.sum.vectors),
              has_packets(row) ? format_count(row.sum.packets) : "-",
              number_or_dash(row.packets_per_vector()), number_or_dash(row.clocks_per_packet()),
              number_or_dash(row.clocks_per_vector()), share ? fmt::format("{:.1f} %", *share) : "-");
  }
  out.print("{} packets received, clocks per packet: {} in all, {} outside rx and tx bursts; idle {} %\n",
            format_count(stages.received()), number_or_dash(stages.clocks_per_packet()),
            number_or_dash(stages.clocks_outside_bursts()),
            number_or_dash(percent(stages.clocks(StageKind::idle), stages.counted_clocks())));
}

void print_view(Output& out, const StageView& view, bool details) {
  const WorkerStages all = view.all();
  if (all.counted_clocks() != 0 || details) {
    for (const WorkerStages& worker : view.workers) {
      print_stages(out, fmt::format("worker {}", worker.worker), worker, details);
      out.write("\n");
    }
    if (view.workers.size() > 1) {
      print_stages(out, "all workers", all, details);
      out.write("\n");
    }
  }
  const std::string counted = format_duration(view.counted_ns);
  if (view.on)
    out.print("on, counted for {} ('mayfly stats stages off' ends it)\n", counted);
  else
    out.print("off, counted for {} ('mayfly stats stages on' starts anew)\n", counted);
}

Json stages_json(Json document, const WorkerStages& stages) {
  Json list = Json::array();
  for (const StageRow& row : stages.rows)
    list.push_back(Json{{"stage", row.name},
                        {"vectors", row.sum.vectors},
                        {"packets", row.sum.packets},
                        {"clocks", row.sum.clocks},
                        {"packets_per_vector", number_or_null(row.packets_per_vector())},
                        {"clocks_per_packet", number_or_null(row.clocks_per_packet())},
                        {"clocks_per_vector", number_or_null(row.clocks_per_vector())},
                        {"share_percent", number_or_null(share_of(row, stages))}});
  document.update({{"received", stages.received()},
                   {"clocks_per_packet", number_or_null(stages.clocks_per_packet())},
                   {"clocks_per_packet_outside_bursts", number_or_null(stages.clocks_outside_bursts())},
                   {"clocks", stages.counted_clocks()},
                   {"idle_clocks", stages.clocks(StageKind::idle)},
                   {"stages", list}});
  return document;
}

Json view_json(const StageView& view, const std::string& boot_id) {
  Json workers = Json::array();
  for (const WorkerStages& worker : view.workers)
    workers.push_back(stages_json({{"worker", worker.worker}}, worker));
  return {{"on", view.on},
          {"counted_ns", view.counted_ns},
          {"clock_hz", view.clock_hz},
          {"workers", workers},
          {"all", stages_json(Json::object(), view.all())},
          {"boot_id", boot_id}};
}

Result<int> show_stages(Session& session, Plan& plan) {
  StageView view;
  const Status done = session.request(plan.family, plan.message,
                                      [&view](const nlmsghdr& answer) { add_stages(answer, view); });
  if (!done) return std::unexpected(done.error());
  if (session.options().json)
    session.out().write_json(view_json(view, session.boot_id()), session.options().pretty);
  else
    print_view(session.out(), view, session.options().details);
  return kExitOk;
}

}  // namespace

Status parse_stages(Words& words, const Options&, Plan& plan) {
  plan.family = Plan::Family::generic;
  if (words.done()) {
    begin_stages_show(plan.message);
    plan.present = show_stages;
  } else if (words.take("on")) {
    begin_stages_switch(plan.message, true);
  } else if (words.take("off")) {
    begin_stages_switch(plan.message, false);
  } else if (words.take("reset")) {
    begin_stages_reset(plan.message);
  } else {
    words.fail(EINVAL, "unknown word '{}': expected on, off or reset", words.peek());
  }
  return words.done() ? words.status() : words.unknown();
}

}  // namespace mayfly::cli
