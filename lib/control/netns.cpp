// SPDX-License-Identifier: BSD-3-Clause
// Namespaces: add, delete with everything in them, rename, show.
#include <linux/genetlink.h>

#include "base/log.hpp"
#include "control/generic_writer.hpp"
#include "control/handlers.hpp"
#include "control/interface_move.hpp"
#include "control/interface_removal.hpp"
#include "control/protocol.hpp"
#include "iface/selector.hpp"

namespace mayfly {
namespace {

using namespace protocol;

constexpr uint64_t kStepsPerLook = 32;

constexpr AttributeSpec kNetnsSpecs[] = {
    {kNetnsName, AttributeSpec::Type::string, "netns name", kMostNetnsNameBytes},
    {kNetnsNewName, AttributeSpec::Type::string, "new netns name", kMostNetnsNameBytes},
};

Result<std::string_view> name_of(const RequestAttributes& attributes, uint16_t attribute) {
  const auto name = attributes.string(attribute);
  if (!name) return fail(EINVAL, "netns name: missing, accepted 1..{} characters", kMostNetnsNameBytes);
  return *name;
}

Result<Netns*> find_named(const Dataplane& dataplane, const RequestAttributes& attributes) {
  auto name = name_of(attributes, kNetnsName);
  if (!name) return std::unexpected(name.error());
  Netns* netns = dataplane.netnses.find(*name);
  if (netns == nullptr) return fail(ENOENT, "netns '{}' does not exist", *name);
  if (netns->dying) return fail(EBUSY, "netns '{}' is being deleted", *name);
  return netns;
}

// Deletes a namespace with all its interfaces. Claim: interfaces are marked, with everything stacked on them
// and their peers. Then its ports move to `default`, which takes a grace period when there are any; from then
// on it cannot fail: the name is free, and everything dies as one batch, whose routes are never taken apart
// one by one.
class NetnsDelete final : public Operation {
 public:
  NetnsDelete(Connection& connection, const nlmsghdr& request, Netns& netns)
      : connection_(connection),
        dataplane_(connection.dataplane()),
        request_(request),
        netns_(netns),
        walk_(dataplane_.interfaces, Selector::everything_in(netns)),
        removal_(dataplane_),
        move_(dataplane_) {
    netns_.dying = true;
  }

  Progress step(const Deadline& deadline) override {
    if (phase_ == Phase::select && !select(deadline)) return Progress::more;
    if (phase_ == Phase::walk && !walk(deadline)) return Progress::more;
    if (phase_ == Phase::ports) {
      const Progress moving = move_ports(deadline);
      if (moving != Progress::done) return moving;
      victims_ = removal_.victims();
      name_ = netns_.name;
      dataplane_.netnses.unlink(netns_);
      phase_ = Phase::commit;
    }
    if (phase_ == Phase::release) {
      if (!removal_.release(deadline)) return Progress::more;
      netns_.dying = false;
      if (!cancelled_) connection_.writer().acknowledge(request_, &failure_);
      return Progress::done;
    }
    const bool done = removal_.commit(connection_.retired(), deadline);
    if (done) return finish();
    dataplane_.commit(connection_.retired());
    return Progress::more;
  }

  bool cancel() override {
    cancelled_ = true;
    if (phase_ < Phase::ports) phase_ = Phase::release;
    return false;
  }

 private:
  enum class Phase { select, walk, ports, commit, release };

  bool give_up(Error error) {
    failure_ = std::move(error);
    phase_ = Phase::release;
    return true;
  }

  bool select(const Deadline& deadline) {
    InterfaceTable& table = dataplane_.interfaces;
    for (uint64_t steps = 1;; ++steps) {
      const uint32_t ifindex = walk_.next(deadline);
      if (ifindex == kNoInterface) {
        if (!walk_.done()) return false;
        break;
      }
      if (table.interface(ifindex).kind == kPortKind) {
        ports_.push_back(ifindex);
      } else if (!table.marked_by(ifindex, removal_.number())) {
        if (auto added = removal_.add(ifindex); !added) return give_up(added.error());
      }
      if (steps % kStepsPerLook == 0 && deadline.over()) return false;
    }
    phase_ = Phase::walk;
    return true;
  }

  bool walk(const Deadline& deadline) {
    auto walked = removal_.walk(deadline);
    if (!walked) return give_up(walked.error());
    if (!*walked) return false;
    phase_ = Phase::ports;
    return true;
  }

  // One after the other; a port that was removed meanwhile is not there any more.
  Progress move_ports(const Deadline& deadline) {
    while (!ports_.empty()) {
      const uint32_t ifindex = ports_.back();
      if (!moving_) {
        if (!dataplane_.interfaces.exists(ifindex) ||
            dataplane_.interfaces.interface(ifindex).netns.own() != &netns_) {
          ports_.pop_back();
          continue;
        }
        // Somebody else is moving it or its device is being removed: it leaves by that way.
        if (!move_.begin(ifindex)) return Progress::waiting;
        moving_ = true;
      }
      if (!move_.ready()) return Progress::waiting;
      while (!move_.shed())
        if (deadline.over()) {
          dataplane_.routes.commit(connection_.retired());
          return Progress::more;
        }
      Netns& target = dataplane_.netnses.initial();
      const std::string name = free_name(target, dataplane_.interfaces.record(ifindex).name);
      const Status moved = move_.finish(target, name, connection_.retired());
      MAYFLY_CHECK(moved.has_value(), "a port found no place in the first namespace");
      moving_ = false;
      ports_.pop_back();
    }
    return Progress::done;
  }

