// SPDX-License-Identifier: BSD-3-Clause
// LINK messages: create, change, delete one interface; reading is in link_dump.cpp.
#include <linux/if.h>
#include <linux/rtnetlink.h>

#include "base/check.hpp"
#include "control/handlers.hpp"
#include "control/interface_move.hpp"
#include "control/interface_removal.hpp"
#include "control/link_change.hpp"
#include "control/link_dump.hpp"
#include "control/link_request.hpp"
#include "control/netns_use.hpp"
#include "control/port_device.hpp"
#include "control/protocol.hpp"

namespace mayfly {
namespace {

using namespace protocol;

HandlerResult create_link(Connection& connection, const ifinfomsg& fixed,
                          const RequestAttributes& attributes) {
  Dataplane& dataplane = connection.dataplane();
  auto spec = parse_link_spec(dataplane, connection.netns(), attributes);
  if (!spec) return std::unexpected(spec.error());
  const auto name = attributes.string(IFLA_IFNAME);
  if (!name) return fail(EINVAL, "name: missing, accepted 1..15 characters");
  spec->name = *name;
  spec->ifindex = static_cast<uint32_t>(std::max(fixed.ifi_index, 0));
  spec->up = (fixed.ifi_flags & fixed.ifi_change & IFF_UP) != 0 || (fixed.ifi_flags & IFF_UP) != 0;
  auto ifindex = dataplane.interfaces.claim(*spec);
  if (!ifindex) return std::unexpected(ifindex.error());
  dataplane.interfaces.commit(*ifindex);
  dataplane.link_events.appeared(dataplane, *ifindex);
  if (const uint32_t peer = dataplane.interfaces.peer(*ifindex); peer != kNoInterface)
    dataplane.link_events.appeared(dataplane, peer);
  return Handled::acknowledge;
}

Status check_not_marked(const InterfaceTable& table, uint32_t ifindex) {
  if (table.state(ifindex) != InterfaceState::marked) return {};
  return fail(EBUSY, "interface '{}' is being deleted or moved", table.record(ifindex).name);
}

// Everything is validated before anything changes: one message changes all it names or nothing. Where
// something is waited for in between, it is validated again.
Status check_changes(const Dataplane& dataplane, const Netns& netns, uint32_t ifindex, const ifinfomsg& fixed,
                     const RequestAttributes& attributes, const std::optional<std::string_view>& name,
                     bool device_decides) {
  const InterfaceTable& table = dataplane.interfaces;
  for (const uint16_t fixed_at_creation :
       {uint16_t{IFLA_LINK}, uint16_t{IFLA_LINKINFO}, uint16_t{kAttrDevice}})
    if (attributes.has(fixed_at_creation))
      return fail_attribute(fixed_at_creation, EOPNOTSUPP,
                            "link and type of '{}' are given when it is created and do not change",
                            table.record(ifindex).name);
  if (name) {
    if (auto valid = check_interface_name(*name); !valid) return valid;
    if (const uint32_t owner = table.find(&netns, *name); owner != kNoInterface && owner != ifindex)
      return fail(EEXIST, "name '{}': an interface of this name exists", *name);
  }
  if (auto settings = parse_settings(attributes); !settings) return std::unexpected(settings.error());
  if (auto lender = parse_unnumbered(dataplane, netns, attributes); !lender)
    return std::unexpected(lender.error());
  else if (auto valid = dataplane.addressing.check_lender(ifindex, *lender); !valid)
    return fail_attribute(kAttrUnnumbered, EINVAL, "{}", valid.error().text);
  if (const auto alias = attributes.string(IFLA_IFALIAS))
    if (auto valid = check_interface_alias(*alias); !valid)
      return fail_attribute(IFLA_IFALIAS, EINVAL, "{}", valid.error().text);
  if ((fixed.ifi_change & IFF_PROMISC) != 0 && table.interface(ifindex).kind != kPortKind)
    return fail(EOPNOTSUPP, "promisc: '{}' is no port: what its frames need is set on the port",
                table.record(ifindex).name);
  if (const auto mtu = attributes.u32(IFLA_MTU); mtu && !device_decides) {
    const uint32_t limit = table.most_mtu(ifindex);
    if (*mtu < kLeastMtu || *mtu > limit)
      return fail_attribute(IFLA_MTU, EINVAL, "mtu {}: accepted {}..{}", *mtu, kLeastMtu, limit);
  }
  if (attributes.has(IFLA_ADDRESS)) {
    const Mac mac = load_mac(reinterpret_cast<const uint8_t*>(attributes.binary(IFLA_ADDRESS).data()));
    if (is_multicast(mac) || mac == 0)
      return fail_attribute(IFLA_ADDRESS, EADDRNOTAVAIL, "address {}: accepted unicast MAC addresses",
                            format_mac(mac));
  }
  return {};
}

// All but the name, and up and down.
Status apply_settings(Connection& connection, const RequestAttributes& attributes, uint32_t ifindex,
                      bool device_done) {
  Dataplane& dataplane = connection.dataplane();
  InterfaceTable& table = dataplane.interfaces;
  if (const auto mtu = attributes.u32(IFLA_MTU); mtu && !device_done)
    if (auto set = table.set_mtu(ifindex, *mtu); !set) return set;
  if (attributes.has(IFLA_ADDRESS) && !device_done)
    if (auto set = table.set_mac(
            ifindex, load_mac(reinterpret_cast<const uint8_t*>(attributes.binary(IFLA_ADDRESS).data())));
        !set)
      return set;
  if (const auto group = attributes.u32(IFLA_GROUP)) table.set_group(ifindex, *group);
  if (const auto alias = attributes.string(IFLA_IFALIAS))
    if (auto set = table.set_alias(ifindex, *alias); !set) return set;
  if (auto settings = parse_settings(attributes))
    for (uint32_t named = settings->named; named != 0; named &= named - 1) {
      const uint32_t flag = named & -named;
      table.set_flag(ifindex, flag, (settings->on & flag) != 0);
    }
  if (!attributes.has(kAttrUnnumbered)) return {};
  auto lender = parse_unnumbered(dataplane, *table.interface(ifindex).netns.own(), attributes);
  if (!lender) return std::unexpected(lender.error());
  return dataplane.addressing.set_unnumbered(ifindex, *lender);
}

// What cannot fail, or was checked. False: it is going down.
Result<bool> apply_changes(Connection& connection, const ifinfomsg& fixed,
                           const RequestAttributes& attributes, uint32_t ifindex,
                           const std::optional<std::string_view>& new_name, bool device_done) {
  Dataplane& dataplane = connection.dataplane();
  InterfaceTable& table = dataplane.interfaces;
  // What may fail for want of memory, or because a bulk request holds the name, comes before what cannot; a
  // rename is undone when going up fails after it.
  const std::string old_name = table.record(ifindex).name;
  if (new_name)
    if (auto renamed = table.rename(ifindex, *new_name); !renamed) return std::unexpected(renamed.error());
  const bool up = (fixed.ifi_flags & IFF_UP) != 0;
  const bool down = !up && (fixed.ifi_change & IFF_UP) != 0;
  if (up && (fixed.ifi_change & IFF_UP) != 0)
    if (auto set = set_link_up(dataplane, ifindex, true, connection.retired()); !set) {
      if (new_name) [[maybe_unused]]
        auto undone = table.rename(ifindex, old_name);
      return set;
    }
  if (auto set = apply_settings(connection, attributes, ifindex, device_done); !set)
    return std::unexpected(set.error());
  Result<bool> done = true;
  if (down) done = set_link_up(dataplane, ifindex, false, connection.retired());
  dataplane.link_events.changed(dataplane, ifindex);
  return done;
}

// Once a device has accepted its part.
Result<bool> check_and_apply(Connection& connection, const ifinfomsg& fixed,
                             const RequestAttributes& attributes, uint32_t ifindex,
                             const std::optional<std::string_view>& new_name) {
  const Dataplane& dataplane = connection.dataplane();
  if (auto free = check_not_marked(dataplane.interfaces, ifindex); !free)
    return std::unexpected(free.error());
  const Netns& netns = *dataplane.interfaces.interface(ifindex).netns.own();
  if (auto valid = check_changes(dataplane, netns, ifindex, fixed, attributes, new_name, true); !valid)
    return std::unexpected(valid.error());
  return apply_changes(connection, fixed, attributes, ifindex, new_name, true);
}

// A link that goes down with very many routes: they go in slices, whether or not its client is still there.
class LinkDown final : public Operation {
 public:
  LinkDown(Connection& connection, const nlmsghdr& request, uint32_t ifindex)
      : connection_(connection), request_(request), ifindex_(ifindex) {}

