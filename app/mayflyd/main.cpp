// SPDX-License-Identifier: BSD-3-Clause
#include <csignal>
#include <cstdio>
#include <span>

#include "base/log.hpp"
#include "config/arguments.hpp"
#include "daemon.hpp"

namespace {

std::atomic<bool> stop_requested{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler sets it");

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

void request_stop(int) {
  stop_requested.store(true);
}

void handle_signals() {
  struct sigaction action {};
  action.sa_handler = request_stop;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace mayfly;
  bool usage_error = false;
  const auto arguments =
      parse_arguments(std::span<const char* const>(argv, static_cast<size_t>(argc)).subspan(1), &usage_error);
  if (!arguments) {
    fmt::print(stderr, "mayflyd: {}\n", arguments.error().text);
    return usage_error ? kExitUsage : kExitFailed;
  }
  if (arguments->help) {
    fmt::print("{}", usage());
    return 0;
  }
  if (arguments->version) {
    fmt::print("mayflyd " MAYFLY_VERSION "\n");
    return 0;
  }
  set_log_level(arguments->config.log_level);
  if (arguments->check) {
    fmt::print("{}", describe_memory(arguments->config));
    return 0;
  }
  handle_signals();
  ServiceNotification service;
  Daemon daemon(arguments->config, service);
  if (const auto done = daemon.run(stop_requested); !done) {
    service.failed(done.error());
    fmt::print(stderr, "mayflyd: {}\n", done.error().text);
    return kExitFailed;
  }
  return 0;
}
