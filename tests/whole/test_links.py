# SPDX-License-Identifier: BSD-3-Clause
"""Interfaces, addresses, routes and neighbours by the mayfly command, in text and in JSON, on ports without traffic."""

import json

import pytest

from lab import run


def routes(mayfly, words=""):
    return {(route.get("type", "unicast"), route["dst"], route.get("dev"), route.get("gateway"))
            for route in mayfly.json(f"route show table all {words}")}


# unnumbered


def test_a_lender_that_is_gone_is_none(mayfly):
    mayfly.batch("link add lo1 type dummy", "link add a unnumbered lo1 type dummy", "link add b type dummy")
    assert mayfly.link("a")["unnumbered"] == "lo1"
    mayfly.refuse("link set lo1 unnumbered a", "'a'", "uses the addresses of 'lo1' itself")
    mayfly("link del lo1")
    assert "unnumbered" not in mayfly.link("a")
    mayfly("link set b unnumbered a")
    assert mayfly.link("b")["unnumbered"] == "a"


# link add, show


@pytest.mark.sanitizer
def test_add_and_show_in_json(mayfly):
    mayfly("link add v100 link port0 mtu 1400 address 02:00:00:00:01:00 group 7 up type vlan id 100")
    mayfly("link add q link port0 type vlan id 200 inner 7 protocol 802.1ad")
    mayfly("link add lo100 type dummy")
    vlan = mayfly.link("v100")
    assert vlan["ifname"] == "v100"
    assert vlan["link"] == "port0"
    assert vlan["mtu"] == 1400
    assert vlan["address"] == "02:00:00:00:01:00"
    assert vlan["broadcast"] == "ff:ff:ff:ff:ff:ff"
    assert vlan["group"] == "7"
    assert vlan["operstate"] == "UP"
    assert vlan["link_type"] == "ether"
    assert {"UP", "LOWER_UP", "BROADCAST", "MULTICAST"} == set(vlan["flags"])
    assert vlan["linkinfo"] == {"info_kind": "vlan", "info_data": {"protocol": "802.1Q", "id": 100}}
    assert vlan["netns"] == "default"
    assert vlan["created_ns"] > 0
    assert vlan["boot_id"] == mayfly.status()["boot_id"]
    assert vlan["drops"] == {}
    q = mayfly.link("q")
    assert q["linkinfo"]["info_data"] == {"protocol": "802.1ad", "id": 200, "inner": 7}
    assert q["operstate"] == "DOWN" and "UP" not in q["flags"]
    assert q["mtu"] == 1500 and q["address"] == mayfly.link("port0")["address"], "the parent's"
    dummy = mayfly.link("lo100")
    assert dummy["linkinfo"] == {"info_kind": "dummy"} and "link" not in dummy
    assert len({link["id"] for link in mayfly.json("link show")}) == 5
    assert mayfly.link("port0")["children"] == 2


@pytest.mark.sanitizer
def test_show_in_text(mayfly):
    mayfly("link add v100 link port0 mtu 1400 group 7 up type vlan id 100 inner 5")
    mayfly("link set v100 alias 'customer 7'")
    text = mayfly("link show v100")
    index = mayfly.link("v100")["ifindex"]
    head, ether, alias = text.splitlines()
    assert head.startswith(f"{index}: v100@port0: <") and "UP" in head and " mtu 1400 " in head
    assert head.endswith("state UP group 7")
    assert ether.strip() == f"link/ether {mayfly.link('v100')['address']} brd ff:ff:ff:ff:ff:ff"
    assert alias.strip() == "alias customer 7"
    details = mayfly("-d link show v100")
    assert "vlan protocol 802.1Q id 100 inner 5\n" in details
    counters = mayfly("-s link show v100")
    assert "RX:" in counters and "TX:" in counters and "dropped" in counters
    answer = mayfly.cli("-br link show vlan 100")
    assert answer.out.split()[:9] == ["v100", str(index), "vlan", "100.5", "UP", "default", "7", "1400",
                                      mayfly.link("v100")["address"]]
    assert answer.err.strip() == "1 interface", "the total is on standard error"
    assert json.loads(mayfly("-j -p link show v100"))[0]["ifname"] == "v100"
    assert "\n" in mayfly("-j -p link show v100").strip()


