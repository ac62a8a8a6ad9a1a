// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// A blocking client of the control socket, for the CLI, tests and measuring programs.
//
//   auto client = ControlClient::connect({.family = NETLINK_ROUTE, .client_name = "mayfly"});
//   RequestMessage message;
//   message.begin_route(RTM_DELLINK, 0, ifinfomsg{});
//   message.put_string(IFLA_IFNAME, "sub0");
//   Status done = client->request(message);            // the daemon's refusal, with its text, or nothing
//
// Two ways to talk:
//   request()  one message, its answers, its acknowledgement (or a dump until NLMSG_DONE);
//   enqueue()  many messages that are only acknowledged: packed into datagrams of up to kMaxDatagram bytes
//   and sent
//              as they fill. The daemon executes the messages of a connection in order, so only the last of a
//              datagram asks for an acknowledgement: it covers the earlier ones, whose refusals were sent
//              before.
// While it sends, the client reads: a few hundred unread answers would fill the socket and stop the daemon.
//
// One thread, one object; nothing is shared. Failures of the connection are Errors too (ECONNRESET when the
// daemon went away); after one, the object is of no further use.

#include <linux/netlink.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "control/protocol.hpp"

namespace mayfly {

// One netlink message under construction. Its buffer is reused from one begin to the next: no allocation.
class RequestMessage {
 public:
  RequestMessage();

  // Starts anew. NLM_F_REQUEST is always set; the sequence number is given by the client that sends it.
  void begin(uint16_t type, uint16_t flags, const void* fixed, size_t size);
  template <class Fixed>
  void begin_route(uint16_t type, uint16_t flags, const Fixed& fixed) {
    begin(type, flags, &fixed, sizeof fixed);
  }
  void begin_generic(protocol::Command command, uint16_t flags = 0);
  void clear() noexcept;
  // A copy of a whole message.
  void assign(const nlmsghdr& message);

  void put(uint16_t attribute, const void* data, size_t size);
  void put_u8(uint16_t attribute, uint8_t value) { put(attribute, &value, sizeof value); }
  void put_u16(uint16_t attribute, uint16_t value) { put(attribute, &value, sizeof value); }
  void put_u32(uint16_t attribute, uint32_t value) { put(attribute, &value, sizeof value); }
  void put_u64(uint16_t attribute, uint64_t value) { put(attribute, &value, sizeof value); }
  void put_flag(uint16_t attribute) { put(attribute, nullptr, 0); }
  void put_string(uint16_t attribute, std::string_view text);  // adds the NUL
  // A fixed structure inside a nested attribute, before its attributes; the size is a multiple of four.
  void put_raw(const void* data, size_t size);

  // Everything put until the scope ends goes inside the nested attribute.
  class Nest {
   public:
    Nest(RequestMessage& message, uint16_t attribute);
    ~Nest();
    Nest(const Nest&) = delete;
    Nest& operator=(const Nest&) = delete;

   private:
    RequestMessage& message_;
    nlattr* start_;
  };

  bool empty() const noexcept { return header()->nlmsg_len == 0; }
  size_t size() const noexcept { return header()->nlmsg_len; }
  // Room left for attributes, their headers included.
  size_t room() const noexcept { return protocol::kMaxDatagram - size(); }
  // Something did not fit: the message is not what was meant, and the client refuses to send it (E2BIG).
  bool overflown() const noexcept { return overflown_; }
  nlmsghdr* header() noexcept { return reinterpret_cast<nlmsghdr*>(buffer_.get()); }
  const nlmsghdr* header() const noexcept { return reinterpret_cast<const nlmsghdr*>(buffer_.get()); }

 private:
  std::unique_ptr<char[]> buffer_;
  bool overflown_ = false;
};

// The attributes of an answer, by number; malformed ones end the row. Valid as long as the message is.
class Attributes {
 public:
  Attributes(const nlmsghdr& message, size_t fixed_size);
  explicit Attributes(const nlattr& nest);

  bool has(uint16_t attribute) const noexcept { return find(attribute) != nullptr; }
  // An integer of 1, 2, 4 or 8 bytes in host order.
  std::optional<uint64_t> number(uint16_t attribute) const noexcept;
  uint64_t number_or(uint16_t attribute, uint64_t absent) const noexcept {
    return number(attribute).value_or(absent);
  }
  std::string_view string(uint16_t attribute) const noexcept;         // empty when absent
  std::span<const uint8_t> bytes(uint16_t attribute) const noexcept;  // empty when absent
  std::optional<Attributes> nested(uint16_t attribute) const;
  // Every occurrence of a repeated nested attribute, in order.
  void each(uint16_t attribute, const std::function<void(const Attributes&)>& visit) const;

