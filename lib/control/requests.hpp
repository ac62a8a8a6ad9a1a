// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Addresses, routes and neighbours as somebody asks for them, and the messages that add and delete them;
// interfaces are in link_description.hpp. Plain data and pure functions: any thread.

#include <linux/rtnetlink.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/ip_address.hpp"
#include "control/client.hpp"

namespace mayfly {

struct AddressDescription {
  IpPrefix prefix;
  std::string device;
  bool nodad = false;
};

struct RouteDescription {
  IpPrefix destination;
  std::optional<IpAddress> gateway;
  std::optional<IpAddress> source;
  std::optional<uint32_t> metric;
  std::string device;  // empty: where the gateway is
  uint8_t protocol = RTPROT_STATIC;
  uint8_t type = RTN_UNICAST;
  bool onlink = false;
};

struct NeighbourDescription {
  IpAddress address;
  Mac mac = 0;
  std::string device;
  bool router = false;
};

void begin_address_add(RequestMessage& message, const AddressDescription& address);
void begin_address_delete(RequestMessage& message, const AddressDescription& address);
// behind: after those of its prefix and metric that are there; otherwise there must be none.
void begin_route_add(RequestMessage& message, const RouteDescription& route, bool behind = false);
void begin_route_delete(RequestMessage& message, const RouteDescription& route);
void begin_neighbour_add(RequestMessage& message, const NeighbourDescription& neighbour);
void begin_neighbour_delete(RequestMessage& message, const NeighbourDescription& neighbour);
void begin_netns(RequestMessage& message, protocol::Command command, const std::string& name);

// What follows "addr add" and so on: "10.0.0.1/24 dev port0 nodad".
std::string words_of(const AddressDescription& address);
std::string words_of(const RouteDescription& route);
std::string words_of(const NeighbourDescription& neighbour);

// Types and protocols of routes by name; nullopt when there is none of this name.
std::optional<uint8_t> find_route_type(std::string_view name);
std::string route_type_name(uint8_t type);
Result<uint8_t> parse_route_protocol(std::string_view text);
std::string route_protocol_name(uint8_t protocol);
// "default" for a length of 0, the address alone for one address.
std::string destination_name(const IpPrefix& destination);

}  // namespace mayfly