def test_show_and_count_by_selector(mayfly):
    mayfly("link bulk add name a{outer}.{inner} link port0 group 1 type vlan id 1-3 inner 1-2")
    mayfly("link bulk add name b{outer} link port0 group 2 up type vlan id 11-13")
    mayfly("link bulk add name c{} count 2 group 1 type dummy")
    cases = {
        "group 1": ["a1.1", "a1.2", "a2.1", "a2.2", "a3.1", "a3.2", "c0", "c1"],
        "group 1 type dummy": ["c0", "c1"],
        "parent port0 group 2": ["b11", "b12", "b13"],
        "parent port1": [],
        "type vlan vlan 2-11": ["a2.1", "a2.2", "a3.1", "a3.2", "b11"],
        "vlan 1-3 inner 2": ["a1.2", "a2.2", "a3.2"],
        "vlan 3 inner 1-4094": ["a3.1", "a3.2"],
        "vlan 12": ["b12"],
        "type vlan up": ["b11", "b12", "b13"],
        "type vlan down group 1": ["a1.1", "a1.2", "a2.1", "a2.2", "a3.1", "a3.2"],
        "group 9": [],
        "type port": ["port0", "port1"],
    }
    for selector, expected in cases.items():
        assert sorted(mayfly.names(selector)) == expected, selector
        assert mayfly.count(selector) == len(expected), selector
        assert mayfly(f"link count {selector}").strip() == str(len(expected)), selector
    assert mayfly.names("group 1 limit 3") == ["a1.1", "a1.2", "a2.1"], "in order of creation"
    assert mayfly.count() == 13
    mayfly.refuse("link show parent nope", "nope")
    mayfly.refuse("link count type nope", "nope", "vlan")


# link set


@pytest.mark.sanitizer
def test_set(mayfly):
    mayfly("link add v link port0 type vlan id 1")
    before = mayfly.link("v")
    mayfly("link set v up mtu 1280 group 5 alias hello address 02:00:00:00:00:01")
    after = mayfly.link("v")
    assert (after["mtu"], after["group"], after["ifalias"], after["address"]) == (1280, "5", "hello",
                                                                                "02:00:00:00:00:01")
    assert "UP" in after["flags"]
    mayfly("link set dev v name w")
    renamed = mayfly.link("w")
    assert (renamed["id"], renamed["ifindex"], renamed["created_ns"]) == (before["id"], before["ifindex"],
                                                                       before["created_ns"])
    mayfly.refuse("link show v", "v")
    mayfly("link add v link port0 type vlan id 2")  # the old name is free
    mayfly.refuse("link set w name v", "'v'", "exists")
    mayfly("link set w alias ''")
    assert "ifalias" not in mayfly.link("w")
    mayfly("link set w down")
    assert "UP" not in mayfly.link("w")["flags"]


def test_one_set_changes_all_or_nothing(mayfly):
    mayfly("link add v link port0 type vlan id 1")
    before = mayfly.link("v")
    mayfly.refuse("link set v group 9 alias x up mtu 9000", "mtu", "9000", "1500")
    mayfly.refuse("link set v name other mtu 67", "mtu", "67")
    assert mayfly.link("v") == before


def test_group_set_moves_between_selectors(mayfly):
    mayfly("link bulk add name v{} link port0 type vlan id 1-10")
    for n in range(0, 10, 2):
        mayfly(f"link set v{n} group 3")
    assert sorted(mayfly.names("group 3")) == [f"v{n}" for n in range(0, 10, 2)]
    mayfly("link set v4 group default")
    assert mayfly.count("group 3") == 4
    mayfly("link del group 3")
    assert sorted(mayfly.names("type vlan")) == ["v1", "v3", "v4", "v5", "v7", "v9"]


