// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The command line of mayflyd, merged over its configuration file:
//
//   mayflyd [-c FILE] [--socket PATH] [--port NAME=DEVARGS]... [--check] [--log-level LEVEL] [--workers N]
//           [--help] [--version] [-- EAL options]
//
// A long option takes its value as the next word or after '='. Without -c the embedded configuration (the
// defaults of Config) is used. What the command line says replaces what the file says; its ports and EAL
// options come after the file's. Main thread, at the start.

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "config/config.hpp"

namespace mayfly {

struct Arguments {
  std::optional<std::string> file;  // as given to -c
  bool check = false;               // validate, describe, and leave
  bool help = false;                // when help or version is asked for, config has the defaults
  bool version = false;
  Config config;  // checked
};

// words: argv without the program's name. EINVAL for what is wrong on the command line (usage), or the error
// of load_config(); usage_error tells which of the two it was (exit status 2 or 1).
Result<Arguments> parse_arguments(std::span<const char* const> words, bool* usage_error = nullptr);

// The text of --help.
std::string_view usage() noexcept;

}  // namespace mayfly
