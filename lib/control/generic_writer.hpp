// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The beginning of every answer of the generic family. Control thread.

#include "control/message_writer.hpp"
#include "control/protocol.hpp"

namespace mayfly {

void begin_generic(MessageWriter& writer, uint32_t sequence, protocol::Command command, uint16_t flags);

}  // namespace mayfly