# link del


@pytest.mark.sanitizer
def test_deleting_a_parent_deletes_its_children(mayfly):
    mayfly("link add outer link port0 type vlan id 100")
    mayfly("link bulk add name in{} link outer type vlan id 1-50")
    mayfly("link add direct link port0 type vlan id 100 inner 60")
    assert mayfly.link("outer")["children"] == 50
    mayfly("link del outer")
    assert mayfly.names("type vlan") == ["direct"], "a child of the port with the same outer tag stays"
    mayfly("link add outer link port0 type vlan id 100")
    mayfly("link add in0 link outer type vlan id 1")


@pytest.mark.sanitizer
def test_names_and_tags_are_free_at_once_and_ids_never_come_back(mayfly):
    ids = set()
    for _ in range(20):
        mayfly("link add v link port0 type vlan id 100")
        ids.add(mayfly.link("v")["id"])
        mayfly("link del v")
    assert len(ids) == 20
    script = "link add v link port0 type vlan id 100 inner 3\nlink del v\n" * 500
    mayfly("-batch -", stdin=script)
    mayfly("link add v link port0 type vlan id 100")
    assert mayfly.link("v")["id"] >= max(ids) + 500


def test_deletes_that_are_refused(mayfly):
    mayfly("link add v link port0 type vlan id 1")
    before = mayfly.json("link show")
    mayfly.refuse("link del nope", "nope", "does not exist")
    mayfly.refuse("link del port0", "port0")
    mayfly.refuse("link del group 0", "group 0", status=2)
    mayfly.refuse("link del", status=2)
    mayfly.refuse("link del type port", "port")
    mayfly.refuse("link del vlan 0-5", "vlan")
    mayfly.refuse("link del vlan 5-1", status=2)
    mayfly.refuse("link del v limit 3", status=2)
    assert mayfly.json("link show") == before
    mayfly("link del v")
    mayfly.refuse("link del v", "does not exist")
    mayfly("link del group 77")  # nobody is in it: nothing to do is no error


def test_ifindex_is_free_again_when_reclaimed(mayfly):
    mayfly("link add v index 1234 link port0 type vlan id 1")
    assert mayfly.link("v")["ifindex"] == 1234
    mayfly.refuse("link add w index 1234 link port0 type vlan id 2", "1234")
    mayfly("link del v")
    mayfly("reclaim wait")
    mayfly("link add w index 1234 link port0 type vlan id 2")


# link which


def test_which(mayfly):
    mayfly("link add c link port0 up type vlan id 100")
    mayfly("link add s link port0 up type vlan id 100 protocol 802.1ad")
    mayfly("link add q link port0 type vlan id 100 inner 7")
    def which(words):
        answer = mayfly.json(f"link which {words}")
        return answer.get("ifname"), answer.get("drop")
    assert which("port0") == ("port0", None)
    assert which("port0 100") == ("c", None)
    assert which("port0 100 protocol 802.1ad") == ("s", None)
    assert which("port0 100.7") == ("q", "interface_down")
    assert which("port0 100.8") == (None, "unknown_tag")
    assert which("port1 100") == (None, "unknown_tag")
    assert mayfly("link which port0 100").strip() == f"port0 100: c (ifindex {mayfly.link('c')['ifindex']})"
    assert "unknown_tag" in mayfly("link which port0 101")
    mayfly.refuse("link which nope 1", "nope")
    mayfly.refuse("link which c 1", "c", "port")
    mayfly.refuse("link which port0 4095", "4095", "1..4094")
    mayfly.refuse("link which port0 0", "1..4094")
    mayfly.refuse("link which port0 x", status=2)


# addr


