# SPDX-License-Identifier: BSD-3-Clause
"""IPv6 addresses, routes and neighbours by the mayfly command, in text and in JSON, on ports without traffic."""

import errno
import socket

import pytest

from control import (ATTR_DEVICE, IFA_LOCAL, NDA_DST, NDA_LLADDR, RTA_DST, RTA_GATEWAY, RTA_OIF, RTM_NEWADDR,
                     RTM_NEWNEIGH, RTM_NEWROUTE, Client, attr, fixed_addr, fixed_neigh, fixed_route, ipv4, string, u32)
from lab import eventually

LINK_LOCAL = "fe80::ff:fe00:10"


@pytest.fixture
def v1(mayfly):
    mayfly("link add v1 link port0 address 02:00:00:00:00:10 up type vlan id 1")
    yield mayfly
    mayfly("link del v1")


def addresses(mayfly, name, words="-6"):
    (link,) = mayfly.json(f"{words} addr show {name}")
    return [f"{entry['local']}/{entry['prefixlen']}" for entry in link["addr_info"]]


def routes(mayfly, words="dev v1"):
    return {(route.get("type", "unicast"), route["dst"], route.get("gateway"), route.get("metric"))
            for route in mayfly.json(f"-6 route show table all {words}")}


def ipv6(number, text):
    return attr(number, socket.inet_pton(socket.AF_INET6, text))


@pytest.mark.sanitizer
def test_addresses(v1):
    before = v1.status()["addresses"]
    v1("addr add 10.0.0.1/24 dev v1")
    v1("addr add 2001:db8::1/64 dev v1")
    v1("addr add 2001:db8::2/64 dev v1 nodad")
    v1("addr add 2001:db8:1::1 dev v1 nodad")
    assert addresses(v1, "v1") == ["2001:db8::1/64", "2001:db8::2/64", "2001:db8:1::1/128", f"{LINK_LOCAL}/64"]
    assert addresses(v1, "v1", "-4") == ["10.0.0.1/24"]
    assert addresses(v1, "v1", "")[0] == "10.0.0.1/24" and len(addresses(v1, "v1", "")) == 5
    assert v1.status()["addresses"] == before + 4, "what follows from the MAC is not counted"
    text = v1("addr show v1")
    assert "    inet 10.0.0.1/24 scope global v1\n" in text
    assert "    inet6 2001:db8::2/64 scope global nodad\n" in text
    assert f"    inet6 {LINK_LOCAL}/64 scope link\n" in text
    eventually(lambda: "    inet6 2001:db8::1/64 scope global\n" in v1("addr show v1"), True, "nobody else has it")
    (link,) = v1.json("-6 addr show v1")
    assert link["addr_info"][1] == {"family": "inet6", "local": "2001:db8::2", "prefixlen": 64, "scope": "global",
                                    "nodad": True}
    assert link["addr_info"][3]["scope"] == "link"
    v1.refuse("addr add 2001:db8::1/64 dev v1", "2001:db8::1/64", "v1", "already")
    v1("addr replace 2001:db8::1/64 dev v1")
    v1.refuse("addr del 2001:db8::1/65 dev v1", "2001:db8::1/65")
    v1("addr del 2001:db8::1/64 dev v1")
    v1.refuse(f"addr del {LINK_LOCAL}/64 dev v1", LINK_LOCAL)
    v1("addr flush dev v1")
    assert addresses(v1, "v1", "") == [f"{LINK_LOCAL}/64"]
    for bad in ("::/64", "::1/128", "ff02::1/64"):
        v1.refuse(f"addr add {bad} dev v1", bad, "unicast")
    v1.refuse("addr add ::ffff:10.0.0.1/128 dev v1", status=2)
    v1.refuse("addr add 2001:db8::1/129 dev v1", "0..128", status=2)
    v1.refuse("-6 addr add 10.0.0.1/24 dev v1", "10.0.0.1", "IPv6", status=2)
    v1.refuse("-4 -6 addr show", "-4", "-6", status=2)


@pytest.mark.sanitizer
def test_the_link_local_address_is_there_while_the_interface_is_up(v1):
    v1("link set v1 down")
    assert addresses(v1, "v1") == []
    v1("addr add fe80::7/64 dev v1")
    assert addresses(v1, "v1") == ["fe80::7/64"]
    v1("link set v1 up")
    assert addresses(v1, "v1") == ["fe80::7/64", f"{LINK_LOCAL}/64"]
    v1("link set v1 address 02:00:00:00:00:11")
    assert addresses(v1, "v1") == ["fe80::7/64", "fe80::ff:fe00:11/64"]
    assert routes(v1) == set(), "addresses of the link are in no table"


