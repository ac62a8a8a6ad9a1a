# SPDX-License-Identifier: BSD-3-Clause
"""Ports: what is shown of them, how they come and go while the daemon runs, their links, and the drivers behind."""

import errno
import json
import signal
import socket
import subprocess

import pytest

from control import (ATTR_MERGED, GENERIC, GENERIC_FAMILY, HELLO, HELLO_FAMILY, HELLO_GROUPS, HELLO_VERSION, NLM_F_REQUEST,
                     NLMSG_ERROR, PORT_ADD, PORT_DEL, PORT_XSTATS, ROUTE_FAMILY, RTM_DELLINK, RTM_NEWLINK, VERSION, Client,
                     acknowledgement, attr, fixed_link, generic, message, string, u8, u32)
from frames import routed, udp
from lab import GIVE_UP, MAYFLY, eventually, inside, run


def port(daemon, name):
    (shown,) = daemon.json(f"port show {name}")
    return shown


def wait_for_link(daemon, name, up):
    eventually(lambda: port(daemon, name)["link_up"], up, f"the link of {name}")


def configure(daemon, near, far):
    """10.0.0.1/24 on near, 10.1.0.1/24 on far."""
    daemon(f"addr add 10.0.0.1/24 dev {near}")
    daemon(f"addr add 10.1.0.1/24 dev {far}")


def check_forwarding(daemon, left, right, near, far, near_tags=(), far_tags=()):
    """A packet from left to right, with the tags of both sides, byte by byte."""
    near_mac, far_mac = daemon.link(near)["address"], daemon.link(far)["address"]
    daemon(f"neigh replace 10.1.0.2 lladdr {right.mac} dev {far}")
    left.waiting(), right.waiting()
    frame = udp(near_mac, left.mac, "10.0.0.2", "10.1.0.2", near_tags)
    left.send(frame)
    right.expect(routed(frame, right.mac, far_mac, far_tags))


# port show


def test_show_says_everything(lab):
    netns = lab.netns("router")
    lab.raw_host("host", netns, "d0", mtu=1500)
    daemon = lab.daemon(netns, {"p0": "net_af_packet0,iface=d0"})
    shown = port(daemon, "p0")
    assert shown["driver"] == "net_af_packet" and shown["numa_node"] == -1 and shown["kernel_interface"] == "d0"
    assert shown["state"] == "running" and "reason" not in shown
    assert shown["link_up"] is True and shown["full_duplex"] is True and shown["speed_mbps"] == 10000
    assert shown["mtu"] == 1500 and shown["mtu_by_tags"] == [1500, 1500, 1496], "a second tag costs a veth 4 bytes"
    assert shown["queues"] == [{"queue": 0, "worker": 0}]
    assert shown["rss_types"] == [], "one queue needs none"
    assert shown["promiscuous"] is True and shown["promiscuous_wanted"] is True and shown["mac_filters"] == 0
    assert [shown[key] for key in ("imissed", "rx_nombuf", "ierrors", "oerrors")] == [0] * 4
    assert any("qpairs=1" in note for note in shown["notes"]) and any("802.1ad" in text for text in shown["warnings"])
    text = daemon("port show p0")
    for words in ("p0: running", "driver  net_af_packet, NUMA node none", "10 Gbit/s, full duplex", "1500 / 1500 / 1496",
                  "0 -> 0", "promiscuous on", "rss     in use: none", "imissed 0, rx_nombuf 0, ierrors 0, oerrors 0",
                  "warning "):
        assert words in text, text
    assert "device  rx" not in text and "device  rx 0 packets" in daemon("-s port show p0")
    (brief,) = daemon("-br port show").splitlines()
    assert brief.split()[:3] == ["p0", "running", "up"] and brief.endswith("net_af_packet")
    assert daemon.json("port show p0 xstats")["rx_good_packets"] == 0
    assert "rx_good_packets" in daemon("port show p0 xstats")
    daemon.refuse("port show p9 xstats", "p9")
    daemon.refuse("port show p9", "p9")


# Added and removed while running


