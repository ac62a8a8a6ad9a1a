// SPDX-License-Identifier: BSD-3-Clause
#include "control/port_device.hpp"

#include <linux/if.h>
#include <linux/if_link.h>

#include "base/log.hpp"
#include "control/link_change.hpp"
#include "port/port_table.hpp"

namespace mayfly {
namespace {

constexpr uint64_t kStepsPerLook = 64;

struct DeviceSetting {
  enum class What { mtu, mac, promiscuous };
  What what;
  uint64_t value;
  uint64_t before;
};

Status begin(PortTable& ports, const std::string& port, DeviceSetting::What what, uint64_t value,
             uint64_t cookie) {
  switch (what) {
    case DeviceSetting::What::mtu:
      return ports.begin_set_mtu(port, static_cast<uint32_t>(value), cookie);
    case DeviceSetting::What::mac:
      return ports.begin_set_mac(port, value, cookie);
    case DeviceSetting::What::promiscuous:
      return ports.begin_set_promiscuous(port, value != 0, cookie);
  }
  return {};
}

std::vector<DeviceSetting> settings_in(const Port& port, const ifinfomsg& fixed,
                                       const RequestAttributes& attributes) {
  std::vector<DeviceSetting> settings;
  if (const auto mtu = attributes.u32(IFLA_MTU); mtu && *mtu != port.info.mtu)
    settings.push_back({DeviceSetting::What::mtu, *mtu, port.info.mtu});
  if (attributes.has(IFLA_ADDRESS)) {
    const Mac mac = load_mac(reinterpret_cast<const uint8_t*>(attributes.binary(IFLA_ADDRESS).data()));
    if (mac != port.info.mac) settings.push_back({DeviceSetting::What::mac, mac, port.info.mac});
  }
  if ((fixed.ifi_change & IFF_PROMISC) != 0) {
    const bool on = (fixed.ifi_flags & IFF_PROMISC) != 0;
    if (on != port.info.promiscuous_wanted)
      settings.push_back({DeviceSetting::What::promiscuous, on, port.info.promiscuous_wanted});
  }
  return settings;
}

class DeviceChange final : public Operation {
 public:
  DeviceChange(Connection& connection, const nlmsghdr& request, uint32_t ifindex, const Port& port,
               std::vector<DeviceSetting> settings, std::function<Result<bool>()> rest)
      : connection_(connection),
        request_(request),
        ifindex_(ifindex),
        id_(connection.dataplane().interfaces.interface(ifindex).id),
        port_(port.settings.name),
        settings_(std::move(settings)),
        rest_(std::move(rest)) {}

  Progress step(const Deadline& deadline) override {
    if (phase_ == Phase::ask) {
      const Progress asked = ask();
      if (asked != Progress::done) return asked;
    }
    if (phase_ == Phase::follow) {
      if (exists() && !pass_mac_on(deadline)) return Progress::more;
      const Result<bool> done = exists() ? rest_() : fail(ENODEV, "port '{}' was deleted meanwhile", port_);
      if (done && *done) return succeed();
      if (done)
        phase_ = Phase::go_down;
      else
        refuse(done.error());
    }
    if (phase_ == Phase::go_down) {
      Dataplane& dataplane = connection_.dataplane();
      const bool down = finish_link_down(dataplane, ifindex_, connection_.retired(), deadline);
      dataplane.routes.commit(connection_.retired());
      return down ? succeed() : Progress::more;
    }
    if (phase_ == Phase::take_back) {
      const Progress taken = take_back();
      if (taken != Progress::done) return taken;
    }
    if (exists() && !pass_mac_on(deadline)) return Progress::more;
    if (!cancelled_) connection_.writer().acknowledge(request_, &refusal_);
    return Progress::done;
  }

  // What the device is asked, it is told the answer to: interfaces follow it either way.
  bool cancel() override {
    cancelled_ = true;
    return phase_ == Phase::ask && at_ == 0 && cookie_ == 0;
  }

 private:
  enum class Phase { ask, follow, go_down, take_back, follow_back };

  bool exists() const {
    const InterfaceTable& table = connection_.dataplane().interfaces;
    return table.exists(ifindex_) && table.interface(ifindex_).id == id_;
  }

  Progress succeed() {
    if (!cancelled_) acknowledge();
    return Progress::done;
  }

  // The device's answer to what it was asked last; nothing while it works.
  std::optional<Status> answer() {
    auto answer = connection_.dataplane().ports.answer(cookie_);
    if (!answer) return std::nullopt;
    cookie_ = 0;
    return std::move(answer->result);
  }
  Status begin_setting(const DeviceSetting& setting, uint64_t value) {
    PortTable& ports = connection_.dataplane().ports;
    cookie_ = ports.expect_answer();
    auto begun = begin(ports, port_, setting.what, value, cookie_);
    if (!begun) ports.forget_answer(std::exchange(cookie_, 0));
    return begun;
  }

