// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Everything behind the control socket in one process without the EAL: tables, teardown and a Connection on a
// socket pair, for tests and fuzzing of messages. No worker runs and no device exists; one port interface is
// made by hand.

#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "base/check.hpp"
#include "control/connection.hpp"
#include "control/dataplane.hpp"

namespace mayfly {

class ControlWorld {
 public:
  explicit ControlWorld(TeardownConfig teardown = {}, uint32_t limit = 100'000,
                        uint32_t route_limit = RouteTable::kDefaultLimit)
      : neighbours_(blocks_), reclaim_(std::move(teardown)), routes_(route_limit), mempool_(1 << 12) {
    MAYFLY_CHECK(reclaim_.start().has_value(), "teardown did not start");
    interfaces_ = std::move(*InterfaceTable::create(limit, 1, blocks_, neighbours_));
    netnses_ = std::make_unique<NetnsTable>(blocks_, routes_, 1'000);
    addressing_ = std::make_unique<Addressing>(*interfaces_, neighbours_, blocks_);
    // The port thread is never started: no device is asked for.
    port_thread_ =
        std::make_unique<PortThread>(*reinterpret_cast<rte_mempool*>(mempool_.data()), std::vector<int>{});
    ports_ = std::move(*PortTable::create(*port_thread_, *interfaces_, &netnses_->initial()));
    dataplane_.reset(new Dataplane{.blocks = blocks_,
                                   .reclaim = reclaim_,
                                   .interfaces = *interfaces_,
                                   .routes = routes_,
                                   .neighbours = neighbours_,
                                   .addressing = *addressing_,
                                   .netnses = *netnses_,
                                   .ports = *ports_,
                                   .mbufs = nullptr,
                                   .workers = {{&statistics_, &to_control_, &from_control_}},
                                   .boot_id = "boot",
                                   .daemon_name = "test",
                                   .socket_path = "none",
                                   .drop_rates = {}});
    InterfaceSpec port;
    port.name = "port0";
    port.kind = kPortKind;
    port.netns = &netnses_->initial();
    port.port = 0;
    port.mtu = 1500;
    port.mac = 0x020000000001;
    port.up = true;
    port_ = *interfaces_->claim(port);
    interfaces_->commit(port_);
  }

  ~ControlWorld() {
    delete_all(true);
    MAYFLY_CHECK(reclaim_.stop(60 * kNsPerSecond), "something is still referenced");
    ports_->shutdown();
    ports_.reset();
    MAYFLY_CHECK(blocks_.blocks_in_use() == 0, "RCU blocks were leaked");
    netnses_.reset();
    MAYFLY_CHECK(interfaces_->in_use() == 0, "interface numbers were leaked");
  }

  Dataplane& dataplane() noexcept { return *dataplane_; }
  InterfaceTable& interfaces() noexcept { return *interfaces_; }
  PortThread& port_thread() noexcept { return *port_thread_; }
  uint32_t port() const noexcept { return port_; }
  MessageRing<WorkerMessage>& from_worker() noexcept { return to_control_; }

  // Deletes every route and interface (but the port, unless it is asked for) and waits for teardown.
  void delete_all(bool port_too) {
    RetireList retired;
    for (Netns* netns = netnses_->next(1); netns != nullptr; netns = netnses_->next(netns->number + 1))
      netns->dying = netns->doomed = true;
    Netns& initial = netnses_->initial();
    if (interfaces_->exists(port_) && interfaces_->interface(port_).netns.own() != &initial) {
      interfaces_->suspend(port_, true);
      addressing_->clear(port_, retired);
      interfaces_->move(port_, &initial, "port0");
      interfaces_->suspend(port_, false);
    }
    for (uint32_t at = interfaces_->next(1); at != kNoInterface; at = interfaces_->next(at + 1)) {
      if (at == port_) continue;
      while (interfaces_->first_child(at) != kNoInterface) at = interfaces_->first_child(at);
      addressing_->detach(at, retired);
      interfaces_->retire(at, retired);
      at = 0;
    }
    while (true) {
      const RouteCursor cursor(netnses_->initial().rib);
      if (cursor.current() == nullptr) break;
      const Route route = *cursor.current();
      if (!port_too && route.oif == port_) {
        addressing_->detach(port_, retired);
        continue;
      }
      RouteMatch match;
      match.address = route.address;
      match.length = route.length;
      match.type = route.type;
      match.metric = route.metric;
      MAYFLY_CHECK(netnses_->initial().rib.remove(match, nullptr).has_value(),
                   "a listed route cannot be removed");
    }
    if (port_too) {
      addressing_->detach(port_, retired);
      interfaces_->retire(port_, retired);
    }
    routes_.commit(retired);
    for (Netns* netns = netnses_->next(1); netns != nullptr; netns = netnses_->next(netns->number + 1)) {
      netnses_->unlink(*netns);
      netnses_->retire(*netns, retired);
    }
    dataplane_->commit(retired);
    settle();
  }

  void settle() {
    const uint32_t barrier = reclaim_.barrier();
    while (!reclaim_.barrier_passed(barrier)) reclaim_.collect(Deadline::never());
  }

 private:
  BlockPools blocks_;
  Neighbours neighbours_;
  Reclaim reclaim_;
  RouteTable routes_;
  std::vector<std::max_align_t> mempool_;
  std::unique_ptr<InterfaceTable> interfaces_;
  std::unique_ptr<NetnsTable> netnses_;
  std::unique_ptr<Addressing> addressing_;
  std::unique_ptr<PortThread> port_thread_;
  std::unique_ptr<PortTable> ports_;
  WorkerStatistics statistics_;
  MessageRing<WorkerMessage> to_control_;
  MessageRing<ControlMessage> from_control_;
  std::unique_ptr<Dataplane> dataplane_;
  uint32_t port_ = 0;
};

// The client's end of a connection to a world; the hello is done by the constructor.
class TestClient {
 public:
  TestClient(ControlWorld& world, uint32_t family, const char* netns = "default") : world_(world) {
    int ends[2];
    MAYFLY_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends) == 0, "no socket pair");
    fd_ = ends[0];
    connection_ = std::make_unique<Connection>(ends[1], 1, world.dataplane());
    alignas(8) char buffer[256];
    nlmsghdr* hello = mnl_nlmsg_put_header(buffer);
    hello->nlmsg_type = protocol::kMsgHello;
    mnl_attr_put_u32(hello, protocol::kHelloVersion, protocol::kVersion);
    mnl_attr_put_u32(hello, protocol::kHelloFamily, family);
    mnl_attr_put_strz(hello, protocol::kHelloNetns, netns);
    exchange({reinterpret_cast<const std::byte*>(buffer), hello->nlmsg_len});
  }
  ~TestClient() {
    if (fd_ >= 0) ::close(fd_);
    connection_->close("the test is over");
    while (!connection_->finished()) connection_->run(Deadline::never());
    world_.dataplane().commit(connection_->retired());
  }

