// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Tells whoever started the daemon how it is doing, in the words of sd_notify(3): datagrams to
// $NOTIFY_SOCKET.
//
//   ServiceNotification service;                 // reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID
//   service.ready("2 ports, 1 worker");          // READY=1: packets flow and the control socket listens
//   service.alive("2 ports, 100,000 interfaces");  // once a second: WATCHDOG=1 if asked for, STATUS= if it
//   changed service.stopping();                          // STOPPING=1
//
// Without NOTIFY_SOCKET every call does nothing. No call waits: what the service manager has no room for is
// kept and sent by the next call, and nothing here can fail the daemon. Control thread only; one system call
// a datagram. libsystemd is not used: docs/dependencies.md says why.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace mayfly {

class ServiceNotification {
 public:
  ServiceNotification();
  ~ServiceNotification();
  ServiceNotification(const ServiceNotification&) = delete;
  ServiceNotification& operator=(const ServiceNotification&) = delete;

  void ready(std::string_view status);
  // The watchdog expects it at least every WATCHDOG_USEC; kLeastWatchdogUs fits a call a second.
  void alive(std::string_view status);
  void stopping();
  // The daemon ends with this error: the manager shows its text.
  void failed(const Error& error);

 private:
  static constexpr uint64_t kLeastWatchdogUs = 2'000'000;

  void open(std::string_view name);
  void read_watchdog();
  void send(std::string_view assignments);

  int fd_ = -1;
  bool watchdog_ = false;
  std::string status_;   // as the manager knows it
  std::string waiting_;  // for room
};

}  // namespace mayfly
