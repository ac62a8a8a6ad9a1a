# SPDX-License-Identifier: BSD-3-Clause
"""Interfaces by the hundred thousand are created and deleted, again and again, while numbered packets pass through others:
none is lost, and afterwards memory, mbufs and RCU blocks are where they were."""

import itertools
import json
import socket
import struct
import threading
import time

import pytest

from control import (BULK_DEL, B_SELECTOR, GENERIC_FAMILY, IFLA_GROUP, IFLA_IFNAME, NLM_F_ACK, NLM_F_CREATE,
                     NLM_F_EXCL, NLM_F_REQUEST, NLMSG_ERROR, RTM_DELLINK, RTM_NEWLINK, SELECT_GROUP, Client,
                     acknowledgement, bulk_add, attr, fixed_link, generic, kind, message, nest, string, u32, vlan)
from control import ATTR_DEVICE, B_UP, IFLA_VLAN_ID, VLAN_INNER
from frames import routed, udp
from lab import GIVE_UP, eventually, inside, is_instrumented, run

GROUP = 7
INNER = 25              # churned tags are 1..n / 1..25
FLOW_RATE = 500         # packets a second of each flow
TOLERANCE_KIB = 8192    # of RSS: pages of tables that are touched anew, stacks, malloc's arenas
DATAGRAM = 60000
LEAST = 250             # packets of each flow during the churn
HELLO = 2**31           # the number of packets that are not counted


class Flow(threading.Thread):
    """Numbered packets at a modest rate from one place to another, until it is stopped; then what is missing is known."""

    def __init__(self, name):
        super().__init__(name=name, daemon=True)
        self.sent = 0
        self.refused = 0
        self.seen = set()
        self.twice = 0
        self._stopping = threading.Event()
        self._reader = threading.Thread(target=self._read, name=f"{name} reader", daemon=True)
        self._silent = threading.Event()

    def run(self):
        self._reader.start()
        began = time.monotonic()
        while not self._stopping.wait(0.01):
            while self.sent < (time.monotonic() - began) * FLOW_RATE and not self._stopping.is_set():
                if not self.transmit(self.sent):
                    self.refused += 1
                self.sent += 1

    def _read(self):
        while not self._silent.is_set():
            number = self.receive()
            if number is None or number == HELLO:
                continue
            self.twice += number in self.seen
            self.seen.add(number)

    def stop(self):
        self._stopping.set()
        self.join()
        # The last packets may still be on their way.
        deadline = time.monotonic() + GIVE_UP / 9
        while len(self.seen) < self.sent - self.refused and time.monotonic() < deadline:
            time.sleep(0.02)
        self._silent.set()
        self._reader.join()

    def lost(self):
        return self.sent - self.refused - len(self.seen)

    def transmit(self, number):
        raise NotImplementedError

    def receive(self):
        raise NotImplementedError


class UdpFlow(Flow):
    """Between the kernels of two hosts."""

    def __init__(self, left, right, address):
        super().__init__("UDP flow")
        self.address = (address, 6000)
        with inside(left):
            self.source = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with inside(right):
            self.sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sink.setsockopt(socket.SOL_SOCKET, 33, 16 << 20)  # SO_RCVBUFFORCE
        self.sink.bind(self.address)
        self.sink.settimeout(0.2)

    def transmit(self, number):
        try:
            return self.source.sendto(struct.pack("!I", number), self.address) == 4
        except OSError:
            return False

    def receive(self):
        try:
            return struct.unpack("!I", self.sink.recv(64))[0]
        except TimeoutError:
            return None


class TaggedFlow(Flow):
    """Whole frames with the tags of surviving interfaces, which are compared byte by byte at the other end."""

    MARK = b"tagged flow "

    def __init__(self, name, source, sink, frame, expected):
        super().__init__(name)
        self.source, self.sink = source, sink
        self.frame, self.expected = bytes(frame), bytes(expected)
        self.damaged = 0
        assert self.frame.endswith(self.MARK + bytes(4)) and self.expected.endswith(self.MARK + bytes(4))

    def transmit(self, number):
        try:
            self.source.send(self.frame[:-4] + struct.pack("!I", number))
            return True
        except OSError:
            return False

    def receive(self):
        frame = self.sink.receive(0.2)
        if frame is None or self.MARK not in frame:
            return None
        if frame[:-4] != self.expected[:-4]:
            self.damaged += 1
            return None
        return struct.unpack("!I", frame[-4:])[0]


