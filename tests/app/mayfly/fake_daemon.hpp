// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// A daemon for tests of clients: greets, then answers each message as the test's script says.
//
// It listens in a directory of its own and serves one connection after the other's thread; messages of one
// datagram are answered in one datagram unless the script sends earlier. Everything it was sent is kept for
// the test to look at.

#include <libmnl/libmnl.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "control/client.hpp"

namespace mayfly::test {

class Reply {
 public:
  explicit Reply(int fd) : fd_(fd) {}

  // A message like the request's answer; fill() puts attributes.
  void message(const nlmsghdr& request, uint16_t type, uint16_t flags, std::string_view fixed,
               const std::function<void(RequestMessage&)>& fill = {}) {
    RequestMessage answer;
    answer.begin(type, flags, fixed.data(), fixed.size());
    answer.header()->nlmsg_flags = flags;
    answer.header()->nlmsg_seq = request.nlmsg_seq;
    if (fill) fill(answer);
    append(*answer.header());
  }
  void generic(const nlmsghdr& request, uint8_t command, const std::function<void(RequestMessage&)>& fill,
               uint16_t flags = 0) {
    const genlmsghdr fixed{.cmd = command, .version = 1, .reserved = 0};
    message(request, protocol::kGenericFamilyId, flags, {reinterpret_cast<const char*>(&fixed), sizeof fixed},
            fill);
  }
  // NLMSG_ERROR as the kernel writes it: capped, or with the request echoed whole; code 0 acknowledges.
  void acknowledge(const nlmsghdr& request, int code = 0, std::string_view text = {}, bool echo = false) {
    std::string body(sizeof(int), '\0');
    const int negative = -code;
    memcpy(body.data(), &negative, sizeof negative);
    body.append(reinterpret_cast<const char*>(&request), echo ? request.nlmsg_len : sizeof(nlmsghdr));
    body.resize(NLMSG_ALIGN(body.size()));
    const auto flags = static_cast<uint16_t>((echo ? 0 : NLM_F_CAPPED) | (text.empty() ? 0 : NLM_F_ACK_TLVS));
    message(request, NLMSG_ERROR, flags, body, [text](RequestMessage& answer) {
      if (!text.empty()) answer.put_string(NLMSGERR_ATTR_MSG, text);
    });
  }
  void done(const nlmsghdr& request, uint16_t flags = 0, int code = 0) {
    message(request, NLMSG_DONE, static_cast<uint16_t>(NLM_F_MULTI | flags),
            {reinterpret_cast<const char*>(&code), sizeof code});
  }
  void raw(std::string_view bytes) { bytes_.append(bytes); }

  // Seals the datagram.
  void send_now() {
    if (!bytes_.empty()) ::send(fd_, bytes_.data(), bytes_.size(), MSG_NOSIGNAL);
    bytes_.clear();
  }
  void close_connection() { closed_ = true; }
  bool closed() const { return closed_; }

 private:
  void append(const nlmsghdr& answer) {
    if (bytes_.size() + NLMSG_ALIGN(answer.nlmsg_len) > protocol::kMaxDatagram) send_now();
    bytes_.append(reinterpret_cast<const char*>(&answer), answer.nlmsg_len);
    bytes_.resize(NLMSG_ALIGN(bytes_.size()));
  }

  int fd_;
  std::string bytes_;
  bool closed_ = false;
};

class FakeDaemon {
 public:
  using Script = std::function<void(const nlmsghdr& request, Reply& reply)>;

  explicit FakeDaemon(Script script, Script hello = greet)
      : script_(std::move(script)), hello_(std::move(hello)) {
    char pattern[] = "/tmp/mayfly-test-XXXXXX";
    directory_ = mkdtemp(pattern);
    path_ = directory_ + "/mayfly.sock";
    listener_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    memcpy(address.sun_path, path_.data(), path_.size());
    bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    listen(listener_, 8);
    acceptor_ = std::thread([this] { accept_all(); });
  }
  ~FakeDaemon() {
    shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    for (std::thread& server : servers_) server.join();
    close(listener_);
    std::filesystem::remove_all(directory_);
  }

  const std::string& path() const { return path_; }
  // Whole messages, in the order they came, hellos excepted.
  std::vector<std::string> messages() {
    const std::lock_guard lock(mutex_);
    return messages_;
  }
  size_t datagrams() const { return datagrams_; }

  static void greet(const nlmsghdr& request, Reply& reply) {
    reply.message(request, protocol::kMsgHello, 0, {}, [](RequestMessage& answer) {
      answer.put_u32(protocol::kHelloVersion, protocol::kVersion);
      answer.put_string(protocol::kHelloBootId, "boot-1");
      answer.put_string(protocol::kHelloDaemon, "fake 1");
      answer.put_u32(protocol::kHelloPid, 42);
    });
  }
  // Does what every message asks: nothing, and says so when asked to.
  static void acknowledge_all(const nlmsghdr& request, Reply& reply) {
    if ((request.nlmsg_flags & NLM_F_ACK) != 0) reply.acknowledge(request);
  }

 private:
  void accept_all() {
    for (;;) {
      const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) return;
      servers_.emplace_back([this, fd] { serve(fd); });
    }
  }
  void serve(int fd) {
    std::vector<char> buffer(2 * protocol::kMaxDatagram);
    bool open = true;
    while (open) {
      const ssize_t got = recv(fd, buffer.data(), buffer.size(), 0);
      if (got <= 0) break;
      Reply reply(fd);
      int left = static_cast<int>(got);
      const auto* message = reinterpret_cast<const nlmsghdr*>(buffer.data());
      bool hello = false;
      for (; open && mnl_nlmsg_ok(message, left); message = mnl_nlmsg_next(message, &left)) {
        hello = message->nlmsg_type == protocol::kMsgHello;
        if (!hello) {
          const std::lock_guard lock(mutex_);
          messages_.emplace_back(reinterpret_cast<const char*>(message), message->nlmsg_len);
        }
        (hello ? hello_ : script_)(*message, reply);
        open = !reply.closed();
      }
      if (!hello) ++datagrams_;
      reply.send_now();
    }
    close(fd);
  }

  Script script_;
  Script hello_;
  std::string directory_;
  std::string path_;
  int listener_ = -1;
  std::thread acceptor_;
  std::vector<std::thread> servers_;
  std::mutex mutex_;
  std::vector<std::string> messages_;
  std::atomic<size_t> datagrams_{0};
};

}  // namespace mayfly::test