  Progress step(const Deadline& deadline) override {
    Dataplane& dataplane = connection_.dataplane();
    const bool done = finish_link_down(dataplane, ifindex_, connection_.retired(), deadline);
    dataplane.commit(connection_.retired());
    if (!done) return Progress::more;
    if (!cancelled_ && (request_.nlmsg_flags & NLM_F_ACK) != 0)
      connection_.writer().acknowledge(request_, nullptr);
    return Progress::done;
  }
  bool cancel() override {
    cancelled_ = true;
    return false;
  }

 private:
  Connection& connection_;
  nlmsghdr request_;
  uint32_t ifindex_;
  bool cancelled_ = false;
};

// `link set X netns N`: the other changes of the message are made once it is there.
class MoveLink final : public Operation {
 public:
  MoveLink(Connection& connection, const Request& request, uint32_t ifindex, Netns& to, std::string name)
      : connection_(connection),
        request_(request.header),
        payload_(request.payload.begin(), request.payload.end()),
        ifindex_(ifindex),
        to_(to),
        use_(to),
        name_(std::move(name)),
        move_(connection.dataplane()) {}

  Status begin() { return move_.begin(ifindex_); }

  Progress step(const Deadline& deadline) override {
    if (!move_.ready()) return Progress::waiting;
    if (!decided_)
      if (auto decided = decide(); !decided) {
        move_.release();
        return finish(decided.error());
      }
    decided_ = true;
    RetireList& retired = connection_.retired();
    while (!move_.shed())
      if (deadline.over()) {
        connection_.dataplane().routes.commit(retired);
        return Progress::more;
      }
    if (reserved_ != kNoInterface) connection_.dataplane().interfaces.abandon(reserved_, retired);
    const Status moved = move_.finish(to_, name_, retired);
    MAYFLY_CHECK(moved.has_value(), "a place that was kept for an interface is taken");
    // It is down and has no routes: nothing is left to do in slices.
    const auto changed = apply_changes(connection_, fixed(), *attributes(), ifindex_, std::nullopt, false);
    if (changed) return finish(std::nullopt);
    // Only where its routes took slices can anything have become untrue since it was decided.
    return finish(Error{
        changed.error().code,
        fmt::format("it is in netns '{}' now, but not all was changed: {}", to_.name, changed.error().text)});
  }

