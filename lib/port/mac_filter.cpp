// SPDX-License-Identifier: BSD-3-Clause
#include "port/mac_filter.hpp"

#include <rte_ethdev.h>

#include <cstring>

#include "port/eal_log.hpp"

namespace mayfly {
namespace {

constexpr std::string_view kNoFilter =
    "interfaces have MAC addresses of their own, and the device has no MAC filter";

}  // namespace

int MacFilter::change_device(uint16_t port, Mac mac, bool add) noexcept {
  rte_ether_addr address{};
  store_mac(address.addr_bytes, mac);
  return add ? rte_eth_dev_mac_addr_add(port, &address, 0) : rte_eth_dev_mac_addr_remove(port, &address);
}

std::string MacFilter::apply(uint16_t port, const MacFilterRequest& wanted, uint32_t room) {
  if (wanted.count > room || wanted.macs.size() < wanted.count) {
    clear(port);
    if (room == 0) return std::string(kNoFilter);
    return fmt::format("{} further MAC addresses are needed, and the device has room for {}", wanted.count,
                       room);
  }
  const std::set<Mac> next(wanted.macs.begin(), wanted.macs.end());
  for (const Mac mac : std::set<Mac>(installed_))
    if (!next.contains(mac)) {
      change_(port, mac, false);
      installed_.erase(mac);
    }
  for (const Mac mac : next) {
    if (installed_.contains(mac)) continue;
    if (const int error = change_(port, mac, true); error != 0) {
      clear(port);
      if (error == -ENOTSUP) return std::string(kNoFilter);
      // Drivers fail with a bare -1, which does not mean EPERM.
      return fmt::format("the device's MAC filter refuses {}{}{}", format_mac(mac), error == -1 ? "" : ": ",
                         error == -1 ? "" : std::strerror(-error));
    }
    installed_.insert(mac);
  }
  return {};
}

void MacFilter::clear(uint16_t port) {
  for (const Mac mac : installed_) change_(port, mac, false);
  installed_.clear();
}

}  // namespace mayfly