 private:
  static constexpr size_t kLow = 80;     // the kernel's attributes and the generic family's
  static constexpr size_t kVendor = 32;  // those at kAttrVendor and above

  Attributes(const void* start, size_t size, int);
  const nlattr* find(uint16_t attribute) const noexcept;
  const nlattr* first() const noexcept;
  const nlattr* after(const nlattr* attribute) const noexcept;
  static size_t index_of(uint16_t attribute) noexcept;

  const void* start_;
  size_t size_;
  std::array<const nlattr*, kLow + kVendor> by_number_{};
};

class ControlClient {
 public:
  struct Options {
    std::string socket = {};  // empty: MAYFLY_SOCKET, else protocol::kDefaultSocket
    uint32_t family = NETLINK_ROUTE;
    std::string netns = {};  // empty: the daemon's default
    std::string client_name = "mayfly";
    uint32_t groups = 0;  // RTMGRP_LINK: events, for listen()
  };
  struct Daemon {
    uint32_t version = 0;
    uint32_t pid = 0;
    std::string boot_id;
    std::string name;
  };
  using Answer = std::function<void(const nlmsghdr&)>;
  using Refused = std::function<void(uint32_t sequence, const Error& error)>;

  // Connects and exchanges hellos. ENOENT and ECONNREFUSED (no daemon), EACCES (names the group), EPROTO
  // (version) come with a text that says what to do.
  static Result<ControlClient> connect(const Options& options);
  // The same on a connected SOCK_SEQPACKET socket, which it closes when it fails or is destroyed.
  static Result<ControlClient> adopt(int fd, const Options& options);

  ControlClient(ControlClient&& other) noexcept;
  ControlClient& operator=(ControlClient&& other) noexcept;
  ~ControlClient();

  const Daemon& daemon() const noexcept { return daemon_; }
  int fd() const noexcept { return fd_; }

  // Sends the message, hands each answer to on_answer, returns when it is acknowledged, refused or done. What
  // was enqueued before is sent first.
  Status request(RequestMessage& message, const Answer& on_answer = {});
  // Hands out events (sequence number 0) until the connection ends, and says why it did. on_lost: some were
  // lost.
  Status listen(const Answer& on_event, const std::function<void(const Error&)>& on_lost);
  // Whether the set changed during the last dump (NLM_F_DUMP_INTR).
  bool dump_interrupted() const noexcept { return dump_interrupted_; }
  // Texts that came with acknowledgements of success since the last call.
  std::vector<std::string> take_warnings() { return std::exchange(warnings_, {}); }

  // The sequence number it was given. Fails only as the connection fails; refusals go to on_refused.
  Result<uint32_t> enqueue(const RequestMessage& message, uint16_t extra_flags = 0);
  void on_refused(Refused refused) { refused_ = std::move(refused); }
  // Sends what is gathered.
  Status flush();
  // Forgets what is gathered but not sent.
  void discard() noexcept;
  // Sends what is gathered and waits until everything is answered.
  Status drain();
  // Everything up to this sequence number is answered.
  uint32_t answered() const noexcept { return answered_; }

 private:
  explicit ControlClient(int fd);
  Status greet(const Options& options);
  Status send_datagram(const void* data, size_t size);
  Status receive(bool wait);
  Status wait_readable();
  void handle(const nlmsghdr& message);
  void handle_error(const nlmsghdr& message);
  void handle_done(const nlmsghdr& message);
  std::unexpected<Error> connection_lost(int code) const;

  int fd_ = -1;
  Daemon daemon_;
  std::unique_ptr<char[]> received_;
  std::vector<char> gathered_;
  size_t last_gathered_ = 0;  // offset of the last message in gathered_
  uint32_t sequence_ = 0;     // last one given
  uint32_t sent_ = 0;         // last one sent
  uint32_t answered_ = 0;
  bool reset_ = false;  // the daemon closed with requests unread

  // The request being waited for.
  uint32_t waited_ = 0;
  bool waiting_ = false;
  const Answer* on_answer_ = nullptr;
  const Answer* on_event_ = nullptr;
  const std::function<void(const Error&)>* on_lost_ = nullptr;
  Status outcome_;

  Refused refused_;
  std::vector<std::string> warnings_;
  bool dump_interrupted_ = false;
};

}  // namespace mayfly
