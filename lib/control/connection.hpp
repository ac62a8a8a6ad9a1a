// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// One client of the control socket. Control thread only.
//
// States: before the hello only a hello is accepted; afterwards messages of the family it named. At most one
// operation runs at a time, and no further message is handled before it is done: answers come in the order of
// the requests.

#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "control/message_writer.hpp"
#include "control/operation.hpp"
#include "reclaim/retire.hpp"

namespace mayfly {

struct Dataplane;
struct Netns;

// What a bulk delete of listed names gathered so far.
struct ListedInterfaces {
  struct Unknown {
    std::string name;
  };
  std::vector<uint32_t> ifindexes;
  std::vector<uint64_t> ids;
  uint64_t unknown_count = 0;
  std::vector<Unknown> unknown;  // the first ten
};

// What kCmdLinkBulkItems gathered so far, as it came: rows of kBulkItem attributes.
struct ListedItems {
  std::vector<std::vector<std::byte>> parts;
  uint64_t count = 0;
  size_t bytes = 0;
};

class Connection {
 public:
  Connection(int fd, uint64_t number, Dataplane& dataplane);
  // Without a socket: it executes what it is given (execute), and its answers are read from its writer.
  Connection(Dataplane& dataplane, std::string description);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int fd() const noexcept { return fd_; }
  uint64_t number() const noexcept { return number_; }

  void on_readable();
  void on_writable() { send_queued(); }
  // Handles messages and runs the operation until the deadline; true while there is more to do right now.
  bool run(const Deadline& deadline);
  // For one without a socket: the next message, of that family, in that namespace. run() until idle().
  Status execute(std::span<const std::byte> message, uint32_t family, std::string_view netns);
  bool idle() const noexcept { return datagram_bytes_ == 0 && operation_ == nullptr; }

  // What epoll should watch for.
  bool wants_read() const noexcept;
  bool wants_write() const noexcept { return !writer_.empty(); }
  // The epoll events it is registered for.
  uint32_t watched() const noexcept { return watched_; }
  void set_watched(uint32_t events) noexcept { watched_ = events; }
  // Nothing left to do for it: the server may destroy it.
  bool finished() const noexcept { return closed_ && operation_ == nullptr; }
  void close(const char* why);

  // For handlers.
  Dataplane& dataplane() noexcept { return dataplane_; }
  MessageWriter& writer() noexcept { return writer_; }
  // Not deleted while a handler runs; an operation that outlives the handler holds a NetnsUse or ends with
  // it.
  Netns& netns() noexcept { return *netns_; }
  uint64_t netns_id() const noexcept { return netns_id_; }
  const std::string& netns_name() const noexcept { return netns_name_; }
  const std::string& client_name() const noexcept { return client_name_; }
  std::string describe() const;  // "client 7 (mayfly, pid 812, uid 0)"
  RetireList& retired() noexcept { return retired_; }
  ListedInterfaces& listed() noexcept { return listed_; }
  ListedItems& items() noexcept { return items_; }
  void begin_batch() noexcept { batch_open_ = true; }
  void end_batch();
  bool batch_open() const noexcept { return batch_open_; }
  void start(std::unique_ptr<Operation> operation) { operation_ = std::move(operation); }

 private:
  static constexpr size_t kBufferBytes = protocol::kMaxDatagram;

  bool handle_next(const Deadline& deadline);
  void handle(const nlmsghdr& message);
  // True when the request may start; otherwise the client waits (policy block) or was refused.
  bool admitted(const nlmsghdr& message, uint64_t objects);
  bool netns_alive() const noexcept;
  void end_operation_without_netns();
  Status hello(const nlmsghdr& message);
  void finish_datagram();
  void send_queued();

  int fd_;
  std::string description_;  // empty for a client's
  uint64_t number_;
  Dataplane& dataplane_;
  MessageWriter writer_;
  std::unique_ptr<Operation> operation_;

  alignas(8) std::vector<std::byte> buffer_;
  size_t datagram_bytes_ = 0;  // 0: none is being handled
  size_t offset_ = 0;

  uint32_t watched_ = 1;  // EPOLLIN
  bool hello_done_ = false;
  bool closed_ = false;
  uint32_t family_ = 0;
  Netns* netns_ = nullptr;  // as long as netns_alive()
  uint32_t netns_number_ = 0;
  uint64_t netns_id_ = 0;
  std::string netns_name_;
  nlmsghdr request_{};  // the one that is being handled, or whose operation runs
  std::string client_name_ = "unnamed";
  ucred peer_{};

  RetireList retired_;  // of the datagram, or of the open batch
  bool batch_open_ = false;
  ListedInterfaces listed_;
  ListedItems items_;
  uint64_t refusals_before_chain_ = 0;
  uint64_t blocked_since_ns_ = 0;  // 0: not stopped by the teardown backlog
};

}  // namespace mayfly
