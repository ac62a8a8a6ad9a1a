// SPDX-License-Identifier: BSD-3-Clause
#include "port/device_errors.hpp"

#include <fcntl.h>
#include <rte_eal.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "port/eal.hpp"
#include "port/privilege.hpp"

namespace mayfly {
namespace {

std::string count_of(uint32_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// What the kernel knows of a PCI device that the EAL did not take.
std::string pci_advice(const std::string& address) {
  const std::filesystem::path device = "/sys/bus/pci/devices/" + address;
  std::error_code error;
  if (!std::filesystem::exists(device, error))
    return "this machine has no such PCI device (lspci -D lists them)";
  const std::string driver = std::filesystem::read_symlink(device / "driver", error).filename();
  if (rte_eal_has_pci() == 0) return "eal.args, or what follows '--', has --no-pci";
  if (driver == "vfio-pci" || driver == "uio_pci_generic")
    return fmt::format("it is bound to {}, and DPDK does not take it", driver);
  return fmt::format("it is bound to {}: dpdk-devbind.py -b vfio-pci {}",
                     driver.empty() ? "no driver" : driver, address);
}

}  // namespace

bool is_pci(const Devargs& devargs) noexcept {
  return is_pci_devargs(devargs.device);
}

Status check_device_files(const Devargs& devargs) {
  if (!devargs.is_of("net_pcap")) return {};
  for (const auto& [name, value] : devargs.arguments)
    if (name == "rx_pcap" && access(value.c_str(), R_OK) != 0)
      return fail(errno, "{}: rx_pcap={}: {}", devargs.device, value, std::strerror(errno));
  return {};
}

Status check_queue_count(const Devargs& devargs, const PortSettings& settings, uint32_t most_rx,
                         uint32_t most_tx) {
  const std::string workers = count_of(settings.tx_queues, "worker");
  const std::string_view need = settings.tx_queues == 1 ? "needs" : "need";
  if (settings.rx_queues > most_rx)
    return settings.rx_queues == settings.tx_queues
               ? fail(EINVAL, "{} has {}, {} {} {}: set rx_queues: {}", devargs.device,
                      count_of(most_rx, "receive queue"), workers, need, settings.rx_queues, most_rx)
               : fail(EINVAL, "{} has {}: set rx_queues: {} instead of {}", devargs.device,
                      count_of(most_rx, "receive queue"), most_rx, settings.rx_queues);
  if (settings.tx_queues <= most_tx) return {};
  std::string more;
  if (devargs.find("qpairs") != nullptr)
    more = fmt::format(", or qpairs={} in its devargs", settings.tx_queues);
  if (devargs.is_of("net_pcap"))
    more = fmt::format(", or name tx_pcap= {} times in its devargs", settings.tx_queues);
  return fail(EINVAL, "{} has {}, {} {} one each: set workers.count: {}{}", devargs.device,
              count_of(most_tx, "transmit queue"), workers, need, most_tx, more);
}

std::unexpected<Error> probe_error(const Devargs& devargs, int error, std::string_view reason) {
  const std::string missing = missing_privilege(devargs, reason);
  if (!missing.empty()) return fail(EPERM, "{} can not be opened{}{}", devargs.text(), missing, reason);
  if (is_pci(devargs)) return fail(ENODEV, "{}: {}{}", devargs.device, pci_advice(devargs.device), reason);
  if (error == -EACCES)
    return fail(EACCES, "{} can not be opened: {}: run as root{}", devargs.text(), std::strerror(EACCES),
                reason);
  // Drivers fail with a bare -1, which does not mean EPERM.
  if (error == -1) return fail(ENODEV, "{} can not be opened{}", devargs.text(), reason);
  return fail(error < 0 ? -error : ENODEV, "{} can not be opened: {}{}", devargs.text(),
              std::strerror(error < 0 ? -error : ENODEV), reason);
}

std::unexpected<Error> device_error(const Devargs& devargs, std::string_view what, int error,
                                    std::string_view reason) {
  const std::string missing = missing_privilege(devargs, reason);
  if (!missing.empty()) return fail(EPERM, "{} {}{}{}", devargs.device, what, missing, reason);
  return fail(error < 0 ? -error : EIO, "{} {}: {}{}", devargs.device, what,
              std::strerror(error < 0 ? -error : EIO), reason);
}

}  // namespace mayfly
