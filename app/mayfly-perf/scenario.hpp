// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// A workload out of a YAML file: how the daemon is set up, what comes in on its two ports, and what happens
// meanwhile. What is done to the daemon is written as lines of `mayfly`; read as strictly as its
// configuration (an unknown key, a wrong unit: the file, the line and what is accepted).
//
//   about: sessions of one access port
//   skipped: [policers]                     # what the workload has and the product does not yet: printed
//   setup: [ 'link bulk add ...', ... ]
//   traffic:
//     - {port: port0, protocol: 802.1ad, outer: 100-147, inner: 1-1000, source: 100.64.16.1, source_step: 1,
//        target: 198.51.100.1, active: 30, zipf: 1.0, sizes: [{bytes: 128, percent: 70}, {bytes: 1500,
//        percent: 30}]}
//   flaps:
//     - {name: one outer tag, after: 1s, every: 4s, times: 3, steps: ['link del ...', 'pause 500ms', 'link
//     bulk add ...']}
//   duration: 15s
//   expect: {interfaces: 48002, lost: 0}

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ip_address.hpp"
#include "base/result.hpp"
#include "control/link_description.hpp"

namespace mayfly::perf {

struct SizeShare {
  uint32_t bytes = 64;  // with the checksum
  uint32_t percent = 100;
};

// Frames of sessions, each with tags and an address of its own, in the order of their tags.
struct TrafficClass {
  size_t port = 0;  // 0 or 1: port0, port1
  uint16_t protocol = 0x8100;
  std::optional<NumberRange> outer, inner;  // absent: no such tag
  uint64_t sessions = 0;                    // absent: the product of the ranges
  IpAddress source, target;
  uint64_t source_step = 0, target_step = 0;  // from one session to the next
  uint32_t active = 100;                      // percent of the sessions that send at all
  double zipf = 0;                            // exponent of their popularity; 0: all alike
  uint64_t frames = 16'384;
  std::vector<SizeShare> sizes{{}};
};

struct Step {
  std::string line;  // of mayfly; empty: a pause
  uint64_t pause_ns = 0;
};

struct Flap {
  std::string name;
  uint64_t after_ns = 0;
  uint64_t every_ns = 0;
  uint64_t times = 1;
  std::vector<Step> steps;
};

struct Scenario {
  std::string about;
  std::vector<std::string> skipped;
  std::vector<std::string> setup;
  std::vector<TrafficClass> traffic;
  std::vector<Flap> flaps;
  uint64_t duration_ns = 0;
  std::optional<uint64_t> interfaces;  // how many there are in the end
  uint64_t most_lost = 0;              // probes
};

Result<Scenario> load_scenario(const std::string& path);
Result<Scenario> parse_scenario(std::string_view text, std::string_view file);

// The frames of all classes of a port, in the order they are replayed; the same seed gives the same ones.
std::vector<std::vector<uint8_t>> scenario_frames(const Scenario& scenario, size_t port, Mac mac,
                                                  uint64_t seed);

}  // namespace mayfly::perf
