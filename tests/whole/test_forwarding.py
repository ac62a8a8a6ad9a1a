# SPDX-License-Identifier: BSD-3-Clause
"""Packets through a daemon on two net_af_packet ports and a net_pcap port, compared byte by byte with what must be on
the wire. Each test cleans up, and then nothing of it is left: tables, mbufs and RCU blocks are as they were."""

import random

import pytest

from frames import (ARP, BROADCAST, ICMP, IP, UDP, Dot1Q, Ether, Raw, arp_reply, arp_request, echo, ether, routed, udp)
from lab import eventually

PORTS = ("p0", "p1", "p2")


class Router:
    """The daemon, its three hosts, and the addresses of its ports."""

    def __init__(self, lab):
        netns = lab.netns("router")
        self.hosts = [lab.raw_host(f"host{n}", netns, f"d{n}") for n in range(3)]
        # net_af_packet delivers every outer tag as 802.1Q; net_pcap keeps 802.1ad.
        self.daemon = lab.daemon(netns, {"p0": "net_af_packet0,iface=d0", "p1": "net_af_packet1,iface=d1",
                                         "p2": "net_pcap0,rx_iface_in=d2,tx_iface=d2"})
        self.macs = [self.daemon.link(port)["address"] for port in PORTS]
        self.empty = self.daemon.resources()

    def address(self, interface, prefix):
        self.daemon(f"addr add {prefix} dev {interface}")

    def neighbour(self, interface, address, mac):
        self.daemon(f"neigh add {address} lladdr {mac} dev {interface}")

    def vlan(self, name, port, words, prefix=None):
        self.daemon(f"link add {name} link {port} up type vlan {words}")
        if prefix:
            self.address(name, prefix)

    def clean(self):
        self.daemon.forget(PORTS)
        for host in self.hosts:
            host.waiting()


@pytest.fixture(scope="module")
def shared(shared_lab):
    return Router(shared_lab)


@pytest.fixture
def router(shared):
    yield shared
    shared.clean()
    eventually(shared.daemon.resources, shared.empty, "what is in use after the test")
    assert shared.daemon.check_balance()["parked"] == 0
    shared.daemon.check_log()


def plain(router):
    """10.0.0.0/24 on p0 and 10.1.0.0/24 on p1, with the hosts as permanent neighbours .2."""
    router.daemon.batch("addr add 10.0.0.1/24 dev p0", "addr add 10.1.0.1/24 dev p1",
                        f"neigh add 10.0.0.2 lladdr {router.hosts[0].mac} dev p0",
                        f"neigh add 10.1.0.2 lladdr {router.hosts[1].mac} dev p1")
    return router.hosts[0], router.hosts[1]


@pytest.mark.sanitizer
@pytest.mark.parametrize("payload", [0, 1, 17, 18, 500, 1472])
def test_untagged_ports_route(router, payload):
    left, right = plain(router)
    there = udp(router.macs[0], left.mac, "10.0.0.2", "10.1.0.2", payload=b"x" * payload)
    back = udp(router.macs[1], right.mac, "10.1.0.2", "10.0.0.2", ttl=2, payload=b"y" * payload)
    left.send(there)
    right.expect(routed(there, right.mac, router.macs[1]))
    right.send(back)
    left.expect(routed(back, left.mac, router.macs[0]))


@pytest.mark.sanitizer
def test_ip_options_and_padding(router):
    """Options stay and are part of the checksum; what pads an Ethernet frame does not travel on."""
    from scapy.layers.inet import IPOption_NOP
    left, right = plain(router)
    frame = udp(router.macs[0], left.mac, "10.0.0.2", "10.1.0.2", payload=b"", options=[IPOption_NOP()] * 4)
    left.send(bytes(frame) + b"\xaa" * 20)
    right.expect(routed(frame, right.mac, router.macs[1]))


