// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The options before the object, with iproute2's letters, and the exit statuses.

#include <sys/socket.h>

#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace mayfly::cli {

constexpr int kExitOk = 0;
constexpr int kExitRefused = 1;  // by the daemon, or there is none
constexpr int kExitUsage = 2;    // the command could not be understood

// The exit status that an error of parsing means: see words.hpp.
constexpr int exit_status_of(const Error& error) noexcept {
  return error.code == ERANGE ? kExitRefused : kExitUsage;
}

struct Options {
  std::string netns;
  std::string socket;
  std::string batch;  // file name, "-" for standard input; empty: no batch
  bool json = false;
  bool pretty = false;
  bool statistics = false;
  bool details = false;
  bool brief = false;
  bool force = false;
  bool ipv4 = false;
  bool ipv6 = false;
  bool help = false;
  bool version = false;

  // AF_UNSPEC: of either family.
  uint8_t family() const noexcept { return ipv6 ? AF_INET6 : ipv4 ? AF_INET : AF_UNSPEC; }
};

// Takes the leading options off *words.
Result<Options> parse_options(std::span<const std::string_view>* words);

}  // namespace mayfly::cli
