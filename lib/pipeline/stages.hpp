// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The stages a vector of packets passes, in order; each lives in the file of its name.
//
//   rx -> classify -> input -> look_up -> route -> neighbour -> encapsulate -> tx
//              ARP answers -+              |                        ^
//                           +------------- | ---------------------> |
//                     packets for us       +-> local: echo replies go through look_up .. encapsulate again
//
// All calls: worker, online. A stage takes out of the vector what ends there and keeps the rest in order.

#include <cstdint>

#include "pipeline/path.hpp"

namespace mayfly {

// Frames of one port, as the device delivered them -> packets with interface and namespace. Parses the tags,
// counts what each interface received.
void classify(Path& path, const QueueList::RxQueue& from, rte_mbuf* const* mbufs, uint32_t count,
              PacketVector& packets) noexcept;

// Takes ARP out (answers are appended to `answers`, ready for encapsulate) and checks what claims to be IPv4.
void input(Path& path, PacketVector& packets, PacketVector& answers) noexcept;

// Finds every packet's route in its namespace.
void look_up(PacketVector& packets) noexcept;

// Follows the route: egress interface, TTL, MTU. Packets for our own addresses go to `local`; nullptr: they
// are answers of ours, which nothing here may be the receiver of.
void route(Path& path, PacketVector& packets, PacketVector* local) noexcept;

// Turns echo requests into replies and drops everything else.
void local(Path& path, PacketVector& packets) noexcept;

// Finds the MAC of the next hop; packets that have to wait for it are parked.
void neighbour(Path& path, PacketVector& packets) noexcept;

// Writes the Ethernet header and the tags of the egress interface and hands the frames to tx (tx.hpp).
void encapsulate(Path& path, PacketVector& packets) noexcept;

// ARP (arp.cpp), called by input for one packet, and by the worker for a request of the control thread.
void input_arp(Path& path, const Packet& packet, PacketVector& answers) noexcept;
void send_arp_request(Path& path, const ControlMessage& message) noexcept;

}  // namespace mayfly
