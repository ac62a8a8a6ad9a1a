// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Reads the `network` section; network.file is set by the caller.

#include "config/network.hpp"
#include "config/yaml_map.hpp"

namespace mayfly {

void read_network(YamlMap& root, NetworkConfig& network);

}  // namespace mayfly
