// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// What a port is: what is asked of an ethdev, and what it turned out to give. Plain values, copied between
// threads.
//
// Frames. The MTU is bytes of IP packet. A frame with two VLAN tags is 8 bytes longer, so the device is
// configured for MTU + 8 where it allows that. Where it does not, mtu_by_tags says what fits: a kernel
// interface, for one, takes frames of its MTU + 14 with one 802.1Q tag on top, so that a second tag costs 4
// bytes of IP packet.

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/address.hpp"
#include "iface/interface.hpp"

namespace mayfly {

constexpr uint32_t kEthernetHeaderBytes = 14;
constexpr uint32_t kVlanTagBytes = 4;
constexpr uint32_t kMostTags = 2;

struct PortSettings {
  std::string name;     // also the name of its interface
  std::string devargs;  // "net_af_packet0,iface=veth0", "0000:03:00.0"
  uint32_t rx_queues = 1;
  uint32_t tx_queues = 1;  // one a worker, always
  uint32_t rx_descriptors = 1'024;
  uint32_t tx_descriptors = 1'024;
  uint32_t mtu = 1'500;
  bool promiscuous = true;
  // The ethdev is there: whoever has the daemon in its process made it. It goes with the port all the same.
  bool existing = false;
};

// What the device counts itself. Packets that Mayfly had in hand are counted by the workers.
struct PortCounters {
  uint64_t rx_packets = 0, rx_bytes = 0, tx_packets = 0, tx_bytes = 0;
  uint64_t imissed = 0;    // arrived, and no descriptor was free; on net_af_packet: its ring was full
  uint64_t rx_nombuf = 0;  // arrived, and no mbuf was free
  uint64_t ierrors = 0, oerrors = 0;
};

// Counters by the names that the driver gives them.
using ExtendedCounters = std::vector<std::pair<std::string, uint64_t>>;

// Addresses beside its own that a device must receive while it is not promiscuous.
constexpr size_t kMostMacFilters = 256;
struct MacFilterRequest {
  std::vector<Mac> macs;  // at most kMostMacFilters of them
  uint64_t count = 0;     // how many there are in all
};

constexpr uint32_t kUnknownSpeed = UINT32_MAX;

struct PortInfo {
  uint16_t port = kNoPort;       // ethdev
  std::string device;            // "net_af_packet0"
  std::string driver;            // "net_af_packet"
  std::string devargs;           // as the driver got them: with the defaults that were added
  std::string kernel_interface;  // the one it sits on; empty: none
  int numa_node = -1;            // -1: any
  Mac mac = 0;
  Mac first_mac = 0;  // when it was opened

  bool link_up = false;  // true where the device cannot tell
  bool full_duplex = false;
  uint32_t speed_mbps = kUnknownSpeed;

  uint32_t mtu = 0;
  uint32_t least_mtu = 0;
  uint32_t most_mtu = 0;
  std::array<uint32_t, kMostTags + 1> mtu_by_tags{};  // largest IP packet with 0, 1, 2 tags, never above mtu

  uint32_t rx_queues = 0, tx_queues = 0;
  uint32_t most_rx_queues = 0, most_tx_queues = 0;
  uint32_t rx_descriptors = 0, tx_descriptors = 0;
  bool promiscuous = false;         // what the device does
  bool promiscuous_wanted = false;  // what it was told
  std::string promiscuous_reason;   // why it is on although it is not wanted; empty: it is not
  uint32_t mac_filters = 0;         // addresses beside its own that its filter lets pass
  uint32_t most_mac_filters = 0;
  std::vector<std::string> rss_types, rss_offered;    // in use (empty: no RSS), and what the device could do
  std::vector<std::string> rx_offloads, tx_offloads;  // in use, by DPDK's names

  bool gone = false;        // it vanished: unplugged, or its kernel interface was deleted
  std::string gone_reason;  // "kernel interface 'veth0' was deleted"

  std::vector<std::string> notes;     // what was adjusted or added
  std::vector<std::string> warnings;  // what the user may trip over
};

}  // namespace mayfly