@pytest.mark.sanitizer
def test_addresses(mayfly):
    mayfly("link add v1 link port0 up type vlan id 1")
    mayfly("link add v2 link port0 up type vlan id 2")
    mayfly("addr add 10.0.0.1/24 dev v1")
    mayfly("addr add 10.0.0.1/24 dev v2")  # one gateway address on many interfaces is normal
    mayfly("addr add 10.0.0.2/24 dev v1")
    mayfly("addr add 192.0.2.1 dev v1")
    (shown,) = mayfly.json("-4 addr show v1")
    assert shown["ifname"] == "v1" and [(a["family"], a["local"], a["prefixlen"]) for a in shown["addr_info"]] == [
        ("inet", "10.0.0.1", 24), ("inet", "10.0.0.2", 24), ("inet", "192.0.2.1", 32)]
    assert "inet 10.0.0.1/24 scope global v1" in mayfly("addr show v1")
    assert mayfly("-4 -br addr show v1").split() == ["v1", "UP", "10.0.0.1/24", "10.0.0.2/24", "192.0.2.1/32"]
    assert {link["ifname"]: len(link["addr_info"]) for link in mayfly.json("-4 addr show type vlan")} == {"v1": 3, "v2": 1}
    assert mayfly.status()["addresses"] == 4
    mayfly.refuse("addr add 10.0.0.1/24 dev v1", "10.0.0.1/24", "v1")
    mayfly("addr replace 10.0.0.1/24 dev v1")
    mayfly("addr del 10.0.0.1/24 dev v1")
    mayfly.refuse("addr del 10.0.0.1/24 dev v1", "10.0.0.1/24", "v1")
    mayfly.refuse("addr del 10.0.0.2/25 dev v1", "10.0.0.2/25")
    mayfly("addr flush dev v1")
    assert mayfly.json("-4 addr show v1")[0]["addr_info"] == []
    mayfly.refuse("addr add 10.0.0.1/33 dev v1", "33", status=2)
    mayfly.refuse("addr add 127.0.0.1/8 dev v1", "127.0.0.1/8")
    mayfly.refuse("addr add 224.0.0.1/24 dev v1", "224.0.0.1/24")
    mayfly.refuse("addr add 10.0.0.1/24 dev nope", "nope")
    mayfly.refuse("addr add 10.0.0.1/24", "dev", status=2)


@pytest.mark.sanitizer
def test_up_and_down_move_connected_routes(mayfly):
    mayfly("link add v1 link port0 type vlan id 1")
    mayfly("addr add 10.0.0.1/24 dev v1")
    mayfly("addr add 10.0.0.2/24 dev v1")
    mayfly("addr add 10.1.0.1/31 dev v1")
    local = {("local", "10.0.0.1", "v1", None), ("local", "10.0.0.2", "v1", None), ("local", "10.1.0.1", "v1", None)}
    connected = {("unicast", "10.0.0.0/24", "v1", None), ("unicast", "10.1.0.0/31", "v1", None),
                 ("broadcast", "10.0.0.0", "v1", None), ("broadcast", "10.0.0.255", "v1", None)}
    assert routes(mayfly, "dev v1") == local
    mayfly.refuse("route add 10.9.0.0/16 via 10.0.0.9", "10.0.0.9")
    mayfly("link set v1 up")
    assert routes(mayfly, "dev v1") == local | connected
    mayfly("route add 10.9.0.0/16 via 10.0.0.9")
    mayfly("neigh add 10.0.0.9 lladdr 02:00:00:00:00:09 dev v1")
    mayfly("link set v1 down")
    assert routes(mayfly, "dev v1") == local, "static routes and neighbours go with the interface"
    assert mayfly.json("neigh show dev v1") == []
    mayfly("link set v1 up")
    assert routes(mayfly, "dev v1") == local | connected
    mayfly("addr del 10.0.0.1/24 dev v1")
    assert ("unicast", "10.0.0.0/24", "v1", None) in routes(mayfly, "dev v1"), "the other address needs it"
    mayfly("addr del 10.0.0.2/24 dev v1")
    assert ("unicast", "10.0.0.0/24", "v1", None) not in routes(mayfly, "dev v1")
    mayfly("link del v1")
    assert routes(mayfly) == set()


