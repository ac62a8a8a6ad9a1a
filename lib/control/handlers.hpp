// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The handlers of messages, one file per object. Each answers with what is to be acknowledged: success, an
// error, or nothing yet, because it started an Operation on the connection that answers itself.
//
// Control thread. A handler either does everything the message asks or nothing.

#include <linux/netlink.h>

#include <span>

#include "control/connection.hpp"
#include "control/dataplane.hpp"
#include "control/request_attributes.hpp"

namespace mayfly {

enum class Handled { acknowledge, operation };
using HandlerResult = Result<Handled>;

// A message behind its nlmsghdr, its fixed header checked for length.
struct Request {
  const nlmsghdr& header;
  std::span<const std::byte> payload;  // behind nlmsghdr

  bool has_flags(uint16_t flags) const noexcept { return (header.nlmsg_flags & flags) == flags; }
  bool dump() const noexcept { return has_flags(NLM_F_DUMP); }

  // The fixed header of a family; EINVAL when the message is too short for it.
  template <class Header>
  Result<const Header*> fixed() const {
    if (payload.size() < sizeof(Header))
      return fail(EINVAL, "message type {}: {} bytes behind the netlink header, at least {} are needed",
                  header.nlmsg_type, payload.size(), sizeof(Header));
    return reinterpret_cast<const Header*>(payload.data());
  }
  template <class Header>
  Result<RequestAttributes> attributes(std::span<const AttributeSpec> specs) const {
    return RequestAttributes::parse(
        payload.subspan(std::min(payload.size(), size_t{NLMSG_ALIGN(sizeof(Header))})), specs);
  }
};

// Family route.
HandlerResult handle_link(Connection& connection, const Request& request);
HandlerResult handle_address(Connection& connection, const Request& request);
HandlerResult handle_route(Connection& connection, const Request& request);
HandlerResult handle_neighbour(Connection& connection, const Request& request);

// Family generic.
HandlerResult handle_generic(Connection& connection, const Request& request);
HandlerResult handle_bulk_add(Connection& connection, const Request& request);
HandlerResult handle_bulk_delete(Connection& connection, const Request& request);
HandlerResult handle_bulk_items(Connection& connection, const Request& request);
HandlerResult handle_bulk_names(Connection& connection, const Request& request);
HandlerResult handle_link_count(Connection& connection, const Request& request);
HandlerResult handle_link_which(Connection& connection, const Request& request);
HandlerResult handle_reclaim_show(Connection& connection, const Request& request);
HandlerResult handle_reclaim_wait(Connection& connection, const Request& request);
HandlerResult handle_statistics(Connection& connection, const Request& request);
HandlerResult handle_drops(Connection& connection, const Request& request);
HandlerResult handle_stages(Connection& connection, const Request& request);
HandlerResult handle_stages_set(Connection& connection, const Request& request);
HandlerResult handle_status(Connection& connection, const Request& request);
HandlerResult handle_netns_add(Connection& connection, const Request& request);
HandlerResult handle_netns_delete(Connection& connection, const Request& request);
HandlerResult handle_netns_rename(Connection& connection, const Request& request);
HandlerResult handle_netns_show(Connection& connection, const Request& request);
HandlerResult handle_ports(Connection& connection, const Request& request);
HandlerResult handle_port_add(Connection& connection, const Request& request);
HandlerResult handle_port_del(Connection& connection, const Request& request);
HandlerResult handle_port_xstats(Connection& connection, const Request& request);
HandlerResult handle_config_show(Connection& connection, const Request& request);
HandlerResult handle_config_begin(Connection& connection, const Request& request);
HandlerResult handle_config_change(Connection& connection, const Request& request);
HandlerResult handle_config_text(Connection& connection, const Request& request);
HandlerResult handle_config_apply(Connection& connection, const Request& request);

// How many objects a request would create: what admission counts against the teardown backlog. 0 for
// everything that creates none.
uint64_t objects_created_by(const nlmsghdr& message, bool generic);
// The same for the attributes of a bulk create.
uint64_t bulk_add_objects(std::span<const std::byte> attributes) noexcept;

}  // namespace mayfly
