// SPDX-License-Identifier: BSD-3-Clause
#include "control/client.hpp"

#include <grp.h>
#include <libmnl/libmnl.h>
#include <linux/genetlink.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <utility>

namespace mayfly {
namespace {

constexpr size_t kReceiveBuffer = 256 * 1024;
constexpr int kSocketBuffer = 1 << 20;  // asked for; the system's maximum applies

std::string strerror_of(int code) {
  return std::system_category().message(code);
}

std::string socket_path(const std::string& asked) {
  if (!asked.empty()) return asked;
  const char* from_environment = getenv("MAYFLY_SOCKET");
  return from_environment != nullptr && *from_environment != '\0' ? from_environment
                                                                  : protocol::kDefaultSocket;
}

std::string group_of(const std::string& path) {
  struct stat file {};
  if (stat(path.c_str(), &file) != 0) return {};
  const group* entry = getgrgid(file.st_gid);
  return entry != nullptr ? entry->gr_name : fmt::format("{}", file.st_gid);
}

std::unexpected<Error> cannot_connect(const std::string& path, int code) {
  if (code == ENOENT || code == ECONNREFUSED)
    return fail(code,
                "mayflyd is not running: {} {} (start it, say 'mayflyd --port port0=net_null0', or name its "
                "socket with --socket PATH or MAYFLY_SOCKET)",
                path, code == ENOENT ? "does not exist" : "has nobody behind it");
  if (code == EACCES) {
    const std::string group = group_of(path);
    if (group.empty()) return fail(code, "no permission to reach {}", path);
    return fail(
        code,
        "no permission to use {}: it is open to group '{}' ('usermod -aG {} USER' as root, then log in anew)",
        path, group, group);
  }
  return fail(code, "{}: {}", path, strerror_of(code));
}

}  // namespace

// ---------------------------------------------------------------------------------------------------------------
// RequestMessage

RequestMessage::RequestMessage() : buffer_(new char[protocol::kMaxDatagram]) {
  clear();
}

void RequestMessage::clear() noexcept {
  header()->nlmsg_len = 0;
  overflown_ = false;
}

void RequestMessage::assign(const nlmsghdr& message) {
  overflown_ = message.nlmsg_len > protocol::kMaxDatagram;
  if (!overflown_) memcpy(buffer_.get(), &message, message.nlmsg_len);
}

void RequestMessage::begin(uint16_t type, uint16_t flags, const void* fixed, size_t size) {
  overflown_ = false;
  nlmsghdr* message = mnl_nlmsg_put_header(buffer_.get());
  message->nlmsg_type = type;
  message->nlmsg_flags = static_cast<uint16_t>(NLM_F_REQUEST | flags);
  if (size > 0) memcpy(mnl_nlmsg_put_extra_header(message, size), fixed, size);
}

void RequestMessage::begin_generic(protocol::Command command, uint16_t flags) {
  const genlmsghdr generic{.cmd = command, .version = protocol::kGenericVersion, .reserved = 0};
  begin(protocol::kGenericFamilyId, flags, &generic, sizeof generic);
}

void RequestMessage::put(uint16_t attribute, const void* data, size_t size) {
  static const char nothing = 0;
  if (!mnl_attr_put_check(header(), protocol::kMaxDatagram, attribute, size,
                          data != nullptr ? data : &nothing))
    overflown_ = true;
}

void RequestMessage::put_raw(const void* data, size_t size) {
  if (size > room()) {
    overflown_ = true;
    return;
  }
  memcpy(mnl_nlmsg_get_payload_tail(header()), data, size);
  header()->nlmsg_len += static_cast<uint32_t>(size);
}

void RequestMessage::put_string(uint16_t attribute, std::string_view text) {
  if (text.size() + 1 + MNL_ATTR_HDRLEN + MNL_ALIGNTO > room()) {
    overflown_ = true;
    return;
  }
  auto* start = static_cast<nlattr*>(mnl_nlmsg_get_payload_tail(header()));
  const size_t length = MNL_ATTR_HDRLEN + text.size() + 1;
  char* const value = reinterpret_cast<char*>(start) + MNL_ATTR_HDRLEN;
  start->nla_type = attribute;
  start->nla_len = static_cast<uint16_t>(length);
  memcpy(value, text.data(), text.size());
  memset(value + text.size(), 0, MNL_ALIGN(length) - length + 1);
  header()->nlmsg_len += static_cast<uint32_t>(MNL_ALIGN(length));
}

RequestMessage::Nest::Nest(RequestMessage& message, uint16_t attribute)
    : message_(message),
      start_(mnl_attr_nest_start_check(message.header(), protocol::kMaxDatagram, attribute)) {
  if (start_ == nullptr) message_.overflown_ = true;
}

RequestMessage::Nest::~Nest() {
  if (start_ != nullptr) mnl_attr_nest_end(message_.header(), start_);
}

// ---------------------------------------------------------------------------------------------------------------
// Attributes

Attributes::Attributes(const nlmsghdr& message, size_t fixed_size)
    : Attributes(mnl_nlmsg_get_payload_offset(&message, fixed_size),
                 mnl_nlmsg_get_payload_len(&message) >= MNL_ALIGN(fixed_size)
                     ? mnl_nlmsg_get_payload_len(&message) - MNL_ALIGN(fixed_size)
                     : 0,
                 0) {}

Attributes::Attributes(const nlattr& nest)
    : Attributes(mnl_attr_get_payload(&nest), mnl_attr_get_payload_len(&nest), 0) {}

Attributes::Attributes(const void* start, size_t size, int) : start_(start), size_(size) {
  for (const nlattr* at = first(); at != nullptr; at = after(at)) {
    const size_t index = index_of(mnl_attr_get_type(at));
    if (index < by_number_.size()) by_number_[index] = at;
  }
}

const nlattr* Attributes::first() const noexcept {
  const auto* start = static_cast<const nlattr*>(start_);
  return mnl_attr_ok(start, static_cast<int>(size_)) ? start : nullptr;
}

const nlattr* Attributes::after(const nlattr* attribute) const noexcept {
  const nlattr* next = mnl_attr_next(attribute);
  const auto gone = reinterpret_cast<const char*>(next) - static_cast<const char*>(start_);
  return mnl_attr_ok(next, static_cast<int>(size_) - static_cast<int>(gone)) ? next : nullptr;
}

size_t Attributes::index_of(uint16_t attribute) noexcept {
  if (attribute < kLow) return attribute;
  if (attribute >= protocol::kAttrVendor && attribute < protocol::kAttrVendor + kVendor)
    return kLow + attribute - protocol::kAttrVendor;
  return SIZE_MAX;
}

const nlattr* Attributes::find(uint16_t attribute) const noexcept {
  const size_t index = index_of(attribute);
  return index < by_number_.size() ? by_number_[index] : nullptr;
}

std::optional<uint64_t> Attributes::number(uint16_t attribute) const noexcept {
  const nlattr* found = find(attribute);
  if (found == nullptr) return std::nullopt;
  const void* value = mnl_attr_get_payload(found);
  switch (mnl_attr_get_payload_len(found)) {
    case 1:
      return *static_cast<const uint8_t*>(value);
    case 2:
      return *static_cast<const uint16_t*>(value);
    case 4:
      return *static_cast<const uint32_t*>(value);
    case 8: {
      uint64_t wide = 0;  // netlink aligns to 4 only
      memcpy(&wide, value, sizeof wide);
      return wide;
    }
    default:
      return std::nullopt;
  }
}

std::string_view Attributes::string(uint16_t attribute) const noexcept {
  const std::span<const uint8_t> value = bytes(attribute);
  const auto* text = reinterpret_cast<const char*>(value.data());
  return {text, value.empty() ? 0 : strnlen(text, value.size())};
}

std::span<const uint8_t> Attributes::bytes(uint16_t attribute) const noexcept {
  const nlattr* found = find(attribute);
  if (found == nullptr) return {};
  return {static_cast<const uint8_t*>(mnl_attr_get_payload(found)), mnl_attr_get_payload_len(found)};
}

std::optional<Attributes> Attributes::nested(uint16_t attribute) const {
  const nlattr* found = find(attribute);
  if (found == nullptr) return std::nullopt;
  return Attributes(*found);
}

void Attributes::each(uint16_t attribute, const std::function<void(const Attributes&)>& visit) const {
  for (const nlattr* at = first(); at != nullptr; at = after(at))
    if (mnl_attr_get_type(at) == attribute) visit(Attributes(*at));
}

// ---------------------------------------------------------------------------------------------------------------
// ControlClient

ControlClient::ControlClient(int fd) : fd_(fd), received_(new char[kReceiveBuffer]) {
  gathered_.reserve(protocol::kMaxDatagram);
}

ControlClient::ControlClient(ControlClient&& other) noexcept {
  *this = std::move(other);
}

ControlClient& ControlClient::operator=(ControlClient&& other) noexcept {
  if (this == &other) return *this;
  if (fd_ >= 0) close(fd_);
  fd_ = std::exchange(other.fd_, -1);
  daemon_ = std::move(other.daemon_);
  received_ = std::move(other.received_);
  gathered_ = std::move(other.gathered_);
  last_gathered_ = other.last_gathered_;
  sequence_ = other.sequence_;
  sent_ = other.sent_;
  answered_ = other.answered_;
  reset_ = other.reset_;
  refused_ = std::move(other.refused_);
  warnings_ = std::move(other.warnings_);
  return *this;
}

ControlClient::~ControlClient() {
  if (fd_ >= 0) close(fd_);
}

Result<ControlClient> ControlClient::connect(const Options& options) {
  const std::string path = socket_path(options.socket);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return fail(ENAMETOOLONG, "socket '{}': {} bytes, accepted 1..{}", path, path.size(),
                sizeof address.sun_path - 1);
  memcpy(address.sun_path, path.data(), path.size());
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd < 0) return fail(errno, "socket: {}", strerror_of(errno));
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const int code = errno;
    close(fd);
    return cannot_connect(path, code);
  }
  return adopt(fd, options);
}

