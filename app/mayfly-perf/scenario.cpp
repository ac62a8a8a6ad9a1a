// SPDX-License-Identifier: BSD-3-Clause
#include "scenario.hpp"

#include <yaml-cpp/yaml.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>

#include "base/clock.hpp"
#include "config/yaml_map.hpp"
#include "frames.hpp"

namespace mayfly::perf {
namespace {

constexpr std::array<std::string_view, 7> kScenarioKeys = {"about", "skipped",  "setup", "traffic",
                                                           "flaps", "duration", "expect"};
constexpr std::array<std::string_view, 13> kTrafficKeys = {
    "port",   "protocol",    "outer",  "inner", "sessions", "source", "source_step",
    "target", "target_step", "active", "zipf",  "frames",   "sizes"};
constexpr std::array<std::string_view, 2> kSizeKeys = {"bytes", "percent"};
constexpr std::array<std::string_view, 5> kFlapKeys = {"name", "after", "every", "times", "steps"};
constexpr std::array<std::string_view, 2> kExpectKeys = {"interfaces", "lost"};
constexpr size_t kMostElements = 100'000;
constexpr Range<uint64_t> kTimes{0, 86'400 * kNsPerSecond};
constexpr uint32_t kMostTag = 4'094;
constexpr double kMostExponent = 5;

std::vector<std::string> read_lines(YamlMap& map, std::string_view key) {
  std::vector<std::string> lines;
  for (const YamlMap::Element& element : map.list(key, kMostElements))
    if (auto line = map.element_text(element)) lines.push_back(std::move(*line));
  return lines;
}

Result<double> parse_exponent(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= 0 && value <= kMostExponent))
    return fail(EINVAL, "value '{}': accepted 0 .. {}", text, kMostExponent);
  return value;
}

void read_sizes(YamlMap& map, TrafficClass& traffic) {
  if (!map.has("sizes")) return;
  traffic.sizes.clear();
  uint32_t percent = 0;
  for (const YamlMap::Element& element : map.list("sizes", 100)) {
    YamlMap size = map.element_map(element, kSizeKeys);
    SizeShare share;
    size.require("bytes");
    size.require("percent");
    size.number("bytes", share.bytes, Range<uint32_t>{64, 1'526});
    size.number("percent", share.percent, Range<uint32_t>{1, 100});
    percent += share.percent;
    traffic.sizes.push_back(share);
  }
  if (!map.failed() && percent != 100) map.refuse("sizes", fmt::format("{} % in all: accepted 100", percent));
}

TrafficClass read_traffic(YamlMap& map) {
  TrafficClass traffic;
  constexpr std::array<YamlMap::Choice<size_t>, 2> kPorts = {{{"port0", 0}, {"port1", 1}}};
  for (const std::string_view key : {"port", "source", "target"}) map.require(key);
  map.choice<size_t>("port", traffic.port, kPorts);
  map.read("protocol", traffic.protocol,
           [](std::string_view text) { return parse_ethertype("value", text); });
  const auto range = [](std::string_view text) { return parse_range("value", text, kMostTag); };
  map.read("outer", traffic.outer, range);
  map.read("inner", traffic.inner, range);
  const auto address = [](std::string_view text) { return parse_address("value", text); };
  map.read("source", traffic.source, address);
  map.read("target", traffic.target, address);
  map.number("source_step", traffic.source_step, Range<uint64_t>{0, 1 << 24});
  map.number("target_step", traffic.target_step, Range<uint64_t>{0, 1 << 24});
  map.number("active", traffic.active, Range<uint32_t>{1, 100});
  map.read("zipf", traffic.zipf, parse_exponent);
  map.number("frames", traffic.frames, Range<uint64_t>{1, 1 << 20});
  const auto count = [](const std::optional<NumberRange>& tags) {
    return tags ? uint64_t{tags->last} - tags->first + 1 : 1;
  };
  traffic.sessions = count(traffic.outer) * count(traffic.inner);
  map.number("sessions", traffic.sessions, Range<uint64_t>{1, traffic.outer ? traffic.sessions : 1 << 24});
  if (!map.failed() && traffic.inner && !traffic.outer)
    map.refuse("inner", "there is no outer tag around it");
  if (!map.failed() && traffic.source.family() != traffic.target.family())
    map.refuse("target", "it is of another family than the source");
  read_sizes(map, traffic);
  return traffic;
}

Flap read_flap(YamlMap& map) {
  Flap flap;
  map.require("name");
  map.require("steps");
  map.text("name", flap.name);
  map.duration("after", flap.after_ns, kTimes);
  map.duration("every", flap.every_ns, kTimes);
  map.number("times", flap.times, Range<uint64_t>{1, 1'000'000});
  constexpr std::string_view kPause = "pause ";
  for (const YamlMap::Element& element : map.list("steps", kMostElements)) {
    auto text = map.element_text(element);
    if (!text) return flap;
    if (!text->starts_with(kPause)) {
      flap.steps.push_back({.line = std::move(*text), .pause_ns = 0});
      continue;
    }
    const auto pause = parse_duration("pause", std::string_view(*text).substr(kPause.size()), 0, kTimes.most);
    if (!pause) {
      map.refuse_element(element, pause.error().text);
      return flap;
    }
    flap.steps.push_back({.line = {}, .pause_ns = *pause});
  }
  return flap;
}

Scenario read_scenario(YamlMap& map) {
  Scenario scenario;
  map.require("setup");
  map.require("duration");
  map.text("about", scenario.about);
  scenario.skipped = read_lines(map, "skipped");
  scenario.setup = read_lines(map, "setup");
  map.duration("duration", scenario.duration_ns, Range<uint64_t>{kNsPerMs, kTimes.most});
  for (const YamlMap::Element& element : map.list("traffic", 1'000)) {
    YamlMap traffic = map.element_map(element, kTrafficKeys);
    scenario.traffic.push_back(read_traffic(traffic));
  }
  for (const YamlMap::Element& element : map.list("flaps", 1'000)) {
    YamlMap flap = map.element_map(element, kFlapKeys);
    scenario.flaps.push_back(read_flap(flap));
  }
  YamlMap expect = map.section("expect", kExpectKeys);
  if (expect.has("interfaces")) {
    uint64_t interfaces = 0;
    expect.number("interfaces", interfaces, Range<uint64_t>{0, UINT64_MAX});
    scenario.interfaces = interfaces;
  }
  expect.number("lost", scenario.most_lost, Range<uint64_t>{0, UINT64_MAX});
  return scenario;
}

IpAddress plus(IpAddress address, uint64_t more) {
  if (address.is_v4()) return IpAddress(static_cast<Ipv4>(address.v4() + more));
  Ipv6 sum = address.v6();
  sum.low += more;
  if (sum.low < more) ++sum.high;
  return IpAddress(sum);
}

FlowFrame flow_of(const TrafficClass& traffic, uint64_t session, Mac mac) {
  FlowFrame flow;
  flow.destination = mac;
  flow.outer_protocol = traffic.protocol;
  const uint64_t inner_tags = traffic.inner ? traffic.inner->last - traffic.inner->first + 1 : 1;
  if (traffic.outer) flow.outer = static_cast<uint16_t>(traffic.outer->first + session / inner_tags);
  if (traffic.inner) flow.inner = static_cast<uint16_t>(traffic.inner->first + session % inner_tags);
  flow.source = plus(traffic.source, session * traffic.source_step);
  flow.target = plus(traffic.target, session * traffic.target_step);
  return flow;
}

void add_frames(const TrafficClass& traffic, Mac mac, std::mt19937_64& random,
                std::vector<std::vector<uint8_t>>& frames) {
  std::vector<uint64_t> sessions(traffic.sessions);
  for (uint64_t i = 0; i < sessions.size(); ++i) sessions[i] = i;
  std::ranges::shuffle(sessions, random);
  sessions.resize(std::max<uint64_t>(1, sessions.size() * traffic.active / 100));
  std::vector<double> weights(sessions.size());
  for (size_t i = 0; i < weights.size(); ++i)
    weights[i] = std::pow(static_cast<double>(i + 1), -traffic.zipf);
  std::discrete_distribution<size_t> pick(weights.begin(), weights.end());
  std::vector<double> shares;
  for (const SizeShare& size : traffic.sizes) shares.push_back(size.percent);
  std::discrete_distribution<size_t> pick_size(shares.begin(), shares.end());
  for (uint64_t i = 0; i < traffic.frames; ++i)
    frames.push_back(
        build_frame(flow_of(traffic, sessions[pick(random)], mac), traffic.sizes[pick_size(random)].bytes));
}

}  // namespace

Result<Scenario> parse_scenario(std::string_view text, std::string_view file) {
  YamlErrors errors(file);
  Origins origins;
  Scenario scenario;
  try {
    const YAML::Node document = YAML::Load(std::string(text));
    YamlMap map(errors, origins, document, 1, "", kScenarioKeys);
    scenario = read_scenario(map);
  } catch (const YAML::Exception& error) {
    return fail(EINVAL, "{}:{}: {}", file, error.mark.line + 1, error.msg);
  }
  if (errors.failed()) return std::unexpected(*errors.first());
  return scenario;
}

Result<Scenario> load_scenario(const std::string& path) {
  std::ifstream file(path);
  if (!file) return fail(errno, "{}: {}", path, std::strerror(errno));
  std::stringstream text;
  text << file.rdbuf();
  if (file.bad() || text.fail()) return fail(EIO, "{}: it can not be read: is it a file?", path);
  return parse_scenario(text.str(), path);
}

std::vector<std::vector<uint8_t>> scenario_frames(const Scenario& scenario, size_t port, Mac mac,
                                                  uint64_t seed) {
  std::mt19937_64 random(seed + port);
  std::vector<std::vector<uint8_t>> frames;
  for (const TrafficClass& traffic : scenario.traffic)
    if (traffic.port == port) add_frames(traffic, mac, random, frames);
  std::ranges::shuffle(frames, random);
  return frames;
}

}  // namespace mayfly::perf
