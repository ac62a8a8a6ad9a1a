# SPDX-License-Identifier: BSD-3-Clause
"""Namespaces: the same names, tags and addresses in several without touching each other, moving interfaces between
them, veth pairs, and deleting a namespace with what is in it."""

import errno

import pytest

from control import GENERIC, GENERIC_FAMILY, LINK_COUNT, Client, generic
from frames import routed, udp
from lab import eventually


def namespaces(mayfly):
    return [netns["name"] for netns in mayfly.json("netns list")]


@pytest.fixture
def named(mayfly):
    """Two named namespaces beside `default`, gone after the test."""
    mayfly.batch("netns add blue", "netns add red")
    yield mayfly
    for name in namespaces(mayfly):
        if name != "default":
            mayfly(f"netns del {name}")


# Names


@pytest.mark.sanitizer
def test_add_list_rename_delete(mayfly):
    assert namespaces(mayfly) == ["default"]
    mayfly("netns add blue")
    mayfly("netns add red")
    assert namespaces(mayfly) == ["default", "blue", "red"]
    assert mayfly("netns list").split() == ["default", "blue", "red"]
    blue = mayfly.json("netns list blue")[0]
    assert blue["interfaces"] == 0 and blue["routes"] == 0
    mayfly("netns set blue name green")
    assert namespaces(mayfly) == ["default", "green", "red"]
    assert mayfly.json("netns list green")[0]["id"] == blue["id"], "it is the same namespace"
    mayfly("netns del green")
    mayfly("netns add green")
    assert mayfly.json("netns list green")[0]["id"] != blue["id"], "an id is never used twice"
    mayfly.batch("netns del green", "netns del red")
    assert namespaces(mayfly) == ["default"]


@pytest.mark.parametrize("words, texts", [
    ("netns add blue", ["blue", "exists"]),
    ("netns add default", ["default", "exists"]),
    ("netns add a/b", ["a/b", "'/'"]),
    ("netns add ..", ["'..'"]),
    ("netns add 'a b'", ["a b", "white space"]),
    ("netns add " + "x" * 256, ["255"]),
    ("netns del nobody", ["nobody", "does not exist"]),
    ("netns del default", ["default", "cannot be deleted"]),
    ("netns set default name other", ["default"]),
    ("netns set blue name red", ["red", "exists"]),
    ("-n nobody link show", ["nobody", "does not exist"]),
    ("link add d0 netns nobody type dummy", ["netns", "nobody", "does not exist"]),
    ("link set port0 netns nobody", ["nobody", "does not exist"]),
])
def test_bad_names(named, words, texts):
    named.refuse(words, *texts)
    assert namespaces(named) == ["default", "blue", "red"]


# Apart from each other


@pytest.mark.sanitizer
def test_the_same_names_and_addresses_in_several(named):
    for netns in ("default", "blue", "red"):
        named.batch(f"link add same netns {netns} up type dummy")
        named(f"-n {netns} addr add 10.0.0.1/24 dev same")
        named(f"-n {netns} route add 10.9.0.0/16 via 10.0.0.9")
    named("-n blue link set same mtu 1400 down")
    assert [named.json(f"-n {netns} link show same")[0]["mtu"] for netns in ("default", "blue", "red")] == [
        1500, 1400, 1500]
    assert not [r for r in named.json("-n blue route show") if r["dst"] == "10.9.0.0/16"], "down takes it along"
    assert [r for r in named.json("-n red route show") if r["dst"] == "10.9.0.0/16"]
    ids = {named.json(f"-n {netns} link show same")[0]["id"] for netns in ("default", "blue", "red")}
    assert len(ids) == 3
    named("-n red addr del 10.0.0.1/24 dev same")
    assert named.json("addr show same")[0]["addr_info"]
    named("-n red link del same")
    named.refuse("-n red link show same", "same", "does not exist")
    assert named.json("netns list blue")[0]["interfaces"] == 1


def test_vlans_of_one_port_in_several(named):
    named("link bulk add count 10 name v{outer} link port0 netns blue type vlan id 1-10")
    named("link bulk add count 10 name v{outer} link port0 netns red type vlan id 11-20")
    named.refuse("link add x link port0 netns red type vlan id 5", "vlan id 5", "v5")
    assert named.count() == 2 and len(named.json("-n blue link show")) == 10
    vlan = named.json("-n red link show v11")[0]
    assert vlan["link"] == "port0" and vlan["link_netns"] == "default" and vlan["netns"] == "red"
    assert named.json("-n blue link count type vlan")["count"] == 10
    named("-n blue link del type vlan")
    assert named.json("netns list blue")[0]["interfaces"] == 0
    assert named.json("netns list red")[0]["interfaces"] == 10
    assert named.link("port0")["children"] == 10


# Moving


