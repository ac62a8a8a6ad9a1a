// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Between the files of the object "port".

#include <string_view>

#include "base/result.hpp"

namespace mayfly::cli {

class Session;
struct Plan;

// port show [NAME] and port show NAME xstats (port_show.cpp).
Result<int> show_ports(Session& session, Plan& plan, std::string_view wanted);
Result<int> show_xstats(Session& session, Plan& plan);

}  // namespace mayfly::cli