def hears_everything(netns, device):
    """Whether a NIC in this device's place would let unknown unicast, or at least all multicast, pass."""
    link = json.loads(run("ip", "-n", netns, "-d", "-j", "link", "show", device))[0]
    return link["promiscuity"] + link.get("allmulti", 0) > 0


def test_ports_come_and_go_while_packets_flow(lab):
    netns = lab.netns("router")
    left, right, third = (lab.raw_host(name, netns, f"d{n}") for n, name in enumerate(("left", "right", "third")))
    daemon = lab.daemon(netns, {f"p{n}": f"net_af_packet{n},iface=d{n}" for n in range(2)})
    configure(daemon, "p0", "p1")
    before = None
    for _ in range(3):
        daemon(["port", "add", "p2", "net_af_packet2,iface=d2", "mtu", "1400", "promiscuous", "off"])
        shown = port(daemon, "p2")
        assert shown["state"] == "running" and shown["mtu"] == 1400 and shown["promiscuous_wanted"] is False
        # A packet socket's driver has no way to ask for all multicast, which IPv6 neighbours send: it says so.
        assert shown["promiscuous"] is True and "all multicast" in shown["promiscuous_reason"]
        assert any("all multicast" in warning for warning in shown["warnings"])
        assert hears_everything(netns, "d2")
        assert daemon.link("p2")["operstate"] == "UP" and daemon.link("p2")["mtu"] == 1400
        daemon.batch("addr add 10.2.0.1/24 dev p2", "link add v2 link p2 up type vlan id 5",
                     "link add q2 link v2 up type vlan id 6", "addr add 10.3.0.1/24 dev q2")
        daemon(f"neigh replace 10.3.0.2 lladdr {third.mac} dev q2")
        frame = udp(daemon.link("p0")["address"], left.mac, "10.0.0.2", "10.3.0.2")
        left.send(frame)
        third.expect(routed(frame, third.mac, daemon.link("q2")["address"], (5, 6)))
        check_forwarding(daemon, left, right, "p0", "p1")
        daemon("port del p2")
        assert [shown["ifname"] for shown in daemon.json("port show")] == ["p0", "p1"]
        assert daemon.names() == ["p0", "p1"], "its interface and what was stacked on it went with it"
        check_forwarding(daemon, left, right, "p0", "p1")
        now = daemon.resources()
        assert before in (None, now)
        before = now
    assert daemon.log().count("p2: closed") == 3


def test_refusals_of_port_add_and_del(lab):
    netns = lab.netns("router")
    lab.raw_host("host", netns, "d0")
    daemon = lab.daemon(netns, {"p0": "net_af_packet0,iface=d0"})
    daemon("link add taken type dummy")
    for words, texts in {
            "port add p/1 net_null1": ("p/1", "'/'"),
            "port add sixteencharacter net_null1": ("16 characters", "1..15"),
            "port add p0 net_null1": ("'p0' exists already", "running"),
            "port add taken net_null1": ("taken", "interface of this name"),
            "port add p1 net_af_packet0,iface=d0": ("net_af_packet0", "is port 'p0' already"),
            "port add p1 net_nonsense0": ("net_nonsense0", "no driver", "net_af_packet", "net_bonding"),
            "port add p1 net_af_packet1": ("which kernel interface", "iface=NAME"),
            "port add p1 net_af_packet1,iface=d9": ("'d9' does not exist", "d0"),
            "port add p1 net_bonding1,mode=1": ("which members", "slave=(DEVARGS)"),
            "port add p1 net_null1 rx_queues 0": ("rx_queues 0", "1..256"),
            "port add p1 net_null1 rx_queues 257": ("rx_queues 257", "1..256"),
            "port add p1 net_ring1 rx_queues 17": ("16 receive queues", "rx_queues: 16 instead of 17"),
            "port add p1 net_null1 rx_descriptors 0": ("rx_descriptors 0", "1..32768"),
            "port add p1 net_null1 tx_descriptors 32769": ("tx_descriptors 32769", "1..32768"),
            "port add p1 net_null1 mtu 60": ("mtu 60", "68.."),
            "port add p1 net_null1 mtu 9000": ("mtu 9000", "mbufs.size"),
            "port add p1 0000:ff:1f.7": ("0000:ff:1f.7", "no such PCI device"),
            "port del p9": ("port 'p9' does not exist",),
            "link del p0": ("p0", "mayfly port del p0"),
    }.items():
        daemon.refuse(words, *texts)
    daemon.refuse("port add p1", "NAME DEVARGS", status=2)
    daemon.refuse("port add p1 net_null1 promiscuous perhaps", "perhaps", "on, off", status=2)
    daemon.refuse("port add p1 net_null1 colour red", "colour", status=2)
    daemon.refuse("port del", "name", status=2)
    assert [shown["ifname"] for shown in daemon.json("port show")] == ["p0"], "a refused port leaves nothing"
    assert daemon.names() == ["p0", "taken"]
    daemon("port del p0")
    daemon.refuse("port del p0", "does not exist")


