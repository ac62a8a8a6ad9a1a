// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/units.hpp"
#include "frames.hpp"

namespace mayfly::perf {
namespace {

constexpr std::string_view kUsage =
    R"(Usage: mayfly-perf churn    [--interfaces N] [--kind vlan|dummy|veth|netns] [--rounds N] [--ways bulk,batch,single]
                            [--bare | --dressed] [--socket PATH [--link PORT]]
       mayfly-perf forward  [--interfaces N] [--size BYTES|imix] [--order sequential|random] [--family 4|6]
                            [-a DEVICE -a DEVICE]
       mayfly-perf survive  [--interfaces N] [--churn N] [--probe-rate PPS] [--dressed] [the words of forward]
       mayfly-perf scenario FILE

churn    how fast interfaces come and go: rates from the client's first byte to its last answer, until all memory is back
forward  packets/s and clocks a packet, between N interfaces (half of them in, half out)
survive  the same while N other interfaces are created and deleted at full speed: losses, latency, throughput
scenario a file of sessions, traffic and flaps (config/scenarios/)

All runs:
  --duration TIME       forward, survive: 10s
  --stats-period TIME   a line on the screen this often; 0s: none (1s)
  --json FILE           all numbers (docs/perf-report.schema.json); '-': standard output
  --report DIR          a page with plots: DIR/index.html
  --no-stages           without the clocks of each stage, which cost a little themselves
  --seed N              of what is random (1)
  -l CPUS               "0-4" or "0,2,3": the first for control, a worker on each other one
  -a, --device DEVICE   a PCI address or a virtual device with its arguments, twice: traffic comes from outside.
                        Without: net_pcap that replays a file of our own, and net_null
  --idle adaptive|poll  whether a worker sleeps when nothing comes (churn: adaptive, otherwise: poll)
  --hugepages           take hugepages
  -h, --help; --version
)";

constexpr std::pair<std::string_view, RunKind> kRuns[] = {{"churn", RunKind::churn},
                                                          {"forward", RunKind::forward},
                                                          {"survive", RunKind::survive},
                                                          {"scenario", RunKind::scenario}};
constexpr std::pair<std::string_view, Way> kWays[] = {
    {"bulk", Way::bulk}, {"batch", Way::batch}, {"single", Way::single}};
constexpr std::array<std::string_view, 4> kKinds = {"vlan", "dummy", "veth", "netns"};

// A VLAN interface has one of 4,094 x 4,094 pairs of tags on its port; the inner ones are used up to 1,000.
constexpr uint64_t kMostInterfaces = 4'000'000;
constexpr uint64_t kMostSeconds = 86'400;

Result<std::vector<uint32_t>> parse_cpus(std::string_view text) {
  std::vector<uint32_t> cpus;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    const size_t dash = part.find('-');
    const auto first = parse_number("-l", part.substr(0, dash), 0, 1'023);
    if (!first) return std::unexpected(first.error());
    const auto last =
        dash == std::string_view::npos ? first : parse_number("-l", part.substr(dash + 1), *first, 1'023);
    if (!last) return std::unexpected(last.error());
    for (uint64_t cpu = *first; cpu <= *last; ++cpu) cpus.push_back(static_cast<uint32_t>(cpu));
  }
  if (cpus.size() < 2)
    return fail(EINVAL, "-l: one CPU for control and at least one for a worker: '0-1', '0,2,3'");
  return cpus;
}

Result<std::vector<Way>> parse_ways(std::string_view text) {
  std::vector<Way> ways;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    const auto found = std::ranges::find_if(kWays, [&](const auto& way) { return way.first == part; });
    if (found == std::end(kWays))
      return fail(EINVAL, "--ways: value '{}': accepted bulk, batch, single, with commas between", part);
    ways.push_back(found->second);
  }
  if (ways.empty()) return fail(EINVAL, "--ways: accepted bulk, batch, single, with commas between");
  return ways;
}

class OptionReader {
 public:
  OptionReader(std::span<const char* const> words, PerfOptions& options) : words_(words), options_(options) {}