  bool cancel() override {
    cancelled_ = true;
    if (decided_) return false;
    move_.release();
    return true;
  }

 private:
  // The handler parsed it before.
  const ifinfomsg& fixed() const { return **Request{request_, payload_}.fixed<ifinfomsg>(); }
  Result<RequestAttributes> attributes() const {
    return Request{request_, payload_}.attributes<ifinfomsg>(link_attribute_specs());
  }

  // The last moment to refuse, and to go back: what was true when the request came may be so no more. While
  // routes are taken away in slices, a claimed interface keeps the name free from others.
  Status decide() {
    Dataplane& dataplane = connection_.dataplane();
    if (auto valid = check_changes(dataplane, to_, ifindex_, fixed(), *attributes(), std::nullopt, false);
        !valid)
      return valid;
    if (dataplane.interfaces.name_taken(&to_, name_))
      return fail(EEXIST, "name '{}': an interface of this name exists in netns '{}'", name_, to_.name);
    if (!dataplane.addressing.has_many_routes(ifindex_)) return {};
    InterfaceSpec place;
    place.name = name_;
    place.kind = *find_kind("dummy");
    place.netns = &to_;
    auto claimed = dataplane.interfaces.claim(place);
    if (!claimed) return std::unexpected(claimed.error());
    reserved_ = *claimed;
    return {};
  }

  Progress finish(std::optional<Error> error) {
    connection_.dataplane().commit(connection_.retired());
    if (!cancelled_ && (error || (request_.nlmsg_flags & NLM_F_ACK) != 0))
      connection_.writer().acknowledge(request_, error ? &*error : nullptr);
    return Progress::done;
  }