def datagrams(messages):
    """Packed; only the last message of a datagram asks for an acknowledgement."""
    packed, filling = [], []
    size = sequence = 0

    def seal():
        nonlocal filling, size
        packed.append((b"".join(message(k, f | (NLM_F_ACK if n == len(filling) - 1 else 0), s, b)
                                for n, (k, f, s, b) in enumerate(filling)), filling[-1][2]))
        filling, size = [], 0

    for kind_, flags, body in messages:
        sequence += 1
        filling.append((kind_, flags, sequence, body))
        size += 16 + len(body) + 3
        if size > DATAGRAM:
            seal()
    if filling:
        seal()
    return packed


def deliver(client, packed):
    """Sends it, reading while it does."""
    for datagram, last in packed:
        client.send(datagram)
        done = False
        while not done:
            for answer in client.receive():
                assert answer.kind == NLMSG_ERROR
                refusal = acknowledgement(answer)
                assert refusal is None, refusal
                done = done or answer.sequence == last


class Churn:
    """The two ways to make and unmake the same interfaces."""

    def __init__(self, path, outer):
        self.count = outer * INNER
        self.bulk = Client(path, GENERIC_FAMILY)
        self.single = Client(path)
        up_and_group = [u32(IFLA_GROUP, GROUP)]
        self.create_bulk = bulk_add("sub{}", [(IFLA_VLAN_ID, 1, outer), (VLAN_INNER, 1, INNER)], attr(B_UP),
                                    template=[string(ATTR_DEVICE, "p0"), *up_and_group, kind("vlan")])
        self.delete_bulk = generic(BULK_DEL, nest(B_SELECTOR, u32(SELECT_GROUP, GROUP)))
        names = [(f"sub{n}", n // INNER + 1, n % INNER + 1) for n in range(self.count)]
        flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_EXCL
        up = fixed_link(0, 1, 1)
        self.create_single = datagrams((RTM_NEWLINK, flags, up + vlan(name, "p0", outer_, inner, *up_and_group)[len(up):])
                                       for name, outer_, inner in names)
        self.delete_single = datagrams((RTM_DELLINK, NLM_F_REQUEST, fixed_link() + string(IFLA_IFNAME, name))
                                       for name, _, _ in names)

    def round(self, number):
        if number % 2 == 0:
            result, refusal = self.bulk.bulk(self.create_bulk)
            assert refusal is None and result == (self.count, self.count, 0)
        else:
            deliver(self.single, self.create_single)
        assert self.bulk.count() == self.survivors + self.count
        if number % 4 < 2:
            result, refusal = self.bulk.bulk(self.delete_bulk)
            assert refusal is None and result == (self.count, self.count, 0)
        else:
            deliver(self.single, self.delete_single)
        assert self.bulk.count() == self.survivors

    survivors = 0

    def close(self):
        self.bulk.close()
        self.single.close()


@pytest.mark.parametrize("outer,rounds", [
    pytest.param(200, 3, marks=pytest.mark.sanitizer, id="5000x3"),
    pytest.param(4000, 10, id="100000x10"),
])
def test_survivors_lose_nothing_and_all_comes_back(lab, outer, rounds):
    router = lab.netns("router")
    left = lab.kernel_host("left", router, "d0", "10.1.0.2/24", "10.1.0.1", mtu=1600)
    right = lab.kernel_host("right", router, "d1", "10.2.0.2/24", "10.2.0.1", mtu=1600)
    raw_left, raw_right = lab.tap_on(left), lab.tap_on(right)
    daemon = lab.daemon(router, {"p0": "net_af_packet0,iface=d0", "p1": "net_af_packet1,iface=d1"})
    daemon("addr add 10.1.0.1/24 dev p0")
    daemon("addr add 10.2.0.1/24 dev p1")
    # Survivors: one beside the churned tags, one in the midst of them, under an outer tag whose others come and go.
    daemon("link add beside link p0 up type vlan id 4001")
    daemon(f"link add amidst link p0 up type vlan id 7 inner {INNER + 1}")
    daemon("link add far link p1 up type vlan id 4002")
    for name, network in (("beside", "10.3.0"), ("amidst", "10.4.0"), ("far", "10.5.0")):
        daemon(f"addr add {network}.1/24 dev {name}")
    daemon(f"neigh add 10.5.0.2 lladdr {raw_right.mac} dev far")
    daemon(f"neigh add 10.4.0.2 lladdr {raw_left.mac} dev amidst")
    near_mac, far_mac = daemon.link("p0")["address"], daemon.link("p1")["address"]

    def tagged(name, source, sink, mac, tags, from_ip, to_ip, out, out_tags):
        frame = udp(mac, source.mac, from_ip, to_ip, tags=tags, payload=TaggedFlow.MARK + bytes(4))
        # The sequence number behind the UDP checksum changes: 0 means there is none.
        frame["UDP"].chksum = 0
        return TaggedFlow(name, source, sink, frame, routed(frame, sink.mac, out, tags=out_tags))

    udp_flow = UdpFlow(left, right, "10.2.0.2")
    flows = [udp_flow,
             tagged("beside", raw_left, raw_right, near_mac, [4001], "10.3.0.2", "10.5.0.2", far_mac, [4002]),
             tagged("amidst", raw_right, raw_left, far_mac, [4002], "10.5.0.2", "10.4.0.2", near_mac, [7, INNER + 1])]
    # The kernels find each other first, which may cost a packet.
    eventually(lambda: udp_flow.transmit(HELLO) and udp_flow.receive(), HELLO, "the first packet")

    churn = Churn(daemon.socket_path, outer)
    churn.survivors = daemon.count()
    for number in range(4):  # warm-up: every way once
        churn.round(number)
    settled = eventually(daemon.resources, lambda r: r["backlog_objects"] == 0)
    table_bytes = daemon.status()["table_bytes"]
    rss = daemon.rss_kib()
    drops = daemon.drops()

    for flow in flows:
        flow.start()
    try:
        for number in itertools.count():
            churn.round(number)
            if number + 1 >= rounds and all(flow.sent >= LEAST for flow in flows):
                break
    finally:
        for flow in flows:
            flow.stop()
        churn.close()

    ports = {port["ifname"]: {key: port[key] for key in ("imissed", "rx_nombuf", "oerrors")}
             for port in daemon.json("port show")}
    now = daemon.drops()
    grown = {reason: now[reason] - drops.get(reason, 0) for reason in now if now[reason] != drops.get(reason, 0)}
    report = "".join(f"\n{flow.name}: sent {flow.sent - flow.refused}, lost {flow.lost()}, refused by the sender's kernel "
                     f"{flow.refused}, twice {flow.twice}, damaged {getattr(flow, 'damaged', 0)}" for flow in flows)
    # A host's kernel counts the tagged frames, which only the raw socket beside it wants, as dropped.
    for where, netns in (("left", left), ("right", right), ("router", router)):
        for link in json.loads(run("ip", "-n", netns, "-s", "-j", "link")):
            dropped = {way: link["stats64"][way]["dropped"] for way in ("rx", "tx")}
            report += f"\n{where} {link['ifname']}: dropped {dropped}"
    report += f"\nMayfly's drops: {grown or 'none'}\ndevices: {ports}"
    report += f"\nreceivers: {raw_left.ring_drops()} and {raw_right.ring_drops()} frames without room"
    report += f"\nRSS: {rss} KiB before, {daemon.rss_kib()} KiB after"
    print(report)
    for flow in flows:
        assert flow.sent > 0 and flow.lost() == 0 and flow.twice == 0 and getattr(flow, "damaged", 0) == 0, report
    assert not grown, report

    daemon("reclaim wait")
    assert eventually(daemon.resources, settled, "what is in use") == settled
    eventually(lambda: daemon.status()["table_bytes"], table_bytes, "memory of tables and pools")
    reclaim = daemon.json("reclaim show")
    assert reclaim["retired"] == reclaim["reclaimed"] and reclaim["waiting"] == []
    assert daemon.check_balance()["parked"] == 0
    if not is_instrumented():  # AddressSanitizer keeps freed memory for a while
        eventually(daemon.rss_kib, lambda now_kib: now_kib <= rss + TOLERANCE_KIB,
                   f"RSS in KiB, {rss} before and {TOLERANCE_KIB} of tolerance")
