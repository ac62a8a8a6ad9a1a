// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The `network` section of the configuration: namespaces with their interfaces, addresses, routes and
// neighbours, and what has to be done to get from one such section to another.
//
//   NetworkConfig  --creations()-->  changes  --(control/change_list)-->  a running network
//   two of them    --difference()-->  changes
//
// A change is a row of control messages, the same that the CLI sends, with the place it comes from, a text
// for people and the messages that undo it. Nothing here talks to a daemon. Any thread, no state, the heap.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/change.hpp"
#include "control/link_description.hpp"
#include "control/requests.hpp"

namespace mayfly {

// One element of `interfaces`: an interface, a template of many, or the settings of a port.
struct NetworkLink {
  LinkDescription link;  // its netns is that of the entry and is left out here
  std::optional<uint64_t> count;
  std::string link_netns;  // where the parent is; empty: in the same namespace
  LinkDescription far;     // settings of the peer, beside those it is created with
  int line = 0;

  bool port() const noexcept { return link.kind != nullptr && !link.kind->creatable; }
  bool bulk() const noexcept { return count.has_value() || link.has_range(); }
  bool has_far_settings() const noexcept { return far.has_settings(); }
  // How many interfaces it makes, peers left out.
  uint64_t members() const noexcept;
};

struct NetworkAddress : AddressDescription {
  int line = 0;
};
// Routes of one prefix and metric are used in the order of the file.
struct NetworkRoute : RouteDescription {
  int line = 0;
  // Those of its prefix and metric before it: how many, and a digest of what they are.
  uint64_t behind = 0;

  uint32_t metric_or_default() const noexcept;
};
struct NetworkNeighbour : NeighbourDescription {
  int line = 0;
};

struct NetworkNamespace {
  std::string name;
  int line = 0;
  std::vector<NetworkLink> links;
  std::vector<NetworkAddress> addresses;
  std::vector<NetworkRoute> routes;
  std::vector<NetworkNeighbour> neighbours;
};

struct NetworkConfig {
  std::string file;  // as errors name it
  std::vector<NetworkNamespace> namespaces;
  std::map<std::string, uint32_t, std::less<>> port_mtus;  // ports[].mtu: what a port has without a setting

  bool empty() const noexcept { return namespaces.empty(); }
};

constexpr std::string_view kDefaultNamespace = "default";

// Sets `behind` of all of them.
void rank_routes(std::vector<NetworkRoute>& routes);

// What makes all of it, starting from ports alone.
std::vector<Change> creations(const NetworkConfig& network);
// What makes the second of the first: deletions, then changes and creations. What is equal is not touched.
std::vector<Change> difference(const NetworkConfig& from, const NetworkConfig& to);

// One interface of a template: its description, as if it had been written alone. i < members(). The name is
// empty when it would be longer than 15 characters.
LinkDescription member_of(const NetworkLink& link, uint64_t i);

// YAML that parse_config() reads back into the same section; empty when there is nothing in it.
std::string dump_network(const NetworkConfig& network);

// How much of everything it makes, for --check.
struct NetworkSize {
  uint64_t namespaces = 0;
  uint64_t interfaces = 0;
  uint64_t addresses = 0;
  uint64_t routes = 0;
  uint64_t neighbours = 0;
};
NetworkSize size_of(const NetworkConfig& network);

}  // namespace mayfly
