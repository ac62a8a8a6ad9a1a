// SPDX-License-Identifier: BSD-3-Clause
#include "control/control_loop.hpp"

#include <sys/epoll.h>
#include <unistd.h>

#include "base/check.hpp"
#include "base/log.hpp"
#include "iface/own_addresses.hpp"

namespace mayfly {
namespace {

constexpr int kTickMs = 1;
constexpr int kMostEvents = 8;

}  // namespace

ControlLoop::ControlLoop(Dataplane& dataplane, ControlServer& server)
    : dataplane_(dataplane), server_(server), epoll_fd_(epoll_create1(EPOLL_CLOEXEC)) {
  for (const int fd :
       {server_.epoll_fd(), dataplane_.reclaim.completion_fd(), dataplane_.ports.completion_fd()}) {
    epoll_event event{EPOLLIN, {.fd = fd}};
    MAYFLY_CHECK(epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event) == 0,
                 "epoll refused a descriptor of the daemon's");
  }
}

ControlLoop::~ControlLoop() {
  close(epoll_fd_);
}

void ControlLoop::run(const std::atomic<bool>& stop) {
  while (!stop.load(std::memory_order_relaxed)) round(kTickMs);
}

void ControlLoop::round(int wait_ms) {
  epoll_event events[kMostEvents];
  epoll_wait(epoll_fd_, events, kMostEvents, busy_ ? 0 : wait_ms);
  server_.on_ready();
  busy_ = server_.run_slices();
  handle_worker_messages();
  busy_ |= dataplane_.reclaim.collect(Deadline::after_ns(kCollectNs));
  RetireList retired;
  dataplane_.ports.poll_completions(retired, [this](const PortEvent& event) {
    tell_of(event);
    if (port_event_) port_event_(event);
  });
  dataplane_.commit(retired);
  dataplane_.ports.sync_filters();
  run_neighbour_timers();
  run_address_questions();
  run_timers();
  dataplane_.link_events.flush(dataplane_);
  busy_ |= trim();
}

// A port's interface appeared with it, or shows its link.
void ControlLoop::tell_of(const PortEvent& event) {
  const Port* port = dataplane_.ports.find(event.name);
  const bool shows = event.type == PortEvent::Type::added || event.type == PortEvent::Type::link_changed ||
                     event.type == PortEvent::Type::gone;
  if (port == nullptr || !shows) return;
  if (dataplane_.interfaces.exists(port->ifindex) &&
      dataplane_.interfaces.interface(port->ifindex).id == port->interface_id)
    dataplane_.link_events.changed(dataplane_, port->ifindex);
}

void ControlLoop::look_at_balance() {
  std::vector<uint64_t> received;
  for (const WorkerLink& worker : dataplane_.workers) {
    Totals totals;
    worker.statistics->published.read(&totals);
    received.push_back(totals.rx);
  }
  dataplane_.balance.sample(received);
  const uint64_t now = monotonic_ns();
  if (!dataplane_.balance.imbalance() || now < next_balance_log_ns_) return;
  next_balance_log_ns_ = now + kBalanceLogNs;
  log(LogLevel::warning, "control", "{}", dataplane_.balance.imbalance()->describe());
}

// One chunk of every table a round: about 100 us each while memory goes back after a peak.
bool ControlLoop::trim() {
  bool more = dataplane_.interfaces.trim(1);
  more |= dataplane_.blocks.trim(1);
  more |= dataplane_.routes.trim(1);
  return more;
}

void ControlLoop::handle_worker_messages() {
  RetireList retired;
  for (WorkerLink& worker : dataplane_.workers) {
    WorkerMessage message;
    for (uint32_t i = 0; i < kMessagesPerRound && worker.from_worker->pop(&message); ++i) {
      if (!is_current(message)) continue;
      switch (message.type) {
        case WorkerMessage::Type::neighbour_wanted:
          neighbour_wanted(message, retired);
          break;
        case WorkerMessage::Type::neighbour_seen:
          neighbour_seen(message, retired);
          break;
        case WorkerMessage::Type::address_conflict:
          address_conflict(message, retired);
          break;
      }
    }
  }
  dataplane_.commit(retired);
}

// Messages wait in their rings for rounds. An interface that is down has no neighbours, so nothing that was
// heard before it went down may make any, nor before it was moved.
bool ControlLoop::is_current(const WorkerMessage& message) const noexcept {
  const InterfaceTable& table = dataplane_.interfaces;
  if (!table.exists(message.ifindex) || table.interface(message.ifindex).id != message.id) return false;
  const InterfaceRecord& record = table.record(message.ifindex);
  return record.admin_up && !record.suspended;
}