@pytest.mark.sanitizer
def test_moving_an_interface(named):
    named("link add v5 link port0 up type vlan id 5")
    named.batch("addr add 10.0.0.1/24 dev v5", "neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 dev v5",
                "route add 10.9.0.0/16 via 10.0.0.2")
    before = named.link("v5")
    named("link set v5 netns blue")
    named.refuse("link show v5", "v5", "does not exist")
    after = named.json("-n blue link show v5")[0]
    assert after["id"] == before["id"] and after["ifindex"] == before["ifindex"]
    assert after["operstate"] == "DOWN", "as the kernel does"
    assert not named.json("-n blue neigh show") and not named.json("-n blue route show table all")
    assert not [r for r in named.json("route show table all") if r.get("dev") == "v5"]
    named("-n blue link set v5 up")
    named("-n blue link set v5 netns default up")
    assert named.link("v5")["operstate"] == "UP", "what else the command says is done there"


def test_moving_where_the_name_is_taken_changes_nothing(named):
    named("link add same up type dummy")
    named("addr add 10.0.0.1/24 dev same")
    named("link add same netns blue type dummy")
    named.refuse("link set same netns blue", "same", "exists", "blue")
    assert named.link("same")["operstate"] == "UP"
    assert named.json("addr show same")[0]["addr_info"][0]["local"] == "10.0.0.1"
    named("link set same netns blue name other")
    assert {link["ifname"] for link in named.json("-n blue link show")} == {"same", "other"}


# veth


@pytest.mark.sanitizer
def test_a_pair_lives_and_dies_together(named):
    named("link add v0 up type veth peer name v1 netns blue")
    assert named.link("v0")["link"] == "v1" and named.link("v0")["peer_netns"] == "blue"
    assert named.link("v0")["operstate"] == "LOWERLAYERDOWN", "the other end is down"
    named("-n blue link set v1 up")
    assert named.link("v0")["operstate"] == "UP"
    assert named.json("-n blue link show v1")[0]["operstate"] == "UP"
    named("link set v0 netns red")
    assert named.json("-n blue link show v1")[0]["peer_netns"] == "red"
    named("-n red link del v0")
    named.refuse("-n blue link show v1", "does not exist")


def test_pairs_in_bulk(named):
    named("link bulk add count 1000 name a{} group 5 up type veth peer name b{} netns blue up")
    assert named.count("type veth") == 1000
    assert named.json("-n blue link count")["count"] == 1000
    assert named.json("link show a999")[0]["link"] == "b999"
    named.refuse("link bulk add count 5 name c{} type veth peer name b{} netns blue", "b0", "exists")
    assert named.count() == 1002, "all or nothing"
    answer = named("link del group 5")
    assert "matched 2000 deleted 2000 failed 0" in answer
    assert named.json("-n blue link count")["count"] == 0


@pytest.mark.parametrize("words, texts", [
    ("link add v0 type veth", ["peer"]),
    ("link add v0 type veth peer name v0", ["v0"]),
    ("link add v0 type veth peer name port1", ["peer", "port1", "exists"]),
    ("link add v0 type veth peer name averyveryverylongname", ["averyveryverylongname"]),
    ("link add v0 type veth peer name v1 mtu 10", ["mtu 10"]),
    ("link add v0 link port0 type veth peer name v1", ["no parent"]),
])
def test_bad_pairs(mayfly, words, texts):
    status = 2 if texts == ["peer"] else 1
    mayfly.refuse(words, *texts, status=status)
    assert mayfly.count() == 2


# Deleting


@pytest.mark.sanitizer
def test_deleting_takes_everything_along(named):
    named("link bulk add count 1000 name v{outer} link port0 netns blue up type vlan id 1-1000")
    named("-n blue link add lo0 up type dummy")
    named("-n blue addr add 10.0.0.1/24 dev lo0")
    named("-n blue route add blackhole 10.66.0.0/16")
    named("link add out type veth peer name in netns blue")
    named("netns del blue")
    assert namespaces(named) == ["default", "red"]
    assert named.count() == 2, "the other end of the pair is gone, too"
    assert named.link("port0").get("children", 0) == 0
    named.refuse("netns del blue", "blue", "does not exist")
    named("netns add blue")
    assert named.json("-n blue link show") == [] and named.json("-n blue route show table all") == []
    named("link bulk add count 1000 name v{outer} link port0 netns blue type vlan id 1-1000")


def test_a_port_goes_back_to_default(named):
    named("link set port0 netns blue")
    named("-n blue link set port0 up")
    named("-n blue addr add 10.0.0.1/24 dev port0")
    named("-n blue link add v7 link port0 type vlan id 7")
    named("link add port0 type dummy")
    named("netns del blue")
    links = {link["ifname"]: link for link in named.json("link show")}
    assert set(links) == {"port0", "port1", "dev0"}, "its own name was taken"
    assert links["dev0"]["operstate"] == "DOWN" and links["dev0"].get("children", 0) == 0
    assert not named.json("addr show dev0")[0]["addr_info"]
    named.batch("link del port0")
    named("link set dev0 name port0 up")
    named("netns add blue")


