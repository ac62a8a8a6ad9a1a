// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// What this process may not do, for the errors of devices that were refused: drivers say -1, or log
// "Operation not permitted", and which right it was is what an operator needs to know.
//
// Any thread; a few system calls, for error paths only.

#include <string>
#include <string_view>

#include "port/devargs.hpp"

namespace mayfly {

// Whether the calling thread has a capability (CAP_NET_RAW ...) in its effective set.
bool has_capability(int capability) noexcept;

// The rights that devices of this driver need and this process lacks, as the end of a sentence: ": needs
// CAP_NET_ADMIN, which this process has not". Empty when none is known to be missing. reason is what the
// driver said: locked memory is blamed only when that was about mapping it.
std::string missing_privilege(const Devargs& devargs, std::string_view reason);

// The directory where DPDK would keep the files of this process, if it cannot be written to; else empty.
std::string unwritable_runtime_directory();

}  // namespace mayfly
