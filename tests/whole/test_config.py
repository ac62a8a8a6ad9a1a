# SPDX-License-Identifier: BSD-3-Clause
"""The network section of the configuration: made at start as a whole or not at all, dumped so that it loads back
identically, and reloaded with what differs and nothing else."""

import errno
import socket
import struct
import subprocess

import pytest

from control import (ATTR_DEVICE, GENERIC, GENERIC_FAMILY, NLM_F_CREATE, NLM_F_EXCL, RTA_DST, RTM_NEWROUTE, Client,
                     generic, ipv4, string)
from frames import routed, udp
from lab import GIVE_UP, MAYFLY, eventually
from test_daemon import NULL, check, fails

CONFIG_BEGIN, CONFIG_TEXT, CONFIG_APPLY = 25, 27, 28

FULL = """
mbufs: {count: 2048}
ports: [{name: port0, devargs: "net_null0,no-rx=1"}, {name: port1, devargs: "net_null1,no-rx=1"}]
network:
  - netns: default
    interfaces:
      - {name: 'sub{}', type: vlan, count: 1000, link: port0, id: 1-40, inner: 1-25, group: 7, up: true, unnumbered: lo100}
      - {name: lo100, type: dummy, up: true, alias: the gateway}
      - {name: v0, type: veth, up: true, peer: {name: v1, netns: blue, up: true}}
      - {name: q0, type: vlan, link: port0, id: 100, protocol: 802.1ad, up: true, mtu: 1400, rp_filter: strict,
         proxy_arp: true, proxy_nd: true, addrgenmode: none}
      - {name: port0, type: port, mtu: 1496, up: true, group: 3}
    addresses:
      - {address: 10.0.0.1/24, dev: port0}
      - {address: 100.64.0.1/16, dev: lo100}
      - {address: '2001:db8::1/64', dev: port0, nodad: true}
    routes:
      - {to: default, via: 10.0.0.254}
      - {to: 10.66.0.0/16, type: blackhole}
      - {to: 100.64.0.5/32, dev: sub5, metric: 10}
      - {to: '2001:db8:1::/48', via: '2001:db8::2', protocol: boot}
    neighbours:
      - {address: 10.0.0.2, lladdr: 02:00:00:00:00:02, dev: port0}
      - {address: 100.64.0.5, lladdr: 02:00:00:00:00:05, dev: sub5}
  - netns: blue
    interfaces:
      - {name: port1, type: port, up: true}
      - {name: b0, type: vlan, link: port0, link_netns: default, id: 200, up: true}
    addresses:
      - {address: 10.0.0.1/24, dev: port1}
    routes:
      - {to: default, via: 10.0.0.254, dev: port1}
"""


def started(lab, config, **more):
    return lab.daemon(ports={}, config=config, **more)


def written(daemon, text, name="new.yaml"):
    path = daemon.directory / name
    path.write_text(text)
    return path


def reload(daemon, text):
    return daemon(f"config reload {written(daemon, text)}").splitlines()


def identities(daemon):
    return {link["ifname"]: (link["id"], link["ifindex"]) for link in daemon.json("link show")}


@pytest.mark.sanitizer
def test_a_full_file_at_start_is_dumped_and_loads_back(lab):
    daemon = started(lab, FULL)
    assert daemon.count("group 7") == 1000
    assert daemon.link("sub999")["linkinfo"]["info_data"] == {"protocol": "802.1Q", "id": 40, "inner": 25}
    assert daemon.link("sub999")["unnumbered"] == "lo100"
    assert daemon.link("port0")["mtu"] == 1496
    assert {link["ifname"] for link in daemon.json("-n blue link show")} == {"port1", "b0", "v1"}
    assert daemon.json("route get 100.64.0.5")[0]["dev"] == "sub5"
    assert daemon.json("route get 10.66.1.1")[0]["type"] == "blackhole"
    assert daemon("config show") == FULL
    first = daemon("config dump")
    daemon.stop()
    again = started(lab, first)
    assert again("config dump").replace(again.socket_path, daemon.socket_path) == first
    assert again.count("group 7") == 1000
    again("link del sub7")
    assert again("config dump") != first


