// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// One ethdev from probe to removal. Port thread only: every call may block, for 13 - 30 ms and more.
//
// open() probes, configures and starts it. Where that fails, everything is undone and the device is gone
// again. The destructor stops, closes and removes it: no worker polls it any more (architecture.md, invariant
// 5).
//
// net_af_packet closes its sockets in stop and opens them only in probe; a device that was never started
// leaks them when it is closed. So a device is never stopped to be started again, and everything its start
// could stumble over is checked before it is probed.

#include <atomic>
#include <memory>
#include <optional>

#include "base/result.hpp"
#include "port/bonding.hpp"
#include "port/devargs.hpp"
#include "port/frame_limits.hpp"
#include "port/kernel_interface.hpp"
#include "port/mac_filter.hpp"
#include "port/packet_ring.hpp"
#include "port/port.hpp"

struct rte_device;
struct rte_eth_dev_info;
struct rte_mempool;

namespace mayfly {

class EalErrorScope;

class Device {
 public:
  // An error's text begins with the port's name.
  static Result<std::unique_ptr<Device>> open(const PortSettings& settings, rte_mempool& pool);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const PortInfo& info() const noexcept { return info_; }
  const PortCounters& counters() const noexcept { return counters_; }

  // Mbufs that the driver may keep when it is closed.
  uint64_t buffers_kept() const noexcept;

  // Link and counters, afresh.
  void refresh();
  // While it runs. ERANGE, EOPNOTSUPP, EBUSY (the device changes it only while stopped).
  Status set_mtu(uint32_t mtu);
  Status set_mac(Mac mac);
  // Off: the device receives its own address and those of the filter, and all of multicast. Where its filter
  // has no room for them it stays promiscuous, and info() says why.
  Status set_promiscuous(bool on, const MacFilterRequest& filter);
  void set_filter(const MacFilterRequest& filter);
  ExtendedCounters read_xstats() const;

 private:
  Device(const PortSettings& settings, rte_mempool& pool);

  Status prepare();
  Status prepare_kernel_interface();
  Status prepare_packet_socket();
  Status prepare_xdp_socket();
  Status probe(const EalErrorScope& words);
  Status check_queues(const rte_eth_dev_info& offered) const;
  Status plan(const rte_eth_dev_info& offered);
  Status configure(const rte_eth_dev_info& offered, const EalErrorScope& words);
  Status set_up_queues(const rte_eth_dev_info& offered, const EalErrorScope& words);
  Status start(const rte_eth_dev_info& offered, const EalErrorScope& words);
  void settle_mac();
  void settle_promiscuous();
  Status apply_promiscuous();
  std::string_view promiscuous_for_good() const noexcept;
  void watch_removal();
  void look_for_removal();
  void describe(const rte_eth_dev_info& offered);
  void warn_about_frames();
  void drain_ring();
  bool is_packet_socket() const noexcept { return ring_.has_value(); }
  bool is_memif() const noexcept { return devargs_.is_of("net_memif"); }
  // Its driver's word on the MTU counts.
  bool counts_mtu() const noexcept {
    return !is_packet_socket() && !is_memif() && members_.kernel_ifindexes().empty();
  }
  // Its MTU is that of the kernel's interface, which is not ours to change; or the driver counts none.
  bool keeps_driver_mtu() const noexcept {
    return kernel_.has_value() || !members_.kernel_ifindexes().empty() || is_memif();
  }
  bool shares_mac_with_kernel() const noexcept { return devargs_.is_of("net_tap"); }

  PortSettings settings_;
  rte_mempool& pool_;
  Devargs devargs_;
  std::optional<PacketRing> ring_;
  std::optional<KernelInterface> kernel_;  // as it was before the device was opened
  std::optional<PacketRingDrops> ring_drops_;
  BondMembers members_;
  bool takes_mac_ = true;
  bool takes_all_multicast_ = true;
  MacFilter filter_;
  MacFilterRequest wanted_filter_;
  std::vector<uint32_t> kernel_ifindexes_;  // it is gone when all of these are
  std::atomic<bool> removed_{false};        // set by DPDK's interrupt thread
  FrameRoom room_;
  FrameLimits limits_;
  rte_device* device_ = nullptr;
  bool started_ = false;
  PortInfo info_;
  PortCounters counters_;
};

}  // namespace mayfly