@pytest.mark.sanitizer
def test_order_and_nothing_lost_in_a_burst(router):
    left, right = plain(router)
    frames = [udp(router.macs[0], left.mac, "10.0.0.2", "10.1.0.2", payload=b"%06d" % n, id=n) for n in range(300)]
    left.send(*frames)
    right.expect(*[routed(frame, right.mac, router.macs[1]) for frame in frames])
    assert not right.waiting()


@pytest.mark.sanitizer
def test_between_vlans(router):
    left, right, _ = router.hosts
    router.vlan("v10", "p0", "id 10", "10.0.10.1/24")
    router.vlan("v20", "p1", "id 20", "10.0.20.1/24")
    router.vlan("v11", "p0", "id 11", "10.0.11.1/24")
    router.neighbour("v20", "10.0.20.2", right.mac)
    router.neighbour("v11", "10.0.11.2", left.mac)
    frame = udp(router.macs[0], left.mac, "10.0.10.2", "10.0.20.2", tags=[10])
    left.send(frame)
    right.expect(routed(frame, right.mac, router.macs[1], tags=[20]))
    # Two VLANs of one port: in and out by the same wire.
    frame = udp(router.macs[0], left.mac, "10.0.10.2", "10.0.11.2", tags=[10])
    left.send(frame)
    left.expect(routed(frame, left.mac, router.macs[0], tags=[11]))


def test_between_tagged_and_untagged(router):
    left, right, _ = router.hosts
    router.vlan("v4094", "p0", "id 4094", "10.0.10.1/24")
    router.address("p1", "10.1.0.1/24")
    router.neighbour("v4094", "10.0.10.2", left.mac)
    router.neighbour("p1", "10.1.0.2", right.mac)
    frame = udp(router.macs[0], left.mac, "10.0.10.2", "10.1.0.2", tags=[4094])
    left.send(frame)
    right.expect(routed(frame, right.mac, router.macs[1]))
    frame = udp(router.macs[1], right.mac, "10.1.0.2", "10.0.10.2")
    right.send(frame)
    left.expect(routed(frame, left.mac, router.macs[0], tags=[4094]))


def test_priority_bits_do_not_choose_the_interface(router):
    """PCP and DEI of a tag are no part of its VLAN, and a tag of VLAN 0 is none."""
    left, right = plain(router)
    router.vlan("v10", "p0", "id 10", "10.0.10.1/24")
    inside = udp(router.macs[0], left.mac, "10.0.10.2", "10.1.0.2")[IP]
    left.send(Ether(dst=router.macs[0], src=left.mac) / Dot1Q(vlan=10, prio=5, id=1) / inside)
    right.expect(routed(Ether() / inside, right.mac, router.macs[1]))
    inside = udp(router.macs[0], left.mac, "10.0.0.2", "10.1.0.2")[IP]
    left.send(Ether(dst=router.macs[0], src=left.mac) / Dot1Q(vlan=0, prio=7) / inside)
    right.expect(routed(Ether() / inside, right.mac, router.macs[1]))


@pytest.mark.sanitizer
def test_qinq_of_8021q_in_8021q(router):
    left, right, _ = router.hosts
    router.vlan("q", "p0", "id 100 inner 7", "10.0.10.1/24")
    router.vlan("outer", "p1", "id 200")
    router.vlan("q2", "outer", "id 8", "10.0.20.1/24")  # the same thing, as a child of its outer VLAN
    router.neighbour("q", "10.0.10.2", left.mac)
    router.neighbour("q2", "10.0.20.2", right.mac)
    there = udp(router.macs[0], left.mac, "10.0.10.2", "10.0.20.2", tags=[100, 7])
    left.send(there)
    right.expect(routed(there, right.mac, router.macs[1], tags=[200, 8]))
    back = udp(router.macs[1], right.mac, "10.0.20.2", "10.0.10.2", tags=[200, 8])
    right.send(back)
    left.expect(routed(back, left.mac, router.macs[0], tags=[100, 7]))


