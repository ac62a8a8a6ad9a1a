// SPDX-License-Identifier: BSD-3-Clause
#include "control/connection.hpp"

#include <linux/genetlink.h>
#include <linux/rtnetlink.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "base/log.hpp"
#include "base/units.hpp"
#include "control/handlers.hpp"

namespace mayfly {
namespace {

using namespace protocol;

constexpr uint64_t kNoProgressNs = 10 * kNsPerSecond;
constexpr uint16_t kLongestClient = 64;

constexpr AttributeSpec kHelloSpecs[] = {
    {kHelloVersion, AttributeSpec::Type::u32, "hello version"},
    {kHelloFamily, AttributeSpec::Type::u32, "hello family"},
    {kHelloNetns, AttributeSpec::Type::string, "hello netns", kMostNetnsNameBytes},
    {kHelloClient, AttributeSpec::Type::string, "hello client", kLongestClient},
    {kHelloGroups, AttributeSpec::Type::u32, "hello groups"},
};

HandlerResult dispatch(Connection& connection, const Request& request, bool generic) {
  if (generic) {
    if (request.header.nlmsg_type == kGenericFamilyId) return handle_generic(connection, request);
    return fail(EOPNOTSUPP, "message type {}: on a generic connection only {} (mayfly) is known",
                request.header.nlmsg_type, kGenericFamilyId);
  }
  switch (request.header.nlmsg_type) {
    case RTM_NEWLINK:
    case RTM_DELLINK:
    case RTM_GETLINK:
    case RTM_SETLINK:
      return handle_link(connection, request);
    case RTM_NEWADDR:
    case RTM_DELADDR:
    case RTM_GETADDR:
      return handle_address(connection, request);
    case RTM_NEWROUTE:
    case RTM_DELROUTE:
    case RTM_GETROUTE:
      return handle_route(connection, request);
    case RTM_NEWNEIGH:
    case RTM_DELNEIGH:
    case RTM_GETNEIGH:
      return handle_neighbour(connection, request);
    default:
      return fail(EOPNOTSUPP,
                  "message type {}: accepted are the LINK, ADDR, ROUTE and NEIGH messages of rtnetlink",
                  request.header.nlmsg_type);
  }
}

}  // namespace

Connection::Connection(int fd, uint64_t number, Dataplane& dataplane)
    : fd_(fd), number_(number), dataplane_(dataplane), buffer_(kBufferBytes + sizeof(nlmsghdr)) {
  socklen_t length = sizeof peer_;
  getsockopt(fd_, SOL_SOCKET, SO_PEERCRED, &peer_, &length);
}

Connection::Connection(Dataplane& dataplane, std::string description)
    : fd_(-1),
      description_(std::move(description)),
      number_(0),
      dataplane_(dataplane),
      buffer_(kBufferBytes + sizeof(nlmsghdr)),
      hello_done_(true) {}

Connection::~Connection() {
  dataplane_.configuration.release(*this, retired_);
  dataplane_.commit(retired_);
  if (fd_ >= 0) ::close(fd_);
}

std::string Connection::describe() const {
  if (!description_.empty()) return description_;
  return fmt::format("client {} ({}, pid {}, uid {})", number_, client_name_, peer_.pid, peer_.uid);
}

void Connection::close(const char* why) {
  if (closed_) return;
  closed_ = true;
  log(LogLevel::debug, "control", "{}: {}", describe(), why);
  ::close(fd_);
  fd_ = -1;
  datagram_bytes_ = 0;
  dataplane_.link_events.leave(*this);
  if (operation_ != nullptr && operation_->cancel()) operation_ = nullptr;
  if (operation_ == nullptr) dataplane_.configuration.release(*this, retired_);
  dataplane_.commit(retired_);
}

Status Connection::execute(std::span<const std::byte> message, uint32_t family, std::string_view netns) {
  Netns* found = dataplane_.netnses.find(netns);
  if (found == nullptr) return fail(ENOENT, "netns '{}' does not exist", netns);
  if (message.size() > kBufferBytes)
    return fail(EMSGSIZE, "message: {} bytes, accepted at most {}", message.size(), kBufferBytes);
  netns_ = found;
  netns_number_ = found->number;
  netns_id_ = found->id;
  netns_name_ = netns;
  family_ = family;
  std::memcpy(buffer_.data(), message.data(), message.size());
  datagram_bytes_ = message.size();
  offset_ = 0;
  return {};
}

bool Connection::wants_read() const noexcept {
  return !closed_ && datagram_bytes_ == 0 && operation_ == nullptr && !writer_.over_high_water();
}

void Connection::on_readable() {
  if (!wants_read()) return;
  const ssize_t got = recv(fd_, buffer_.data(), kBufferBytes, MSG_DONTWAIT | MSG_TRUNC);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return close(got == 0 ? "disconnected" : "read error");
  if (static_cast<size_t>(got) <= kBufferBytes) {
    datagram_bytes_ = static_cast<size_t>(got);
    offset_ = 0;
    return;
  }
  const Error error{EMSGSIZE, fmt::format("datagram: {} bytes, accepted at most {}", got, kBufferBytes)};
  nlmsghdr header;
  std::memcpy(&header, buffer_.data(), sizeof header);
  writer_.acknowledge(header, &error);
  writer_.flush();
  send_queued();
}

bool Connection::run(const Deadline& deadline) {
  bool more = false;
  do {
    if (operation_ != nullptr && operation_->ends_with_netns() && !netns_alive())
      end_operation_without_netns();
    if (operation_ != nullptr) {
      if (!closed_ && writer_.over_high_water()) break;
      const Operation::Progress progress = operation_->step(deadline);
      if (progress == Operation::Progress::done) {
        operation_ = nullptr;
        // It was the last of its datagram: what came before it there has waited for this.
        if (datagram_bytes_ == 0) finish_datagram();
      }
      more = progress == Operation::Progress::more;
      if (progress == Operation::Progress::waiting) break;
    }
    if (closed_ || operation_ != nullptr) continue;
    more = datagram_bytes_ != 0 && !writer_.over_high_water() && handle_next(deadline);
  } while (more && !deadline.over());
  if (!closed_) {
    writer_.flush();
    send_queued();
  }
  return more && (closed_ || !writer_.over_high_water());
}

// False when the message has to wait (teardown backlog) or nothing is left of the datagram.
bool Connection::handle_next(const Deadline&) {
  const size_t left = datagram_bytes_ - offset_;
  auto* message = reinterpret_cast<nlmsghdr*>(buffer_.data() + offset_);
  if (left < sizeof(nlmsghdr) || message->nlmsg_len < sizeof(nlmsghdr) || message->nlmsg_len > left) {
    if (left >= sizeof(nlmsghdr)) {
      const Error error{EINVAL,
                        fmt::format("message length {}: the datagram holds {} more bytes, accepted {}..{}",
                                    message->nlmsg_len, left, sizeof(nlmsghdr), left)};
      writer_.acknowledge(*message, &error);
    } else if (left > 0) {
      const nlmsghdr nothing{};
      const Error error{EINVAL, fmt::format("{} bytes behind the last message: too few for another", left)};
      writer_.acknowledge(nothing, &error);
    }
    finish_datagram();
    return false;
  }
  const bool generic = family_ == NETLINK_GENERIC;
  if (hello_done_ && !admitted(*message, objects_created_by(*message, generic))) return false;
  offset_ += std::min<size_t>(NLMSG_ALIGN(message->nlmsg_len), left);
  handle(*message);
  if (offset_ == datagram_bytes_) finish_datagram();
  return datagram_bytes_ != 0 || operation_ != nullptr;
}

bool Connection::admitted(const nlmsghdr& message, uint64_t objects) {
  const Reclaim& reclaim = dataplane_.reclaim;
  if (objects == 0 || reclaim.admits(objects)) {
    blocked_since_ns_ = 0;
    return true;
  }
  // What this very request has gathered must not keep it waiting.
  dataplane_.commit(retired_);
  const uint64_t now = monotonic_ns();
  if (reclaim.config().block) {
    if (blocked_since_ns_ == 0) {
      blocked_since_ns_ = now;
      log(LogLevel::info, "control", "{} waits for teardown: {} objects in the backlog", describe(),
          reclaim.backlog().objects);
    }
    if (now - std::max(blocked_since_ns_, reclaim.last_progress_ns()) < kNoProgressNs) return false;
  }
  const ReclaimStatistics statistics = reclaim.statistics();
  std::string holder;
  if (!statistics.waiting.empty())
    holder = fmt::format("; {} is still held", statistics.waiting.front().object);
  const Error error{ENOBUFS,
                    fmt::format("{} objects: {} are still in teardown, accepted up to {} in all{}", objects,
                                reclaim.backlog().objects, reclaim.config().high_objects, holder)};
  blocked_since_ns_ = 0;
  writer_.acknowledge(message, &error);
  offset_ += NLMSG_ALIGN(message.nlmsg_len);
  if (offset_ >= datagram_bytes_) finish_datagram();
  return false;
}

void Connection::handle(const nlmsghdr& message) {
  if (!hello_done_) {
    auto greeted = hello(message);
    if (!greeted) {
      writer_.acknowledge(message, &greeted.error());
      writer_.flush();
      send_queued();
      close("refused at hello");
    }
    return;
  }
  if (message.nlmsg_type == NLMSG_NOOP || message.nlmsg_type == NLMSG_DONE) return;
  if ((message.nlmsg_flags & kFlagChained) == 0) {
    refusals_before_chain_ = writer_.refusals();
  } else if (writer_.refusals() != refusals_before_chain_) {
    const Error cancelled{ECANCELED, "not executed: a message before it in the chain was refused"};
    writer_.acknowledge(message, &cancelled);
    return;
  }
  if (!netns_alive()) {
    const Error gone{ENOENT, fmt::format("netns '{}' was deleted: this connection has none", netns_name_)};
    writer_.acknowledge(message, &gone);
    return;
  }
  request_ = message;
  const Request request{message,
                        {reinterpret_cast<const std::byte*>(&message) + NLMSG_HDRLEN,
                         message.nlmsg_len - static_cast<size_t>(NLMSG_HDRLEN)}};
  const HandlerResult handled = dispatch(*this, request, family_ == NETLINK_GENERIC);
  // Routes to what is retired leave the FIB first: commit() publishes before it submits.
  if (retired_.objects() >= Reclaim::kSubmitEvery) dataplane_.commit(retired_);
  if (!handled) {
    writer_.acknowledge(message, &handled.error());
    return;
  }
  if (*handled == Handled::acknowledge && (message.nlmsg_flags & NLM_F_ACK) != 0)
    writer_.acknowledge(message, nullptr);
}

Status Connection::hello(const nlmsghdr& message) {
  if (message.nlmsg_type != kMsgHello)
    return fail(EPROTO, "message type {}: a connection begins with a hello ({})", message.nlmsg_type,
                kMsgHello);
  auto attributes = RequestAttributes::parse(
      {reinterpret_cast<const std::byte*>(&message) + NLMSG_HDRLEN, message.nlmsg_len - size_t{NLMSG_HDRLEN}},
      kHelloSpecs);
  if (!attributes) return std::unexpected(attributes.error());
  const uint32_t version = attributes->u32(kHelloVersion).value_or(0);
  if (version != kVersion)
    return fail(EPROTONOSUPPORT, "protocol version {}: this daemon speaks {}", version, kVersion);
  family_ = attributes->u32(kHelloFamily).value_or(NETLINK_ROUTE);
  if (family_ != NETLINK_ROUTE && family_ != NETLINK_GENERIC)
    return fail(EPROTONOSUPPORT, "hello family {}: accepted {} (route), {} (generic)", family_, NETLINK_ROUTE,
                NETLINK_GENERIC);
  const std::string_view netns = attributes->string(kHelloNetns).value_or(kDefaultNetnsName);
  netns_ = dataplane_.netnses.find(netns);
  if (netns_ == nullptr) return fail(ENOENT, "netns '{}' does not exist", netns);
  netns_number_ = netns_->number;
  netns_id_ = netns_->id;
  netns_name_ = netns;
  const uint32_t groups = attributes->u32(kHelloGroups).value_or(0);
  if (groups != 0 && (groups != RTMGRP_LINK || family_ != NETLINK_ROUTE))
    return fail(EOPNOTSUPP, "hello groups {:#x}: accepted {:#x} (link), on a connection of family route",
                groups, unsigned{RTMGRP_LINK});
  const std::string_view client = attributes->string(kHelloClient).value_or("unnamed");
  // It stands in the log.
  if (std::ranges::any_of(client, [](unsigned char c) { return c < ' ' || c == 0x7f; }))
    return fail(EINVAL, "hello client: control characters are not accepted");
  client_name_ = client;
  hello_done_ = true;
  log(LogLevel::debug, "control", "{} connected", describe());
  writer_.begin(kMsgHello, 0, message.nlmsg_seq);
  writer_.put_u32(kHelloVersion, kVersion);
  writer_.put_string(kHelloBootId, dataplane_.boot_id);
  writer_.put_string(kHelloDaemon, dataplane_.daemon_name);
  writer_.put_u32(kHelloPid, static_cast<uint32_t>(getpid()));
  writer_.end();
  if (groups != 0) dataplane_.link_events.join(*this);
  return {};
}

// What a datagram deleted dies in one batch, unless it belongs to a larger one.
void Connection::finish_datagram() {
  datagram_bytes_ = 0;
  if (batch_open_ || operation_ != nullptr) return;
  dataplane_.commit(retired_);
}

void Connection::end_batch() {
  batch_open_ = false;
  dataplane_.commit(retired_);
}

bool Connection::netns_alive() const noexcept {
  return dataplane_.netnses.alive(netns_number_, netns_id_);
}

void Connection::end_operation_without_netns() {
  operation_ = nullptr;
  const Error gone{ENOENT, fmt::format("netns '{}' was deleted meanwhile", netns_name_)};
  writer_.acknowledge(request_, &gone);
  if (datagram_bytes_ == 0) finish_datagram();
}

void Connection::send_queued() {
  if (fd_ < 0) return;
  while (!writer_.empty()) {
    const auto datagram = writer_.front();
    const ssize_t sent = send(fd_, datagram.data(), datagram.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR && errno != ENOBUFS) close("write error");
      return;
    }
    writer_.pop_front();
  }
}

}  // namespace mayfly
