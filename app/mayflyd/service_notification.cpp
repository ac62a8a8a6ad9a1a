// SPDX-License-Identifier: BSD-3-Clause
#include "service_notification.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "base/log.hpp"
#include "base/units.hpp"

namespace mayfly {
namespace {

// A line each: the manager ends an assignment at the line's end.
std::string one_line(std::string_view text) {
  std::string line(text);
  for (char& c : line)
    if (c == '\n' || c == '\r') c = ' ';
  return line;
}

}  // namespace

ServiceNotification::ServiceNotification() {
  const char* name = getenv("NOTIFY_SOCKET");
  if (name == nullptr || *name == '\0') return;
  open(name);
  if (fd_ >= 0) read_watchdog();
}

ServiceNotification::~ServiceNotification() {
  if (fd_ >= 0) close(fd_);
}

// A path, or '@' and the name of an abstract socket, whose address ends with the name and not with a NUL.
void ServiceNotification::open(std::string_view name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if ((name[0] != '/' && name[0] != '@') || name.size() >= sizeof address.sun_path) {
    log(LogLevel::warning, "service",
        "NOTIFY_SOCKET '{}': expected a path or '@' and a name, at most {} bytes: the service manager is not "
        "told anything",
        name, sizeof address.sun_path - 1);
    return;
  }
  std::memcpy(address.sun_path, name.data(), name.size());
  if (name[0] == '@') address.sun_path[0] = '\0';
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  fd_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd_ >= 0 && connect(fd_, reinterpret_cast<const sockaddr*>(&address), size) == 0) return;
  log(LogLevel::warning, "service", "NOTIFY_SOCKET '{}': {}: the service manager is not told anything", name,
      std::strerror(errno));
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

void ServiceNotification::read_watchdog() {
  const char* pid = getenv("WATCHDOG_PID");
  if (pid != nullptr && std::to_string(getpid()) != pid) return;
  const char* interval = getenv("WATCHDOG_USEC");
  if (interval == nullptr) return;
  const auto us = parse_number("WATCHDOG_USEC", interval, kLeastWatchdogUs, UINT64_MAX);
  watchdog_ = us.has_value() || us.error().code == ERANGE;
  if (!us)
    log(LogLevel::warning, "service", "{}: the daemon reports once a second: set WatchdogSec accordingly",
        us.error().text);
}

void ServiceNotification::send(std::string_view assignments) {
  if (fd_ < 0) return;
  waiting_ += assignments;
  if (waiting_.empty()) return;
  if (::send(fd_, waiting_.data(), waiting_.size(), MSG_NOSIGNAL) < 0 &&
      (errno == EAGAIN || errno == ENOBUFS))
    return;
  waiting_.clear();
}

void ServiceNotification::ready(std::string_view status) {
  status_ = one_line(status);
  send(fmt::format("READY=1\nSTATUS={}\n", status_));
}

void ServiceNotification::alive(std::string_view status) {
  if (fd_ < 0) return;
  if (!waiting_.empty()) return send({});
  std::string assignments;
  if (status != status_) {
    status_ = one_line(status);
    assignments = fmt::format("STATUS={}\n", status_);
  }
  if (watchdog_) assignments += "WATCHDOG=1\n";
  send(assignments);
}

void ServiceNotification::stopping() {
  send("STOPPING=1\nSTATUS=stopping\n");
}

void ServiceNotification::failed(const Error& error) {
  send(fmt::format("ERRNO={}\nSTATUS={}\n", error.code, one_line(error.text)));
}

}  // namespace mayfly
