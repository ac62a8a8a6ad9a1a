// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The stages a vector of packets passes, in order; each lives in the file of its name.
//
//   rx -> classify -> input -> check_sources -> look_up -> route -> neighbour -> encapsulate -> tx
//      ^                 |  ARP answers -----------------> | ---------^  |            |
//      |                 +-> input6: the same for IPv6     |             |            v
//      |                                                   v             |       veth: arrive at the other
//      end |                  packets for us: local, local6 ---+             |            | |     (echo
//      replies go through look_up .. encapsulate again)      |            |
//      +-----------------------------------------------------------------|------------+
//   what was dropped and is to be told so: errors (icmp_error.hpp), which go through look_up .. encapsulate
//
// Each is a Stage of stats/stage_counters.hpp, where its packets and clocks are counted.
//
// All calls: worker, online. A stage takes out of the vector what ends there and keeps the rest in order.
// Stages with a Family (family.hpp) exist for V4 and V6; a vector holds one of them.

#include <cstdint>

#include "pipeline/path.hpp"

namespace mayfly {

// Frames of one port, as the device delivered them -> packets with interface and namespace. Parses the tags,
// counts what each interface received.
void classify(Path& path, const QueueList::RxQueue& from, rte_mbuf* const* mbufs, uint32_t count,
              PacketVector& packets) noexcept;
// The same for frames that have crossed a veth: at most a vector of them; false when there are none (any
// more) in this loop.
bool arrive(Path& path, PacketVector& packets) noexcept;

// Takes IPv6 and ARP out (answers are appended to `answers`, ready for encapsulate) and checks what claims to
// be IPv4.
void input(Path& path, PacketVector& packets, PacketVector& packets6, PacketVector& answers) noexcept;
// Checks what claims to be IPv6. Packets to groups and to link-local addresses, which no FIB knows, go to
// `local` when something here listens to them.
void input6(Path& path, PacketVector& packets, PacketVector& local) noexcept;

// Drops forged sources: addresses of ours, and on interfaces with rp_filter strict what is routed elsewhere.
template <class Family>
void check_sources(Path& path, PacketVector& packets) noexcept;

// Finds every packet's route in its namespace.
template <class Family>
void look_up(PacketVector& packets) noexcept;

// Follows the route: egress interface, TTL, MTU. Packets for our own addresses go to `local`; nullptr: they
// are of our own making, which nothing here may be the receiver of.
template <class Family>
void route(Path& path, PacketVector& packets, PacketVector* local) noexcept;

// Turns echo requests into replies, drops and reports everything else. The IPv6 one hears neighbour
// discovery, too; its answers are ready for encapsulate.
void local(Path& path, PacketVector& packets) noexcept;
void local6(Path& path, PacketVector& packets, PacketVector& answers) noexcept;

// Finds the MAC of the next hop; packets that have to wait for it are parked.
template <class Family>
void neighbour(Path& path, PacketVector& packets) noexcept;

// Writes the Ethernet header and the tags of the egress interface and hands the frames to tx (tx.hpp).
void encapsulate(Path& path, PacketVector& packets) noexcept;
// The same in the middle of something else: for packets that have waited, and for requests of ours.
void encapsulate_aside(Path& path, PacketVector& packets) noexcept;

// ARP (arp.cpp) and neighbour discovery (nd.cpp), called by input and local6 for one packet, and by the
// worker for a request of the control thread.
void input_arp(Path& path, const Packet& packet, PacketVector& answers) noexcept;
void send_arp_request(Path& path, const ControlMessage& message) noexcept;
void input_nd(Path& path, const Packet& packet, uint32_t offset, PacketVector& answers) noexcept;
void send_solicitation(Path& path, const ControlMessage& message) noexcept;

}  // namespace mayfly