def loads_back(lab, daemon):
    """The dump of this daemon, which ends it, and the next one that was started with it."""
    first = daemon("config dump")
    daemon.stop()
    again = started(lab, first)
    assert again("config dump").replace(again.socket_path, daemon.socket_path) == first
    return again


BARE = """
mbufs: {count: 2048}
ports: [{name: port0, devargs: "net_null0,no-rx=1"}, {name: port1, devargs: "net_null1,no-rx=1"}]
"""


def test_what_is_stacked_loads_back(lab):
    daemon = started(lab, BARE)
    for command in ("netns add blue",
                    "link add v0 link port0 up type vlan id 5", "link add q0 link v0 mtu 1450 type vlan id 6",
                    "link add r0 link v0 mtu 1300 type vlan id 7", "link add b0 link port0 netns blue type vlan id 8",
                    "link add w0 link port0 type vlan protocol 802.1ad id 9", "link add x0 link w0 type vlan id 3",
                    "link set port0 mtu 1400"):
        daemon(command)
    again = loads_back(lab, daemon)
    assert [again.link(name)["mtu"] for name in ("port0", "v0", "q0", "r0")] == [1400, 1400, 1400, 1300]
    assert again.link("x0")["linkinfo"]["info_data"] == {"protocol": "802.1ad", "id": 9, "inner": 3}


def test_what_the_daemon_accepts_loads_back(lab):
    daemon = started(lab, BARE)
    for words in (
            ["link", "add", "c", "up", "type", "dummy"], ["link", "add", "b", "up", "type", "dummy"],
            ["link", "add", "a", "up", "unnumbered", "b", "type", "dummy"], ["link", "set", "b", "unnumbered", "c"],
            ["link", "set", "a", "alias", """ "quotes' \\ #: {}[], -, café \u2028"""],
            ["link", "add", "#'\"{}", "type", "dummy"], ["link", "add", "~", "type", "dummy"],
            ["link", "add", "0x10", "type", "dummy"], ["link", "add", "no", "type", "dummy"],
            ["addr", "add", "10.0.0.1/24", "dev", "a"]):
        daemon(words)
    with Client(daemon.socket_path) as client:
        for protocol in (1, 3, 16, 255):
            body = (struct.pack("=BBBBBBBBI", socket.AF_INET, 24, 0, 0, 254, protocol, 0, 1, 0)
                    + ipv4(RTA_DST, f"10.1.{protocol}.0") + string(ATTR_DEVICE, "a"))
            assert client.ask(RTM_NEWROUTE, body, flags=NLM_F_CREATE | NLM_F_EXCL)[1] is None
    daemon.refuse("link set c unnumbered a", "'a'", "uses the addresses of 'c' itself")
    for text in ("a\tb", "a\nb", "\x7f", "\x1b[31m"):
        daemon.refuse(["link", "set", "a", "alias", text], "alias", "control characters")
        daemon.refuse(["link", "add", "x" + text, "type", "dummy"], "control characters")
    again = loads_back(lab, daemon)
    assert again.link("b")["unnumbered"] == "c" and again.link("a")["unnumbered"] == "b"


def test_ports_load_back_as_they_are(lab):
    netns = lab.netns("router")
    for n in range(4):
        lab.raw_host(f"host{n}", netns, f"d{n}")
    # What --port and the file name is what the settings begin with.
    daemon = lab.daemon(netns, {}, config="""
mbufs: {count: 8192}
ports:
  - {name: p0, devargs: "net_af_packet0,iface=d0"}
  - {name: p1, devargs: "net_af_packet1,iface=d1"}
  - {name: n0, devargs: "net_null0,no-rx=1", mtu: 1400}
""")
    for words in (["link", "set", "p0", "promisc", "off"], ["link", "set", "n0", "address", "02:00:00:00:00:77"],
                  ["port", "del", "p1"], ["port", "add", "p1", "net_af_packet9,iface=d2"],
                  ["port", "add", "b0", "net_bonding0,mode=1,slave=(net_af_packet7,iface=d3)"]):
        daemon(words)

    def ports(of):
        return [{key: port[key] for key in ("ifname", "devargs", "driver", "mtu", "promiscuous_wanted", "rx_descriptors")}
                for port in of.json("port show")]

    before = ports(daemon)
    assert [(port["ifname"], port["devargs"]) for port in before] == [
        ("p0", "net_af_packet0,iface=d0"), ("n0", "net_null0,no-rx=1"), ("p1", "net_af_packet9,iface=d2"),
        ("b0", "net_bonding0,mode=1,slave=(net_af_packet7,iface=d3)")]
    first = daemon("config dump")
    daemon.stop()
    again = lab.daemon(netns, {}, config=first)
    assert ports(again) == before
    assert again.link("n0")["address"] == "02:00:00:00:00:77"
    assert again("config dump").replace(again.socket_path, daemon.socket_path) == first


