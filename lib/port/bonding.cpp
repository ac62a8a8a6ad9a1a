// SPDX-License-Identifier: BSD-3-Clause
#include "port/bonding.hpp"

#include <rte_dev.h>
#include <rte_ethdev.h>

#include <algorithm>
#include <cstring>

#include "base/log.hpp"
#include "port/device_errors.hpp"
#include "port/eal_log.hpp"
#include "port/kernel_interface.hpp"
#include "port/packet_ring.hpp"

namespace mayfly {
namespace {

bool is_enclosed(const std::string& text) {
  return text.size() > 2 && text.front() == '(' && text.back() == ')';
}

}  // namespace

Status BondMembers::open(Devargs& bond, const PortSettings& settings, uint32_t buffer_bytes,
                         std::vector<std::string>& notes) {
  uint32_t members = 0;
  for (auto& [name, value] : bond.arguments) {
    if (name != "slave") continue;
    ++members;
    if (!is_enclosed(value)) continue;
    Devargs member = Devargs::parse(std::string_view(value).substr(1, value.size() - 2));
    if (auto opened = open_one(member, settings, buffer_bytes, notes); !opened) return opened;
    value = member.device;
  }
  if (members == 0)
    return fail(EINVAL, "devargs '{}': which members? {},mode=1,slave=(DEVARGS),slave=(DEVARGS)", bond.text(),
                bond.device);
  return {};
}

Status BondMembers::open_one(Devargs& member, const PortSettings& settings, uint32_t buffer_bytes,
                             std::vector<std::string>& notes) {
  const std::string iface = member.kernel_interface();
  if (!iface.empty()) {
    const auto kernel = read_kernel_interface(iface);
    if (!kernel) return std::unexpected(kernel.error());
    kernel_ifindexes_.push_back(kernel->ifindex);
    if (kernel_mtu_ == 0 || kernel->mtu < kernel_mtu_) {
      kernel_mtu_ = kernel->mtu;
      kernel_interface_ = iface;
    }
  }
  if (member.is_of("net_af_packet")) {
    if (iface.empty())
      return fail(EINVAL, "devargs '{}': which kernel interface? {},iface=NAME", member.text(),
                  member.device);
    if (auto permitted = check_packet_socket_permission(); !permitted) return permitted;
    const auto ring = complete_packet_ring(member, settings, buffer_bytes, notes);
    if (!ring) return std::unexpected(ring.error());
    ring_frame_ = ring_frame_ == 0 ? ring->most_frame() : std::min(ring_frame_, ring->most_frame());
  }
  uint16_t port = 0;
  if (rte_eth_dev_get_port_by_name(member.device.c_str(), &port) == 0)
    return fail(EEXIST, "devargs '{}': the device {} exists already: give it another number", member.text(),
                member.device);
  const EalErrorScope words;
  if (const int error = rte_dev_probe(member.text().c_str()); error != 0)
    return probe_error(member, error, words.reason());
  if (rte_eth_dev_get_port_by_name(member.device.c_str(), &port) != 0)
    return fail(ENODEV, "{}: the driver made no Ethernet device of it{}", member.device, words.reason());
  ports_.push_back(port);
  return {};
}

BondMembers::~BondMembers() {
  for (const uint16_t port : ports_) {
    rte_eth_dev_info described{};
    if (rte_eth_dev_info_get(port, &described) != 0) continue;
    rte_eth_dev_stop(port);
    rte_eth_dev_close(port);
    if (const int error = rte_dev_remove(described.device); error != 0)
      log(LogLevel::warning, "port", "a bond's member can not be removed: {}", std::strerror(-error));
  }
}

}  // namespace mayfly
