# SPDX-License-Identifier: BSD-3-Clause
"""IPv6 with the kernel's own stack as hosts: address resolution both ways, pings and UDP, duplicate address detection
that succeeds and that fails, path MTU discovery, and clients of an access network that share one gateway."""

import contextlib
import json
import random
import socket
import struct

import pytest
from frames import ARP, ICMP, IP, Dot1Q, Ether, Raw
from scapy.layers.inet6 import (ICMPv6EchoRequest, ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6NDOptDstLLAddr,
                                ICMPv6NDOptSrcLLAddr, IPv6)
from scapy.utils6 import in6_getnsma, in6_getnsmac

from lab import GIVE_UP, eventually, inside, run


def enable_ipv6(netns, *devices):
    for device in devices:
        run("ip", "netns", "exec", netns, "sysctl", "-qw", f"net.ipv6.conf.{device}.disable_ipv6=0")
        # No unasked router solicitations; the addresses that follow from MACs stay.
        run("ip", "netns", "exec", netns, "sysctl", "-qw", f"net.ipv6.conf.{device}.accept_ra=0")


def ping6(host, address, payload=b"mayfly", device=None):
    """One echo by the host's kernel, retried as `ping` does; the hop limit is not seen by raw sockets."""
    with inside(host), socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6) as icmp:
        scope = socket.if_nametoindex(device) if device else 0
        icmp.settimeout(1)
        for sequence in range(GIVE_UP):
            with contextlib.suppress(OSError):
                icmp.sendto(struct.pack("!BBHHH", 128, 0, 0, 0x4d41, sequence) + payload, (address, 0, 0, scope))
            with contextlib.suppress(TimeoutError):
                while True:
                    answer, sender = icmp.recvfrom(65536)
                    if answer[0] == 129 and answer[4:] == struct.pack("!HH", 0x4d41, sequence) + payload:
                        return sender[0]
    raise AssertionError(f"{address} does not answer")


@pytest.fixture
def hosts(lab):
    """Two kernel hosts with ::2 of 2001:db8::/64 and 2001:db8:1::/64 and default routes to the daemon, which is ::1."""
    router = lab.netns("router")
    names = [lab.kernel_host(f"host{n}", router, f"d{n}") for n in range(2)]
    daemon = lab.daemon(router, {"p0": "net_af_packet0,iface=d0", "p1": "net_af_packet1,iface=d1"})
    for n, host in enumerate(names):
        enable_ipv6(host, "h0")
        prefix = ("2001:db8", "2001:db8:1")[n]
        daemon(f"addr add {prefix}::1/64 dev p{n}")
        run("ip", "-n", host, "addr", "add", f"{prefix}::2/64", "dev", "h0", "nodad")
        run("ip", "-n", host, "route", "add", "default", "via", f"{prefix}::1")
    # What is still asked about is no source yet, and lost to whoever else asks.
    for host in names:
        eventually(lambda: "tentative" in run("ip", "-n", host, "-6", "addr", "show", "dev", "h0"), False, "its addresses")
    eventually(lambda: "tentative" in daemon("addr show") or "optimistic" in daemon("addr show"), False, "our addresses")
    yield names, daemon
    daemon.check_balance()


def flags_of(host, address):
    (link,) = json.loads(run("ip", "-n", host, "-6", "-j", "addr", "show", "dev", "h0"))
    for info in link.get("addr_info", []):
        if info["local"] == address:
            return {key for key in ("tentative", "dadfailed") if info.get(key)}
    return None


def link_local_of(daemon, port):
    octets = [int(octet, 16) for octet in daemon.link(port)["address"].split(":")]
    octets[0] ^= 2
    words = octets[:3] + [0xff, 0xfe] + octets[3:]
    return "fe80::" + ":".join(f"{words[i] << 8 | words[i + 1]:x}" for i in range(0, 8, 2))