void ControlLoop::neighbour_wanted(const WorkerMessage& message, RetireList& retired) {
  Interface& interface = dataplane_.interfaces.interface(message.ifindex);
  const auto resolution = dataplane_.neighbours.resolve(interface.neighbours, message.ifindex,
                                                        message.address, monotonic_ns(), retired);
  if (!resolution) {
    static LogLimit limit;
    log_limited(limit, LogLevel::warning, "neighbour", "{} on {}: {}", format_address(message.address),
                dataplane_.interfaces.record(message.ifindex).name, resolution.error().text);
    return;
  }
  if (*resolution == NeighbourResolution::kStarted)
    ask(interface, message.address, kBroadcastMac, source_for(interface, message.address));
  if (*resolution == NeighbourResolution::kUsable)
    tell_neighbour(ControlMessage::Type::neighbour_resolved, interface, message.address);
}

void ControlLoop::neighbour_seen(const WorkerMessage& message, RetireList& retired) {
  Interface& interface = dataplane_.interfaces.interface(message.ifindex);
  const NeighbourEvidence evidence{
      .solicited = message.solicited,
      .overrides = message.overrides,
      .creates = message.creates,
      .router = message.tells_router ? std::optional(message.router) : std::nullopt};
  const auto learned = dataplane_.neighbours.learn(interface.neighbours, message.ifindex, message.address,
                                                   message.mac, evidence, monotonic_ns(), retired);
  if (learned && learned->resolved)
    tell_neighbour(ControlMessage::Type::neighbour_resolved, interface, message.address);
}

void ControlLoop::address_conflict(const WorkerMessage& message, RetireList& retired) {
  if (message.address.is_v4() ||
      !dataplane_.addressing.conflict(message.ifindex, message.address.v6(), retired))
    return;
  dataplane_.commit(retired);
  log(LogLevel::warning, "address", "{} on {}: {} has it, too; it is not used any more",
      format_address(message.address), dataplane_.interfaces.record(message.ifindex).name,
      format_mac(message.mac));
}

// Whether somebody else has one of our addresses: asked a few at a time, however many were given at once.
void ControlLoop::run_address_questions() {
  const uint64_t now = monotonic_ns();
  if (now < next_questions_ns_) return;
  next_questions_ns_ = now + kQuestionsNs;
  RetireList retired;
  questions_.clear();
  dataplane_.addressing.tick(now, questions_, retired);
  for (const AddressQuestion& question : questions_)
    ask(dataplane_.interfaces.interface(question.ifindex), IpAddress(question.address), kBroadcastMac,
        IpAddress{});
  dataplane_.reclaim.submit(retired);
}

void ControlLoop::run_neighbour_timers() {
  actions_.clear();
  RetireList retired;
  busy_ |= dataplane_.neighbours.tick(monotonic_ns(), kTimersPerRound, actions_, retired);
  for (const NeighbourAction& action : actions_) {
    if (!dataplane_.interfaces.exists(action.ifindex)) continue;
    const Interface& interface = dataplane_.interfaces.interface(action.ifindex);
    switch (action.kind) {
      case NeighbourAction::Kind::kAskEveryone:
        ask(interface, action.address, kBroadcastMac, source_for(interface, action.address));
        break;
      case NeighbourAction::Kind::kAskDirectly:
        ask(interface, action.address, action.mac, source_for(interface, action.address));
        break;
      case NeighbourAction::Kind::kFailed:
        tell_neighbour(ControlMessage::Type::neighbour_failed, interface, action.address);
        break;
      case NeighbourAction::Kind::kForgotten:
        break;
    }
  }
  dataplane_.commit(retired);
}

IpAddress ControlLoop::source_for(const Interface& interface, IpAddress neighbour) const noexcept {
  return source_of(dataplane_.interfaces.interfaces(), interface, neighbour);
}

// Any worker can send a request: each has a queue on every port. They take turns.
void ControlLoop::ask(const Interface& interface, IpAddress address, Mac to, IpAddress source) {
  ControlMessage message{};
  message.type = ControlMessage::Type::ask_neighbour;
  message.ifindex = interface.ifindex;
  message.id = interface.id;
  message.address = address;
  message.mac = to;
  message.source = source;
  if (dataplane_.workers.empty()) return;
  dataplane_.workers[next_worker_].to_worker->push(message);
  next_worker_ = (next_worker_ + 1) % static_cast<uint32_t>(dataplane_.workers.size());
}

void ControlLoop::tell_neighbour(ControlMessage::Type type, const Interface& interface, IpAddress address) {
  ControlMessage message{};
  message.type = type;
  message.ifindex = interface.ifindex;
  message.id = interface.id;
  message.address = address;
  dataplane_.tell_workers(message);
}

void ControlLoop::run_timers() {
  const uint64_t now = monotonic_ns();
  if (now >= next_port_refresh_ns_) {
    next_port_refresh_ns_ = now + kPortRefreshNs;
    dataplane_.ports.refresh();
  }
  if (now < next_second_ns_) return;
  next_second_ns_ = now + kNsPerSecond;
  look_at_balance();
  const Totals totals = dataplane_.totals();
  DropRates& rates = dataplane_.drop_rates;
  for (size_t reason = 0; reason < kDropReasons; ++reason) {
    rates.per_second[reason] = totals.drops[reason] - rates.total[reason];
    rates.total[reason] = totals.drops[reason];
  }
  if (second_) second_();
}

}  // namespace mayfly