# link set on a port


def test_settings_reach_the_device(lab):
    netns = lab.netns("router")
    host = lab.raw_host("host", netns, "d0", mtu=1600)
    daemon = lab.daemon(netns, {"p0": "net_af_packet0,iface=d0"})
    daemon.batch("link add same link p0 up type vlan id 1", "link add stacked link same up type vlan id 2",
                 "link add own link p0 address 02:00:00:00:00:77 up type vlan id 3")
    daemon("link set p0 mtu 1560 alias west")
    assert daemon.link("p0")["mtu"] == 1560 and port(daemon, "p0")["mtu"] == 1560
    assert daemon.link("p0")["ifalias"] == "west"
    daemon("link set same mtu 1560")
    daemon.refuse("link set p0 mtu 1601 alias east", "mtu 1601", "68..1600", "ip link set dev d0 mtu 1601")
    daemon.refuse("link set p0 mtu 67", "mtu 67", "68..1600")
    assert daemon.link("p0")["mtu"] == 1560 and daemon.link("p0")["ifalias"] == "west", "all or nothing"

    daemon("link set p0 address 02:00:00:00:00:55")
    assert {name: daemon.link(name)["address"][-2:] for name in ("p0", "same", "stacked", "own")} == {
        "p0": "55", "same": "55", "stacked": "55", "own": "77"}, "what had the port's address follows it"
    assert json.loads(run("ip", "-n", netns, "-j", "link", "show", "d0"))[0]["address"] == "02:00:00:00:00:55"
    daemon.refuse("link set p0 address 01:00:00:00:00:01", "01:00:00:00:00:01", "unicast")
    # The second thing is refused: the first is taken back.
    daemon("link add taken type dummy")
    index = daemon.link("p0")["ifindex"]
    daemon.refuse("link set p0 address 02:00:00:00:00:66 name taken", "taken")
    eventually(lambda: daemon.link("p0")["address"], "02:00:00:00:00:55", "the address taken back")
    assert daemon.link("p0")["ifindex"] == index

    # The kernel's packet socket filters nothing by address and cannot: with an address of its own above, the port
    # stays promiscuous and says why.
    warned = daemon.cli("link set p0 promisc off")
    assert warned.status == 0 and "stays promiscuous" in warned.err and "no MAC filter" in warned.err
    shown = port(daemon, "p0")
    assert shown["promiscuous"] is True and shown["promiscuous_wanted"] is False
    assert "no MAC filter" in shown["promiscuous_reason"] and "no MAC filter" in daemon("port show p0")
    daemon("link del own")
    eventually(lambda: port(daemon, "p0")["promiscuous_reason"], lambda reason: "all multicast" in reason, "the reason")
    assert port(daemon, "p0")["promiscuous"] is True and hears_everything(netns, "d0")
    assert "PROMISC" not in daemon.link("p0")["flags"]
    daemon("link add own link p0 address 02:00:00:00:00:77 up type vlan id 3")
    eventually(lambda: port(daemon, "p0")["promiscuous_reason"], lambda reason: "no MAC filter" in reason, "the reason")
    daemon("link set p0 promisc on")
    assert "PROMISC" in daemon.link("p0")["flags"] and "promiscuous_reason" not in port(daemon, "p0")
    daemon.refuse("link set own promisc on", "own", "no port")
    daemon.refuse("link set p0 promisc maybe", "maybe", status=2)
    assert host.ring_drops() == 0