def test_routes_that_need_or_follow_others_load_back(lab):
    daemon = started(lab, BARE)
    for command in (
            "link add v1 link port0 up type vlan id 5", "link add w1 link port0 up type vlan id 6",
            "addr add 10.0.0.1/24 dev port0", "addr add 172.16.0.1/24 dev port0",
            # Gateways behind routes to interfaces, which are sorted behind those that need them.
            "route add 192.168.0.1 dev v1", "route add 10.1.0.0/16 via 192.168.0.1",
            "route add fd00::1 dev v1", "route add 2001:db8::/48 via fd00::1",
            # Several of one prefix: the first of these is used, of a session's the newest.
            "route add 10.7.0.0/16 dev w1", "route append 10.7.0.0/16 dev v1", "route append 10.7.0.0/16 via 10.0.0.2",
            "link bulk add count 3 name s{} link port0 up route 10.8.0.0/16 type vlan id 10-12",
            # The address that its gateway was found by has gone.
            "route add 10.9.0.0/16 via 172.16.0.2", "addr del 172.16.0.1/24 dev port0",
            # The gateway has become an address of this router's.
            "route add 10.10.0.0/16 via 10.0.0.9", "addr add 10.0.0.9/32 dev v1"):
        daemon(command)
    destinations = ("10.1.0.1", "2001:db8::1", "10.7.0.1", "10.8.0.1", "10.9.0.1", "10.10.0.1")
    ways = [[daemon.json(f"route get {to}")[0].get(key) for key in ("dev", "gateway")] for to in destinations]
    assert [dev for dev, _ in ways] == ["v1", "v1", "w1", "s2", "port0", "port0"]
    again = loads_back(lab, daemon)
    assert [[again.json(f"route get {to}")[0].get(key) for key in ("dev", "gateway")] for to in destinations] == ways
    # They succeed each other as before.
    for dev in ("s2", "s1", "w1"):
        again(f"link del {dev}")
    assert again.json("route get 10.8.0.1")[0]["dev"] == "s0"
    assert again.json("route get 10.7.0.1")[0]["dev"] == "v1"


def test_a_reload_keeps_the_order_of_routes(lab):
    base = BARE + "network:\n  - netns: default\n    interfaces:\n" + "".join(
        f"      - {{name: d{n}, type: dummy, up: true}}\n" for n in range(3)) + "    routes:\n"
    routes = [f"      - {{to: 10.7.0.0/16, dev: d{n}}}\n" for n in range(3)]
    daemon = started(lab, base + routes[0] + routes[1])

    def used():
        return [route["dev"] for route in daemon.json("route show") if route["dst"] == "10.7.0.0/16"], \
            daemon.json("route get 10.7.0.1")[0]["dev"]

    assert reload(daemon, base + routes[0] + routes[1] + routes[2]) == ["+ route append 10.7.0.0/16 dev d2"]
    assert reload(daemon, base + routes[2] + routes[0]) == [
        "- route del 10.7.0.0/16 dev d2", "- route del 10.7.0.0/16 dev d1", "- route del 10.7.0.0/16 dev d0",
        "+ route add 10.7.0.0/16 dev d2", "+ route append 10.7.0.0/16 dev d0"]
    assert used() == (["d2", "d0"], "d2")
    assert reload(daemon, base + routes[0]) == [
        "- route del 10.7.0.0/16 dev d0", "- route del 10.7.0.0/16 dev d2", "+ route add 10.7.0.0/16 dev d0"]
    assert used() == (["d0"], "d0")
    # What somebody made by hand is not joined unawares.
    daemon("route del 10.7.0.0/16")
    daemon("route add 10.7.0.0/16 dev d1")
    daemon.refuse(f"config reload {written(daemon, base + routes[2])}", "exists", "nothing was changed")