  Status read_all() {
    while (at_ < words_.size()) {
      const std::string_view word = words_[at_++];
      const bool known = word.starts_with('-') ? read_option(word) : read_plain(word);
      if (!failure_.has_value()) return failure_;
      if (!known) return fail(EINVAL, "unknown word '{}'; see mayfly-perf --help", word);
    }
    return {};
  }

 private:
  bool read_plain(std::string_view word) {
    if (options_.run != RunKind::scenario || !options_.scenario.empty()) return false;
    options_.scenario = word;
    return true;
  }

  bool read_option(std::string_view word) {
    return read_flag(word) || read_place(word) || read_number(word) || read_choice(word);
  }

  bool read_flag(std::string_view word) {
    if (word == "-h" || word == "--help") return options_.help = true;
    if (word == "--version") return options_.version = true;
    if (word == "--hugepages") return options_.hugepages = true;
    if (word == "--no-stages") return !(options_.stages = false);
    if (word == "--bare") return options_.bare = !(options_.dressed = false);
    if (word == "--dressed") return options_.dressed = !(options_.bare = false);
    return false;
  }

  bool read_place(std::string_view word) {
    if (word == "--socket") return take(options_.socket, word);
    if (word == "--link") return take(options_.link, word);
    if (word == "--json") return take(options_.json, word);
    if (word == "--report") return take(options_.report, word);
    if (word == "-a" || word == "--device" || word == "--vdev")
      return take(options_.devices.emplace_back(), word);
    if (word == "-l") return take_parsed(options_.cpus, word, parse_cpus);
    return false;
  }

