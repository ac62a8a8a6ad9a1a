// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The control socket: accepts clients, feeds their messages to the handlers, sends what they answer.
//
// Runs in the control thread's event loop and never waits. One datagram is read from a client at a time; the
// next one only when its messages are handled and its answers are on their way, so a client that sends
// without reading stops itself and nobody else. Long work is an Operation: it gets a slice (kSliceNs) per
// round of the loop, and every client with something to do gets one slice before anyone gets a second.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "control/connection.hpp"
#include "control/dataplane.hpp"

namespace mayfly {

struct SocketSettings {
  std::string path;
  std::string group;  // empty: left as it is
  uint32_t mode = 0660;
};

class ControlServer {
 public:
  ControlServer(Dataplane& dataplane, SocketSettings settings);
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  // Creates the socket (and its directory). EADDRINUSE when a daemon answers there; a socket nobody answers
  // on is replaced.
  Status open();
  // Closes all connections and removes the socket. Operations are cancelled.
  void close();

  // To be added to the loop's epoll set; on_ready() when it is readable.
  int epoll_fd() const noexcept { return epoll_fd_; }
  void on_ready();
  // One slice for every connection that has work; true while some still has.
  bool run_slices();
  size_t clients() const noexcept { return connections_.size(); }

 private:
  static constexpr uint64_t kSliceNs = 500 * kNsPerUs;
  static constexpr size_t kMostClients = 1024;

  void accept_clients();
  void watch(Connection& connection);
  void reap();

  Dataplane& dataplane_;
  SocketSettings settings_;
  int listen_fd_ = -1;
  int epoll_fd_ = -1;
  uint64_t next_number_ = 1;
  std::vector<std::unique_ptr<Connection>> connections_;
};

}  // namespace mayfly
