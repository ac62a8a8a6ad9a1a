// SPDX-License-Identifier: BSD-3-Clause
// Ports that come and go while the daemon runs, and the counters of a driver: the port thread works, an
// operation waits for its answer.
#include <linux/genetlink.h>

#include "base/log.hpp"
#include "control/generic_writer.hpp"
#include "control/handlers.hpp"
#include "control/interface_removal.hpp"
#include "port/port_table.hpp"

namespace mayfly {
namespace {

using namespace protocol;

constexpr uint16_t kMostDevargs = 4'096;

constexpr AttributeSpec kAddSpecs[] = {
    {kPortName, AttributeSpec::Type::string, "name"},
    {kPortDevargs, AttributeSpec::Type::string, "devargs", kMostDevargs},
    {kPortRxQueues, AttributeSpec::Type::u32, "rx_queues"},
    {kPortRxDescriptors, AttributeSpec::Type::u32, "rx_descriptors"},
    {kPortTxDescriptors, AttributeSpec::Type::u32, "tx_descriptors"},
    {kPortMtu, AttributeSpec::Type::u32, "mtu"},
    {kPortPromiscuous, AttributeSpec::Type::u8, "promiscuous"},
};

constexpr AttributeSpec kNameSpecs[] = {{kPortName, AttributeSpec::Type::string, "name"}};

// The device is opened, whether or not its client waits for it.
class PortAdding final : public Operation {
 public:
  PortAdding(Connection& connection, const nlmsghdr& request, uint64_t cookie)
      : connection_(connection), request_(request), cookie_(cookie) {}

  Progress step(const Deadline&) override {
    const auto answer = connection_.dataplane().ports.answer(cookie_);
    if (!answer) return Progress::waiting;
    if (!answer->result)
      connection_.writer().acknowledge(request_, &answer->result.error());
    else if ((request_.nlmsg_flags & NLM_F_ACK) != 0)
      connection_.writer().acknowledge(request_, nullptr);
    return Progress::done;
  }
  bool cancel() override {
    connection_.dataplane().ports.forget_answer(cookie_);
    return true;
  }

 private:
  Connection& connection_;
  nlmsghdr request_;
  uint64_t cookie_;
};

// Its interface and what is stacked on it die first, in one batch with the port: claim, commit, then the wait
// for a grace period and for the device.
class PortRemoval final : public Operation {
 public:
  PortRemoval(Connection& connection, const nlmsghdr& request, std::string name)
      : connection_(connection),
        request_(request),
        name_(std::move(name)),
        removal_(connection.dataplane()),
        cookie_(connection.dataplane().ports.expect_answer()) {}

  InterfaceRemoval& removal() noexcept { return removal_; }
  void forget() { connection_.dataplane().ports.forget_answer(cookie_); }

  Progress step(const Deadline& deadline) override {
    if (phase_ == Phase::walk) {
      auto walked = removal_.walk(deadline);
      if (walked && !*walked) return Progress::more;
      if (!walked) refusal_ = std::unexpected(walked.error());
      phase_ = walked ? Phase::commit : Phase::release;
    }
    if (phase_ == Phase::release) {
      if (!removal_.release(deadline)) return Progress::more;
      phase_ = Phase::refused;
    }
    if (phase_ == Phase::commit && !commit(deadline)) return Progress::more;
    if (phase_ == Phase::refused) {
      forget();
      return cancelled_ ? Progress::done : finish(&refusal_.error());
    }
    if (cancelled_) {
      forget();
      return Progress::done;
    }
    const auto answer = connection_.dataplane().ports.answer(cookie_);
    if (!answer) return Progress::waiting;
    return finish(answer->result ? nullptr : &answer->result.error());
  }

  bool cancel() override {
    cancelled_ = true;
    if (phase_ == Phase::walk) phase_ = Phase::release;
    if (phase_ != Phase::wait) return false;
    forget();
    return true;
  }

 private:
  enum class Phase { walk, commit, wait, release, refused };

  bool commit(const Deadline& deadline) {
    Dataplane& dataplane = connection_.dataplane();
    RetireList& retired = connection_.retired();
    if (!removal_.commit(retired, deadline)) {
      dataplane.routes.commit(retired);
      return false;
    }
    refusal_ = dataplane.ports.begin_remove(name_, retired, cookie_);
    dataplane.commit(retired);
    phase_ = refusal_ ? Phase::wait : Phase::refused;
    log(LogLevel::info, "control", "{}: port del {}: {} interfaces deleted", connection_.describe(), name_,
        removal_.committed());
    return true;
  }

  Progress finish(const Error* error) {
    if (error != nullptr || (request_.nlmsg_flags & NLM_F_ACK) != 0)
      connection_.writer().acknowledge(request_, error);
    return Progress::done;
  }

  Connection& connection_;
  nlmsghdr request_;
  std::string name_;
  InterfaceRemoval removal_;
  uint64_t cookie_;
  Phase phase_ = Phase::walk;
  Status refusal_;
  bool cancelled_ = false;
};

class XstatsReading final : public Operation {
 public:
  XstatsReading(Connection& connection, const nlmsghdr& request, uint64_t cookie)
      : connection_(connection), request_(request), cookie_(cookie) {}