def test_up_and_down_move_connected_routes(v1):
    v1("addr add 2001:db8::1/64 dev v1")
    v1("addr add 2001:db8:1::1/128 dev v1")
    local = {("local", "2001:db8::1", None, None), ("local", "2001:db8:1::1", None, None)}
    connected = {("unicast", "2001:db8::/64", None, 256)}
    assert routes(v1) == local | connected
    v1("route add 2001:db8:9::/48 via 2001:db8::9")
    v1("neigh add 2001:db8::9 lladdr 02:00:00:00:00:09 dev v1")
    v1("link set v1 down")
    assert routes(v1) == local, "addresses stay, static routes and neighbours go"
    assert v1.json("neigh show dev v1") == []
    v1.refuse("route add 2001:db8:9::/48 via 2001:db8::9", "2001:db8::9")
    v1("link set v1 up")
    assert routes(v1) == local | connected


@pytest.mark.sanitizer
def test_routes(v1):
    v1("addr add 2001:db8::1/64 dev v1")
    v1("route add 2001:db8:1::/48 via fe80::1 dev v1")
    v1("route add default via 2001:db8::fe")
    v1("-6 route add 2001:db8:2::/48 dev v1 metric 7")
    v1("route add blackhole 2001:db8:3::/48")
    v1("route add 2001:db8:4::1 via 2001:ffff::1 dev v1 onlink src 2001:db8::1")
    assert {route for route in routes(v1, "") if route[0] != "local"} == {
        ("unicast", "2001:db8::/64", None, 256), ("unicast", "2001:db8:1::/48", "fe80::1", 1024),
        ("unicast", "default", "2001:db8::fe", 1024), ("unicast", "2001:db8:2::/48", None, 7),
        ("blackhole", "2001:db8:3::/48", None, 1024), ("unicast", "2001:db8:4::1", "2001:ffff::1", 1024)}
    text = v1("-6 route show")
    assert "default via 2001:db8::fe dev v1 metric 1024\n" in text
    assert "2001:db8::/64 dev v1 proto kernel metric 256\n" in text
    assert "2001:db8:4::1 via 2001:ffff::1 dev v1 src 2001:db8::1 metric 1024 onlink\n" in text
    assert v1("route show") == "", "IPv4 alone, as ip does it"
    assert [route["flags"] for route in v1.json("-6 route show") if route["dst"] == "2001:db8:4::1"] == [["onlink"]]
    (got,) = v1.json("route get 2001:db8:1::5")
    assert (got["dst"], got["gateway"], got["dev"], got["prefsrc"]) == ("2001:db8:1::5", "fe80::1", "v1", LINK_LOCAL)
    (got,) = v1.json("route get 2001:db8::5")
    assert (got["dev"], got["prefsrc"]) == ("v1", "2001:db8::1") and "gateway" not in got
    (got,) = v1.json("route get 2001:db8::1")
    assert got["type"] == "local"
    v1.refuse("route add 2001:db8:1::/48 via fe80::2 dev v1", "2001:db8:1::/48", "exists")
    v1("route replace 2001:db8:1::/48 via fe80::2 dev v1")
    v1.refuse("route add 2001:db8:5::/48 via fe80::2", "fe80::2", "dev")
    v1.refuse("route add 2001:db8:5::/48 via 2001:fff0::1", "2001:fff0::1", "connected")
    v1.refuse("route add 2001:db8:5::/48 via 2001:db8::1", "2001:db8::1")
    v1.refuse(f"route add 2001:db8:5::/48 via {LINK_LOCAL} dev v1", LINK_LOCAL, "itself")
    v1.refuse("route add 2001:db8:5::1/48 dev v1", "host bits", "2001:db8:5::/48")
    v1.refuse("route add fe80::/64 dev v1", "fe80::/10")
    v1.refuse("route add ff02::/16 dev v1", "ff00::/8")
    v1.refuse("route add 2001:db8:5::/48 via 10.0.0.1", "10.0.0.1", "family", status=2)
    v1.refuse("route add 2001:db8:5::/48 via ff02::1 dev v1 onlink", "ff02::1", "unicast")
    v1.refuse("route del 2001:db8:5::/48", "2001:db8:5::/48")
    v1("route del 2001:db8:1::/48")
    v1("route del blackhole 2001:db8:3::/48")
    v1("route flush dev v1")
    assert routes(v1, "") == {("local", "2001:db8::1", None, None), ("unicast", "2001:db8::/64", None, 256)}
    v1.refuse("route get 2001:db8:77::1", "no route to 2001:db8:77::1")