def test_tags_cost_a_kernel_interface_mtu(lab):
    """What the device cannot carry is refused here, by name, and not lost in the kernel."""
    netns = lab.netns("router")
    left, right = lab.raw_host("left", netns, "d0", mtu=1500), lab.raw_host("right", netns, "d1", mtu=1500)
    daemon = lab.daemon(netns, {"p0": "net_af_packet0,iface=d0", "p1": "net_af_packet1,iface=d1"})
    daemon("link add q link p1 up type vlan id 5 inner 6")
    configure(daemon, "p0", "q")
    daemon(f"neigh replace 10.1.0.2 lladdr {right.mac} dev q")
    for size, fits in ((1496, True), (1497, False)):
        frame = udp(daemon.link("p0")["address"], left.mac, "10.0.0.2", "10.1.0.2", flags="DF", payload=b"x" * (size - 28))
        if fits:
            left.send(frame)
            right.expect(routed(frame, right.mac, daemon.link("q")["address"], (5, 6)))
        else:
            with daemon.dropping(mtu_exceeded=1):
                left.send(frame)


# Carrier and unplugging


@pytest.mark.sanitizer
def test_carrier(lab):
    netns = lab.netns("router")
    left, right = lab.raw_host("left", netns, "d0"), lab.raw_host("right", netns, "d1")
    daemon = lab.daemon(netns, {"p0": "net_af_packet0,iface=d0", "p1": "net_af_packet1,iface=d1"})
    daemon.batch("link add v link p1 up type vlan id 5", "link add w link v up type vlan id 6")
    configure(daemon, "p0", "v")
    check_forwarding(daemon, left, right, "p0", "v", far_tags=(5,))
    with Monitor(daemon) as monitor:
        run("ip", "-n", right.netns, "link", "set", "h0", "down")
        wait_for_link(daemon, "p1", False)
        for name, state in (("p1", "DOWN"), ("v", "LOWERLAYERDOWN"), ("w", "LOWERLAYERDOWN"), ("p0", "UP")):
            link = daemon.link(name)
            assert link["operstate"] == state and "UP" in link["flags"], "the administrator's state is not touched"
            assert ("NO-CARRIER" in link["flags"]) == (state != "UP")
        (event,) = monitor.read(1)
        assert (event["event"], event["ifname"], event["operstate"]) == ("changed", "p1", "DOWN"), "one event"
        with daemon.dropping(interface_down=3):
            left.send(*[udp(daemon.link("p0")["address"], left.mac, "10.0.0.2", "10.1.0.2")] * 3)
        run("ip", "-n", right.netns, "link", "set", "h0", "up")
        wait_for_link(daemon, "p1", True)
        assert {daemon.link(name)["operstate"] for name in ("p0", "p1", "v", "w")} == {"UP"}
        (event,) = monitor.read(1)
        assert (event["ifname"], event["operstate"]) == ("p1", "UP")
    right.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)  # the network was down, it would say
    check_forwarding(daemon, left, right, "p0", "v", far_tags=(5,))
    assert "port p1: link down" in daemon.log() and "port p1: link up" in daemon.log()


