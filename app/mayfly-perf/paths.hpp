// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Ways through the daemon: pairs of VLAN interfaces, the first of a pair on the port where frames come in,
// the second on the one where they leave, with a host route and a permanent neighbour, so that nothing is
// asked for on the way. Made by two bulk requests, as an operator would.

#include <cstdint>
#include <string>
#include <vector>

#include "console.hpp"
#include "frames.hpp"

namespace mayfly::perf {

struct PathPlan {
  std::string in_port = "port0";
  std::string out_port = "port1";
  std::string in_name = "in";  // and a number; at most 4 letters
  std::string out_name = "out";
  uint64_t pairs = 1;
  uint32_t family = 4;
  uint32_t first_outer = 1;      // tags of the first way in
  uint32_t first_outer_out = 1;  // and out
  uint32_t network = 0;          // 0..127: ways of different plans lead to different addresses
};

// Inner tags that are used of each outer one.
constexpr uint32_t kInnerTags = 1'000;
constexpr uint32_t outer_tags(uint64_t interfaces) noexcept {
  return static_cast<uint32_t>((interfaces + kInnerTags - 1) / kInnerTags);
}
// " type vlan id 1-10 inner 1-1000" of so many interfaces.
std::string tag_words(uint64_t interfaces, uint32_t first_outer);

Status lay_paths(Console& console, const PathPlan& plan);
// What enters each way, in their order; mac is that of the port where it enters.
std::vector<FlowFrame> flows_of(const PathPlan& plan, Mac mac);

}  // namespace mayfly::perf
