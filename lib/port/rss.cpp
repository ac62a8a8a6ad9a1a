// SPDX-License-Identifier: BSD-3-Clause
#include "port/rss.hpp"

#include <rte_ethdev.h>

#include "base/result.hpp"

namespace mayfly {
namespace {

constexpr uint64_t kFlows = RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP;
constexpr uint64_t kTags = RTE_ETH_RSS_S_VLAN | RTE_ETH_RSS_C_VLAN;

struct TypeName {
  uint64_t type;
  const char* name;
};

constexpr TypeName kNames[] = {
    {RTE_ETH_RSS_IPV4, "ipv4"},
    {RTE_ETH_RSS_FRAG_IPV4, "ipv4-frag"},
    {RTE_ETH_RSS_NONFRAG_IPV4_TCP, "ipv4-tcp"},
    {RTE_ETH_RSS_NONFRAG_IPV4_UDP, "ipv4-udp"},
    {RTE_ETH_RSS_NONFRAG_IPV4_SCTP, "ipv4-sctp"},
    {RTE_ETH_RSS_NONFRAG_IPV4_OTHER, "ipv4-other"},
    {RTE_ETH_RSS_IPV6, "ipv6"},
    {RTE_ETH_RSS_FRAG_IPV6, "ipv6-frag"},
    {RTE_ETH_RSS_NONFRAG_IPV6_TCP, "ipv6-tcp"},
    {RTE_ETH_RSS_NONFRAG_IPV6_UDP, "ipv6-udp"},
    {RTE_ETH_RSS_NONFRAG_IPV6_SCTP, "ipv6-sctp"},
    {RTE_ETH_RSS_NONFRAG_IPV6_OTHER, "ipv6-other"},
    {RTE_ETH_RSS_IPV6_EX, "ipv6-ex"},
    {RTE_ETH_RSS_IPV6_TCP_EX, "ipv6-tcp-ex"},
    {RTE_ETH_RSS_IPV6_UDP_EX, "ipv6-udp-ex"},
    {RTE_ETH_RSS_L2_PAYLOAD, "l2-payload"},
    {RTE_ETH_RSS_PORT, "port"},
    {RTE_ETH_RSS_VXLAN, "vxlan"},
    {RTE_ETH_RSS_GENEVE, "geneve"},
    {RTE_ETH_RSS_NVGRE, "nvgre"},
    {RTE_ETH_RSS_GTPU, "gtpu"},
    {RTE_ETH_RSS_ETH, "eth"},
    {RTE_ETH_RSS_S_VLAN, "s-vlan"},
    {RTE_ETH_RSS_C_VLAN, "c-vlan"},
    {RTE_ETH_RSS_ESP, "esp"},
    {RTE_ETH_RSS_AH, "ah"},
    {RTE_ETH_RSS_L2TPV3, "l2tpv3"},
    {RTE_ETH_RSS_PPPOE, "pppoe"},
    {RTE_ETH_RSS_MPLS, "mpls"},
};

}  // namespace

RssTypes choose_rss(uint64_t offered) noexcept {
  return {.all = offered & (kFlows | kTags), .without_tags = offered & kFlows};
}

std::vector<std::string> rss_names(uint64_t types) {
  std::vector<std::string> names;
  for (const auto& [type, name] : kNames) {
    if ((types & type) == 0) continue;
    names.emplace_back(name);
    types &= ~type;
  }
  if (types != 0) names.push_back(fmt::format("{:#x}", types));
  return names;
}

}  // namespace mayfly