def test_a_device_that_vanishes_while_frames_flow(lab):
    netns = lab.netns("router")
    left, right = lab.raw_host("left", netns, "d0"), lab.raw_host("right", netns, "d1")
    daemon = lab.daemon(netns, {"p0": "net_af_packet0,iface=d0", "p1": "net_af_packet1,iface=d1"})
    daemon("link add v link p1 up type vlan id 5")
    configure(daemon, "p0", "v")
    # Who is told that nobody answers behind the dead port.
    daemon(f"neigh replace 10.0.0.2 lladdr {left.mac} dev p0")
    check_forwarding(daemon, left, right, "p0", "v", far_tags=(5,))
    frame = bytes(udp(daemon.link("p0")["address"], left.mac, "10.0.0.2", "10.1.0.2"))
    for number in range(2000):
        if number == 500:
            run("ip", "-n", netns, "link", "del", "d1")
        left.send(frame)
    eventually(lambda: port(daemon, "p1")["state"], "gone", "the port")
    shown = port(daemon, "p1")
    assert shown["reason"] == "kernel interface 'd1' was deleted" and shown["link_up"] is False
    assert "p1: gone: kernel interface 'd1' was deleted" in daemon("port show p1")
    assert daemon.link("p1")["operstate"] == "DOWN" and daemon.link("v")["operstate"] == "LOWERLAYERDOWN"
    with daemon.dropping(interface_down=1):
        left.send(frame)
    daemon.refuse("link set p1 mtu 1400", "'p1' is gone")
    daemon.refuse("port show p1 xstats", "'p1' is gone")
    lab.veth(netns, "d1", right.netns, "h1", 1600)
    daemon.refuse(["port", "add", "p1", "net_af_packet1,iface=d1"], "'p1' exists already (gone)")
    daemon("port del p1")
    assert daemon.names() == ["p0"]
    daemon(["port", "add", "p1", "net_af_packet1,iface=d1"])
    daemon("link add v link p1 up type vlan id 5")
    daemon("addr add 10.1.0.1/24 dev v")
    check_forwarding(daemon, left, lab.tap_on(right.netns, "h1"), "p0", "v", far_tags=(5,))
    daemon.check_balance()


# Events


class Monitor:
    """mayfly -j monitor link: the events as they come."""

    def __init__(self, daemon):
        self.daemon = daemon

    def __enter__(self):
        clients = self.daemon.status()["clients"]
        self.process = subprocess.Popen([MAYFLY, "--socket", self.daemon.socket_path, "-j", "monitor", "link"],
                                        stdout=subprocess.PIPE, text=True)
        eventually(lambda: self.daemon.status()["clients"] > clients, True, "the monitor")
        return self

    def read(self, count):
        return [json.loads(self.process.stdout.readline()) for _ in range(count)]

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        self.process.stdout.close()


def test_events(mayfly):
    with Monitor(mayfly) as monitor:
        mayfly("link add v link port0 up type vlan id 5")
        mayfly("link add w link v up type vlan id 6")
        mayfly("link set v group 7")
        mayfly("link del v")
        mayfly("link bulk add count 1000 name s{} link port0 type vlan id 1-10 inner 1-100")
        seen = [(event["event"], event.get("ifname")) for event in monitor.read(4)]
        assert seen == [("changed", "v"), ("changed", "w"), ("changed", "v"), ("deleted", "v")], "w went with v"
        told = 0
        while told < 1000:
            (event,) = monitor.read(1)
            told += event.get("merged", 1)
        assert told == 1000
        mayfly("link del type vlan")
        told = 0
        while told < 1000:
            (event,) = monitor.read(1)
            assert event["event"] == "deleted"
            told += event.get("merged", 1)
        assert told == 1000


def listen(client, groups=1, family=ROUTE_FAMILY):
    """The hello of a client that wants events; its answer."""
    client.send(message(HELLO, NLM_F_REQUEST, 7, u32(HELLO_VERSION, VERSION), u32(HELLO_FAMILY, family),
                        u32(HELLO_GROUPS, groups)))
    return client.receive()[0]


def test_groups_that_do_not_exist(mayfly):
    for groups, family in ((2, ROUTE_FAMILY), (3, ROUTE_FAMILY), (2**32 - 1, ROUTE_FAMILY), (1, GENERIC_FAMILY)):
        with Client(mayfly.socket_path, hello=False) as client:
            refusal = acknowledgement(listen(client, groups, family))
            assert refusal.code == errno.EOPNOTSUPP and f"{groups:#x}" in refusal.text and "0x1" in refusal.text