def test_one_address_with_two_prefix_lengths(mayfly, lab):
    """As in the kernel, but for the first address of a subnet, which newer kernels do not treat as a broadcast one."""
    kernel = lab.netns("kernel")
    lab.veth(kernel, "v1", lab.netns("far"), "v1", 1500)
    mayfly("link add v1 link port0 up type vlan id 1")

    def of_kernel():
        shown = json.loads(run("ip", "-n", kernel, "-4", "-j", "route", "show", "table", "all", "dev", "v1"))
        return {(route.get("type", "unicast"), route["dst"]) for route in shown}

    def compare():
        firsts = {("broadcast", "10.0.0.0"), ("broadcast", "10.0.0.128")}
        ours = {route[:2] for route in routes(mayfly, "dev v1")}
        assert ours - firsts == of_kernel() - firsts
        for kind, subnet in ours - firsts:
            if kind == "unicast":
                assert ("broadcast", subnet.split("/")[0]) in ours

    def both(words):
        mayfly(words)
        run("ip", "-n", kernel, *words.split())

    for one, two in (("10.0.0.1/24", "10.0.0.1/25"), ("10.0.0.129/24", "10.0.0.129/25"), ("10.0.0.1/24", "10.0.0.129/25")):
        for first, second in ((one, two), (two, one)):
            both(f"addr add {first} dev v1")
            both(f"addr add {second} dev v1")
            compare()
            both(f"addr del {first} dev v1")
            compare()
            both(f"addr add {first} dev v1")
            both("link set v1 down")
            both("link set v1 up")
            compare()
            both(f"addr del {second} dev v1")
            compare()
            both(f"addr del {first} dev v1")
            assert routes(mayfly, "dev v1") == set()
    mayfly("link del v1")


# route


@pytest.mark.sanitizer
def test_routes(mayfly):
    mayfly("addr add 10.0.0.1/24 dev port0")
    mayfly("addr add 10.1.0.1/24 dev port1")
    mayfly("route add default via 10.0.0.254")
    mayfly("route add 192.168.0.0/16 via 10.1.0.254 dev port1 metric 20")
    mayfly("route add 192.168.7.0/24 dev port0")
    for kind in ("blackhole", "unreachable", "prohibit"):
        mayfly(f"route add {kind} 203.0.113.0/{ {'blackhole': 26, 'unreachable': 27, 'prohibit': 28}[kind]}")
    shown = {route["dst"]: route for route in mayfly.json("route show")}
    assert shown["default"]["gateway"] == "10.0.0.254" and shown["default"]["dev"] == "port0"
    assert shown["192.168.0.0/16"]["metric"] == 20 and shown["192.168.0.0/16"]["gateway"] == "10.1.0.254"
    assert shown["203.0.113.0/26"]["type"] == "blackhole" and shown["203.0.113.0/27"]["type"] == "unreachable"
    assert shown["203.0.113.0/28"]["type"] == "prohibit"
    text = mayfly("route show")
    assert "default via 10.0.0.254 dev port0" in text
    assert "192.168.0.0/16 via 10.1.0.254 dev port1" in text and "metric 20" in text
    assert "blackhole 203.0.113.0/26" in text
    assert {route["type"] for route in mayfly.json("route show table local")} == {"local", "broadcast"}
    mayfly.refuse("route add default via 10.0.0.253", "exists")
    mayfly("route replace default via 10.0.0.253")
    assert routes(mayfly, "dev port0") >= {("unicast", "default", "port0", "10.0.0.253")}
    mayfly.refuse("route add 10.5.0.0/16 via 172.31.0.1 dev port0", "172.31.0.1")
    mayfly.refuse("route add 10.5.0.0/16 dev nope", "nope")
    mayfly.refuse("route add 10.5.0.0/16", status=2)
    mayfly.refuse("route add 10.5.0.0/99 dev port0", "99", status=2)
    mayfly.refuse("route del 10.5.0.0/16", "10.5.0.0/16")
    mayfly("route del 192.168.0.0/16")
    mayfly.refuse("route del 192.168.0.0/16", "192.168.0.0/16")
    mayfly("route flush dev port0")
    assert not {route for route in routes(mayfly, "dev port0") if route[3]}


