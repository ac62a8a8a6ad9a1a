// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "plan.hpp"

namespace mayfly::cli {

// stats stages [on|off|reset]
Status parse_stages(Words& words, const Options& options, Plan& plan);

}  // namespace mayfly::cli