def test_a_listener_that_does_not_read_is_told(mayfly):
    with Client(mayfly.socket_path, hello=False) as client:
        assert listen(client).kind == HELLO
        mayfly("link bulk add count 4000 name d{} type dummy")
        for text in "abcdef":
            mayfly.batch(*[f"link set d{number} alias {text * 100}" for number in range(4000)])
        mayfly("link del type dummy")
        seen = []
        while True:
            seen += client.receive()
            if errors := [event for event in seen if event.kind == NLMSG_ERROR]:
                break
        assert all(event.sequence == 0 for event in seen)
        assert [acknowledgement(error).code for error in errors] == [errno.ENOBUFS]
        assert "lost" in acknowledgement(errors[0]).text
        assert {event.kind for event in seen} <= {RTM_NEWLINK, RTM_DELLINK, NLMSG_ERROR}
        assert any(ATTR_MERGED in event.attributes(16) for event in seen if event.kind == RTM_NEWLINK)
        # From here on it hears again.
        mayfly("link add after type dummy")
        (event,) = client.receive()
        assert event.kind == RTM_NEWLINK and event.attributes(16)[3] == b"after\0"
        # And it may ask, too, on the same connection.
        assert client.refused(RTM_NEWLINK, fixed_link(), string(3, "nobody")).code == errno.ENODEV


@pytest.mark.parametrize("body, code, texts", [
    (generic(PORT_ADD), errno.EINVAL, ["port", "missing"]),
    (generic(PORT_ADD, string(1, "p9")), errno.EINVAL, ["devargs", "missing"]),
    (generic(PORT_ADD, string(1, "p9"), attr(10, b"\1")), errno.EINVAL, ["rx_queues", "1 byte"]),
    (generic(PORT_ADD, string(1, "p9"), string(3, "x" * 5000)), errno.EINVAL, ["devargs", "4096"]),
    (generic(PORT_ADD, string(1, "p9"), u32(99, 1)), errno.EINVAL, ["99"]),
    (generic(PORT_ADD, string(1, "p9"), string(3, "net_null9"), u32(8, 2**32 - 1)), errno.ERANGE, ["mtu 4294967295"]),
    (generic(PORT_ADD, string(1, "p9"), string(3, "net_null9"), u32(12, 2**32 - 1)), errno.ERANGE, ["rx_descriptors"]),
    (generic(PORT_DEL), errno.EINVAL, ["port", "missing"]),
    (generic(PORT_DEL, string(1, "")), errno.EINVAL, ["port", "missing"]),
    (generic(PORT_DEL, string(1, "p9"), u8(17, 1)), errno.EINVAL, ["17"]),
    (generic(PORT_XSTATS), errno.EINVAL, ["port", "missing"]),
], ids=["add nothing", "add without devargs", "rx_queues of a byte", "long devargs", "unknown attribute", "mtu",
        "descriptors", "del nothing", "del an empty name", "del with an attribute", "xstats of nothing"])
def test_wrong_messages(mayfly, body, code, texts):
    before = mayfly.json("port show")
    with Client(mayfly.socket_path, GENERIC_FAMILY) as client:
        refusal = client.refused(GENERIC, body)
        assert refusal.code == code and all(text in refusal.text for text in texts), refusal
    assert mayfly.json("port show") == before


def test_a_client_that_goes_away_while_a_port_is_opened(mayfly):
    for _ in range(3):
        with Client(mayfly.socket_path, GENERIC_FAMILY) as client:
            client.send(message(GENERIC, NLM_F_REQUEST, 9, generic(PORT_ADD, string(1, "p9"), string(3, "net_null9,no-rx=1"))))
        eventually(lambda: [shown["state"] for shown in mayfly.json("port show") if shown["ifname"] == "p9"], ["running"],
                   "the port")
        with Client(mayfly.socket_path, GENERIC_FAMILY) as client:
            client.send(message(GENERIC, NLM_F_REQUEST, 9, generic(PORT_DEL, string(1, "p9"))))
        eventually(lambda: "p9" in [shown["ifname"] for shown in mayfly.json("port show")], False, "the port")


