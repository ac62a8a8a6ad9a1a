// SPDX-License-Identifier: BSD-3-Clause
#include "paths.hpp"

#include <fmt/format.h>

#include "base/address.hpp"

namespace mayfly::perf {
namespace {

// 198.18.0.0/15 and fd00::/8 are for benchmarks and private use (RFC 2544, RFC 4193); targets are
// in 10.128.0.0/9.
constexpr Ipv4 kSources = 198u << 24 | 18u << 16;
constexpr Ipv4 kTargets = 10u << 24 | 128u << 16;
constexpr uint32_t kNetworkBits = 22;  // addresses of a plan: 4,194,304, more than there are interfaces
constexpr uint64_t kSources6 = 0xfd00'0000'0000'0000ULL;
constexpr uint64_t kTargets6 = 0xfd00'0001'0000'0000ULL;
constexpr std::string_view kReceiver = "02:00:00:00:00:01";

IpAddress source_of(const PathPlan& plan, uint64_t index) {
  if (plan.family == 6) return IpAddress(Ipv6{kSources6 | plan.network, index + 1});
  return IpAddress(kSources + static_cast<Ipv4>(index % 65'536) + 1);
}

IpAddress target_of(const PathPlan& plan, uint64_t index) {
  if (plan.family == 6) return IpAddress(Ipv6{kTargets6 | plan.network, index + 1});
  return IpAddress(kTargets + (plan.network << kNetworkBits) + static_cast<Ipv4>(index) + 1);
}

}  // namespace

std::string tag_words(uint64_t interfaces, uint32_t first_outer) {
  return fmt::format(" type vlan id {}-{} inner 1-{}", first_outer, first_outer + outer_tags(interfaces) - 1,
                     kInnerTags);
}

Status lay_paths(Console& console, const PathPlan& plan) {
  const std::string count = fmt::format("link bulk add count {} name ", plan.pairs);
  if (auto made = console.run(fmt::format("{}{}{{}} link {} up{}", count, plan.in_name, plan.in_port,
                                          tag_words(plan.pairs, plan.first_outer)));
      !made)
    return made;
  const std::string target = format_address(target_of(plan, 0));
  const std::string prefix = fmt::format("{}/{}", target, plan.family == 6 ? 128 : 32);
  return console.run(fmt::format("{}{}{{}} link {} up route {} step 1 neigh {} step 1 lladdr {}{}", count,
                                 plan.out_name, plan.out_port, prefix, target, kReceiver,
                                 tag_words(plan.pairs, plan.first_outer_out)));
}

std::vector<FlowFrame> flows_of(const PathPlan& plan, Mac mac) {
  std::vector<FlowFrame> flows;
  flows.reserve(plan.pairs);
  for (uint64_t index = 0; index < plan.pairs; ++index)
    flows.push_back({.destination = mac,
                     .outer = static_cast<uint16_t>(plan.first_outer + index / kInnerTags),
                     .inner = static_cast<uint16_t>(1 + index % kInnerTags),
                     .source = source_of(plan, index),
                     .target = target_of(plan, index)});
  return flows;
}

}  // namespace mayfly::perf
