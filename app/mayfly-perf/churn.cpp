// SPDX-License-Identifier: BSD-3-Clause
// How fast interfaces come and go. A round: create N, delete them, create one of the same name at once, wait
// until everything is back. What the client does is in the same process as the daemon, but through its
// socket, so that it also measures a daemon that runs elsewhere.
#include <linux/if.h>
#include <linux/rtnetlink.h>

#include <map>

#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "base/units.hpp"
#include "control/link_description.hpp"
#include "control/requests.hpp"
#include "runs.hpp"

namespace mayfly::perf {

Result<uint32_t> daemon_pid(Console& console) {
  const auto status = console.read("status");
  if (!status) return std::unexpected(status.error());
  return status->at("pid").get<uint32_t>();
}

void note_limits(Console& console, Report& report) {
  const auto reclaim = console.look("reclaim show");
  if (!reclaim.is_object()) return;
  report.most_backlog_objects = reclaim["high_objects"].get<uint64_t>();
  report.most_backlog_bytes = reclaim["high_bytes"].get<uint64_t>();
}

void take_series(const Observer& observer, Report& report) {
  report.series = observer.series();
  report.add("other_request", "another client's request", "ns", "", summary_of(observer.requests()));
}

namespace {

constexpr uint32_t kGroup = 7'001;
constexpr std::string_view kPrefix = "mfp";
constexpr std::string_view kPeerPrefix = "mfq";
constexpr Ipv4 kAddresses = 100u << 24 | 64u << 16;  // 100.64.0.0/10
constexpr Ipv6 kAddresses6{0xfd00'0002'0000'0000ULL, 0};
constexpr Ipv4 kRoutes = 10u << 24;
constexpr Mac kNeighbour = 0x02'00'00'00'00'01;
constexpr uint64_t kRssSlack = uint64_t{1} << 20;
constexpr uint64_t kRssWaitNs = 2 * kNsPerSecond;
constexpr uint32_t kMostOuter = 4'094;

struct Case {
  Way way;
  bool dressed;
  uint64_t count;

  std::string label() const { return fmt::format("{}, {}", name_of(way), dressed ? "dressed" : "bare"); }
};

struct CaseSamples {
  Samples created, deleted, created_ns, deleted_ns, reclaimed_ns, bytes, kept, first_create_ns;
};

class Churn {
 public:
  Churn(const RunContext& context, Console& console, uint32_t pid, std::string parent)
      : context_(context), console_(console), pid_(pid), parent_(std::move(parent)) {}

  Status run();

 private:
  bool is(std::string_view kind) const { return context_.options.kind == kind; }
  bool has_tags() const { return is("vlan"); }
  bool is_netns() const { return is("netns"); }
  std::vector<Case> cases() const;
  uint32_t first_outer() const;
  Status round(const Case& what, CaseSamples* samples);
  Status create(const Case& what);
  Status remove(const Case& what);
  Status create_bulk(const Case& what);
  Status each(const Case& what, const std::function<void(uint64_t index, std::vector<RequestMessage>&)>& make,
              size_t messages);
  void describe_one(const Case& what, uint64_t index, std::vector<RequestMessage>& messages) const;
  LinkDescription link_of(uint64_t index) const;
  Status first_create(const Case& what, uint64_t deleted_at_ns, CaseSamples* samples);
  Status clean_up();
  void report_case(const Case& what, const CaseSamples& samples) const;

  const RunContext& context_;
  Console& console_;
  const uint32_t pid_;
  const std::string parent_;
  std::vector<RequestMessage> messages_;
};

// What is created one request at a time takes a while: fewer of them, where other ways are measured, too.
std::vector<Case> Churn::cases() const {
  const PerfOptions& options = context_.options;
  std::vector<Case> all;
  for (const Way way : options.ways) {
    if (is_netns() && way == Way::bulk) continue;
    const bool few = way == Way::single && options.ways.size() > 1;
    const uint64_t count = few ? std::min(options.interfaces, kMostSingle) : options.interfaces;
    if (options.bare) all.push_back({way, false, count});
    if (options.dressed && !is_netns()) all.push_back({way, true, count});
  }
  return all;
}

// A daemon of somebody else may use the low tags.
uint32_t Churn::first_outer() const {
  return context_.options.socket.empty() ? 1 : kMostOuter + 1 - outer_tags(context_.options.interfaces);
}

Status Churn::create_bulk(const Case& what) {
  const std::string dressing =
      what.dressed
          ? fmt::format(
                " addr {}/32 step 1 addr {}/128 step 1 nodad route {}/32 step 1 neigh {} step 1 lladdr {}",
                format_address(IpAddress(kAddresses)), format_address(IpAddress(kAddresses6)),
                format_address(IpAddress(kRoutes)), format_address(IpAddress(kRoutes)),
                format_mac(kNeighbour))
          : "";
  const std::string kind = has_tags()
                               ? fmt::format(" link {}{}", parent_, tag_words(what.count, first_outer()))
                           : is("veth") ? fmt::format(" type veth peer name {}{{}}", kPeerPrefix)
                                        : " type dummy";
  return console_.run(fmt::format("link bulk add count {} name {}{{}} group {} up{}{}", what.count, kPrefix,
                                  kGroup, dressing, kind));
}

LinkDescription Churn::link_of(uint64_t index) const {
  LinkDescription link;
  link.name = fmt::format("{}{}", kPrefix, index);
  link.group = kGroup;
  link.up = true;
  link.kind = find_kind_description(context_.options.kind);
  if (has_tags()) {
    link.parent = parent_;
    const std::pair<std::string_view, uint32_t> tags[] = {
        {"id", first_outer() + static_cast<uint32_t>(index / kInnerTags)},
        {"inner", 1 + static_cast<uint32_t>(index % kInnerTags)}};
    for (size_t i = 0; i < link.kind->parameters.size(); ++i)
      for (const auto& [word, value] : tags)
        if (link.kind->parameters[i].word == word) link.values[i] = NumberRange{value, value};
  }
  if (is("veth")) link.peer.emplace().name = fmt::format("{}{}", kPeerPrefix, index);
  return link;
}

void Churn::describe_one(const Case& what, uint64_t index, std::vector<RequestMessage>& messages) const {
  const LinkDescription link = link_of(index);
  begin_link_add(messages[0], link);
  if (!what.dressed) return;
  const IpAddress target(kRoutes + static_cast<Ipv4>(index));
  begin_address_add(messages[1],
                    {.prefix = {IpAddress(kAddresses + static_cast<Ipv4>(index)), 32}, .device = link.name});
  begin_address_add(
      messages[2],
      {.prefix = {IpAddress(Ipv6{kAddresses6.high, index}), 128}, .device = link.name, .nodad = true});
  RouteDescription route;
  route.destination = {target, 32};
  route.device = link.name;
  begin_route_add(messages[3], route);
  begin_neighbour_add(messages[4], {.address = target, .mac = kNeighbour, .device = link.name});
}

// Batch: as fast as the socket takes them. Single: each is answered before the next one.
Status Churn::each(const Case& what,
                   const std::function<void(uint64_t index, std::vector<RequestMessage>&)>& make,
                   size_t messages) {
  auto client = console_.connect(is_netns() ? NETLINK_GENERIC : NETLINK_ROUTE);
  if (!client) return std::unexpected(client.error());
  Status refused;
  client->on_refused([&refused](uint32_t, const Error& error) {
    if (refused) refused = std::unexpected(error);
  });
  messages_.resize(messages);
  for (uint64_t index = 0; index < what.count && refused; ++index) {
    make(index, messages_);
    for (RequestMessage& message : messages_) {
      if (what.way == Way::batch) {
        if (auto queued = client->enqueue(message); !queued) return std::unexpected(queued.error());
      } else if (auto done = client->request(message); !done) {
        return done;
      }
    }
  }
  if (auto drained = client->drain(); !drained) return drained;
  return refused;
}

Status Churn::create(const Case& what) {
  if (what.way == Way::bulk) return create_bulk(what);
  if (is_netns())
    return each(
        what,
        [](uint64_t index, std::vector<RequestMessage>& messages) {
          begin_netns(messages[0], protocol::kCmdNetnsAdd, fmt::format("{}{}", kPrefix, index));
        },
        1);
  return each(
      what,
      [&](uint64_t index, std::vector<RequestMessage>& messages) { describe_one(what, index, messages); },
      what.dressed ? 5 : 1);
}

Status Churn::remove(const Case& what) {
  if (what.way == Way::bulk) return console_.run(fmt::format("link del group {}", kGroup));
  if (is_netns())
    return each(
        what,
        [](uint64_t index, std::vector<RequestMessage>& messages) {
          begin_netns(messages[0], protocol::kCmdNetnsDel, fmt::format("{}{}", kPrefix, index));
        },
        1);
  return each(
      what,
      [](uint64_t index, std::vector<RequestMessage>& messages) {
        messages[0].begin_route(RTM_DELLINK, 0, ifinfomsg{});
        messages[0].put_string(IFLA_IFNAME, fmt::format("{}{}", kPrefix, index));
      },
      1);
}

// The same name and tags again, while those that had them are being taken apart.
Status Churn::first_create(const Case& what, uint64_t deleted_at_ns, CaseSamples* samples) {
  Case one = what;
  one.count = 1;
  one.way = Way::single;
  if (auto made = create(one); !made) return made;
  if (samples != nullptr) samples->first_create_ns.add(static_cast<double>(monotonic_ns() - deleted_at_ns));
  return remove(one);
}

Status Churn::round(const Case& what, CaseSamples* samples) {
  const double count = static_cast<double>(what.count);
  const uint64_t before = rss_bytes(pid_);
  Mark mark = context_.begin_mark(fmt::format("create {}", format_count(what.count)), "create");
  const uint64_t begin = monotonic_ns();
  if (auto made = create(what); !made) return made;
  const uint64_t created = monotonic_ns();
  context_.finish(std::move(mark));
  const uint64_t full = rss_bytes(pid_);
  mark = context_.begin_mark(fmt::format("delete {}", format_count(what.count)), "delete");
  const uint64_t begin_delete = monotonic_ns();
  if (auto removed = remove(what); !removed) return removed;
  const uint64_t deleted = monotonic_ns();
  if (auto made = first_create(what, begin_delete, samples); !made) return made;
  if (auto waited = console_.run("reclaim wait"); !waited) return waited;
  uint64_t after = rss_bytes(pid_);
  const uint64_t until = monotonic_ns() + (samples == nullptr ? 0 : kRssWaitNs);
  while (after > before + kRssSlack && monotonic_ns() < until && sleep_ns(kNsPerMs)) after = rss_bytes(pid_);
  const uint64_t reclaimed = monotonic_ns();
  context_.finish(std::move(mark));
  if (samples == nullptr) return {};
  samples->created.add(count * kNsPerSecond / static_cast<double>(created - begin));
  samples->deleted.add(count * kNsPerSecond / static_cast<double>(deleted - begin_delete));
  samples->created_ns.add(static_cast<double>(created - begin));
  samples->deleted_ns.add(static_cast<double>(deleted - begin_delete));
  samples->reclaimed_ns.add(static_cast<double>(reclaimed - begin_delete));
  samples->bytes.add(full > before ? static_cast<double>(full - before) / count : 0);
  samples->kept.add(after > before ? static_cast<double>(after - before) : 0);
  return {};
}

void Churn::report_case(const Case& what, const CaseSamples& samples) const {
  Report& report = context_.report;
  const std::string phase = what.label();
  const std::string unit = is_netns() ? "namespaces/s" : is("veth") ? "pairs/s" : "interfaces/s";
  report.add("create_rate", "created", unit, phase, samples.created.summary());
  report.add("delete_rate", "deleted", unit, phase, samples.deleted.summary());
  report.add("create_time", "create", "ns", phase, samples.created_ns.summary());
  report.add("delete_time", "delete", "ns", phase, samples.deleted_ns.summary());
  report.add("reclaim_time", "delete until all memory is back", "ns", phase, samples.reclaimed_ns.summary());
  report.add("first_create_time", "delete until one is created again", "ns", phase,
             samples.first_create_ns.summary());
  report.add("bytes_each", "RSS of one", "B", phase, samples.bytes.summary());
  report.add("rss_kept", "RSS kept", "B", phase, samples.kept.summary());
}

Status Churn::clean_up() {
  if (!is_netns()) return console_.run(fmt::format("link del group {}", kGroup));
  Case all{Way::batch, false, context_.options.interfaces};
  return remove(all);
}

Status Churn::run() {
  const std::vector<Case> all = cases();
  if (all.empty())
    return fail(EINVAL, "--ways bulk: there is no bulk request for namespaces: batch or single");
  if (!is_netns()) {
    const auto there = console_.read(fmt::format("link count group {}", kGroup));
    if (!there) return std::unexpected(there.error());
    if (there->at("count").get<uint64_t>() != 0)
      return fail(EEXIST,
                  "interfaces of group {} are there already: 'mayfly link del group {}' if they are ours",
                  kGroup, kGroup);
  }
  std::vector<CaseSamples> samples(all.size());
  Status done;
  // Tables grow in the first round of each: it is not counted.
  for (uint32_t round_number = 0; round_number <= context_.options.rounds && done && !interrupted();
       ++round_number)
    for (size_t i = 0; i < all.size() && done && !interrupted(); ++i)
      done = round(all[i], round_number == 0 ? nullptr : &samples[i]);
  if (!done) {
    if (auto cleaned = clean_up(); !cleaned && cleaned.error().code == ECONNRESET) return cleaned;
    return done;
  }
  for (size_t i = 0; i < all.size(); ++i) report_case(all[i], samples[i]);
  return {};
}

Result<std::string> parent_of(Console& console, const PerfOptions& options) {
  if (options.kind != "vlan") return std::string();
  const auto ports = console.read("port show");
  if (!ports) return std::unexpected(ports.error());
  for (const auto& port : *ports) {
    const std::string name = port.at("ifname").get<std::string>();
    if (options.link.empty() || options.link == name) return name;
  }
  if (options.link.empty())
    return fail(ENODEV, "the daemon has no port to put VLAN interfaces on; --kind dummy works");
  return fail(ENODEV, "--link {}: the daemon has no port of this name", options.link);
}

Status churn_on(const RunContext& context, const std::string& socket) {
  Console console(socket);
  const auto pid = daemon_pid(console);
  if (!pid) return std::unexpected(pid.error());
  auto parent = parent_of(console, context.options);
  if (!parent) return std::unexpected(parent.error());
  note_limits(console, context.report);
  if (context.options.socket.empty())
    context.report.notes.push_back("the daemon runs in the process of its client: RSS is that of both");
  Observer observer(
      {.socket = socket, .pid = *pid, .begin_ns = context.begin_ns, .period_ns = context.options.period_ns});
  observer.start();
  const Status done = Churn(context, console, *pid, std::move(*parent)).run();
  observer.stop();
  if (!done) return done;
  take_series(observer, context.report);
  return {};
}

}  // namespace

Status run_churn(const RunContext& context) {
  if (!context.options.socket.empty()) return churn_on(context, context.options.socket);
  PerfDaemon daemon(context.options, {});
  return daemon.run([&context](PerfDaemon& own) { return churn_on(context, own.socket()); });
}

}  // namespace mayfly::perf