# Drivers


def test_af_xdp_keeps_802_1ad(lab):
    netns = lab.netns("router")
    left, right = lab.raw_host("left", netns, "d0", mtu=1500), lab.raw_host("right", netns, "d1", mtu=1500)
    daemon = lab.daemon(netns, {"p0": "net_af_xdp0,iface=d0", "p1": "net_af_xdp1,iface=d1"})
    daemon.batch("link add s link p0 up type vlan id 100 inner 7 protocol 802.1ad",
                 "link add c link p0 up type vlan id 100 inner 7", "link add t link p1 up type vlan id 9 protocol 802.1ad")
    configure(daemon, "s", "t")
    check_forwarding(daemon, left, right, "s", "t", (("ad", 100), 7), (("ad", 9),))
    assert daemon.link("s")["stats64"]["rx"]["packets"] == 1 and daemon.link("c")["stats64"]["rx"]["packets"] == 0
    assert port(daemon, "p0")["driver"] == "net_af_xdp" and port(daemon, "p0")["kernel_interface"] == "d0"


def test_af_xdp_loses_its_interface(lab):
    netns = lab.netns("router")
    left, right = lab.raw_host("left", netns, "d0", mtu=1500), lab.raw_host("right", netns, "d1", mtu=1500)
    daemon = lab.daemon(netns, {"p0": "net_af_xdp0,iface=d0", "p1": "net_af_packet1,iface=d1"})
    configure(daemon, "p0", "p1")
    check_forwarding(daemon, left, right, "p0", "p1")
    run("ip", "-n", netns, "link", "del", "d0")
    eventually(lambda: port(daemon, "p0")["state"], "gone", "the port")
    daemon("port del p0")
    lab.veth(netns, "d0", left.netns, "h1", 1500)
    daemon(["port", "add", "p0", "net_af_xdp0,iface=d0"])
    daemon("addr add 10.0.0.1/24 dev p0")
    check_forwarding(daemon, lab.tap_on(left.netns, "h1"), right, "p0", "p1")


def test_af_xdp_wants_mbufs_of_a_page(lab):
    netns = lab.netns("router")
    lab.raw_host("host", netns, "d0")
    daemon = lab.daemon(netns, config="mbufs: {size: 9000B, count: 4096}\n")
    daemon.refuse(["port", "add", "p0", "net_af_xdp0,iface=d0"], "mbufs", "4096", "mbufs.size")


def test_tap(lab):
    netns = lab.netns("router")
    right = lab.raw_host("right", netns, "d1")
    daemon = lab.daemon(netns, {"p0": "net_tap0,iface=tap0", "p1": "net_af_packet1,iface=d1"})
    configure(daemon, "p0", "p1")
    run("ip", "-n", netns, "addr", "add", "10.0.0.2/24", "dev", "tap0")
    run("ip", "-n", netns, "route", "add", "10.1.0.0/24", "via", "10.0.0.1")
    wait_for_link(daemon, "p0", True)
    shown = port(daemon, "p0")
    kernel = json.loads(run("ip", "-n", netns, "-j", "link", "show", "tap0"))[0]["address"]
    assert shown["driver"] == "net_tap" and shown["kernel_interface"] == "tap0" and shown["address"] != kernel
    daemon(f"neigh replace 10.1.0.2 lladdr {right.mac} dev p1")
    right.waiting()
    with inside(netns), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp_socket:
        udp_socket.bind(("10.0.0.2", 1000))
        udp_socket.settimeout(GIVE_UP)
        udp_socket.sendto(b"from the kernel", ("10.1.0.2", 2000))  # after an ARP exchange with the port
        frame = right.receive()
        assert frame is not None and frame[26:34] == bytes([10, 0, 0, 2, 10, 1, 0, 2]) and b"from the kernel" in frame
        right.send(udp(daemon.link("p1")["address"], right.mac, "10.1.0.2", "10.0.0.2", payload=b"to the kernel", dport=1000))
        assert udp_socket.recv(100) == b"to the kernel"
    run("ip", "-n", netns, "link", "set", "tap0", "down")
    wait_for_link(daemon, "p0", False)
    assert daemon.link("p0")["operstate"] == "DOWN"