  bool read_number(std::string_view word) {
    if (word == "--interfaces") return take_number(options_.interfaces, word, 1, kMostInterfaces);
    if (word == "--churn") return take_number(options_.churn, word, 1, kMostInterfaces);
    if (word == "--probe-rate") return take_number(options_.probe_rate, word, 1, 1'000'000);
    if (word == "--seed") return take_number(options_.seed, word, 0, UINT64_MAX);
    if (word == "--rounds") {
      uint64_t rounds = 0;
      take_number(rounds, word, 1, 100'000);
      options_.rounds = static_cast<uint32_t>(rounds);
      return true;
    }
    if (word == "--duration") return take_time(options_.duration_ns, word, kNsPerMs);
    if (word == "--stats-period") return take_time(options_.period_ns, word, 0);
    return false;
  }

  bool read_choice(std::string_view word) {
    if (word == "--ways") return take_parsed(options_.ways, word, parse_ways);
    if (word == "--size") {
      take(options_.size, word);
      if (failure_)
        if (auto sizes = parse_sizes(options_.size); !sizes) failure_ = std::unexpected(sizes.error());
      return true;
    }
    if (word == "--kind") {
      take(options_.kind, word);
      if (failure_ && std::ranges::find(kKinds, options_.kind) == kKinds.end())
        failure_ = fail(EINVAL, "--kind: value '{}': accepted vlan, dummy, veth, netns", options_.kind);
      return true;
    }
    std::string value;
    if (word == "--order") {
      if (!take(value, word) || !failure_) return true;
      if (value != "sequential" && value != "random")
        failure_ = fail(EINVAL, "--order: value '{}': accepted sequential, random", value);
      options_.order = value == "random" ? Order::random : Order::sequential;
      return true;
    }
    if (word == "--idle") {
      if (!take(value, word) || !failure_) return true;
      if (value != "adaptive" && value != "poll")
        failure_ = fail(EINVAL, "--idle: value '{}': accepted adaptive, poll", value);
      options_.adaptive = value == "adaptive";
      return true;
    }
    if (word != "--family") return false;
    if (!take(value, word) || !failure_) return true;
    if (value != "4" && value != "6") failure_ = fail(EINVAL, "--family: value '{}': accepted 4, 6", value);
    options_.family = value == "6" ? 6 : 4;
    return true;
  }

  bool take(std::string& into, std::string_view word) {
    if (at_ == words_.size())
      failure_ = fail(EINVAL, "{}: a value must follow", word);
    else
      into = words_[at_++];
    return true;
  }
  template <class T, class Parse>
  bool take_parsed(T& into, std::string_view word, Parse parse) {
    std::string value;
    take(value, word);
    if (!failure_) return true;
    auto parsed = parse(value);
    if (parsed)
      into = std::move(*parsed);
    else
      failure_ = std::unexpected(parsed.error());
    return true;
  }
  bool take_number(uint64_t& into, std::string_view word, uint64_t least, uint64_t most) {
    return take_parsed(into, word,
                       [=](std::string_view text) { return parse_number(word, text, least, most); });
  }
  bool take_time(uint64_t& into, std::string_view word, uint64_t least_ns) {
    return take_parsed(into, word, [=](std::string_view text) {
      return parse_duration(word, text, least_ns, kMostSeconds * kNsPerSecond);
    });
  }

  std::span<const char* const> words_;
  PerfOptions& options_;
  size_t at_ = 0;
  Status failure_;
};

Status check(const PerfOptions& options) {
  if (options.run == RunKind::scenario && options.scenario.empty())
    return fail(EINVAL, "scenario: which file? config/scenarios/ has some");
  if (!options.socket.empty() && options.run != RunKind::churn)
    return fail(EINVAL, "--socket: only churn runs on a daemon that is there already");
  if (!options.link.empty() && options.socket.empty())
    return fail(EINVAL, "--link: a port of a running daemon; --socket must name it");
  if (!options.socket.empty() && (!options.devices.empty() || !options.cpus.empty()))
    return fail(EINVAL, "--socket: devices and CPUs are those of the daemon that runs");
  if (!options.devices.empty() && options.devices.size() != 2)
    return fail(EINVAL, "-a: {} devices: two are needed, one where traffic comes in and one where it leaves",
                options.devices.size());
  if (!options.devices.empty() && options.run == RunKind::churn)
    return fail(EINVAL, "-a: churn needs no device");
  if (options.run == RunKind::forward || options.run == RunKind::survive) {
    if (options.interfaces == 1 || options.interfaces % 2 != 0)
      return fail(EINVAL, "--interfaces {}: half of them receive and half send: an even number",
                  options.interfaces);
    const auto sizes = parse_sizes(options.size);
    if (!sizes) return std::unexpected(sizes.error());
    const uint32_t least = least_frame(options.family);
    if (const uint32_t smallest = std::ranges::min(*sizes); smallest < least)
      return fail(EINVAL, "--size {}: an IPv{} UDP frame with two tags has at least {} B, checksum included",
                  smallest, options.family, least);
  }
  return {};
}

uint64_t default_interfaces(RunKind run) {
  switch (run) {
    case RunKind::churn:
      return 100'000;
    case RunKind::forward:
      return 2;
    case RunKind::survive:
      return 1'000;
    case RunKind::scenario:
      return 0;
  }
  return 0;
}

}  // namespace

Result<PerfOptions> parse_perf_options(std::span<const char* const> words) {
  PerfOptions options;
  for (const char* word : words)
    options.command += fmt::format("{}{}", options.command.empty() ? "" : " ", word);
  words = words.subspan(std::min<size_t>(1, words.size()));
  if (words.empty()) {
    options.help = true;
    return options;
  }
  const std::string_view first = words.front();
  const auto run = std::ranges::find_if(kRuns, [&](const auto& entry) { return entry.first == first; });
  if (run != std::end(kRuns)) {
    options.run = run->second;
    words = words.subspan(1);
  } else if (!first.starts_with('-')) {
    return fail(EINVAL, "unknown run '{}': expected one of churn, forward, survive, scenario", first);
  }
  OptionReader reader(words, options);
  if (auto done = reader.read_all(); !done) return std::unexpected(done.error());
  if (options.help || options.version) return options;
  if (run == std::end(kRuns))
    return fail(EINVAL, "which run? churn, forward, survive or scenario, first of all");
  if (auto checked = check(options); !checked) return std::unexpected(checked.error());
  if (options.interfaces == 0) options.interfaces = default_interfaces(options.run);
  return options;
}

std::string_view perf_usage() noexcept {
  return kUsage;
}

std::string_view name_of(RunKind run) noexcept {
  return std::ranges::find_if(kRuns, [&](const auto& entry) { return entry.second == run; })->first;
}

std::string_view name_of(Way way) noexcept {
  return std::ranges::find_if(kWays, [&](const auto& entry) { return entry.second == way; })->first;
}

}  // namespace mayfly::perf
