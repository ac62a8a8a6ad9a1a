# SPDX-License-Identifier: BSD-3-Clause
"""Every ICMP and ICMPv6 error beside what the kernel's own router says to the same packet: from whom, type, code, MTU or
pointer, and every quoted byte. Where the two differ on purpose, the test says how and why."""

import pytest
from frames import ICMP, IP, UDP, Raw
from scapy.layers.inet import TCP, IPOption_Router_Alert
from scapy.layers.inet6 import (ICMPv6DestUnreach, ICMPv6EchoRequest, ICMPv6TimeExceeded, IPv6, IPv6ExtHdrDestOpt,
                                PadN)

from lab import eventually, run
from twin_routers import FAR, FAR6, HOST, HOST6, TwinRouters, parts

LONG = Raw(bytes(range(256)) * 5)


@pytest.fixture(scope="module")
def twins(shared_lab):
    made = TwinRouters(shared_lab)
    for words in ("unreachable 99.2.0.0/16", "prohibit 99.3.0.0/16", "blackhole 99.1.0.0/16",
                  "unreachable 2001:db8:b::/48", "prohibit 2001:db8:c::/48", "blackhole 2001:db8:a::/48"):
        made.route(words)
    made.right_mtu(1300)
    yield made
    made.daemon.check_balance()


def ip4(dst, **more):
    return IP(src=HOST, dst=dst, **more)


def ip6(dst, **more):
    return IPv6(src=HOST6, dst=dst, **more)