@pytest.mark.sanitizer
def test_neighbours(v1):
    v1("neigh add 10.0.0.5 lladdr 02:00:00:00:00:05 dev v1")
    v1("neigh add 2001:db8::5 lladdr 02:00:00:00:00:06 dev v1 nud permanent")
    v1("neigh add fe80::1 lladdr 02:00:00:00:00:07 dev v1 router")
    assert {entry["dst"] for entry in v1.json("neigh show dev v1")} == {"10.0.0.5", "2001:db8::5", "fe80::1"}
    assert {entry["dst"] for entry in v1.json("-4 neigh show dev v1")} == {"10.0.0.5"}
    assert "fe80::1 dev v1 lladdr 02:00:00:00:00:07 router PERMANENT\n" in v1("-6 neigh show")
    assert [("router" in entry) for entry in v1.json("-6 neigh show") if entry["dst"] == "fe80::1"] == [True]
    v1.refuse("neigh add 2001:db8::5 lladdr 02:00:00:00:00:06 dev v1", "2001:db8::5", "exists")
    v1.refuse("neigh add ff02::1 lladdr 02:00:00:00:00:06 dev v1", "ff02::1", "unicast")
    v1.refuse("neigh add 10.0.0.6 lladdr 02:00:00:00:00:06 dev v1 router", "router")
    v1("neigh replace 2001:db8::5 lladdr 02:00:00:00:00:08 dev v1 nud reachable")
    v1("neigh flush dev v1")
    assert {entry["dst"] for entry in v1.json("neigh show dev v1")} == {"10.0.0.5", "fe80::1"}
    v1("neigh del fe80::1 dev v1")
    v1.refuse("neigh del fe80::1 dev v1", "fe80::1")


MAC = bytes.fromhex("020000000005")
DEV = string(ATTR_DEVICE, "v1")
SIX = socket.AF_INET6
REFUSED = {
    "IPv4-mapped address": ((RTM_NEWADDR, fixed_addr(128, 0, SIX), ipv6(IFA_LOCAL, "::ffff:10.0.0.1"), DEV), errno.EINVAL,
                            "local", "mapped"),
    "address of the other family": ((RTM_NEWADDR, fixed_addr(24, 0, SIX), ipv4(IFA_LOCAL, "10.0.0.1"), DEV),
                                    errno.EINVAL, "local: 4 bytes", "16"),
    "address of 5 bytes": ((RTM_NEWADDR, fixed_addr(24, 0, SIX), attr(IFA_LOCAL, bytes(5)), DEV), errno.EINVAL,
                           "local: 5 bytes", "4 (IPv4)", "16 (IPv6)"),
    "prefix of 129": ((RTM_NEWADDR, fixed_addr(129, 0, SIX), ipv6(IFA_LOCAL, "2001:db8::1"), DEV), errno.EINVAL, "129",
                      "0..128"),
    "flags of an address": ((RTM_NEWADDR, fixed_addr(64, 0, SIX), ipv6(IFA_LOCAL, "2001:db8::1"), u32(8, 0x200), DEV),
                            errno.EOPNOTSUPP, "0x200", "nodad"),
    "an unknown family": ((RTM_NEWADDR, fixed_addr(64, 0, 7), ipv6(IFA_LOCAL, "2001:db8::1"), DEV), errno.EAFNOSUPPORT,
                          "family 7"),
    "route with an IPv4 gateway": ((RTM_NEWROUTE, fixed_route(48, family=SIX), ipv6(RTA_DST, "2001:db8::"),
                                    ipv4(RTA_GATEWAY, "10.0.0.1"), DEV), errno.EINVAL, "via: 4 bytes"),
    "route prefix of 129": ((RTM_NEWROUTE, fixed_route(129, family=SIX), ipv6(RTA_DST, "2001:db8::"), DEV), errno.EINVAL,
                            "129", "0..128"),
    "route with metrics": ((RTM_NEWROUTE, fixed_route(48, family=SIX), ipv6(RTA_DST, "2001:db8::"), attr(8, bytes(8)),
                            DEV), errno.EOPNOTSUPP, "metrics"),
    "route with next hops": ((RTM_NEWROUTE, fixed_route(48, family=SIX), ipv6(RTA_DST, "2001:db8::"), attr(9, bytes(8))),
                             errno.EOPNOTSUPP, "several next hops"),
    "route by an unknown device": ((RTM_NEWROUTE, fixed_route(48, family=SIX), ipv6(RTA_DST, "2001:db8::"),
                                    u32(RTA_OIF, 4711)), errno.ENODEV, "4711"),
    "neighbour of the other family": ((RTM_NEWNEIGH, fixed_neigh(family=SIX), ipv4(NDA_DST, "10.0.0.1"),
                                       attr(NDA_LLADDR, MAC), DEV), errno.EINVAL, "dst: 4 bytes"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_messages_that_are_refused(v1, name):
    body, code, *texts = REFUSED[name]
    with Client(v1.socket_path) as client:
        error = client.refused(*body, flags=0x600)  # CREATE | EXCL
    assert error.code == code and all(text in error.text for text in texts), error