@pytest.mark.sanitizer
def test_8021ad_outer_tag(router):
    """On net_pcap: an 802.1ad and an 802.1Q tag of the same number are different VLANs."""
    left, _, third = router.hosts
    router.vlan("s", "p2", "id 100 inner 7 protocol 802.1ad", "10.2.0.1/24")
    router.vlan("c", "p2", "id 100 inner 7", "10.3.0.1/24")
    router.vlan("s1", "p2", "id 100 protocol 802.1ad", "10.4.0.1/24")
    router.address("p0", "10.0.0.1/24")
    router.neighbour("p0", "10.0.0.2", left.mac)
    for name, network in (("s", "10.2.0"), ("c", "10.3.0"), ("s1", "10.4.0")):
        router.neighbour(name, f"{network}.2", third.mac)
    for name, network, tags in (("s", "10.2.0", [("ad", 100), 7]), ("c", "10.3.0", [100, 7]),
                                ("s1", "10.4.0", [("ad", 100)])):
        frame = udp(router.macs[2], third.mac, f"{network}.2", "10.0.0.2", tags=tags)
        third.send(frame)
        left.expect(routed(frame, left.mac, router.macs[0]))
        frame = udp(router.macs[0], left.mac, "10.0.0.2", f"{network}.2")
        left.send(frame)
        third.expect(routed(frame, third.mac, router.macs[2], tags=tags))
        assert router.daemon.link(name)["stats64"]["rx"]["packets"] == 1


def test_interface_mac_of_its_own(router):
    left, right = plain(router)
    router.daemon("link add v10 link p0 address 02:00:00:00:00:10 up type vlan id 10")
    router.address("v10", "10.0.10.1/24")
    router.neighbour("v10", "10.0.10.2", left.mac)
    frame = udp("02:00:00:00:00:10", left.mac, "10.0.10.2", "10.1.0.2", tags=[10])
    with router.daemon.dropping(on="v10", side="rx", other_host=1):
        left.send(udp(router.macs[0], left.mac, "10.0.10.2", "10.1.0.2", tags=[10]), frame)
        right.expect(routed(frame, right.mac, router.macs[1]))
    frame = udp(router.macs[1], right.mac, "10.1.0.2", "10.0.10.2")
    right.send(frame)
    left.expect(routed(frame, left.mac, "02:00:00:00:00:10", tags=[10]))


# ARP


@pytest.mark.sanitizer
@pytest.mark.parametrize("tags", [[], [10], [10, 20]], ids=["untagged", "vlan", "qinq"])
def test_arp_is_answered_for_own_addresses(router, tags):
    left = router.hosts[0]
    name = "p0"
    if tags:
        name = "v"
        router.vlan("v", "p0", "id 10" + (" inner 20" if len(tags) == 2 else ""))
    router.address(name, "10.0.10.1/24")
    router.address(name, "10.0.10.9/32")
    for ours in ("10.0.10.1", "10.0.10.9"):
        left.send(arp_request(left.mac, "10.0.10.2", ours, tags=tags))
        left.expect(arp_reply(left.mac, router.macs[0], ours, "10.0.10.2", tags=tags))
    # The asker is known from its question.
    (neighbour,) = eventually(lambda: router.daemon.json(f"neigh show dev {name}"), lambda n: len(n) == 1)
    assert (neighbour["dst"], neighbour["lladdr"], neighbour["dev"]) == ("10.0.10.2", left.mac, name)


def test_arp_is_not_answered_for_others(router):
    left = router.hosts[0]
    router.address("p0", "10.0.0.1/24")
    router.vlan("v10", "p0", "id 10", "10.0.10.1/24")
    with router.daemon.dropping(on="v10", side="rx", arp_other_host=2):
        # Another station's address, and an address that belongs to another interface of ours.
        left.send(arp_request(left.mac, "10.0.10.2", "10.0.10.3", tags=[10]),
                  arp_request(left.mac, "10.0.10.2", "10.0.0.1", tags=[10]),
                  arp_request(left.mac, "10.0.10.2", "10.0.10.1", tags=[10]))
        left.expect(arp_reply(left.mac, router.macs[0], "10.0.10.1", "10.0.10.2", tags=[10]))
    assert not left.waiting()


