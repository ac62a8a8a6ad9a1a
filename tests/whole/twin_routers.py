# SPDX-License-Identifier: BSD-3-Clause
"""Two routers side by side, Mayfly and the kernel's own, with the same addresses, routes and hosts: what one says to a
packet is compared with what the other says."""

import json
import time

from frames import ICMP, IP, Ether

from lab import GIVE_UP, run

LEFT, RIGHT = 0, 1
# The same on both routers, by side.
ADDRESSES = [("10.0.0.1/24", "2001:db8::1/64"), ("10.1.0.1/24", "2001:db8:1::1/64")]
HOST, HOST6 = "10.0.0.9", "2001:db8::9"
FAR, FAR6 = "10.1.0.9", "2001:db8:1::9"


class Twin:
    """One of the routers: its two hosts, and the MAC of the left side."""

    def __init__(self, hosts, mac):
        self.hosts = hosts
        self.mac = mac
        self.marker = 0

    def send(self, packet, dst=None):
        self.hosts[LEFT].send(Ether(dst=dst or self.mac, src=self.hosts[LEFT].mac) / packet)

    def answers(self):
        """IP packets that came back to the sender, without neighbour discovery and what a kernel sends unasked."""
        while (frame := self.hosts[LEFT].receive(GIVE_UP)) is not None:
            ether = Ether(frame)
            if ether.dst != self.hosts[LEFT].mac:
                continue
            if ether.type == 0x0800 or (ether.type == 0x86dd and frame[20] != 58) or \
                    (ether.type == 0x86dd and not 133 <= frame[54] <= 137):
                yield frame[14:]

    def _echo(self):
        self.marker += 1
        self.send(IP(src=HOST, dst="10.0.0.1") / ICMP(id=0x4d46, seq=self.marker))
        said = []
        for packet in self.answers():
            if packet[0] >> 4 == 4 and packet[9] == 1 and packet[20] == 0 and \
                    packet[24:28] == b"MF" + self.marker.to_bytes(2, "big"):
                return said
            said.append(packet)
        raise AssertionError("the router does not answer")

    def said_to(self, packet, dst=None):
        """What came back. Two echoes, each answered before the next is sent: what was said before is here by then."""
        self.send(packet, dst)
        return self._echo() + self._echo()

    def settle(self):
        self._echo()


class TwinRouters:
    def __init__(self, lab):
        self.daemon, self.mayfly = self._mayfly(lab)
        self.kernel_netns, self.kernel = self._kernel(lab)

    def _hosts(self, lab, name, netns, mtu):
        return [lab.raw_host(f"{name}{n}", netns, f"{name}{n}", mtu=mtu) for n in range(2)]

    def _mayfly(self, lab):
        netns = lab.netns("mayfly")
        hosts = self._hosts(lab, "d", netns, 1600)
        # net_af_packet would have the kernel wait for the rest of a fragment.
        daemon = lab.daemon(netns, {"p0": "net_pcap0,rx_iface_in=d0,tx_iface=d0", "p1": "net_af_packet1,iface=d1"})
        for side, addresses in enumerate(ADDRESSES):
            for address in addresses:
                daemon(f"addr add {address} dev p{side}")
            for host in (HOST, HOST6) if side == LEFT else (FAR, FAR6):
                daemon(f"neigh add {host} lladdr {hosts[side].mac} dev p{side}")
        return daemon, Twin(hosts, daemon.link("p0")["address"])

    def _kernel(self, lab):
        netns = lab.netns("kernel")
        hosts = self._hosts(lab, "k", netns, 1500)

        def sysctl(*settings):
            run("ip", "netns", "exec", netns, "sysctl", "-qw", *settings)

        # The limits are compared with ours nowhere: they would only make the kernel silent.
        sysctl("net.ipv4.ip_forward=1", "net.ipv4.icmp_ratelimit=0", "net.ipv4.icmp_msgs_per_sec=100000",
               "net.ipv6.icmp.ratelimit=0", "net.ipv4.conf.all.send_redirects=0")
        for side, addresses in enumerate(ADDRESSES):
            device = f"k{side}"
            sysctl(f"net.ipv6.conf.{device}.disable_ipv6=0", f"net.ipv6.conf.{device}.accept_dad=0",
                   f"net.ipv4.neigh.{device}.retrans_time_ms=200", f"net.ipv6.neigh.{device}.retrans_time_ms=200",
                   f"net.ipv4.conf.{device}.send_redirects=0")
            for address in addresses:
                run("ip", "-n", netns, "addr", "add", address, "dev", device, *(["nodad"] if ":" in address else []))
            for host in (HOST, HOST6) if side == LEFT else (FAR, FAR6):
                run("ip", "-n", netns, "neigh", "add", host, "lladdr", hosts[side].mac, "dev", device)
        sysctl("net.ipv6.conf.all.forwarding=1")
        (link,) = json.loads(run("ip", "-n", netns, "-j", "link", "show", "dev", "k0"))
        return netns, Twin(hosts, link["address"])

    def route(self, words):
        """The same route on both; "right" is the interface to the right."""
        family = ["-6"] if ":" in words else []
        run("ip", "-n", self.kernel_netns, *family, "route", "add", *words.replace("right", "k1").split())
        self.daemon(f"route add {words.replace('right', 'p1')}")

    def right_mtu(self, mtu):
        run("ip", "-n", self.kernel_netns, "link", "set", "k1", "mtu", mtu)
        self.daemon(f"link set p1 mtu {mtu}")

    def both(self, packet, to_group=None):
        """What the kernel's router and Mayfly say. Both limit their errors, and the kernel's one a second and sender is
        no setting of a namespace (net.ipv4.route.error_cost): where only one of them is silent, it is asked again."""
        said = {router: router.said_to(packet, to_group) for router in (self.kernel, self.mayfly)}
        for _ in range(3):
            silent = [router for router in said if not said[router]]
            if len(silent) != 1:
                break
            time.sleep(1.2)
            said[silent[0]] = silent[0].said_to(packet, to_group)
        return said[self.kernel], said[self.mayfly]


def parts(packet):
    """Of an ICMP or ICMPv6 error: all that the two must agree on, by name."""
    if packet[0] >> 4 == 4:
        header = (packet[0] & 15) * 4
        return {"from": packet[12:16], "to": packet[16:20], "type": packet[header], "code": packet[header + 1],
                "rest": packet[header + 4:header + 8], "quote": packet[header + 8:], "service": packet[1],
                "ttl": packet[8], "fragment": packet[6:8]}
    return {"from": packet[8:24], "to": packet[24:40], "type": packet[40], "code": packet[41],
            "rest": packet[44:48], "quote": packet[48:], "ttl": packet[7], "next": packet[6]}
