// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The control thread's event loop: clients, workers' messages, teardown's returns, ports, timers.
//
// Waits only in epoll, at most kTickNs: workers make no system call to wake it, so their rings are looked at
// every tick. Everything in a round is bounded, so that a client's request is never more than a few
// milliseconds away.

#include <atomic>
#include <cstdint>
#include <functional>

#include "control/dataplane.hpp"
#include "control/server.hpp"

namespace mayfly {

class ControlLoop {
 public:
  ControlLoop(Dataplane& dataplane, ControlServer& server);
  ~ControlLoop();
  ControlLoop(const ControlLoop&) = delete;
  ControlLoop& operator=(const ControlLoop&) = delete;

  // Until *stop. A signal handler may set it.
  void run(const std::atomic<bool>& stop);
  // One round; waits at most wait_ms for something to happen.
  void round(int wait_ms);
  // Called with what became of ports that were added or removed.
  void on_port_event(std::function<void(const PortEvent&)> visit) { port_event_ = std::move(visit); }
  // Called about once a second; bounded, and never waits.
  void every_second(std::function<void()> visit) { second_ = std::move(visit); }

 private:
  static constexpr uint64_t kCollectNs = 500 * kNsPerUs;
  static constexpr uint32_t kMessagesPerRound = 1024;  // of one worker
  static constexpr uint32_t kTimersPerRound = 1024;
  static constexpr uint64_t kBalanceLogNs = 60 * kNsPerSecond;
  static constexpr uint64_t kPortRefreshNs = 200 * kNsPerMs;
  static constexpr uint64_t kQuestionsNs = 1 * kNsPerMs;

  void handle_worker_messages();
  bool is_current(const WorkerMessage& message) const noexcept;
  void neighbour_wanted(const WorkerMessage& message, RetireList& retired);
  void address_conflict(const WorkerMessage& message, RetireList& retired);
  void neighbour_seen(const WorkerMessage& message, RetireList& retired);
  void run_neighbour_timers();
  void run_address_questions();
  void ask(const Interface& interface, IpAddress address, Mac to, IpAddress source);
  IpAddress source_for(const Interface& interface, IpAddress neighbour) const noexcept;
  void tell_neighbour(ControlMessage::Type type, const Interface& interface, IpAddress address);
  void run_timers();
  void tell_of(const PortEvent& event);
  void look_at_balance();
  bool trim();

  Dataplane& dataplane_;
  ControlServer& server_;
  int epoll_fd_;
  bool busy_ = false;
  uint64_t next_second_ns_ = 0;
  uint64_t next_port_refresh_ns_ = 0;
  uint64_t next_balance_log_ns_ = 0;
  uint64_t next_questions_ns_ = 0;
  uint32_t next_worker_ = 0;
  std::vector<NeighbourAction> actions_;
  std::vector<AddressQuestion> questions_;
  std::function<void(const PortEvent&)> port_event_;
  std::function<void()> second_;
};

}  // namespace mayfly