@pytest.mark.sanitizer
def test_route_get(mayfly):
    mayfly("addr add 10.0.0.1/24 dev port0")
    mayfly("addr add 10.1.0.1/24 dev port1")
    mayfly("route add 192.168.0.0/16 via 10.1.0.254")
    mayfly("route add blackhole 192.168.9.0/24")
    (got,) = mayfly.json("route get 192.168.1.1")
    assert (got["dst"], got["gateway"], got["dev"], got["prefsrc"]) == ("192.168.1.1", "10.1.0.254", "port1", "10.1.0.1")
    (got,) = mayfly.json("route get 10.0.0.77")
    assert (got["dev"], got["prefsrc"]) == ("port0", "10.0.0.1") and "gateway" not in got
    (got,) = mayfly.json("route get 10.0.0.1")
    assert got["type"] == "local"
    assert mayfly("route get 192.168.1.1").startswith("192.168.1.1 via 10.1.0.254 dev port1")
    answer = mayfly.cli("route get 192.168.9.1")
    assert "blackhole" in answer.out + answer.err
    mayfly.refuse("route get 172.16.0.1", "172.16.0.1")
    mayfly.refuse("route get", status=2)
    mayfly.refuse("route get 1.2.3", status=2)


def test_static_routes_of_a_deleted_interface_go(mayfly):
    mayfly("link bulk add name v{} link port0 up type vlan id 1-50")
    script = "".join(f"addr add 10.0.{n}.1/24 dev v{n}\nroute add 172.16.{n}.0/24 via 10.0.{n}.2\n"
                     f"neigh add 10.0.{n}.2 lladdr 02:00:00:00:00:02 dev v{n}\n" for n in range(50))
    mayfly("-batch -", stdin=script)
    status = mayfly.status()
    assert (status["addresses"], status["neighbours"], status["routes"]) == (50, 50, 250)
    mayfly("link del parent port0")
    status = mayfly.status()
    assert (status["addresses"], status["neighbours"], status["routes"]) == (0, 0, 0)


def test_same_prefix_on_two_interfaces(mayfly):
    """The newer or the older connected route may win, but deleting one interface leaves the other's."""
    for n in (1, 2):
        mayfly(f"link add v{n} link port0 up type vlan id {n}")
        mayfly(f"addr add 10.0.0.1/24 dev v{n}")
    mayfly("link del v1")
    assert mayfly.json("route get 10.0.0.5")[0]["dev"] == "v2"
    assert mayfly.json("route get 10.0.0.1")[0]["type"] == "local"


# neigh