Result<ControlClient> ControlClient::adopt(int fd, const Options& options) {
  setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kSocketBuffer, sizeof kSocketBuffer);
  setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &kSocketBuffer, sizeof kSocketBuffer);
  ControlClient client(fd);
  if (Status greeted = client.greet(options); !greeted) return std::unexpected(greeted.error());
  return client;
}

Status ControlClient::greet(const Options& options) {
  RequestMessage hello;
  hello.begin(protocol::kMsgHello, 0, nullptr, 0);
  hello.put_u32(protocol::kHelloVersion, protocol::kVersion);
  hello.put_u32(protocol::kHelloFamily, options.family);
  if (!options.netns.empty()) hello.put_string(protocol::kHelloNetns, options.netns);
  if (!options.client_name.empty()) hello.put_string(protocol::kHelloClient, options.client_name);
  if (options.groups != 0) hello.put_u32(protocol::kHelloGroups, options.groups);
  Status done = request(hello, [this](const nlmsghdr& answer) {
    const Attributes attributes(answer, 0);
    daemon_.version = static_cast<uint32_t>(attributes.number_or(protocol::kHelloVersion, 0));
    daemon_.pid = static_cast<uint32_t>(attributes.number_or(protocol::kHelloPid, 0));
    daemon_.boot_id = attributes.string(protocol::kHelloBootId);
    daemon_.name = attributes.string(protocol::kHelloDaemon);
  });
  if (!done) return done;
  if (daemon_.version != protocol::kVersion)
    return fail(EPROTO,
                "the daemon ({}) speaks protocol version {}, this program {}: use those of one release",
                daemon_.name.empty() ? "unnamed" : daemon_.name, daemon_.version, protocol::kVersion);
  return {};
}