@pytest.mark.sanitizer
def test_ping_and_udp(hosts):
    (left, right), daemon = hosts
    rng = random.Random(6)
    for address in ("2001:db8::1", "2001:db8:1::1", "2001:db8:1::2"):
        for size in (0, 56, 1452):
            assert ping6(left, address, rng.randbytes(size)) == address
    ping6(right, "2001:db8::2", b"back")
    with inside(left):
        sender = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    with inside(right):
        receiver = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    with sender, receiver:
        receiver.bind(("2001:db8:1::2", 5000))
        receiver.settimeout(GIVE_UP)
        for size in (0, 1, 100, 1452):
            data = rng.randbytes(size)
            sender.sendto(data, ("2001:db8:1::2", 5000))
            assert receiver.recvfrom(65536)[0] == data
    assert {"2001:db8::2", "2001:db8:1::2"} <= {n["dst"] for n in daemon.json("neigh show")}
    assert not {"ip_length", "no_route", "truncated", "nd_invalid", "icmp_invalid"} & set(daemon.drops())


def test_link_local(hosts):
    """The address that follows from the MAC resolves and answers, in its own name and in that of all nodes."""
    (left, _), daemon = hosts
    ours = link_local_of(daemon, "p0")
    run("ip", "-n", left, "neigh", "flush", "dev", "h0")
    ping6(left, ours, device="h0")
    with inside(left), socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6) as icmp:
        icmp.settimeout(GIVE_UP)
        icmp.sendto(struct.pack("!BBHHH", 128, 0, 0, 7, 7), ("ff02::1", 0, 0, socket.if_nametoindex("h0")))
        while True:
            answer, sender = icmp.recvfrom(65536)
            if answer[0] == 129 and sender[0].split("%")[0] == ours:
                break


def test_a_host_that_takes_our_address_finds_out(hosts):
    """Duplicate address detection of the kernel: a free address is taken, ours is not."""
    (left, _), daemon = hosts
    run("ip", "-n", left, "addr", "add", "2001:db8::77/64", "dev", "h0")
    run("ip", "-n", left, "addr", "add", "2001:db8::1/64", "dev", "h0")
    eventually(lambda: flags_of(left, "2001:db8::77"), set())
    eventually(lambda: flags_of(left, "2001:db8::1"), lambda flags: flags is not None and "dadfailed" in flags)
    run("ip", "-n", left, "addr", "del", "2001:db8::1/64", "dev", "h0")
    ping6(left, "2001:db8::1")
    daemon.check_log()


def test_path_mtu(hosts):
    """A sender learns of the small link from "packet too big" and cuts its packets itself."""
    (left, right), daemon = hosts
    daemon("link set p1 mtu 1300")
    with inside(right):
        receiver = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    with inside(left):
        sender = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    ping6(left, "2001:db8:1::2")
    with receiver, sender:
        receiver.bind(("2001:db8:1::2", 5000))
        receiver.settimeout(1)
        data = random.Random(1300).randbytes(1400)
        for _ in range(GIVE_UP):
            sender.sendto(data, ("2001:db8:1::2", 5000))
            with contextlib.suppress(TimeoutError):
                assert receiver.recvfrom(65536)[0] == data
                break
        else:
            raise AssertionError("the sender does not learn the path's MTU")
    route = run("ip", "-n", left, "-6", "route", "get", "2001:db8:1::2")
    assert "mtu 1300" in route, route