@pytest.mark.parametrize("network, line, texts", [
    ("addresses: [{address: 10.0.0.1/24, dev: port0},\n      {address: 10.1.0.1/24, dev: nope}]", 7,
     ["addr add 10.1.0.1/24 dev nope", "'nope' does not exist"]),
    ("interfaces:\n      - {name: 'a{}', type: vlan, link: port0, id: 1-10}\n"
     "      - {name: b, type: vlan, link: port0, id: 5}", 8, ["link add b", "id 5"]),
    ("routes: [{to: default, via: 192.0.2.1}]", 6, ["192.0.2.1"]),
])
def test_what_fails_half_way_at_start_ends_it(lab, network, line, texts):
    config = f"mbufs: {{count: 2048}}\nports:\n  - {{name: port0, devargs: 'net_null0,no-rx=1'}}\nnetwork:\n  - netns: default\n    {network}\n"
    fails(lab, 1, f"mayflyd.yaml:{line}: ", *texts, ports={}, config=config)


@pytest.mark.parametrize("network, line, texts", [
    ("- {netns: default, interfaces: [{name: a, type: tunnel}]}", 2, ["type", "tunnel", "vlan", "dummy", "veth"]),
    ("- {netns: default, interfaces: [{name: a, type: vlan, id: 5}]}", 2, ["link", "mandatory"]),
    ("- {netns: default, interfaces: [{name: a, type: vlan, link: p, id: 4095}]}", 2, ["4095", "1..4094"]),
    ("- {netns: default, interfaces: [{name: a, type: dummy, id: 5}]}", 2, ["id", "type dummy has no such key"]),
    ("- netns: default\n  interfaces:\n    - {name: a, type: dummy}\n    - {name: a, type: dummy}", 5, ["already", ":4"]),
    ("- {netns: default, interfaces: [{name: s, count: 5, type: dummy}]}", 2, ["5 interfaces need a field"]),
    ("- {netns: default, addresses: [{address: 10.0.0.300, dev: a}]}", 2, ["10.0.0.300"]),
    ("- {netns: default, routes: [{to: 10.0.0.1/8, dev: a}]}", 2, ["10.0.0.0/8"]),
    ("- {netns: default, routes: [{to: default}]}", 2, ["via", "dev"]),
    ("- netns: default\n  routes:\n    - {to: 'fd00::/8', dev: a}\n    - {to: 'fd00::/8', dev: a, metric: 1024}", 5,
     ["already", ":4"]),
    ("- {netns: default, neighbours: [{address: 10.0.0.2, dev: a}]}", 2, ["lladdr", "mandatory"]),
    ("- {netns: default}\n- {netns: default}", 3, ["already", ":2"]),
    ("- {interfaces: []}", 2, ["netns", "mandatory"]),
])
def test_what_is_wrong_in_itself_is_refused_before_anything_runs(lab, network, line, texts):
    done = check(lab, f"network:\n{network}\n")
    assert done.returncode == 1 and f"check.yaml:{line}: network" in done.stderr, done.stderr
    for text in texts:
        assert text in done.stderr, done.stderr


def test_check_prints_the_memory(lab):
    said = check(lab, FULL, "--workers", "2").stdout
    for text in ("1,005 interfaces", "5 routes", "2 neighbours", "4 addresses", "1 namespaces"):
        assert text in said, said
    assert "8 MiB for 2,048" in said, "an mbuf has a page of its own without hugepages: " + said


BASE = """
network:
  - netns: default
    interfaces:
      - {name: keep, type: vlan, link: p0, id: 5, up: true}
      - {name: 's{}', type: vlan, count: 100, link: p0, id: 100, inner: 1-200, up: true}
      - {name: old, type: dummy, up: true}
      - {name: set, type: dummy, group: 1, up: true}
    addresses:
      - {address: 10.0.0.1/24, dev: keep}
      - {address: 10.9.0.1/24, dev: old}
    routes:
      - {to: 10.77.0.0/16, via: 10.0.0.2}
    neighbours:
      - {address: 10.0.0.2, lladdr: 02:00:00:00:00:02, dev: keep}
"""