@pytest.mark.sanitizer
def test_next_hop_is_asked_for_while_packets_are_parked(router):
    left, right, _ = router.hosts
    router.address("p0", "10.0.0.1/24")
    router.vlan("v20", "p1", "id 20", "10.0.20.1/24")
    router.daemon("route add 10.99.0.0/16 via 10.0.20.2")
    frames = [udp(router.macs[0], left.mac, "10.0.0.2", f"10.99.{n}.1", payload=b"%d" % n) for n in range(3)]
    left.send(*frames)
    right.expect(arp_request(router.macs[1], "10.0.20.1", "10.0.20.2", tags=[20]))
    balance = eventually(router.daemon.check_balance, lambda b: b["parked"] == 3, "parked")
    assert balance["difference"] == 0
    (neighbour,) = router.daemon.json("neigh show dev v20")
    assert neighbour == {"dst": "10.0.20.2", "dev": "v20", "state": ["INCOMPLETE"]}
    right.send(arp_reply(router.macs[1], right.mac, "10.0.20.2", "10.0.20.1", tags=[20]))
    # Requests may be repeated while a slow machine gets here.
    got = []
    while len(got) < 3:
        frame = right.receive()
        assert frame is not None, f"{len(got)} of 3 packets were sent on"
        if frame != bytes(arp_request(router.macs[1], "10.0.20.1", "10.0.20.2", tags=[20])):
            got.append(frame)
    assert got == [bytes(routed(frame, right.mac, router.macs[1], tags=[20])) for frame in frames]
    (neighbour,) = router.daemon.json("neigh show dev v20")
    assert neighbour == {"dst": "10.0.20.2", "dev": "v20", "lladdr": right.mac, "state": ["REACHABLE"]}
    eventually(lambda: router.daemon.balance()["parked"], 0)


def test_neighbour_that_does_not_answer(router):
    left, right, _ = router.hosts
    router.address("p0", "10.0.0.1/24")
    router.address("p1", "10.1.0.1/24")
    frames = [udp(router.macs[0], left.mac, "10.0.0.2", "10.1.0.77", id=n) for n in range(3)]
    with router.daemon.dropping(on="p1", side="tx", neighbour_failed=3):
        left.send(*frames)
        right.expect(*[arp_request(router.macs[1], "10.1.0.1", "10.1.0.77")] * 3)
    assert router.daemon.balance()["parked"] == 0


def test_too_many_packets_for_one_neighbour(router):
    """The queue is bounded: the oldest go, and none is lost without a reason."""
    left, right, _ = router.hosts
    router.address("p0", "10.0.0.1/24")
    router.address("p1", "10.1.0.1/24")
    before = router.daemon.drops()
    left.send(*[udp(router.macs[0], left.mac, "10.0.0.2", "10.1.0.77", id=n) for n in range(1000)])
    eventually(lambda: router.daemon.drops().get("neighbour_queue_full", 0) > before.get("neighbour_queue_full", 0),
               True, "neighbour_queue_full")
    right.send(arp_request(right.mac, "10.1.0.77", "10.1.0.1"))

    def settled():
        drops = router.daemon.drops()
        return sum(drops.get(reason, 0) - before.get(reason, 0)
                   for reason in ("neighbour_queue_full", "neighbour_failed"))

    arrived = []

    def all_accounted():
        arrived.extend(frame for frame in right.waiting() if Ether(frame).haslayer(UDP))
        return settled() + len(arrived)

    eventually(all_accounted, 1000, "packets dropped with a reason or sent")
    identities = [Ether(frame)[IP].id for frame in arrived]
    assert identities == sorted(identities), "in order"
    assert not identities or identities[-1] == 999, "the newest are kept"