  // Sends one datagram and runs the connection until nothing is left to do; returns what came back.
  std::vector<std::byte> exchange(std::span<const std::byte> datagram) {
    post(datagram);
    return finish();
  }
  // Runs the connection and teardown until it has nothing to do; returns what came back.
  std::vector<std::byte> finish() {
    std::vector<std::byte> answers;
    for (int idle = 0; idle < 3;) {
      const bool more = connection_->run(Deadline::after_ns(kNsPerMs));
      world_.dataplane().reclaim.collect(Deadline::never());
      idle = more || receive(answers) || !connection_->idle() ? 0 : idle + 1;
    }
    return answers;
  }
  // Sends one datagram; it is for the caller to run the connection.
  void post(std::span<const std::byte> datagram) {
    [[maybe_unused]] const ssize_t sent = send(fd_, datagram.data(), datagram.size(), MSG_NOSIGNAL);
    connection_->on_readable();
  }
  Connection& connection() noexcept { return *connection_; }

 private:
  bool receive(std::vector<std::byte>& answers) {
    std::byte buffer[protocol::kMaxDatagram];
    const ssize_t got = recv(fd_, buffer, sizeof buffer, MSG_DONTWAIT);
    if (got <= 0) return false;
    answers.insert(answers.end(), buffer, buffer + got);
    return true;
  }

  ControlWorld& world_;
  int fd_ = -1;
  std::unique_ptr<Connection> connection_;
};

}  // namespace mayfly
