# SPDX-License-Identifier: BSD-3-Clause
"""The packets of the tests, and what a router makes of them."""

import logging

logging.getLogger("scapy.runtime").setLevel(logging.ERROR)

from scapy.layers.inet import ICMP, IP, UDP  # noqa: E402
from scapy.layers.l2 import ARP, Dot1AD, Dot1Q, Ether  # noqa: E402
from scapy.packet import Raw  # noqa: E402

BROADCAST = "ff:ff:ff:ff:ff:ff"
NOBODY = "00:00:00:00:00:00"


def tag(*vids):
    """802.1Q headers, outer first; ("ad", vid) is an 802.1ad one."""
    stack = None
    for vid in vids:
        header = Dot1AD(vlan=vid[1]) if isinstance(vid, tuple) else Dot1Q(vlan=vid)
        stack = header if stack is None else stack / header
    return stack


def ether(dst, src, tags=()):
    header = Ether(dst=dst, src=src)
    return header / tag(*tags) if tags else header


def udp(dst, src, from_ip, to_ip, tags=(), ttl=64, payload=b"mayfly", dport=2000, **ip):
    return ether(dst, src, tags) / IP(src=from_ip, dst=to_ip, ttl=ttl, **ip) / UDP(sport=1000, dport=dport) / Raw(payload)


def routed(frame, dst, src, tags=()):
    """The frame after one router: other Ethernet header, TTL one less, the header's checksum with it."""
    packet = frame[IP].copy()
    packet.ttl -= 1
    packet.chksum = None
    return ether(dst, src, tags) / packet


def arp_request(src, from_ip, to_ip, tags=(), dst=BROADCAST, target=NOBODY):
    return ether(dst, src, tags) / ARP(op=1, hwsrc=src, psrc=from_ip, hwdst=target, pdst=to_ip)


def arp_reply(dst, src, from_ip, to_ip, tags=()):
    return ether(dst, src, tags) / ARP(op=2, hwsrc=src, psrc=from_ip, hwdst=dst, pdst=to_ip)


def echo(dst, src, from_ip, to_ip, tags=(), kind=8, ttl=64, payload=b"0123456789abcdef", **icmp):
    return (ether(dst, src, tags) / IP(src=from_ip, dst=to_ip, ttl=ttl) / ICMP(type=kind, id=7, seq=3, **icmp)
            / Raw(payload))
