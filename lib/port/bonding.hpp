// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The members (slaves) of a net_bonding device. DPDK wants each to exist before the bond; here they are
// described in one text with it:
//
//   net_bonding0,mode=1,slave=(net_af_packet0,iface=veth0),slave=(net_af_packet1,iface=veth1)
//
// The parentheses are ours. What they hold is opened first and closed last; "slave=NAME" means, as with DPDK,
// a device that exists already (from the EAL's own --vdev).
//
// Port thread only; every call may block.

#include <cstdint>
#include <string>
#include <vector>

#include "port/devargs.hpp"
#include "port/port.hpp"

namespace mayfly {

class BondMembers {
 public:
  BondMembers() = default;
  // Closes what it opened: the bond itself is gone.
  ~BondMembers();
  BondMembers(const BondMembers&) = delete;
  BondMembers& operator=(const BondMembers&) = delete;

  // Opens what stands in parentheses and puts the names of the devices in its place. buffer_bytes: what an
  // mbuf holds beside its headroom.
  Status open(Devargs& bond, const PortSettings& settings, uint32_t buffer_bytes,
              std::vector<std::string>& notes);
  // The kernel interfaces below, where there are such.
  const std::vector<uint32_t>& kernel_ifindexes() const noexcept { return kernel_ifindexes_; }
  // The smallest MTU of those; 0 without one.
  uint32_t kernel_mtu() const noexcept { return kernel_mtu_; }
  const std::string& kernel_interface() const noexcept { return kernel_interface_; }
  // The largest frame of the smallest packet ring below; 0 without one.
  uint32_t ring_frame() const noexcept { return ring_frame_; }

 private:
  Status open_one(Devargs& member, const PortSettings& settings, uint32_t buffer_bytes,
                  std::vector<std::string>& notes);

  std::vector<uint16_t> ports_;
  std::vector<uint32_t> kernel_ifindexes_;
  uint32_t kernel_mtu_ = 0;
  uint32_t ring_frame_ = 0;
  std::string kernel_interface_;  // the one of kernel_mtu()
};

}  // namespace mayfly