def test_memif_between_two_daemons(lab):
    netns = lab.netns("router")
    left, right = lab.raw_host("left", netns, "d0"), lab.raw_host("right", netns, "d1")
    path = lab.directory / "memif.sock"
    first = lab.daemon(netns, {"p0": "net_af_packet0,iface=d0",
                               "m0": f"net_memif0,role=server,id=3,socket={path},socket-abstract=no"})
    assert port(first, "m0")["link_up"] is False and first.link("m0")["operstate"] == "DOWN", "nobody is there yet"
    second = lab.daemon(netns, {"p1": "net_af_packet0,iface=d1",
                                "m1": f"net_memif0,role=client,id=3,socket={path},socket-abstract=no"})
    for daemon, name in ((first, "m0"), (second, "m1")):
        wait_for_link(daemon, name, True)
    assert port(first, "m0")["mtu_by_tags"] == [1500, 1500, 1500]
    first("addr add 10.0.0.1/24 dev p0")
    first("addr add 10.9.0.1/30 dev m0")
    first("route add 10.1.0.0/24 via 10.9.0.2")
    second("addr add 10.9.0.2/30 dev m1")
    second("addr add 10.1.0.1/24 dev p1")
    second(f"neigh add 10.1.0.2 lladdr {right.mac} dev p1")
    frame = udp(first.link("p0")["address"], left.mac, "10.0.0.2", "10.1.0.2")
    left.send(frame)
    right.expect(routed(routed(frame, "02:00:00:00:00:01", "02:00:00:00:00:02"), right.mac, second.link("p1")["address"]))
    second.stop()
    wait_for_link(first, "m0", False)


def test_bonding(lab):
    netns = lab.netns("router")
    one, two = lab.raw_host("one", netns, "d0"), lab.raw_host("two", netns, "d1")
    right = lab.raw_host("right", netns, "d2")
    bond = "net_bonding0,mode=1,slave=(net_af_packet0,iface=d0),slave=(net_af_packet1,iface=d1),primary=net_af_packet0"
    daemon = lab.daemon(netns, {"b": bond, "p2": "net_af_packet2,iface=d2"})
    assert port(daemon, "b")["driver"] == "net_bonding"
    wait_for_link(daemon, "b", True)
    configure(daemon, "b", "p2")
    check_forwarding(daemon, one, right, "b", "p2")
    daemon(f"neigh replace 10.0.0.2 lladdr {one.mac} dev b")
    back = udp(daemon.link("p2")["address"], right.mac, "10.1.0.2", "10.0.0.2")
    right.send(back)
    one.expect(routed(back, one.mac, daemon.link("b")["address"]))
    assert two.waiting() == [], "active-backup: the other one is silent"
    daemon("port del b")
    daemon(["port", "add", "b", bond])
    wait_for_link(daemon, "b", True)
    daemon("addr add 10.0.0.1/24 dev b")
    check_forwarding(daemon, one, right, "b", "p2")
    daemon.refuse(["port", "add", "c", "net_bonding1,mode=1,slave=(net_af_packet7,iface=d9)"], "'d9' does not exist")


# Workers of different load


def test_an_imbalance_of_workers_is_named(lab):
    config = """
workers: {count: 2}
ports:
  - {name: quiet, devargs: "net_null0,no-rx=1", rx_queues: 1}
  - {name: busy, devargs: net_null1, rx_queues: 1}
"""
    daemon = lab.daemon(config=config)
    shown = eventually(daemon.status, lambda status: "imbalance" in status, "the imbalance")
    assert shown["imbalance"].startswith("worker 1 handles ") and "port show" in shown["imbalance"]
    assert "balance     worker 1 handles" in daemon("status")
    assert daemon.log().count("worker 1 handles") == 1
