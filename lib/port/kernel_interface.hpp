// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The kernel's network interface that a device sits on (net_af_packet, net_af_xdp, net_pcap with an
// interface).
//
// Port thread; a few system calls each.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace mayfly {

struct KernelInterface {
  uint32_t ifindex = 0;
  uint32_t mtu = 0;
  bool up = false;
  bool running = false;  // with carrier
  bool promiscuous = false;
};

// ENODEV names the interfaces that exist.
Result<KernelInterface> read_kernel_interface(const std::string& name);

// EPERM with what would help, when packet sockets can not be opened.
Status check_packet_socket_permission();

// Packets that the rings of AF_PACKET sockets had no room for. net_af_packet does not tell, though the kernel
// counts them: so the sockets that appear in this process while the device is probed are remembered.
class PacketRingDrops {
 public:
  // Before the device is probed; after_probe() afterwards, on the same thread.
  PacketRingDrops();
  void after_probe(uint32_t ifindex);
  // The device still runs: stopping it closes the sockets. Dropped since the device was opened.
  uint64_t read() noexcept;

 private:
  std::vector<int> before_;
  std::vector<int> sockets_;  // the driver's, not ours to close
  uint64_t dropped_ = 0;
};

}  // namespace mayfly
