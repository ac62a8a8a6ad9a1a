// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The command `stats stages`: where the workers' time goes (control/stage_view.hpp reads it), as text or
// JSON.

#include "plan.hpp"

namespace mayfly::cli {

// stats stages [on|off|reset]
Status parse_stages(Words& words, const Options& options, Plan& plan);

}  // namespace mayfly::cli