  // As the kernel does for devices of a dying namespace: devN when the name is taken.
  std::string free_name(const Netns& target, std::string name) const {
    for (uint32_t number = 0; dataplane_.interfaces.name_taken(&target, name); ++number)
      name = fmt::format("dev{}", number);
    return name;
  }

  Progress finish() {
    const uint64_t routes = netns_.rib.size();
    // Whatever edit is open on its FIBs goes with them.
    dataplane_.routes.commit(connection_.retired());
    dataplane_.netnses.retire(netns_, connection_.retired());
    dataplane_.commit(connection_.retired());
    if (victims_ > 1)
      log(LogLevel::info, "control", "netns del {}: {} interfaces, {} routes; {}", name_, victims_, routes,
          connection_.describe());
    if (!cancelled_ && (request_.nlmsg_flags & NLM_F_ACK) != 0)
      connection_.writer().acknowledge(request_, nullptr);
    return Progress::done;
  }

  Connection& connection_;
  Dataplane& dataplane_;
  nlmsghdr request_;
  Netns& netns_;
  SelectorWalk walk_;
  InterfaceRemoval removal_;
  InterfaceMove move_;
  std::vector<uint32_t> ports_;
  bool moving_ = false;
  bool cancelled_ = false;
  uint64_t victims_ = 0;
  std::string name_;
  Error failure_{0, ""};
  Phase phase_ = Phase::select;
};

void write_netns(Connection& connection, const Netns& netns, uint32_t sequence, uint16_t flags) {
  MessageWriter& writer = connection.writer();
  begin_generic(writer, sequence, kCmdNetnsShow, flags);
  writer.put_string(kNetnsName, netns.name);
  writer.put_u64(kNetnsId, netns.id);
  writer.put_u32(kNetnsInterfaces, connection.dataplane().interfaces.netns_size(&netns));
  writer.put_u32(kNetnsRoutes, netns.rib.size());
  writer.end();
}

class NetnsDump final : public Operation {
 public:
  NetnsDump(Connection& connection, const nlmsghdr& request)
      : connection_(connection),
        sequence_(request.nlmsg_seq),
        changes_(connection.dataplane().netnses.changes()) {}

  Progress step(const Deadline& deadline) override {
    const NetnsTable& netnses = connection_.dataplane().netnses;
    for (uint64_t steps = 1; !connection_.writer().over_high_water(); ++steps) {
      const Netns* netns = netnses.next(cursor_);
      if (netns == nullptr) {
        connection_.writer().done(sequence_, netnses.changes() != changes_);
        return Progress::done;
      }
      cursor_ = netns->number + 1;
      write_netns(connection_, *netns, sequence_, NLM_F_MULTI);
      if (steps % kStepsPerLook == 0 && deadline.over()) break;
    }
    return Progress::more;
  }

  bool cancel() override { return true; }

 private:
  Connection& connection_;
  uint32_t sequence_;
  uint64_t changes_;
  uint32_t cursor_ = 0;
};

}  // namespace

HandlerResult handle_netns_add(Connection& connection, const Request& request) {
  auto attributes = request.attributes<genlmsghdr>(kNetnsSpecs);
  if (!attributes) return std::unexpected(attributes.error());
  auto name = name_of(*attributes, kNetnsName);
  if (!name) return std::unexpected(name.error());
  auto added = connection.dataplane().netnses.add(*name);
  if (!added) return std::unexpected(added.error());
  return Handled::acknowledge;
}

HandlerResult handle_netns_delete(Connection& connection, const Request& request) {
  auto attributes = request.attributes<genlmsghdr>(kNetnsSpecs);
  if (!attributes) return std::unexpected(attributes.error());
  auto netns = find_named(connection.dataplane(), *attributes);
  if (!netns) return std::unexpected(netns.error());
  if (*netns == &connection.dataplane().netnses.initial())
    return fail(EPERM, "netns '{}': the first namespace cannot be deleted", (*netns)->name);
  if ((*netns)->bulk_requests != 0)
    return fail(EBUSY, "netns '{}': a bulk request is at work in it", (*netns)->name);
  connection.start(std::make_unique<NetnsDelete>(connection, request.header, **netns));
  return Handled::operation;
}

HandlerResult handle_netns_rename(Connection& connection, const Request& request) {
  auto attributes = request.attributes<genlmsghdr>(kNetnsSpecs);
  if (!attributes) return std::unexpected(attributes.error());
  auto netns = find_named(connection.dataplane(), *attributes);
  if (!netns) return std::unexpected(netns.error());
  auto name = name_of(*attributes, kNetnsNewName);
  if (!name) return std::unexpected(name.error());
  if (auto renamed = connection.dataplane().netnses.rename(**netns, *name); !renamed)
    return std::unexpected(renamed.error());
  return Handled::acknowledge;
}

HandlerResult handle_netns_show(Connection& connection, const Request& request) {
  auto attributes = request.attributes<genlmsghdr>(kNetnsSpecs);
  if (!attributes) return std::unexpected(attributes.error());
  if (request.dump()) {
    connection.start(std::make_unique<NetnsDump>(connection, request.header));
    return Handled::operation;
  }
  auto netns = find_named(connection.dataplane(), *attributes);
  if (!netns) return std::unexpected(netns.error());
  write_netns(connection, **netns, request.header.nlmsg_seq, 0);
  return Handled::acknowledge;
}

}  // namespace mayfly