def test_interface_deleted_while_packets_wait(router):
    """Parked packets hold a reference: the delete is acknowledged, and teardown ends when they are dropped."""
    left, right, _ = router.hosts
    router.address("p0", "10.0.0.1/24")
    router.vlan("v20", "p1", "id 20", "10.0.20.1/24")
    before = router.daemon.drops()
    left.send(*[udp(router.macs[0], left.mac, "10.0.0.2", "10.0.20.2", id=n) for n in range(3)])
    right.expect(arp_request(router.macs[1], "10.0.20.1", "10.0.20.2", tags=[20]))
    router.daemon("link del v20")
    router.daemon("reclaim wait")
    now = router.daemon.drops()
    dropped = {reason: now[reason] - before.get(reason, 0) for reason in now if now[reason] != before.get(reason, 0)}
    assert dropped == {"interface_gone": 3}, dropped


@pytest.mark.sanitizer
def test_gratuitous_arp_moves_a_known_neighbour(router):
    left, right, _ = router.hosts
    router.address("p0", "10.0.0.1/24")
    router.address("p1", "10.1.0.1/24")
    right.send(arp_request(right.mac, "10.1.0.2", "10.1.0.1"))
    right.expect(arp_reply(right.mac, router.macs[1], "10.1.0.1", "10.1.0.2"))
    eventually(lambda: len(router.daemon.json("neigh show dev p1")), 1, "learned neighbours")
    frame = udp(router.macs[0], left.mac, "10.0.0.2", "10.1.0.2")
    for how, mac in ((1, "02:00:00:00:00:a1"), (2, "02:00:00:00:00:a2")):
        right.send(Ether(dst=BROADCAST, src=mac) / ARP(op=how, hwsrc=mac, psrc="10.1.0.2", pdst="10.1.0.2",
                                                       hwdst=BROADCAST))
        eventually(lambda: router.daemon.json("neigh show dev p1")[0].get("lladdr"), mac, "the neighbour's MAC")
        left.send(frame)
        right.expect(routed(frame, mac, router.macs[1]))


def test_gratuitous_arp_makes_no_neighbour_and_changes_no_permanent_one(router):
    left, right = plain(router)
    mac = "02:00:00:00:00:a1"
    announcement = Ether(dst=BROADCAST, src=mac) / ARP(op=1, hwsrc=mac, psrc="10.1.0.9", pdst="10.1.0.9")
    with router.daemon.dropping(on="p1", side="rx", arp_other_host=1):
        right.send(announcement)
    right.send(Ether(dst=BROADCAST, src=mac) / ARP(op=2, hwsrc=mac, psrc="10.1.0.2", pdst="10.1.0.2"))
    right.send(arp_request(right.mac, "10.1.0.3", "10.1.0.1"))
    right.expect(arp_reply(right.mac, router.macs[1], "10.1.0.1", "10.1.0.3"))
    neighbours = eventually(lambda: {n["dst"]: n for n in router.daemon.json("neigh show dev p1")},
                            lambda n: "10.1.0.3" in n)
    assert neighbours["10.1.0.2"]["lladdr"] == right.mac and neighbours["10.1.0.2"]["state"] == ["PERMANENT"]
    assert "10.1.0.9" not in neighbours


# ICMP


@pytest.mark.sanitizer
@pytest.mark.parametrize("payload", [0, 1, 17, 56, 1472])
def test_echo_to_own_addresses(router, payload):
    left = router.hosts[0]
    router.vlan("v10", "p0", "id 10", "10.0.10.1/24")
    router.daemon("link add lo100 up type dummy")
    router.address("lo100", "192.0.2.1/32")
    router.neighbour("v10", "10.0.10.2", left.mac)
    data = random.Random(payload).randbytes(payload)
    # An address is ours whatever interface the packet came by.
    for ours in ("10.0.10.1", "192.0.2.1"):
        request = echo(router.macs[0], left.mac, "10.0.10.2", ours, tags=[10], ttl=1, payload=data)
        request[IP].id = 4711
        left.send(request)
        answer = echo(left.mac, router.macs[0], ours, "10.0.10.2", tags=[10], kind=0, ttl=64, payload=data)
        answer[IP].id = 4711
        left.expect(answer)