Status ControlClient::request(RequestMessage& message, const Answer& on_answer) {
  nlmsghdr* header = message.header();
  if (message.overflown()) return fail(E2BIG, "the request is longer than {} bytes", protocol::kMaxDatagram);
  if ((header->nlmsg_flags & NLM_F_DUMP) != NLM_F_DUMP && header->nlmsg_type != protocol::kMsgHello)
    header->nlmsg_flags |= NLM_F_ACK;
  if (Status sent = flush(); !sent) return sent;
  waited_ = ++sequence_;
  waiting_ = true;
  on_answer_ = &on_answer;
  outcome_ = {};
  dump_interrupted_ = false;
  header->nlmsg_seq = waited_;
  Status going = send_datagram(header, header->nlmsg_len);
  sent_ = waited_;
  while (going && waiting_) going = receive(true);
  on_answer_ = nullptr;
  waiting_ = false;
  return going ? std::move(outcome_) : going;
}

Status ControlClient::listen(const Answer& on_event, const std::function<void(const Error&)>& on_lost) {
  on_event_ = &on_event;
  on_lost_ = &on_lost;
  Status going;
  while (going) going = receive(true);
  on_event_ = nullptr;
  on_lost_ = nullptr;
  return going;
}

Result<uint32_t> ControlClient::enqueue(const RequestMessage& message, uint16_t extra_flags) {
  if (message.overflown()) return fail(E2BIG, "the request is longer than {} bytes", protocol::kMaxDatagram);
  if (gathered_.size() + NLMSG_ALIGN(message.size()) > protocol::kMaxDatagram)
    if (Status sent = flush(); !sent) return std::unexpected(sent.error());
  last_gathered_ = gathered_.size();
  const char* const bytes = reinterpret_cast<const char*>(message.header());
  gathered_.insert(gathered_.end(), bytes, bytes + message.size());
  gathered_.resize(NLMSG_ALIGN(gathered_.size()));
  auto* copy = reinterpret_cast<nlmsghdr*>(gathered_.data() + last_gathered_);
  copy->nlmsg_flags |= extra_flags;
  copy->nlmsg_seq = ++sequence_;
  return sequence_;
}