@pytest.fixture
def wired(lab):
    netns = lab.netns("router")
    host = lab.raw_host("host", netns, "d0")
    daemon = lab.daemon(netns, {"p0": "net_af_packet0,iface=d0"}, config=BASE)
    return daemon, host


@pytest.mark.sanitizer
def test_a_reload_makes_the_difference_and_leaves_the_rest_alone(wired):
    daemon, host = wired
    before = identities(daemon)

    def flows():
        packet = udp(daemon.link("p0")["address"], host.mac, "10.0.0.2", "10.77.1.1", tags=[5])
        host.send(packet)
        host.expect(routed(packet, "02:00:00:00:00:02", daemon.link("keep")["address"], tags=[5]))

    flows()
    rx = daemon.link("keep")["stats64"]["rx"]["packets"]
    wanted = (BASE.replace("count: 100", "count: 103").replace("group: 1", "group: 2")
              .replace("      - {name: old, type: dummy, up: true}\n", "")
              .replace("      - {address: 10.9.0.1/24, dev: old}\n", "")
              + "  - netns: blue\n    interfaces: [{name: new, type: dummy, up: true}]\n"
              + "    addresses: [{address: 10.0.0.1/24, dev: new}]\n")
    dry = daemon(f"config reload {written(daemon, wanted)} --dry-run").splitlines()
    assert identities(daemon) == before
    assert reload(daemon, wanted) == dry == [
        "- addr del 10.9.0.1/24 dev old",
        "- link del old",
        "+ netns add blue",
        "+ link bulk add name s{} count 103 link p0 up type vlan id 100 inner 1-200: all behind the first 100",
        "~ link set set group 2",
        "+ link add new up type dummy netns blue",
        "+ addr add 10.0.0.1/24 dev new netns blue",
    ]
    after = identities(daemon)
    assert {name: after[name] for name in before if name != "old"} == {name: who for name, who in before.items() if name != "old"}
    assert set(after) - set(before) == {"s100", "s101", "s102"} and "old" not in after
    assert daemon.link("set")["group"] == "2"
    assert daemon("config show") == wanted
    assert reload(daemon, wanted) == []
    flows()
    eventually(lambda: daemon.link("keep")["stats64"]["rx"]["packets"], rx + 1, "the counter goes on")
    # And back: what was made goes, and the template shrinks from its end.
    document = daemon.json(f"config reload {written(daemon, BASE)}")
    assert document["applied"] and {change["change"] for change in document["changes"]} == {"removed", "changed", "added"}
    assert set(identities(daemon)) == set(before)
    assert [netns["name"] for netns in daemon.json("netns list")] == ["default"]
    flows()


@pytest.mark.sanitizer
def test_a_reload_that_fails_changes_nothing(wired):
    daemon, _ = wired
    before, dump = identities(daemon), daemon("config dump")
    daemon("link add taken link p0 type vlan id 77")
    wanted = (BASE.replace("count: 100", "count: 110").replace("group: 1", "group: 2")
              .replace("to: 10.77.0.0/16", "to: 10.78.0.0/16")
              .replace("{name: old, type: dummy", "{name: clash, type: vlan, link: p0, id: 77}\n      - {name: old, type: dummy")
              + "  - netns: blue\n    interfaces: [{name: new, type: dummy, up: true}]\n")
    path = written(daemon, wanted)
    daemon.refuse(f"config reload {path}", f"{path}:7: link add clash", "nothing was changed")
    daemon("link del taken")
    assert identities(daemon) == before
    assert daemon("config dump") == dump
    assert daemon("config show") == BASE
    # What is wrong in itself does not even reach the daemon.
    path = written(daemon, BASE.replace("id: 5,", "id: 5000,"))
    daemon.refuse(f"config reload {path}", f"{path}:5: ", "1..4094")
    assert daemon("config show") == BASE