ERRORS = {
    "ttl": ip4(FAR, ttl=1) / UDP(sport=1, dport=2) / Raw(b"mayfly"),
    "ttl zero": ip4(FAR, ttl=0) / UDP(sport=1, dport=2),
    "ttl, service and options": ip4(FAR, ttl=1, tos=0xb8, options=[IPOption_Router_Alert()]) / UDP(),
    "no route": ip4("98.0.0.1") / UDP(sport=1, dport=2) / LONG,
    "no route, last hop": ip4("98.0.0.1", ttl=1) / UDP(),
    "unreachable route": ip4("99.2.0.1") / UDP(),
    "prohibit route": ip4("99.3.0.1") / UDP(),
    "echo to nowhere": ip4("98.0.0.1") / ICMP(id=1, seq=2) / Raw(b"?"),
    "first fragment": ip4("98.0.0.1", flags="MF") / UDP(sport=1, dport=2) / Raw(b"12345678"),
    "too long": ip4(FAR, flags="DF") / UDP(sport=1, dport=2) / LONG / Raw(b"x" * 20),
    "own port": ip4("10.0.0.1") / UDP(sport=1, dport=2) / Raw(b"mayfly"),
    "own port, other side": ip4("10.1.0.1", ttl=1) / UDP(sport=1, dport=2),
    "own protocol": ip4("10.0.0.1", proto=200) / Raw(b"12345678"),
    "hop limit": ip6(FAR6, hlim=1) / UDP(sport=1, dport=2) / Raw(b"mayfly"),
    "hop limit, class and options": ip6(FAR6, hlim=1, tc=0xb8, fl=77) / IPv6ExtHdrDestOpt(
        options=[PadN(optdata=b"1234")]) / UDP(),
    "no route 6": ip6("2001:db9::1") / UDP(sport=1, dport=2) / LONG,
    "unreachable route 6": ip6("2001:db8:b::1") / UDP(),
    "prohibit route 6": ip6("2001:db8:c::1") / UDP(),
    "echo to nowhere 6": ip6("2001:db9::1") / ICMPv6EchoRequest(id=1, seq=2, data=b"?"),
    "too big": ip6(FAR6) / UDP(sport=1, dport=2) / LONG / Raw(b"x" * 20),
    "own port 6": ip6("2001:db8::1") / UDP(sport=1, dport=2) / Raw(b"mayfly"),
    "own port 6, other side": ip6("2001:db8:1::1", hlim=1) / UDP(sport=1, dport=2),
    "own next header": ip6("2001:db8::1", nh=200) / Raw(b"12345678"),
    "own next header behind options": ip6("2001:db8::1") / IPv6ExtHdrDestOpt(nh=200, options=[PadN(optdata=bytes(4))])
    / Raw(b"12345678"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_the_same_error(twins, name):
    kernel, mayfly = twins.both(ERRORS[name])
    assert [parts(packet) for packet in mayfly] == [parts(packet) for packet in kernel]
    assert len(kernel) == 1


SILENCE = {
    "blackhole route": ip4("99.1.0.1") / UDP(),
    "about an error": ip4("98.0.0.1") / ICMP(type=11, code=0) / Raw(bytes(ip4(FAR) / UDP())),
    "about a later fragment": ip4("98.0.0.1", frag=100) / Raw(b"12345678"),
    "limited broadcast": ip4("255.255.255.255") / UDP(),
    "subnet broadcast": ip4("10.1.0.255", ttl=1) / UDP(),
    "multicast": ip4("239.1.1.1", ttl=1) / UDP(),
    "zero source": IP(src="0.0.0.0", dst="98.0.0.1") / UDP(),
    "loopback source": IP(src="127.0.0.1", dst="98.0.0.1") / UDP(),
    "multicast source": IP(src="224.0.0.5", dst="98.0.0.1") / UDP(),
    "broadcast source": IP(src="10.0.0.255", dst="98.0.0.1") / UDP(),
    "our own source": IP(src="10.0.0.1", dst="98.0.0.1") / UDP(),
    "the other side's own source": IP(src="10.1.0.1", dst="10.0.0.1") / ICMP(),
    "loopback destination": ip4("127.0.0.1") / UDP(),
    "bad checksum": ip4("98.0.0.1", chksum=1) / UDP(),
    "blackhole route 6": ip6("2001:db8:a::1") / UDP(),
    "about an error 6": ip6("2001:db9::1") / ICMPv6TimeExceeded() / IPv6(),
    "about an error 6 behind options": ip6("2001:db9::1") / IPv6ExtHdrDestOpt() / ICMPv6DestUnreach() / IPv6(),
    "multicast 6": ip6("ff05::77", hlim=1) / UDP(),
    "multicast source 6": IPv6(src="ff02::1", dst="2001:db9::1") / UDP(),
    "no source 6": IPv6(src="::", dst="2001:db9::1") / UDP(),
    "loopback destination 6": ip6("::1") / UDP(),
    "no next header": ip6("2001:db8::1", nh=59),
}


@pytest.mark.parametrize("name", SILENCE)
def test_nobody_says_a_word(twins, name):
    kernel, mayfly = twins.both(SILENCE[name])
    assert kernel == [] and mayfly == []


def test_frames_to_groups_are_not_answered(twins):
    for packet in (ip4("98.0.0.1", ttl=1) / UDP(), ip6("2001:db9::1", hlim=1) / UDP()):
        assert twins.both(packet, "ff:ff:ff:ff:ff:ff") == ([], [])


def test_where_we_differ_on_purpose(twins):
    """A TCP of ours would reset; there is none, and "port unreachable" makes a client give up just as fast."""
    for packet, kind in ((ip4("10.0.0.1") / TCP(sport=1, dport=2, flags="S"), (3, 3)),
                         (ip6("2001:db8::1") / TCP(sport=1, dport=2, flags="S"), (1, 4))):
        kernel, (mayfly,) = twins.both(packet)
        assert len(kernel) == 1 and kernel[0][6 if ":" in packet.src else 9] == 6, "the kernel resets"
        assert (parts(mayfly)["type"], parts(mayfly)["code"]) == kind
    # Nobody is in 0.0.0.0/8 (RFC 6890): a martian to us, without a route to the kernel.
    assert twins.mayfly.said_to(ip4("0.0.0.7") / UDP()) == []
    # Longer than the MTU, and may be cut: the kernel does it, we do not yet, and nobody needs to be told.
    assert twins.mayfly.said_to(ip4(FAR) / UDP(sport=1, dport=2) / LONG / Raw(b"x" * 20)) == []
    twins.kernel.hosts[1].waiting()


def test_neighbours_that_do_not_answer(twins):
    """Address resolution fails: host unreachable, address unreachable, about the packet as it was to leave."""
    for packet in (ip4("10.1.0.77") / UDP(sport=1, dport=2) / Raw(b"mayfly"),
                   ip6("2001:db8:1::77") / UDP(sport=1, dport=2) / Raw(b"mayfly")):
        twins.kernel.send(packet)
        twins.mayfly.send(packet)
        said = []
        for twin in (twins.kernel, twins.mayfly):
            said.append([parts(next(twin.answers()))])
        assert said[1] == said[0]


def test_link_local_sources_stay_on_their_link(twins):
    packet = IPv6(src="fe80::9", dst=FAR6) / UDP(sport=1, dport=2)
    for twin in (twins.kernel, twins.mayfly):
        twin.hosts[0].waiting()
    twins.daemon(f"neigh add fe80::9 lladdr {twins.mayfly.hosts[0].mac} dev p0")
    run("ip", "-n", twins.kernel_netns, "neigh", "add", "fe80::9", "lladdr", twins.kernel.hosts[0].mac, "dev", "k0")
    (kernel,), (mayfly,) = twins.both(packet)
    kernel, mayfly = parts(kernel), parts(mayfly)
    # Each speaks from the link-local address of its own MAC.
    assert kernel.pop("from")[:2] == mayfly.pop("from")[:2] == b"\xfe\x80"
    assert mayfly == kernel and (mayfly["type"], mayfly["code"]) == (1, 2)


def test_errors_are_limited_and_counted(twins):
    before = twins.daemon.json("stats")["icmp_errors"]
    for _ in range(400):
        twins.mayfly.send(ip4("98.0.0.1") / UDP())
    twins.mayfly.settle()
    twins.mayfly.settle()

    def grown():
        now = twins.daemon.json("stats")["icmp_errors"]
        return {key: now[key] - before[key] for key in now}

    after = eventually(grown, lambda seen: seen["sent"] + seen["limited"] == 400)
    assert after["sent"] >= 10 and after["limited"] > 0 and after["unsent"] == 0