Status ControlClient::flush() {
  if (gathered_.empty()) return {};
  reinterpret_cast<nlmsghdr*>(gathered_.data() + last_gathered_)->nlmsg_flags |= NLM_F_ACK;
  sent_ = sequence_;
  Status sent = send_datagram(gathered_.data(), gathered_.size());
  gathered_.clear();
  return sent;
}

void ControlClient::discard() noexcept {
  gathered_.clear();
  sequence_ = sent_;
}

Status ControlClient::drain() {
  Status going = flush();
  while (going && answered_ < sent_) going = receive(true);
  return going;
}

Status ControlClient::send_datagram(const void* data, size_t size) {
  for (;;) {
    if (send(fd_, data, size, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return {};
    const int code = errno;
    if (code == EPIPE || code == ECONNRESET) {
      // What the daemon said before it closed may explain why.
      Status going;
      while (going) going = receive(false);
      return outcome_ ? going : outcome_;
    }
    if (code != EAGAIN && code != EINTR && code != ENOBUFS)
      return fail(code, "cannot send to the daemon: {}", strerror_of(code));
    pollfd both{.fd = fd_, .events = POLLIN | POLLOUT, .revents = 0};
    if (poll(&both, 1, -1) > 0 && (both.revents & POLLIN) != 0)
      if (Status going = receive(false); !going) return going;
  }
}

// Takes one datagram apart. Without wait, ok when none is there.
Status ControlClient::receive(bool wait) {
  iovec part{.iov_base = received_.get(), .iov_len = kReceiveBuffer};
  msghdr datagram{};
  datagram.msg_iov = &part;
  datagram.msg_iovlen = 1;
  const ssize_t got = recvmsg(fd_, &datagram, wait ? 0 : MSG_DONTWAIT);
  if (got < 0) {
    if (errno == EINTR || (errno == EAGAIN && !wait)) return {};
    if (errno == EAGAIN) return wait_readable();
    // Told once and first, when the daemon closed with requests unread; what it had answered can still be
    // read.
    if (errno == ECONNRESET && !std::exchange(reset_, true)) return {};
    return connection_lost(errno);
  }
  if (got == 0) return connection_lost(ECONNRESET);
  if ((datagram.msg_flags & MSG_TRUNC) != 0)
    return fail(EMSGSIZE, "the daemon sent a datagram of over {} bytes", kReceiveBuffer);
  int left = static_cast<int>(got);
  const auto* message = reinterpret_cast<const nlmsghdr*>(received_.get());
  for (; mnl_nlmsg_ok(message, left); message = mnl_nlmsg_next(message, &left)) handle(*message);
  if (left > 0) return fail(EPROTO, "the daemon sent a damaged message ({} bytes left over)", left);
  return {};
}

// A socket that was made non-blocking by its owner.
Status ControlClient::wait_readable() {
  pollfd readable{.fd = fd_, .events = POLLIN, .revents = 0};
  if (poll(&readable, 1, -1) < 0 && errno != EINTR) return fail(errno, "poll: {}", strerror_of(errno));
  return {};
}

void ControlClient::handle(const nlmsghdr& message) {
  switch (message.nlmsg_type) {
    case NLMSG_NOOP:
      return;
    case NLMSG_ERROR:
      return handle_error(message);
    case NLMSG_DONE:
      return handle_done(message);
    default:
      break;
  }
  if (message.nlmsg_seq == 0 && on_event_ != nullptr) return (*on_event_)(message);
  if (!waiting_ || message.nlmsg_seq != waited_) return;
  if ((message.nlmsg_flags & NLM_F_DUMP_INTR) != 0) dump_interrupted_ = true;
  if (on_answer_ != nullptr && *on_answer_) (*on_answer_)(message);
  if (message.nlmsg_type == protocol::kMsgHello) {
    waiting_ = false;
    answered_ = message.nlmsg_seq;
  }
}

namespace {

// The text of an extended acknowledgement, empty when there is none.
std::string extended_text(const nlmsghdr& message, size_t offset) {
  if ((message.nlmsg_flags & NLM_F_ACK_TLVS) == 0) return {};
  if (mnl_nlmsg_get_payload_len(&message) <= offset) return {};
  return std::string(Attributes(message, offset).string(NLMSGERR_ATTR_MSG));
}

Error refusal(int code, std::string text) {
  return Error{code, text.empty() ? strerror_of(code) : std::move(text)};
}

}  // namespace

void ControlClient::handle_error(const nlmsghdr& message) {
  if (mnl_nlmsg_get_payload_len(&message) < sizeof(nlmsgerr)) return;
  const auto* answer = static_cast<const nlmsgerr*>(mnl_nlmsg_get_payload(&message));
  const bool capped = (message.nlmsg_flags & NLM_F_CAPPED) != 0;
  std::string text =
      extended_text(message, sizeof(int) + (capped ? sizeof(nlmsghdr) : MNL_ALIGN(answer->msg.nlmsg_len)));
  if (message.nlmsg_seq == 0 && on_lost_ != nullptr)
    return (*on_lost_)(refusal(-answer->error, std::move(text)));
  if (message.nlmsg_seq > answered_) answered_ = message.nlmsg_seq;
  const bool awaited = waiting_ && message.nlmsg_seq == waited_;
  if (answer->error == 0) {
    if (!text.empty()) warnings_.push_back(std::move(text));
  } else if (awaited) {
    outcome_ = std::unexpected(refusal(-answer->error, std::move(text)));
  } else if (refused_) {
    refused_(message.nlmsg_seq, refusal(-answer->error, std::move(text)));
  }
  if (awaited) waiting_ = false;
}

void ControlClient::handle_done(const nlmsghdr& message) {
  if (!waiting_ || message.nlmsg_seq != waited_) return;
  if ((message.nlmsg_flags & NLM_F_DUMP_INTR) != 0) dump_interrupted_ = true;
  int code = 0;
  if (mnl_nlmsg_get_payload_len(&message) >= sizeof code)
    memcpy(&code, mnl_nlmsg_get_payload(&message), sizeof code);
  if (code < 0) outcome_ = std::unexpected(refusal(-code, extended_text(message, sizeof code)));
  answered_ = message.nlmsg_seq;
  waiting_ = false;
}

std::unexpected<Error> ControlClient::connection_lost(int code) const {
  const uint32_t open = sent_ - answered_ > 0 ? sent_ - answered_ : waiting_ ? 1 : 0;
  return fail(ECONNRESET, "the daemon closed the connection with {} request{} unanswered{}", open,
              open == 1 ? "" : "s",
              code == ECONNRESET || code == EPIPE ? "" : fmt::format(" ({})", strerror_of(code)));
}

}  // namespace mayfly