  Connection& connection_;
  nlmsghdr request_;
  std::vector<std::byte> payload_;
  uint32_t ifindex_;
  Netns& to_;
  NetnsUse use_;
  std::string name_;
  InterfaceMove move_;
  uint32_t reserved_ = kNoInterface;
  bool decided_ = false;  // it moves, whoever is still there
  bool cancelled_ = false;
};

HandlerResult move_link(Connection& connection, const Request& request, uint32_t ifindex, Netns& to,
                        std::string_view name) {
  if (connection.dataplane().interfaces.name_taken(&to, name))
    return fail(EEXIST, "name '{}': an interface of this name exists in netns '{}'", name, to.name);
  auto operation = std::make_unique<MoveLink>(connection, request, ifindex, to, std::string(name));
  if (auto begun = operation->begin(); !begun) return std::unexpected(begun.error());
  connection.start(std::move(operation));
  return Handled::operation;
}

HandlerResult change_link(Connection& connection, const Request& request, const ifinfomsg& fixed,
                          const RequestAttributes& attributes, uint32_t ifindex) {
  Dataplane& dataplane = connection.dataplane();
  // A name beside an ifindex is the new name, as with the kernel.
  const auto new_name = fixed.ifi_index > 0 ? attributes.string(IFLA_IFNAME) : std::nullopt;
  auto target = find_target_netns(dataplane, connection.netns(), attributes);
  if (!target) return std::unexpected(target.error());
  const bool device = wants_device(dataplane, ifindex, fixed, attributes);
  if (auto free = check_not_marked(dataplane.interfaces, ifindex); !free)
    return std::unexpected(free.error());
  if (auto valid = check_changes(dataplane, **target, ifindex, fixed, attributes, new_name, device); !valid)
    return std::unexpected(valid.error());
  if (*target != &connection.netns()) {
    if (device)
      return fail_attribute(kAttrNetns, EINVAL,
                            "netns: mtu, address and promisc of '{}' change its device: set "
                            "them before or after",
                            dataplane.interfaces.record(ifindex).name);
    return move_link(connection, request, ifindex, **target,
                     new_name.value_or(dataplane.interfaces.record(ifindex).name));
  }
  // The attributes stand in the datagram, which stays until the operation is done.
  if (device)
    return change_device(connection, request.header, ifindex, fixed, attributes,
                         [&connection, fixed, attributes, ifindex, new_name]() -> Result<bool> {
                           return check_and_apply(connection, fixed, attributes, ifindex, new_name);
                         });
  auto applied = apply_changes(connection, fixed, attributes, ifindex, new_name, false);
  if (!applied) return std::unexpected(applied.error());
  if (*applied) return Handled::acknowledge;
  connection.start(std::make_unique<LinkDown>(connection, request.header, ifindex));
  return Handled::operation;
}

HandlerResult new_link(Connection& connection, const Request& request, const ifinfomsg& fixed,
                       const RequestAttributes& attributes) {
  if (fixed.ifi_index < 0) return fail(EINVAL, "ifindex {}: accepted 1..{}", fixed.ifi_index, INT32_MAX);
  const InterfaceTable& table = connection.dataplane().interfaces;
  // A new one is looked for where it will be (the kernel does so, too, since 6.13); one to be moved, where it
  // is.
  const Netns* where = &connection.netns();
  if (request.has_flags(NLM_F_CREATE)) {
    auto target = find_target_netns(connection.dataplane(), connection.netns(), attributes);
    if (!target) return std::unexpected(target.error());
    where = *target;
  }
  auto existing = find_interface(connection.dataplane(), *where, static_cast<uint32_t>(fixed.ifi_index),
                                 attributes.string(IFLA_IFNAME));
  if (existing) {
    if (request.has_flags(NLM_F_EXCL) && fixed.ifi_index > 0)
      return fail(EEXIST, "ifindex {}: in use by '{}'", *existing, table.record(*existing).name);
    if (request.has_flags(NLM_F_EXCL))
      return fail(EEXIST, "name '{}': an interface of this name exists", table.record(*existing).name);
    return change_link(connection, request, fixed, attributes, *existing);
  }
  if (!request.has_flags(NLM_F_CREATE)) return std::unexpected(existing.error());
  return create_link(connection, fixed, attributes);
}

HandlerResult delete_link(Connection& connection, const Request& request, const ifinfomsg& fixed,
                          const RequestAttributes& attributes) {
  Dataplane& dataplane = connection.dataplane();
  auto ifindex =
      find_interface(dataplane, connection.netns(), static_cast<uint32_t>(std::max(fixed.ifi_index, 0)),
                     attributes.string(IFLA_IFNAME));
  if (!ifindex) return std::unexpected(ifindex.error());
  return remove_interface(connection, request.header, *ifindex);
}

}  // namespace

HandlerResult handle_link(Connection& connection, const Request& request) {
  auto fixed = request.fixed<ifinfomsg>();
  if (!fixed) return std::unexpected(fixed.error());
  auto attributes = request.attributes<ifinfomsg>(link_attribute_specs());
  if (!attributes) return std::unexpected(attributes.error());
  switch (request.header.nlmsg_type) {
    case RTM_NEWLINK:
    case RTM_SETLINK:
      return new_link(connection, request, **fixed, *attributes);
    case RTM_DELLINK:
      return delete_link(connection, request, **fixed, *attributes);
    default:
      return read_links(connection, request, **fixed, *attributes);
  }
}

}  // namespace mayfly