def test_flush_empties_and_keeps(named):
    named("link bulk add count 100 name v{outer} link port0 netns blue type vlan id 1-100")
    named("link set port1 netns blue")
    named.refuse("link flush", "-n NETNS", status=2)
    assert "matched 100 deleted 100 failed 0" in named("-n blue link flush --dry-run")
    assert len(named.json("-n blue link show")) == 101
    assert "deleted 100 failed 0" in named("-n blue link flush")
    assert [link["ifname"] for link in named.json("-n blue link show")] == ["port1"], "ports stay"
    named("-n blue link set port1 netns default up")
    assert "blue" in namespaces(named)


def test_a_batch_in_a_deleted_namespace_is_told(named):
    """A connection outlives its namespace, but not its use."""
    with Client(named.socket_path, GENERIC_FAMILY, netns="blue") as client:
        assert client.count() == 0
        named("netns del blue")
        refusal = client.refused(GENERIC, generic(LINK_COUNT))
        assert refusal.code == errno.ENOENT and "blue" in refusal.text
        named("netns add blue")
        refusal = client.refused(GENERIC, generic(LINK_COUNT))
        assert refusal.code == errno.ENOENT, "another namespace of that name is not its own"


# Packets


@pytest.mark.sanitizer
def test_overlapping_namespaces_route_apart(lab):
    """Two namespaces with identical addresses and names on one pair of wires: each packet stays in its own."""
    here = lab.netns("router")
    left, right = lab.raw_host("left", here, "d0"), lab.raw_host("right", here, "d1")
    daemon = lab.daemon(here, {"p0": "net_af_packet0,iface=d0", "p1": "net_af_packet1,iface=d1"})
    mac = daemon.link("p0")["address"], daemon.link("p1")["address"]
    for netns, vid in (("blue", 10), ("red", 20)):
        daemon(f"netns add {netns}")
        daemon.batch(f"link add in link p0 netns {netns} up type vlan id {vid}",
                     f"link add out link p1 netns {netns} up type vlan id {vid + 1}")
        for line in ("addr add 10.0.0.1/24 dev in", "addr add 10.1.0.1/24 dev out",
                     f"neigh add 10.0.0.2 lladdr {left.mac} dev in", f"neigh add 10.1.0.2 lladdr {right.mac} dev out"):
            daemon(f"-n {netns} {line}")
    for vid in (10, 20):
        frame = udp(mac[0], left.mac, "10.0.0.2", "10.1.0.2", tags=[vid], payload=b"%d" % vid)
        left.send(frame)
        right.expect(routed(frame, right.mac, mac[1], tags=[vid + 1]))
    # One is deleted: the other goes on, and what is for the dead one is nobody's.
    daemon("netns del blue")
    with daemon.dropping(unknown_tag=1):
        left.send(udp(mac[0], left.mac, "10.0.0.2", "10.1.0.2", tags=[10]))
    frame = udp(mac[0], left.mac, "10.0.0.2", "10.1.0.2", tags=[20])
    left.send(frame)
    right.expect(routed(frame, right.mac, mac[1], tags=[21]))
    assert daemon.json("-n red -s link show in")[0]["stats64"]["rx"]["packets"] == 2


@pytest.mark.sanitizer
def test_parked_packets_do_not_cross(lab):
    """What waits for a neighbour in one namespace is dropped when its interface moves, never sent in another."""
    here = lab.netns("router")
    left, right = lab.raw_host("left", here, "d0"), lab.raw_host("right", here, "d1")
    daemon = lab.daemon(here, {"p0": "net_af_packet0,iface=d0", "p1": "net_af_packet1,iface=d1"})
    daemon("netns add blue")
    mac = daemon.link("p0")["address"]
    daemon.batch("addr add 10.0.0.1/24 dev p0", "link add v5 link p1 up type vlan id 5", "addr add 10.1.0.1/24 dev v5")
    left.send(udp(mac, left.mac, "10.0.0.2", "10.1.0.2"))
    assert right.receive() is not None, "it asks who has the address"
    assert daemon.balance()["parked"] == 1
    daemon("link set v5 netns blue")
    eventually(lambda: daemon.balance()["parked"], 0, "parked packets")
    assert daemon.drops().get("interface_gone", 0) + daemon.drops().get("interface_down", 0) == 1
    daemon("-n blue link set v5 up")
    daemon("-n blue addr add 10.1.0.1/24 dev v5")
    daemon(f"-n blue neigh add 10.1.0.2 lladdr {right.mac} dev v5")
    assert not [frame for frame in right.waiting() if b"mayfly" in frame]


def test_churn_of_namespaces_leaves_nothing(mayfly):
    """Namespaces with routes and pairs, created and deleted many times: every table is as it was."""
    empty = mayfly.resources()
    for _ in range(5):
        lines = []
        for n in range(50):
            lines += [f"netns add ns{n}", f"link add h{n} up type veth peer name e netns ns{n} up"]
        mayfly.batch(*lines)
        assert mayfly.count("type veth") == 50
        for n in (0, 49):
            mayfly(f"-n ns{n} addr add 10.0.0.1/24 dev e")
        mayfly.batch(*[f"netns del ns{n}" for n in range(50)])
        assert mayfly.count() == 2
    eventually(mayfly.resources, empty, "what is in use after the churn")