@pytest.mark.sanitizer
def test_neighbours(mayfly):
    mayfly("link add v1 link port0 up type vlan id 1")
    mayfly("addr add 10.0.0.1/24 dev v1")
    mayfly("neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 dev v1")
    assert mayfly.json("neigh show") == [
        {"dst": "10.0.0.2", "dev": "v1", "lladdr": "02:00:00:00:00:02", "state": ["PERMANENT"]}]
    assert mayfly("neigh show dev v1").strip() == "10.0.0.2 dev v1 lladdr 02:00:00:00:00:02 PERMANENT"
    mayfly.refuse("neigh add 10.0.0.2 lladdr 02:00:00:00:00:03 dev v1", "10.0.0.2")
    mayfly("neigh replace 10.0.0.2 lladdr 02:00:00:00:00:03 dev v1")
    mayfly("neigh add 10.0.0.3 lladdr 02:00:00:00:00:04 dev v1 nud reachable")
    assert {n["dst"]: (n["lladdr"], n["state"]) for n in mayfly.json("neigh show")} == {
        "10.0.0.2": ("02:00:00:00:00:03", ["PERMANENT"]), "10.0.0.3": ("02:00:00:00:00:04", ["REACHABLE"])}
    assert [n["dst"] for n in mayfly.json("neigh show nud permanent")] == ["10.0.0.2"]
    mayfly("neigh flush dev v1")
    assert [n["dst"] for n in mayfly.json("neigh show dev v1")] == ["10.0.0.2"], "permanent ones stay"
    mayfly("neigh del 10.0.0.2 dev v1")
    mayfly.refuse("neigh del 10.0.0.2 dev v1", "10.0.0.2")
    mayfly.refuse("neigh add 10.0.0.2 dev v1", "lladdr", status=2)
    mayfly.refuse("neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 dev nope", "nope")
    mayfly("link set v1 down")
    mayfly.refuse("neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 dev v1", "down")


# port, reclaim, stats, status


@pytest.mark.sanitizer
def test_port_show(mayfly):
    ports = {port["ifname"]: port for port in mayfly.json("port show")}
    assert set(ports) == {"port0", "port1"}
    port = ports["port0"]
    assert port["driver"] == "net_null" and port["devargs"] == "net_null0,no-rx=1" and port["state"] == "running"
    assert port["mtu"] == 1500 and port["link_up"] is True
    assert port["queues"] == [{"queue": 0, "worker": 0}] and port["rx_queues"] == port["tx_queues"] == 1
    assert (port["imissed"], port["rx_nombuf"]) == (0, 0)
    assert "port1" in mayfly("port show") and "port1" not in mayfly("port show port0")
    mayfly.refuse("port show nope", "nope")


@pytest.mark.sanitizer
def test_status_stats_and_reclaim(mayfly):
    status = mayfly.status()
    assert status["pid"] == mayfly.pid and status["socket"] == mayfly.socket_path
    assert (status["workers"], status["ports"], status["interfaces"], status["clients"]) == (1, 2, 2, 1)
    assert f"pid {mayfly.pid}" in mayfly("status")
    before = mayfly.json("reclaim show")
    mayfly("link bulk add name v{} link port0 type vlan id 1-100")
    mayfly("link del parent port0")
    assert "reclaim wait:" in mayfly("reclaim wait")
    assert mayfly.json("reclaim wait timeout 5s")["duration_ns"] >= 0
    after = mayfly.json("reclaim show")
    assert after["retired"] - before["retired"] >= 100
    assert after["retired"] == after["reclaimed"] and after["backlog_objects"] == after["backlog_bytes"] == 0
    assert after["waiting"] == [] and sum(after["grace_histogram_log2_us"]) > 0
    assert "backlog" in mayfly("reclaim show")
    balance = mayfly.json("stats")["balance"]
    assert balance["difference"] == 0
    assert "difference 0" in mayfly("stats") and "difference 0" in mayfly("stats drops")
    listed = mayfly.json("stats drops")["drops"]
    assert {"unknown_tag", "ttl_exceeded", "mtu_exceeded"} <= {drop["reason"] for drop in listed}
    assert all(drop["hint"] and drop["stage"] for drop in listed)
    (netns,) = mayfly.json("netns list")
    assert netns["name"] == "default" and netns["interfaces"] == mayfly.count()


# The command itself