def test_echo_is_answered_after_arp(router):
    """The asker is not known: the answer waits for its MAC address."""
    left = router.hosts[0]
    router.vlan("v10", "p0", "id 10", "10.0.10.1/24")
    left.send(echo(router.macs[0], left.mac, "10.0.10.2", "10.0.10.1", tags=[10]))
    left.expect(arp_request(router.macs[0], "10.0.10.1", "10.0.10.2", tags=[10]))
    left.send(arp_reply(router.macs[0], left.mac, "10.0.10.2", "10.0.10.1", tags=[10]))
    answer = bytes(echo(left.mac, router.macs[0], "10.0.10.1", "10.0.10.2", tags=[10], kind=0))
    eventually(lambda: left.receive(), lambda frame: frame is None or frame == answer, "the answer")


# Drops


def drop_cases():
    """Of each reason: what is sent by host 0 to p0 or a VLAN of it, and the interface that the drop is counted on."""
    def frame(router, tags=(), dst=None, **ip):
        packet = udp(dst or router.macs[0], router.hosts[0].mac, "10.0.0.2", "10.1.0.2", tags=tags)
        for field, value in ip.items():
            setattr(packet[IP], field, value)
        return packet

    def header(router, size):
        return bytes(frame(router))[:14 + size]

    def bad_icmp(router):
        request = echo(router.macs[0], router.hosts[0].mac, "10.0.0.2", "10.0.0.1")
        request[ICMP].chksum = 0x1234
        return request

    yield "ttl_exceeded", "p0", "rx", lambda r: frame(r, ttl=1)
    yield "ttl_exceeded", "p0", "rx", lambda r: frame(r, ttl=0)
    yield "ip_checksum", "p0", "rx", lambda r: frame(r, chksum=0xdead)
    yield "truncated", "p0", "rx", lambda r: header(r, 19)
    yield "truncated", "p0", "rx", lambda r: header(r, 0)
    yield "ip_length", "p0", "rx", lambda r: header(r, 20)
    yield "ip_header", "p0", "rx", lambda r: frame(r, version=6)
    yield "ip_header", "p0", "rx", lambda r: frame(r, ihl=4)
    yield "ip_header", "p0", "rx", lambda r: frame(r, len=19)
    yield "ip_length", "p0", "rx", lambda r: frame(r, len=1400)
    yield "unknown_tag", "p0", "rx", lambda r: frame(r, tags=[11])
    yield "unknown_tag", "p0", "rx", lambda r: frame(r, tags=[10, 11])
    yield "unknown_tag", "p0", "rx", lambda r: frame(r, tags=[10, 11, 12])
    yield "other_host", "p0", "rx", lambda r: frame(r, dst="02:00:00:00:00:99")
    yield "other_host", "v10", "rx", lambda r: frame(r, tags=[10], dst="02:00:00:00:00:99")
    yield "no_route", "p0", "rx", lambda r: udp(r.macs[0], r.hosts[0].mac, "10.0.0.2", "172.16.0.1")
    yield "mtu_exceeded", "p1", "tx", lambda r: udp(r.macs[0], r.hosts[0].mac, "10.0.0.2", "10.1.0.2",
                                                    payload=b"x" * 1200)
    yield "unknown_protocol", "p0", "rx", lambda r: ether(r.macs[0], r.hosts[0].mac) / Raw(b"\0" * 46)
    yield "multicast", "p0", "rx", lambda r: udp("01:00:5e:00:00:05", r.hosts[0].mac, "10.0.0.2", "224.0.0.5")
    yield "multicast", "p0", "rx", lambda r: udp(r.macs[0], r.hosts[0].mac, "10.0.0.2", "10.1.0.255")
    yield "martian_source", "p0", "rx", lambda r: udp(r.macs[0], r.hosts[0].mac, "127.0.0.1", "10.1.0.2")
    yield "blackhole", "p0", "rx", lambda r: udp(r.macs[0], r.hosts[0].mac, "10.0.0.2", "10.66.0.1")
    yield "unreachable", "p0", "rx", lambda r: udp(r.macs[0], r.hosts[0].mac, "10.0.0.2", "10.67.0.1")
    yield "prohibited", "p0", "rx", lambda r: udp(r.macs[0], r.hosts[0].mac, "10.0.0.2", "10.68.0.1")
    yield "icmp_invalid", "p0", "rx", bad_icmp
    yield "local_unknown", "p0", "rx", lambda r: udp(r.macs[0], r.hosts[0].mac, "10.0.0.2", "10.0.0.1")
    yield "arp_invalid", "p0", "rx", lambda r: ether(BROADCAST, r.hosts[0].mac) / ARP(
        op=1, hwtype=6, hwsrc=r.hosts[0].mac, psrc="10.0.0.2", pdst="10.0.0.1")
    yield "interface_down", "v12", "rx", lambda r: frame(r, tags=[12])


