// SPDX-License-Identifier: BSD-3-Clause
#include "control/server.hpp"

#include <grp.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/log.hpp"

namespace mayfly {
namespace {

constexpr int kBacklog = 128;
constexpr int kEventsPerRound = 256;
// Room for answers in the kernel, so that a client that reads late does not stop at once.
constexpr int kSendBuffer = 1 << 20;

Result<sockaddr_un> socket_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return fail(ENAMETOOLONG, "socket.path '{}': {} characters, accepted 1..{}", path, path.size(),
                sizeof address.sun_path - 1);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

// A socket file that nobody answers on is left over from a daemon that was killed.
bool somebody_answers(const sockaddr_un& address) {
  const int probe = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  const bool answers =
      connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 || errno == EAGAIN;
  close(probe);
  return answers;
}

// What keeps an ordinary user from the default is its directory, which only root can make.
std::unexpected<Error> cannot_bind(const std::string& path, int error) {
  const std::filesystem::path directory = std::filesystem::path(path).parent_path();
  std::error_code ignored;
  if (!directory.empty() && !std::filesystem::is_directory(directory, ignored))
    return fail(error == ENOENT ? EACCES : error,
                "socket.path '{}': the directory {} does not exist and cannot be made by uid {}: choose a "
                "directory you may write to with --socket",
                path, directory.string(), geteuid());
  if (error == EACCES)
    return fail(error, "socket.path '{}': uid {} may not write to {}: choose another directory with --socket",
                path, geteuid(), directory.empty() ? "." : directory.string());
  return fail(error, "socket.path '{}': {}", path, strerror(error));
}

Status apply_ownership(const SocketSettings& settings) {
  if (chmod(settings.path.c_str(), settings.mode) != 0)
    return fail(errno, "socket.mode: cannot change '{}': {}", settings.path, strerror(errno));
  if (settings.group.empty()) return {};
  const group* entry = getgrnam(settings.group.c_str());
  if (entry == nullptr) return fail(EINVAL, "socket.group '{}': no such group", settings.group);
  if (chown(settings.path.c_str(), static_cast<uid_t>(-1), entry->gr_gid) != 0)
    return fail(errno, "socket.group '{}': cannot give it '{}': {}{}", settings.group, settings.path,
                strerror(errno), errno == EPERM ? ": be a member of the group, or have CAP_CHOWN" : "");
  return {};
}

}  // namespace

ControlServer::ControlServer(Dataplane& dataplane, SocketSettings settings)
    : dataplane_(dataplane), settings_(std::move(settings)), epoll_fd_(epoll_create1(EPOLL_CLOEXEC)) {}

ControlServer::~ControlServer() {
  close();
  ::close(epoll_fd_);
}

Status ControlServer::open() {
  auto address = socket_address(settings_.path);
  if (!address) return std::unexpected(address.error());
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(settings_.path).parent_path(), ignored);
  if (std::filesystem::exists(settings_.path, ignored)) {
    if (somebody_answers(*address))
      return fail(EADDRINUSE, "socket.path '{}': another mayflyd answers there; choose another with --socket",
                  settings_.path);
    unlink(settings_.path.c_str());
  }
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return fail(errno, "cannot create the control socket: {}", strerror(errno));
  if (bind(fd, reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0) {
    const int error = errno;
    ::close(fd);
    return cannot_bind(settings_.path, error);
  }
  listen_fd_ = fd;
  if (auto applied = apply_ownership(settings_); !applied) return applied;
  if (listen(fd, kBacklog) != 0) return fail(errno, "socket.path '{}': {}", settings_.path, strerror(errno));
  epoll_event event{EPOLLIN, {.ptr = nullptr}};
  epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event);
  return {};
}

void ControlServer::close() {
  dataplane_.configuration.stop();
  for (auto& connection : connections_) connection->close("the daemon stops");
  // What is under way may wait for a grace period or for a device, whose ends nobody else collects any more.
  while (std::ranges::any_of(connections_, [](const auto& c) { return !c->finished(); })) {
    run_slices();
    dataplane_.collect();
  }
  connections_.clear();
  if (listen_fd_ < 0) return;
  ::close(listen_fd_);
  listen_fd_ = -1;
  unlink(settings_.path.c_str());
}

void ControlServer::accept_clients() {
  while (true) {
    const int fd = accept4(listen_fd_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return;
    if (connections_.size() == kMostClients) {
      static LogLimit limit;
      log_limited(limit, LogLevel::warning, "control", "a client was refused: {} are connected",
                  kMostClients);
      ::close(fd);
      continue;
    }
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kSendBuffer, sizeof kSendBuffer);
    connections_.push_back(std::make_unique<Connection>(fd, next_number_++, dataplane_));
    epoll_event event{EPOLLIN, {.ptr = connections_.back().get()}};
    epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event);
  }
}

void ControlServer::watch(Connection& connection) {
  if (connection.fd() < 0) return;
  const uint32_t events =
      (connection.wants_read() ? uint32_t{EPOLLIN} : 0) | (connection.wants_write() ? uint32_t{EPOLLOUT} : 0);
  if (events == connection.watched()) return;
  epoll_event event{events, {.ptr = &connection}};
  epoll_ctl(epoll_fd_, EPOLL_CTL_MOD, connection.fd(), &event);
  connection.set_watched(events);
}

void ControlServer::on_ready() {
  epoll_event events[kEventsPerRound];
  const int count = epoll_wait(epoll_fd_, events, kEventsPerRound, 0);
  for (int i = 0; i < count; ++i) {
    if (events[i].data.ptr == nullptr) {
      accept_clients();
      continue;
    }
    auto& connection = *static_cast<Connection*>(events[i].data.ptr);
    if ((events[i].events & EPOLLOUT) != 0) connection.on_writable();
    if ((events[i].events & EPOLLIN) != 0) connection.on_readable();
    // Hung up while it has requests of its own in hand: those are not answered any more.
    if ((events[i].events & (EPOLLHUP | EPOLLERR)) != 0 && (events[i].events & EPOLLIN) == 0)
      connection.close("disconnected");
    watch(connection);
  }
}

bool ControlServer::run_slices() {
  bool more = false;
  for (auto& connection : connections_) {
    const uint64_t begin = monotonic_ns();
    more |= connection->run(Deadline::after_ns(kSliceNs));
    dataplane_.longest_slice_ns = std::max(dataplane_.longest_slice_ns, monotonic_ns() - begin);
    watch(*connection);
  }
  reap();
  return more;
}

void ControlServer::reap() {
  std::erase_if(connections_, [](const auto& connection) { return connection->finished(); });
  dataplane_.clients = static_cast<uint32_t>(connections_.size());
}

}  // namespace mayfly
