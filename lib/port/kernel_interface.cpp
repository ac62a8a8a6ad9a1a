// SPDX-License-Identifier: BSD-3-Clause
#include "port/kernel_interface.hpp"

#include <arpa/inet.h>
#include <dirent.h>
#include <linux/capability.h>
#include <linux/ethtool.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "port/privilege.hpp"

namespace mayfly {
namespace {

constexpr size_t kMostListed = 12;

class Socket {
 public:
  Socket(int domain, int type) noexcept : fd_(socket(domain, type | SOCK_CLOEXEC, 0)) {}
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int fd() const noexcept { return fd_; }

 private:
  int fd_;
};

std::string list_interfaces() {
  struct if_nameindex* all = if_nameindex();
  if (all == nullptr) return "none";
  std::string text;
  size_t listed = 0;
  for (const struct if_nameindex* one = all; one->if_index != 0; ++one, ++listed) {
    if (listed == kMostListed) {
      text += ", ...";
      break;
    }
    text += fmt::format("{}{}", text.empty() ? "" : ", ", one->if_name);
  }
  if_freenameindex(all);
  return text.empty() ? "none" : text;
}

// The packet sockets of this process, ascending.
std::vector<int> packet_sockets() {
  std::vector<int> found;
  DIR* directory = opendir("/proc/self/fd");
  if (directory == nullptr) return found;
  while (const dirent* entry = readdir(directory)) {
    const int fd = std::atoi(entry->d_name);
    int domain = 0;
    socklen_t size = sizeof domain;
    if (entry->d_name[0] != '.' && getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 &&
        domain == AF_PACKET)
      found.push_back(fd);
  }
  closedir(directory);
  std::ranges::sort(found);
  return found;
}

bool is_bound_to(int fd, uint32_t ifindex) noexcept {
  sockaddr_ll address{};
  socklen_t size = sizeof address;
  return getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0 &&
         static_cast<uint32_t>(address.sll_ifindex) == ifindex;
}

}  // namespace

Result<KernelInterface> read_kernel_interface(const std::string& name) {
  if (name.empty() || name.size() >= IFNAMSIZ)
    return fail(EINVAL, "kernel interface '{}': {} characters, accepted 1..{}", name, name.size(),
                IFNAMSIZ - 1);
  const Socket control(AF_INET, SOCK_DGRAM);
  ifreq request{};
  std::memcpy(request.ifr_name, name.data(), name.size());
  const auto ask = [&](unsigned long what) {
    return control.fd() >= 0 && ioctl(control.fd(), what, &request) == 0;
  };

  KernelInterface interface;
  if (!ask(SIOCGIFINDEX))
    return fail(ENODEV, "kernel interface '{}' does not exist in this network namespace, which has: {}", name,
                list_interfaces());
  interface.ifindex = static_cast<uint32_t>(request.ifr_ifindex);
  if (!ask(SIOCGIFMTU))
    return fail(errno, "kernel interface '{}': its MTU can not be read: {}", name, std::strerror(errno));
  interface.mtu = static_cast<uint32_t>(request.ifr_mtu);
  if (!ask(SIOCGIFFLAGS))
    return fail(errno, "kernel interface '{}': its flags can not be read: {}", name, std::strerror(errno));
  interface.up = (request.ifr_flags & IFF_UP) != 0;
  interface.running = (request.ifr_flags & IFF_RUNNING) != 0;
  interface.promiscuous = (request.ifr_flags & IFF_PROMISC) != 0;
  // IFF_RUNNING follows a carrier up to a second later.
  ethtool_value carrier{.cmd = ETHTOOL_GLINK, .data = 0};
  request.ifr_data = reinterpret_cast<char*>(&carrier);
  if (ask(SIOCETHTOOL)) interface.running = carrier.data != 0;
  return interface;
}

Status check_packet_socket_permission() {
  const Socket probe(AF_PACKET, SOCK_RAW);
  if (probe.fd() >= 0 && has_capability(CAP_NET_ADMIN)) return {};
  if (probe.fd() >= 0)
    return fail(
        EPERM,
        "net_af_packet needs CAP_NET_ADMIN, for the MAC address and promiscuous mode of the kernel's "
        "interface: run as root, or give the program the right (setcap cap_net_raw,cap_net_admin+ep)");
  if (errno == EPERM || errno == EACCES)
    return fail(EPERM,
                "packet sockets need CAP_NET_RAW: run as root, or give the program the right "
                "(setcap cap_net_raw,cap_net_admin+ep)");
  return fail(errno, "packet sockets can not be opened: {}", std::strerror(errno));
}

PacketRingDrops::PacketRingDrops() : before_(packet_sockets()) {}

void PacketRingDrops::after_probe(uint32_t ifindex) {
  for (const int fd : packet_sockets())
    if (!std::ranges::binary_search(before_, fd) && is_bound_to(fd, ifindex)) sockets_.push_back(fd);
  before_.clear();
}

uint64_t PacketRingDrops::read() noexcept {
  for (const int fd : sockets_) {
    tpacket_stats statistics{};
    socklen_t size = sizeof statistics;
    // The kernel starts again at zero with each answer.
    if (getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &statistics, &size) == 0)
      dropped_ += statistics.tp_drops;
  }
  return dropped_;
}

}  // namespace mayfly