@pytest.mark.sanitizer
def test_exit_status_and_help(mayfly):
    for words in ("help", "link help", "link add help", "addr help", "route help", "neigh help", "port help",
                  "reclaim help", "stats help", "status help", "link bulk help", "link bulk add help"):
        assert "Usage: mayfly" in mayfly(words), words
    for words in ("nonsense", "link nonsense", "link add", "link add v", "link add v type nonsense",
                  "link add v link port0 type vlan", "link add v link port0 type vlan id 1 colour red",
                  "link set port0", "--nonsense", "link set port0 mtu many", "-n", "addr add dev port0"):
        mayfly.refuse(words, status=2)
    mayfly.refuse("-n nowhere link show", "nowhere")
    assert mayfly.count() == 2
    mayfly("l"), mayfly("a"), mayfly("r"), mayfly("n"), mayfly("lin sh"), mayfly("addr sh"), mayfly("-json link")
    mayfly("-n default link show")


def test_no_daemon(mayfly):
    answer = mayfly.cli("--socket /nonexistent/mayfly.sock link show")
    assert answer.status == 1 and "/nonexistent/mayfly.sock" in answer.err


# -batch


@pytest.mark.sanitizer
def test_batch(mayfly):
    script = """# two VLANs, an address and what they look like
link add v1 link port0 up type vlan id 1
link add v2 link port0 up \\
  type vlan id 2

addr add 10.0.0.1/24 dev v1   # behind a command
link set v2 alias "two words"
link count type vlan
"""
    assert mayfly("-batch -", stdin=script).strip() == "2"
    assert mayfly.link("v2")["ifalias"] == "two words"
    assert mayfly.json("addr show v1")[0]["addr_info"][0]["local"] == "10.0.0.1"


@pytest.mark.sanitizer
def test_batch_stops_at_the_first_error(mayfly):
    script = ("link add v1 link port0 type vlan id 1\nlink add v1 link port0 type vlan id 2\n"
              "link add v3 link port0 type vlan id 3\n")
    mayfly.refuse("-batch -", "v1", "Command failed -:2", stdin=script)
    assert mayfly.names("type vlan") == ["v1"], "what follows the refused line is not executed"
    mayfly("link del v1")
    mayfly.refuse("-batch -", "Command failed -:2", stdin=script.replace("link add v1 link port0 type vlan id 2", "lnk"),
                  status=2)
    assert mayfly.names("type vlan") == ["v1"]


@pytest.mark.sanitizer
def test_batch_with_force_goes_on(mayfly):
    script = ("link add v1 link port0 type vlan id 1\nlink add v1 link port0 type vlan id 2\nnonsense\n"
              "link add v3 link port0 type vlan id 1\nlink add v4 link port0 type vlan id 4\n")
    answer = mayfly.refuse("-force -batch -", "Command failed -:2", "Command failed -:3", "Command failed -:4",
                           stdin=script)
    assert answer.err.count("Command failed") == 3
    assert sorted(mayfly.names("type vlan")) == ["v1", "v4"]


def test_long_batch_from_a_file(mayfly, tmp_path):
    """More than fits into a socket: what is sent ahead is matched with its answers."""
    script = tmp_path / "script"
    lines = [f"link add v{n} link port0 type vlan id {n % 4000 + 1} inner {n // 4000 + 1}" for n in range(12000)]
    script.write_text("\n".join(lines) + "\n")
    mayfly(f"-batch {script}")
    assert mayfly.count("type vlan") == 12000
    lines[7000] = "link add v7000 link port0 type vlan id 5000"
    script.write_text("\n".join(lines).replace("link add v", "link add w") + "\n")
    mayfly("link del type vlan")
    mayfly.refuse(f"-batch {script}", "5000", f"Command failed {script}:7001")
    assert mayfly.count("type vlan") == 7000
    script.write_text("".join(f"link del w{n}\n" for n in range(12000)))
    answer = mayfly.refuse(f"-force -batch {script}", "w7000", "does not exist")
    assert answer.err.count("Command failed") == 5000
    assert mayfly.count("type vlan") == 0
    mayfly.refuse("-batch /nonexistent", "/nonexistent", status=2)