CASES = list(drop_cases())

# Type and code of the ICMP error that a reason is answered with; the others are silent.
ERRORS = {"ttl_exceeded": (11, 0), "no_route": (3, 0), "unreachable": (3, 1), "prohibited": (3, 13),
          "local_unknown": (3, 3)}


@pytest.mark.sanitizer
@pytest.mark.parametrize("reason,on,side,make", CASES,
                         ids=[f"{number}-{case[0]}" for number, case in enumerate(CASES)])
def test_drop_reason(router, reason, on, side, make):
    """Dropped with its reason, on its interface, and no other packet suffers: one behind it arrives."""
    left, right = plain(router)
    router.daemon.batch("link add v10 link p0 up type vlan id 10", "link add v12 link p0 type vlan id 12",
                        "link set p1 mtu 1000", "route add blackhole 10.66.0.0/16",
                        "route add unreachable 10.67.0.0/16", "route add prohibit 10.68.0.0/16")
    good = udp(router.macs[0], left.mac, "10.0.0.2", "10.1.0.2")
    with router.daemon.dropping(on=on, side=side, **{reason: 1}):
        left.send(make(router), good)
        right.expect(routed(good, right.mac, router.macs[1]))
    assert not right.waiting()
    told = [(IP(frame[14:])[ICMP].type, IP(frame[14:])[ICMP].code) for frame in left.waiting()]
    assert told == ([ERRORS[reason]] if reason in ERRORS else []), "what the sender is told"


def test_port_down_stops_everything_on_it(router):
    left, right = plain(router)
    router.vlan("v10", "p0", "id 10", "10.0.10.1/24")
    router.daemon("link set p0 down")
    assert router.daemon.link("v10")["operstate"] == "LOWERLAYERDOWN"
    with router.daemon.dropping(on="p0", side="rx", port_down=2):
        left.send(udp(router.macs[0], left.mac, "10.0.0.2", "10.1.0.2"),
                  udp(router.macs[0], left.mac, "10.0.10.2", "10.1.0.2", tags=[10]))
    with router.daemon.dropping(on="p1", side="rx", no_route=1):
        right.send(udp(router.macs[1], right.mac, "10.1.0.2", "10.0.0.2"))
    assert right.receive()[34:36] == b"\3\0", "it is told that the network is unreachable"
    router.daemon("link set p0 up")
    assert router.daemon.link("v10")["operstate"] == "UP"
    frame = udp(router.macs[0], left.mac, "10.0.10.2", "10.1.0.2", tags=[10])
    left.send(frame)
    right.expect(routed(frame, right.mac, router.macs[1]))


