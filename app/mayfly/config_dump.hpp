// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The configuration that a daemon has loaded, and the one that would make what it is now.

#include <string>

#include "session.hpp"

namespace mayfly::cli {

struct LoadedConfig {
  std::string settings;  // YAML of everything but the network
  std::string file;
  std::string text;
};
Result<LoadedConfig> read_loaded(Session& session);

// YAML of the daemon's settings, its ports and all that is in its namespaces, but for what follows from
// something else: routes and addresses of the kernel's kind, neighbours that were learnt. Sorted by name, so
// that equal daemons give equal texts.
Result<std::string> dump_running(Session& session);

}  // namespace mayfly::cli
