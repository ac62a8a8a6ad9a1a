// SPDX-License-Identifier: BSD-3-Clause
#include "stats/drop_reason.hpp"

#include <array>

namespace mayfly {
namespace {

constexpr std::array<DropReasonDescription, kDropReasons> kDescriptions = {{
    {"truncated", "classify", "frames shorter than their headers say: look at the sender or the cable"},
    {"port_down", "classify", "the port's interface is down: mayfly link set PORT up"},
    {"unknown_tag", "classify", "no interface owns these tags: mayfly link which PORT OUTER[.INNER]"},
    {"interface_down", "classify", "the interface, or the link of its port, is down: mayfly link show NAME"},
    {"other_host", "classify",
     "the destination MAC is not the interface's: flooding, or a wrong neighbour entry"},
    {"unknown_protocol", "classify", "neither IPv4, IPv6 nor ARP"},
    {"arp_invalid", "input", "ARP that is no IPv4 over Ethernet, or malformed"},
    {"arp_other_host", "input",
     "ARP requests for addresses that are not this interface's: normal on a shared segment"},
    {"nd_invalid", "input",
     "neighbour discovery that fails the checks of RFC 4861, or somebody who uses an address of ours"},
    {"nd_other_host", "input",
     "neighbour solicitations and advertisements of others: normal on a shared segment"},
    {"nd_unwanted", "input", "router solicitations, router advertisements, redirects: none is used here"},
    {"ip_header", "input", "bad version or header length: look at the sender"},
    {"ip_checksum", "input", "wrong IPv4 header checksum: on veth try 'ethtool -K DEV tx off' on the sender"},
    {"ip_length", "input", "the IPv4 total or IPv6 payload length is beyond the frame"},
    {"martian_source", "input",
     "a source address that cannot be one (multicast, broadcast, loopback, zero, 240.0.0.0/4)"},
    {"martian_destination", "input",
     "a destination that is never on a wire (loopback, zero, 240.0.0.0/4, IPv4-mapped)"},
    {"spoofed_source", "input", "the source is one of our own addresses: a loop, or somebody forges it"},
    {"rp_filter", "input", "rp_filter strict: mayfly route get SOURCE does not lead back to this interface"},
    {"beyond_scope", "route", "link-local addresses are not routed"},
    {"ttl_exceeded", "route", "TTL or hop limit ran out: a routing loop, or a traceroute"},
    {"no_route", "route", "mayfly route get ADDRESS"},
    {"blackhole", "route", "a blackhole route matched"},
    {"unreachable", "route", "an unreachable route matched"},
    {"prohibited", "route", "a prohibit route matched"},
    {"multicast", "input", "multicast and broadcast are not forwarded"},
    {"icmp_invalid", "input", "malformed ICMP, or a wrong ICMP checksum"},
    {"local_unknown", "input", "for one of our addresses, but nothing here handles it"},
    {"mtu_exceeded", "route", "longer than the MTU of the interface it leaves by"},
    {"neighbour_queue_full", "neighbour",
     "more packets than may wait for one neighbour, of one interface or in all"},
    {"neighbour_failed", "neighbour", "nobody answered the ARP requests or solicitations: mayfly neigh show"},
    {"neighbour_no_source", "neighbour", "the interface has no address to ask for neighbours from"},
    {"interface_gone", "neighbour", "the interface was deleted or set down while packets were on their way"},
    {"veth_loop", "encapsulate",
     "the packet crossed eight veths: look for a routing loop between namespaces"},
    {"no_headroom", "encapsulate", "no room for the headers in the mbuf: raise mbufs.size"},
    {"no_mbuf", "originate", "the mbuf pool is empty: raise mbufs.count"},
    {"tx_full", "tx", "the device took no more packets: the receiver or the link is slower"},
    {"shutdown", "tx", "parked when the daemon stopped"},
}};

}  // namespace

const DropReasonDescription& describe(DropReason reason) noexcept {
  return kDescriptions[static_cast<size_t>(reason)];
}

}  // namespace mayfly