def test_an_interface_that_is_made_anew_takes_what_hangs_on_it_along(wired):
    daemon, _ = wired
    before = identities(daemon)
    assert reload(daemon, BASE.replace("link: p0, id: 5,", "link: p0, id: 6,")) == [
        "- neigh del 10.0.0.2 lladdr 02:00:00:00:00:02 dev keep",
        "- route del 10.77.0.0/16 via 10.0.0.2",
        "- addr del 10.0.0.1/24 dev keep",
        "- link del keep",
        "+ link add keep link p0 up type vlan id 6",
        "+ addr add 10.0.0.1/24 dev keep",
        "+ route add 10.77.0.0/16 via 10.0.0.2",
        "+ neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 dev keep",
    ]
    after = identities(daemon)
    assert {name for name in before if before[name] != after[name]} == {"keep"}
    assert daemon.json("route get 10.77.1.1")[0]["gateway"] == "10.0.0.2"


def test_one_at_a_time(wired):
    daemon, _ = wired
    path = written(daemon, BASE)
    with Client(daemon.socket_path, GENERIC_FAMILY) as client:
        assert client.ask(GENERIC, generic(CONFIG_BEGIN))[1] is None
        answer = daemon.refuse(f"config reload {path}", "client ", "pid ", "is changing it")
        assert "nothing was" not in answer.err
        daemon(f"config reload {path} --dry-run")
    # The lock went with its holder.
    eventually(lambda: daemon.cli(f"config reload {path}").status, 0, "the lock is free")
    # It does not outlive the reload, whatever became of that, although its client stays.
    with Client(daemon.socket_path, GENERIC_FAMILY) as client:
        for body in (generic(CONFIG_BEGIN), generic(CONFIG_TEXT, string(3, BASE)), generic(CONFIG_APPLY)):
            assert client.ask(GENERIC, body)[1] is None
        assert client.ask(GENERIC, generic(CONFIG_APPLY))[1].code == errno.EPERM
        assert daemon("config show") == BASE
        daemon(f"config reload {path}")


def test_a_dump_that_does_not_fit_is_no_success(lab):
    daemon = started(lab, BARE)
    for words in ("config dump", "config show", "-j link show", "--version", "help"):
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run([str(MAYFLY), "--socket", daemon.socket_path, *words.split()], stdout=full,
                                  stderr=subprocess.PIPE, text=True, timeout=GIVE_UP, check=False)
        assert (done.returncode, done.stderr) == (1, "Error: standard output: No space left on device\n"), words


def test_other_sections_need_a_restart(wired):
    daemon, _ = wired
    lines = reload(daemon, BASE.replace("group: 1", "group: 4") + "workers: {count: 2}\nmbufs: {count: 4096}\n")
    assert lines == ["~ link set set group 4", "! mbufs: needs a restart", "! workers: needs a restart"]
    assert daemon.link("set")["group"] == "4"


def test_what_was_deleted_by_hand_is_no_obstacle(wired):
    daemon, _ = wired
    daemon("link del old")
    reload(daemon, BASE.replace("      - {name: old, type: dummy, up: true}\n", "")
           .replace("      - {address: 10.9.0.1/24, dev: old}\n", ""))
    assert "old" not in identities(daemon)


def test_members_that_were_deleted_by_hand_are_no_obstacle(wired):
    daemon, _ = wired
    template = "      - {name: 's{}', type: vlan, count: 100, link: p0, id: 100, inner: 1-200, up: true}\n"
    assert template in BASE

    def members():
        return sorted(name for name in identities(daemon) if name[0] == "s" and name != "set")

    # It shrinks, is made anew, and goes.
    daemon("link del s17")
    assert len(reload(daemon, BASE.replace("count: 100", "count: 10"))) == 1
    assert members() == [f"s{n}" for n in range(10)]
    daemon("link del s3")
    assert len(reload(daemon, BASE.replace("count: 100", "count: 10, mtu: 1400"))) == 2
    assert members() == [f"s{n}" for n in range(10)]
    daemon("link del s5")
    assert len(reload(daemon, BASE.replace(template, ""))) == 1
    assert members() == []
    # A client that lists names itself is still told.
    daemon.refuse("link bulk del name nope{} count 2", "'nope0' does not exist")
