// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Why a device could not be opened, as a sentence that says what would help. Port thread.

#include <string>
#include <string_view>

#include "port/devargs.hpp"
#include "port/port.hpp"

namespace mayfly {

bool is_pci(const Devargs& devargs) noexcept;

// Files that the devargs name and that must exist: net_pcap's rx_pcap.
Status check_device_files(const Devargs& devargs);
Status check_queue_count(const Devargs& devargs, const PortSettings& settings, uint32_t most_rx,
                         uint32_t most_tx);

// error: negative, as DPDK returns it. reason: DPDK's own words, or empty.
std::unexpected<Error> probe_error(const Devargs& devargs, int error, std::string_view reason);
std::unexpected<Error> device_error(const Devargs& devargs, std::string_view what, int error,
                                    std::string_view reason);

}  // namespace mayfly