def test_egress_vlan_of_a_port_that_is_down(router):
    """The VLAN is up, so its route is there; its port is not."""
    left, right, _ = router.hosts
    router.address("p0", "10.0.0.1/24")
    router.vlan("v20", "p1", "id 20", "10.0.20.1/24")
    router.neighbour("v20", "10.0.20.2", right.mac)
    router.daemon("link set p1 down")
    with router.daemon.dropping(on="v20", side="tx", interface_down=1):
        left.send(udp(router.macs[0], left.mac, "10.0.0.2", "10.0.20.2"))


def test_counters_of_interfaces(router):
    left, right, _ = router.hosts
    router.vlan("v10", "p0", "id 10", "10.0.10.1/24")
    router.vlan("v20", "p1", "id 20", "10.0.20.1/24")
    router.neighbour("v20", "10.0.20.2", right.mac)
    frames = [udp(router.macs[0], left.mac, "10.0.10.2", "10.0.20.2", tags=[10], payload=b"x" * size)
              for size in (0, 10, 1000)]
    size = sum(len(bytes(frame)) for frame in frames)
    before = router.daemon.link("p0")["stats64"]
    left.send(*frames)
    right.expect(*[routed(frame, right.mac, router.macs[1], tags=[20]) for frame in frames])
    nothing = {"packets": 0, "bytes": 0, "dropped": 0, "errors": 0}
    some = {"packets": 3, "bytes": size, "dropped": 0, "errors": 0}
    assert eventually(lambda: router.daemon.link("v10")["stats64"], {"rx": some, "tx": nothing})
    assert eventually(lambda: router.daemon.link("v20")["stats64"], {"rx": nothing, "tx": some})
    assert router.daemon.link("p0")["stats64"] == before, "a frame is counted on the interface it belongs to"


def test_routes_choose_the_longest_prefix(router):
    left, right = plain(router)
    third = router.hosts[2]
    router.address("p2", "10.2.0.1/24")
    router.neighbour("p2", "10.2.0.2", third.mac)
    router.daemon("route add default via 10.1.0.2")
    router.daemon("route add 198.51.0.0/16 via 10.2.0.2")
    router.daemon("route add 198.51.100.0/24 via 10.1.0.2")
    router.daemon("route add 198.51.100.7 via 10.2.0.2")
    for destination, host, port in (("203.0.113.1", right, 1), ("198.51.1.1", third, 2), ("198.51.100.1", right, 1),
                                    ("198.51.100.7", third, 2)):
        frame = udp(router.macs[0], left.mac, "10.0.0.2", destination)
        left.send(frame)
        host.expect(routed(frame, host.mac, router.macs[port]))
        assert router.daemon.json(f"route get {destination}")[0]["dev"] == f"p{port}"
    router.daemon("route replace 198.51.100.0/24 via 10.2.0.2")
    frame = udp(router.macs[0], left.mac, "10.0.0.2", "198.51.100.1")
    left.send(frame)
    third.expect(routed(frame, third.mac, router.macs[2]))
    for prefix in ("198.51.0.0/16", "198.51.100.0/24", "198.51.100.7", "default"):
        router.daemon(f"route del {prefix}")
    with router.daemon.dropping(on="p0", side="rx", no_route=1):
        left.send(frame)


def test_link_which_agrees_with_the_packets(router):
    left, right = plain(router)
    router.vlan("v10", "p0", "id 10", "10.0.10.1/24")
    router.vlan("q", "p0", "id 10 inner 20", "10.0.11.1/24")
    for tags, source, owner in (([10], "10.0.10.2", "v10"), ([10, 20], "10.0.11.2", "q"), ([10, 21], "10.0.10.2", None),
                                ([], "10.0.0.2", "p0")):
        spelled = ".".join(map(str, tags))
        which = router.daemon.json(f"link which p0 {spelled}")
        assert which.get("ifname") == owner
        frame = udp(router.macs[0], left.mac, source, "10.1.0.2", tags=tags)
        if owner:
            left.send(frame)
            right.expect(routed(frame, right.mac, router.macs[1]))
        else:
            with router.daemon.dropping(**{which["drop"]: 1}):
                left.send(frame)