def test_clients_of_one_gateway(lab):
    """Two clients in different VLANs of one port, both in the subnet of an address that the VLANs borrow: they reach the
    gateway and, through proxy ARP and neighbour discovery, each other."""
    router = lab.netns("router")
    raw = lab.raw_host("access", router, "d0")
    daemon = lab.daemon(router, {"p0": "net_af_packet0,iface=d0"})
    daemon.batch("link add lo100 up type dummy", "addr add 10.64.0.1/16 dev lo100", "addr add 2001:db8:64::1/64 dev lo100")
    clients = {1: ("02:aa:00:00:00:01", "10.64.0.11", "2001:db8:64::11"),
               2: ("02:aa:00:00:00:02", "10.64.0.12", "2001:db8:64::12")}
    for vid, (_, address, address6) in clients.items():
        daemon(f"link add c{vid} link p0 up type vlan id {vid}")
        daemon.batch(f"link set c{vid} unnumbered lo100", f"link set c{vid} proxy_arp on", f"link set c{vid} proxy_nd on",
                     f"link set c{vid} rp_filter strict", f"route add {address}/32 dev c{vid}",
                     f"route add {address6}/128 dev c{vid}")
    ours = daemon.link("c1")["address"]

    def send(vid, packet, dst=ours):
        raw.send(Ether(dst=dst, src=clients[vid][0]) / Dot1Q(vlan=vid) / packet)

    def until(wanted):
        """Plays both clients' address resolution until a frame that is wanted comes."""
        while (frame := raw.receive()) is not None:
            ether = Ether(frame)
            vid = ether[Dot1Q].vlan
            mac, address, address6 = clients[vid]
            if ARP in ether and ether[ARP].op == 1 and ether[ARP].pdst == address:
                assert ether[ARP].psrc == "10.64.0.1"
                send(vid, ARP(op=2, hwsrc=mac, psrc=address, hwdst=ours, pdst="10.64.0.1"))
            elif ICMPv6ND_NS in ether and ether[ICMPv6ND_NS].tgt == address6:
                send(vid, IPv6(src=address6, dst=ether[IPv6].src, hlim=255) / ICMPv6ND_NA(tgt=address6, R=0, S=1, O=1)
                     / ICMPv6NDOptDstLLAddr(lladdr=mac))
            elif wanted(vid, ether):
                return ether
        raise AssertionError("it did not come")

    for vid, other in ((1, 2), (2, 1)):
        mac, address, address6 = clients[vid]
        for target in ("10.64.0.1", clients[other][1]):
            send(vid, ARP(op=1, hwsrc=mac, psrc=address, pdst=target), "ff:ff:ff:ff:ff:ff")
            said = until(lambda on, got, to=target: on == vid and ARP in got and got[ARP].op == 2 and got[ARP].psrc == to)
            assert said[ARP].hwsrc == ours
        for target in ("2001:db8:64::1", clients[other][2]):
            group = in6_getnsma(socket.inet_pton(socket.AF_INET6, target))
            send(vid, IPv6(src=address6, dst=socket.inet_ntop(socket.AF_INET6, group), hlim=255)
                 / ICMPv6ND_NS(tgt=target) / ICMPv6NDOptSrcLLAddr(lladdr=mac), in6_getnsmac(group))
            said = until(lambda on, got, to=target: on == vid and ICMPv6ND_NA in got and got[ICMPv6ND_NA].tgt == to)
            assert said[ICMPv6NDOptDstLLAddr].lladdr == ours
        send(vid, IP(src=address, dst="10.64.0.1") / ICMP(id=1, seq=vid) / Raw(b"gateway"))
        until(lambda on, got: on == vid and ICMP in got and got[ICMP].type == 0)
        send(vid, IP(src=address, dst=clients[other][1]) / ICMP(id=2, seq=vid) / Raw(b"neighbour"))
        until(lambda on, got: on == other and ICMP in got and got[IP].src == address and got[IP].ttl == 63)
        send(vid, IPv6(src=address6, dst=clients[other][2]) / ICMPv6EchoRequest(id=2, seq=vid))
        until(lambda on, got: on == other and ICMPv6EchoRequest in got and got[IPv6].hlim == 63)
    with daemon.dropping(on="c1", side="rx", rp_filter=1):
        send(1, IP(src=clients[2][1], dst="10.64.0.1") / ICMP(id=3))
    daemon.check_balance()