  Progress step(const Deadline&) override {
    const auto answer = connection_.dataplane().ports.answer(cookie_);
    if (!answer) return Progress::waiting;
    MessageWriter& writer = connection_.writer();
    if (!answer->result) {
      writer.acknowledge(request_, &answer->result.error());
      return Progress::done;
    }
    constexpr size_t kRoomForOne = 128;
    begin_generic(writer, request_.nlmsg_seq, kCmdPortXstats, NLM_F_MULTI);
    for (const auto& [name, value] : answer->xstats) {
      if (writer.room() < kRoomForOne) {
        writer.end();
        begin_generic(writer, request_.nlmsg_seq, kCmdPortXstats, NLM_F_MULTI);
      }
      nlattr* nested = writer.begin_nested(kPortXstat);
      writer.put_string(kPortXstatName, name);
      writer.put_u64(kPortXstatValue, value);
      writer.end_nested(nested);
    }
    writer.end();
    writer.done(request_.nlmsg_seq, false);
    return Progress::done;
  }
  bool cancel() override {
    connection_.dataplane().ports.forget_answer(cookie_);
    return true;
  }

 private:
  Connection& connection_;
  nlmsghdr request_;
  uint64_t cookie_;
};

Result<std::string> name_in(const RequestAttributes& attributes) {
  const auto name = attributes.string(kPortName);
  if (!name || name->empty()) return fail(EINVAL, "the port is missing: give its name");
  return std::string(*name);
}

Result<PortSettings> settings_in(const Dataplane& dataplane, const RequestAttributes& attributes) {
  constexpr uint32_t kMostDescriptors = 32'768;
  auto name = name_in(attributes);
  if (!name) return std::unexpected(name.error());
  PortSettings settings;
  settings.name = *name;
  settings.devargs = attributes.string(kPortDevargs).value_or("");
  settings.rx_queues =
      attributes.u32(kPortRxQueues).value_or(static_cast<uint32_t>(dataplane.workers.size()));
  settings.rx_descriptors = attributes.u32(kPortRxDescriptors).value_or(settings.rx_descriptors);
  settings.tx_descriptors = attributes.u32(kPortTxDescriptors).value_or(settings.tx_descriptors);
  settings.mtu = attributes.u32(kPortMtu).value_or(settings.mtu);
  settings.promiscuous = attributes.u8(kPortPromiscuous).value_or(1) != 0;
  for (const auto& [what, number, value] :
       {std::tuple{"rx_descriptors", kPortRxDescriptors, settings.rx_descriptors},
        std::tuple{"tx_descriptors", kPortTxDescriptors, settings.tx_descriptors}})
    if (value == 0 || value > kMostDescriptors)
      return fail_attribute(number, ERANGE, "port '{}': {} {}: accepted 1..{}", settings.name, what, value,
                            kMostDescriptors);
  return settings;
}

}  // namespace

HandlerResult handle_port_add(Connection& connection, const Request& request) {
  auto attributes = request.attributes<genlmsghdr>(kAddSpecs);
  if (!attributes) return std::unexpected(attributes.error());
  Dataplane& dataplane = connection.dataplane();
  auto settings = settings_in(dataplane, *attributes);
  if (!settings) return std::unexpected(settings.error());
  const uint64_t cookie = dataplane.ports.expect_answer();
  if (auto begun = dataplane.ports.begin_add(std::move(*settings), cookie, false); !begun) {
    dataplane.ports.forget_answer(cookie);
    return std::unexpected(begun.error());
  }
  connection.start(std::make_unique<PortAdding>(connection, request.header, cookie));
  return Handled::operation;
}

HandlerResult handle_port_del(Connection& connection, const Request& request) {
  auto attributes = request.attributes<genlmsghdr>(kNameSpecs);
  if (!attributes) return std::unexpected(attributes.error());
  auto name = name_in(*attributes);
  if (!name) return std::unexpected(name.error());
  Dataplane& dataplane = connection.dataplane();
  const Port* port = dataplane.ports.find(*name);
  if (port == nullptr) return fail(ENODEV, "port '{}' does not exist", *name);
  if (port->state == PortState::starting || port->state == PortState::stopping)
    return fail(EBUSY, "port '{}' is still {}", *name, describe(port->state));
  const InterfaceTable& table = dataplane.interfaces;
  const bool has_interface =
      table.exists(port->ifindex) && table.interface(port->ifindex).id == port->interface_id;
  auto operation = std::make_unique<PortRemoval>(connection, request.header, *name);
  if (has_interface)
    if (auto added = operation->removal().add(port->ifindex, true); !added) {
      operation->forget();
      return std::unexpected(added.error());
    }
  connection.start(std::move(operation));
  return Handled::operation;
}

HandlerResult handle_port_xstats(Connection& connection, const Request& request) {
  auto attributes = request.attributes<genlmsghdr>(kNameSpecs);
  if (!attributes) return std::unexpected(attributes.error());
  auto name = name_in(*attributes);
  if (!name) return std::unexpected(name.error());
  PortTable& ports = connection.dataplane().ports;
  const uint64_t cookie = ports.expect_answer();
  if (auto begun = ports.begin_read_xstats(*name, cookie); !begun) {
    ports.forget_answer(cookie);
    return std::unexpected(begun.error());
  }
  connection.start(std::make_unique<XstatsReading>(connection, request.header, cookie));
  return Handled::operation;
}

}  // namespace mayfly
