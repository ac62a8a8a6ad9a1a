// SPDX-License-Identifier: BSD-3-Clause
#include "port/privilege.hpp"

#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>

#include "base/units.hpp"
#include "port/eal.hpp"

namespace mayfly {
namespace {

struct Need {
  std::string_view driver;
  int capability;
  std::string_view name;
};

// Packet sockets are asked about before: check_packet_socket_permission(). CAP_BPF is not enough for libxdp,
// which looks for programs of others by their ids.
constexpr std::array kNeeds = {
    Need{"net_pcap", CAP_NET_RAW, "CAP_NET_RAW"},       Need{"net_af_xdp", CAP_NET_RAW, "CAP_NET_RAW"},
    Need{"net_af_xdp", CAP_NET_ADMIN, "CAP_NET_ADMIN"}, Need{"net_af_xdp", CAP_SYS_ADMIN, "CAP_SYS_ADMIN"},
    Need{"net_tap", CAP_NET_ADMIN, "CAP_NET_ADMIN"},
};

// The rings of packet sockets are locked, and so are the packet buffers that an XDP socket or a NIC on vfio
// shares.
std::string memory_lock_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
  return fmt::format(
      ": its memory is locked, of which this process may have {}: raise the limit (RLIMIT_MEMLOCK, "
      "ulimit -l, LimitMEMLOCK=), or give it CAP_IPC_LOCK",
      format_bytes(limit.rlim_cur));
}

// The file of a PCI device's IOMMU group, if it is there and cannot be opened.
std::string unreadable_iommu_group(const std::string& address) {
  std::error_code error;
  const auto group = std::filesystem::read_symlink("/sys/bus/pci/devices/" + address + "/iommu_group", error);
  if (error) return {};
  const std::string file = "/dev/vfio/" + group.filename().string();
  return access(file.c_str(), F_OK) == 0 && access(file.c_str(), R_OK | W_OK) != 0 ? file : std::string();
}

}  // namespace

bool has_capability(int capability) noexcept {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {};
  if (syscall(SYS_capget, &header, sets) != 0) return false;
  const auto bit = static_cast<unsigned>(capability);
  return ((sets[bit / 32].effective >> (bit % 32)) & 1) != 0;
}

std::string missing_privilege(const Devargs& devargs, std::string_view reason) {
  if (is_pci_devargs(devargs.device)) {
    const std::string file = unreadable_iommu_group(devargs.device);
    if (!file.empty()) return fmt::format(": this process has no right to open {}", file);
    const bool mapping = reason.find("DMA remapping") != std::string_view::npos;
    return mapping && !has_capability(CAP_IPC_LOCK) ? memory_lock_limit() : "";
  }
  if (devargs.is_of("net_pcap") && devargs.kernel_interface().empty()) return {};
  std::string names;
  for (const Need& need : kNeeds)
    if (devargs.is_of(need.driver) && !has_capability(need.capability))
      names += fmt::format("{}{}", names.empty() ? "" : ", ", need.name);
  if (!names.empty()) return fmt::format(": needs {}, which this process has not", names);
  const bool locks = devargs.is_of("net_af_packet") || devargs.is_of("net_af_xdp");
  const bool mapping =
      reason.find("mmap") != std::string_view::npos || reason.find("umem") != std::string_view::npos;
  return locks && mapping && !has_capability(CAP_IPC_LOCK) ? memory_lock_limit() : "";
}

// The EAL's own order.
std::string unwritable_runtime_directory() {
  const char* base = getenv("RUNTIME_DIRECTORY");
  if (base == nullptr && getuid() == 0) base = "/var/run";
  if (base == nullptr) base = getenv("XDG_RUNTIME_DIR");
  if (base == nullptr) base = "/tmp";
  const std::string directory = std::string(base) + "/dpdk";
  const std::string there = access(directory.c_str(), F_OK) == 0 ? directory : base;
  return access(there.c_str(), W_OK | X_OK) == 0 ? std::string() : there;
}

}  // namespace mayfly
