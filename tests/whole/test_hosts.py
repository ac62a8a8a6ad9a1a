# SPDX-License-Identifier: BSD-3-Clause
"""Between kernels: what Linux hosts say to each other and to the daemon, through VLANs and QinQ, with their own ARP."""

import contextlib
import random
import socket
import struct

import pytest

from lab import GIVE_UP, eventually, inside


TAGS = {"untagged": [], "vlan": [10], "qinq": [10, 7]}


@pytest.fixture(params=TAGS)
def hosts(request, lab):
    """Two namespaces with .2 of 10.0.0.0/24 and 10.1.0.0/24 and a default route to the daemon, which is .1 of both."""
    router = lab.netns("router")
    mtu = 1496 if request.param == "qinq" else 1500
    names = []
    for n in range(2):
        tags = [tag + n for tag in TAGS[request.param]]
        words = (f"host{n}", router, f"d{n}")
        names.append(lab.tagged_host(*words, tags, f"10.{n}.0.2/24", f"10.{n}.0.1", mtu) if tags else
                     lab.kernel_host(*words, f"10.{n}.0.2/24", f"10.{n}.0.1"))
    daemon = lab.daemon(router, {"p0": "net_af_packet0,iface=d0", "p1": "net_af_packet1,iface=d1"})
    for n in range(2):
        ours = f"p{n}"
        for tag in TAGS[request.param]:
            daemon(f"link add {ours}.x link {ours} up mtu {mtu} type vlan id {tag + n}")
            ours += ".x"
        daemon(f"addr add 10.{n}.0.1/24 dev {ours}")
    yield names, daemon, mtu
    daemon.check_balance()


def checksum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def ping(host, address, payload):
    """One echo by the host's kernel; retried as `ping` does, since a first packet may wait for ARP on both sides."""
    with inside(host), socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as icmp:
        for sequence in range(GIVE_UP):
            request = struct.pack("!BBHHH", 8, 0, 0, 0x4d41, sequence) + payload
            icmp.sendto(request[:2] + struct.pack("!H", checksum(request)) + request[4:], (address, 0))
            icmp.settimeout(1)
            with contextlib.suppress(TimeoutError):
                while True:
                    packet, sender = icmp.recvfrom(65536)
                    answer = packet[(packet[0] & 15) * 4:]
                    if answer[0] == 0 and answer[4:] == struct.pack("!HH", 0x4d41, sequence) + payload:
                        assert sender[0] == address
                        assert checksum(answer) == 0
                        return packet
    raise AssertionError(f"{address} does not answer")


@pytest.mark.sanitizer
def test_ping_and_udp(hosts):
    (left, right), daemon, mtu = hosts
    rng = random.Random(mtu)
    # The daemon's own addresses, that of its far side too, and the other host.
    for address in ("10.0.0.1", "10.1.0.1", "10.1.0.2"):
        for size in (0, 56, mtu - 28):
            packet = ping(left, address, rng.randbytes(size))
            assert packet[8] == (63 if address == "10.1.0.2" else 64), "TTL"
    ping(right, "10.0.0.2", b"back")
    with inside(left):
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with inside(right):
        receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with sender, receiver:
        receiver.bind(("10.1.0.2", 5000))
        receiver.settimeout(GIVE_UP)
        for size in (0, 1, 100, mtu - 28):
            data = rng.randbytes(size)
            sender.sendto(data, ("10.1.0.2", 5000))
            assert receiver.recvfrom(65536)[0] == data
    assert {n["dst"] for n in daemon.json("neigh show")} == {"10.0.0.2", "10.1.0.2"}
    assert not {"ip_checksum", "ip_length", "no_route", "truncated"} & set(daemon.drops())
    for name in (port["ifname"] for port in daemon.json("port show")):
        port = daemon.json(f"port show {name}")[0]
        assert port["imissed"] == port["rx_nombuf"] == port["oerrors"] == 0


@pytest.mark.sanitizer
def test_tcp(hosts):
    """A stream of a megabyte, which notices whatever is lost, swapped or damaged."""
    (left, right), daemon, _ = hosts
    data = random.Random(7).randbytes(1 << 20)
    with inside(right):
        listener = socket.create_server(("10.1.0.2", 5001))
    with inside(left):
        sender = socket.socket()
    with listener, sender:
        sender.settimeout(GIVE_UP)
        listener.settimeout(GIVE_UP)
        sender.connect(("10.1.0.2", 5001))
        with listener.accept()[0] as receiver:
            receiver.settimeout(GIVE_UP)
            sent, got = 0, bytearray()
            sender.setblocking(False)
            while len(got) < len(data):
                with contextlib.suppress(BlockingIOError):
                    sent += sender.send(data[sent:sent + 65536])
                receiver.settimeout(0.05 if sent < len(data) else GIVE_UP)
                with contextlib.suppress(TimeoutError):
                    got += receiver.recv(65536)
    assert bytes(got) == data
    eventually(lambda: daemon.check_balance()["parked"], 0)