  // done: one of the next phases is entered.
  Progress ask() {
    while (at_ < settings_.size()) {
      Status done;
      if (cookie_ != 0) {
        auto answered = answer();
        if (!answered) return Progress::waiting;
        done = std::move(*answered);
        if (done) ++at_;
      } else if (cancelled_) {
        done = fail(ECANCELED, "the client is gone");
      } else {
        done = begin_setting(settings_[at_], settings_[at_].value);
      }
      if (done) continue;
      refuse(done.error());
      return Progress::done;
    }
    phase_ = Phase::follow;
    return Progress::done;
  }

  void refuse(Error error) {
    refusal_ = std::move(error);
    // rtnetlink's errno of an MTU out of range.
    if (refusal_.code == ERANGE) refusal_.code = EINVAL;
    phase_ = Phase::take_back;
  }

  // In reverse; what the device refuses now stays as it is.
  Progress take_back() {
    while (at_ > 0) {
      if (cookie_ == 0) {
        const DeviceSetting& setting = settings_[at_ - 1];
        if (!begin_setting(setting, setting.before)) --at_;
        continue;
      }
      const auto answered = answer();
      if (!answered) return Progress::waiting;
      if (!*answered)
        log(LogLevel::warning, "port", "{}: a setting is not taken back: {}", port_, answered->error().text);
      --at_;
    }
    phase_ = Phase::follow_back;
    followed_ = false;
    cursor_ = 1;
    return Progress::done;
  }

  // As with the kernel's VLANs: what had the port's address has it afterwards, too.
  bool pass_mac_on(const Deadline& deadline) {
    InterfaceTable& table = connection_.dataplane().interfaces;
    if (followed_) return true;
    followed_ = std::ranges::none_of(
        settings_, [](const DeviceSetting& setting) { return setting.what == DeviceSetting::What::mac; });
    const Interface& port = table.interface(ifindex_);
    for (uint64_t steps = 1; !followed_; ++steps) {
      const uint32_t next = table.next(cursor_);
      if (next == kNoInterface) {
        followed_ = true;
        break;
      }
      cursor_ = next + 1;
      if (table.interface(next).port == port.port && table.shares_port_mac(next))
        static_cast<void>(table.set_mac(next, port.mac.load(std::memory_order_relaxed)).has_value());
      if (steps % kStepsPerLook == 0 && deadline.over()) return false;
    }
    return true;
  }

  void acknowledge() {
    const Port* port = connection_.dataplane().ports.find(port_);
    const bool off = std::ranges::any_of(settings_, [](const DeviceSetting& setting) {
      return setting.what == DeviceSetting::What::promiscuous && setting.value == 0;
    });
    if (off && port != nullptr && !port->info.promiscuous_reason.empty()) {
      const Error warning{0, fmt::format("{} stays promiscuous: {}", port_, port->info.promiscuous_reason)};
      connection_.writer().acknowledge(request_, &warning);
    } else if ((request_.nlmsg_flags & NLM_F_ACK) != 0) {
      connection_.writer().acknowledge(request_, nullptr);
    }
  }

  Connection& connection_;
  nlmsghdr request_;
  uint32_t ifindex_;
  uint64_t id_;
  std::string port_;
  std::vector<DeviceSetting> settings_;
  std::function<Result<bool>()> rest_;
  size_t at_ = 0;
  uint64_t cookie_ = 0;
  uint32_t cursor_ = 1;
  bool followed_ = false;
  bool cancelled_ = false;
  Phase phase_ = Phase::ask;
  Error refusal_{0, ""};
};

}  // namespace

bool wants_device(const Dataplane& dataplane, uint32_t ifindex, const ifinfomsg& fixed,
                  const RequestAttributes& attributes) {
  const Interface& interface = dataplane.interfaces.interface(ifindex);
  if (interface.kind != kPortKind) return false;
  const Port* port = dataplane.ports.find_ethdev(interface.port);
  return port != nullptr && !settings_in(*port, fixed, attributes).empty();
}

HandlerResult change_device(Connection& connection, const nlmsghdr& request, uint32_t ifindex,
                            const ifinfomsg& fixed, const RequestAttributes& attributes,
                            std::function<Result<bool>()> rest) {
  const Dataplane& dataplane = connection.dataplane();
  const Port& port = *dataplane.ports.find_ethdev(dataplane.interfaces.interface(ifindex).port);
  connection.start(std::make_unique<DeviceChange>(connection, request, ifindex, port,
                                                  settings_in(port, fixed, attributes), std::move(rest)));
  return Handled::operation;
}

}  // namespace mayfly
