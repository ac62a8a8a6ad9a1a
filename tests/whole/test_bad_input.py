# SPDX-License-Identifier: BSD-3-Clause
"""Everything a client can do wrong on the control socket: it is told which field, which value and what is accepted;
nothing changes; the daemon and its other clients go on."""

import contextlib
import errno
import os
import random
import socket
import struct
import time

import pytest

from control import *  # noqa: F403  pylint: disable=wildcard-import,unused-wildcard-import
from lab import eventually

CONFIG = """
interfaces:
  limit: 200000
ports:
  - name: port0
    devargs: net_null0,no-rx=1
"""
CREATE = NLM_F_CREATE | NLM_F_EXCL


@pytest.fixture(scope="module")
def daemon(shared_lab):
    """port0; v10 with an address, a neighbour and a route; v20 with an inner child; dum."""
    daemon = shared_lab.daemon(config=CONFIG)
    daemon("link add v10 link port0 up type vlan id 10")
    daemon("addr add 10.0.0.1/24 dev v10")
    daemon("neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 dev v10")
    daemon("route add 172.16.0.0/16 via 10.0.0.2")
    daemon("link add v20 link port0 type vlan id 20")
    daemon("link add q20.7 link v20 type vlan id 7")
    daemon("link add dum type dummy")
    return daemon


@pytest.fixture
def unchanged(daemon):
    """Whatever the test does: afterwards all is as it was."""
    with Client(daemon.socket_path) as client:
        before = client.everything()
        yield
        eventually(lambda: daemon.status()["clients"], lambda count: count <= 2, "clients")
        assert client.everything() == before
    daemon.check_log()


@pytest.fixture
def route(daemon, unchanged):  # pylint: disable=unused-argument
    with Client(daemon.socket_path) as client:
        yield client


@pytest.fixture
def generic_client(daemon, unchanged):  # pylint: disable=unused-argument
    with Client(daemon.socket_path, GENERIC_FAMILY) as client:
        yield client


def check(refusal, code, *texts):
    assert errno.errorcode.get(refusal.code) == errno.errorcode[code], refusal
    for text in texts:
        assert text in refusal.text, f"'{text}' is not in {refusal}"


def new(name="new", *attributes, fixed=None, parent="port0"):
    return (RTM_NEWLINK, fixed or fixed_link(), string(IFLA_IFNAME, name), *([string(ATTR_DEVICE, parent)] if parent else []),
            *attributes)


def new_vlan(name="new", vid=99, *attributes, parent="port0"):
    return new(name, kind("vlan", u16(IFLA_VLAN_ID, vid)), *attributes, parent=parent)


MAC = b"\x02\0\0\0\0\x01"
DEV = string(ATTR_DEVICE, "v10")

LINK_CASES = {
    "unknown parent": (new_vlan(parent="nope"), errno.ENODEV, "link", "nope"),
    "unknown parent by ifindex": (new_vlan("new", 99, u32(IFLA_LINK, 4711), parent=None), errno.ENODEV, "link", "4711"),
    "no parent": (new_vlan(parent=None), errno.EINVAL, "link", "parent"),
    "parent of a dummy": (new("new", kind("dummy")), errno.EOPNOTSUPP, "port0", "dummy"),
    "parent without a device": (new_vlan(parent="dum"), errno.EOPNOTSUPP, "parent"),
    "three tags": (new_vlan(parent="q20.7"), errno.EOPNOTSUPP, "two tags"),
    "duplicate name": (new_vlan("v10"), errno.EEXIST, "name", "v10"),
    "duplicate tag": (new_vlan("new", 10), errno.EEXIST, "vlan id 10", "v10"),
    "duplicate tags": (new("new", kind("vlan", u16(IFLA_VLAN_ID, 20), u16(VLAN_INNER, 7))), errno.EEXIST,
                       "vlan id 20 inner 7", "q20.7"),
    "duplicate tags through the parent": (new_vlan("new", 7, parent="v20"), errno.EEXIST, "inner 7", "q20.7"),
    "duplicate ifindex": (new_vlan("new", 99)[:1] + (fixed_link(2),) + new_vlan("new", 99)[2:], errno.EEXIST, "2"),
    "tag 0": (new_vlan("new", 0), errno.ERANGE, "vlan id 0", "1..4094"),
    "tag 4095": (new_vlan("new", 4095), errno.ERANGE, "vlan id 4095", "1..4094"),
    "tag 65535": (new_vlan("new", 65535), errno.ERANGE, "vlan id 65535", "1..4094"),
    "inner tag 0": (new("new", kind("vlan", u16(IFLA_VLAN_ID, 1), u16(VLAN_INNER, 0))), errno.ERANGE, "inner 0",
                    "1..4094"),
    "inner tag 4095": (new("new", kind("vlan", u16(IFLA_VLAN_ID, 1), u16(VLAN_INNER, 4095))), errno.ERANGE,
                       "inner 4095", "1..4094"),
    "no tag": (new("new", kind("vlan")), errno.EINVAL, "vlan id", "1..4094"),
    "tag protocol": (new("new", kind("vlan", u16(IFLA_VLAN_ID, 1), be16(IFLA_VLAN_PROTOCOL, 0x8200))),
                     errno.EPROTONOSUPPORT, "protocol", "802.1Q", "802.1ad"),
    "tag protocol out of range": (new("new", kind("vlan", u16(IFLA_VLAN_ID, 1), be16(IFLA_VLAN_PROTOCOL, 0x0800))),
                                  errno.ERANGE, "protocol"),
    "inner tag of a child": (new("new", kind("vlan", u16(IFLA_VLAN_ID, 1), u16(VLAN_INNER, 2)), parent="v20"),
                             errno.EINVAL, "inner 2"),
    "no name": ((RTM_NEWLINK, fixed_link(), string(ATTR_DEVICE, "port0"), kind("vlan", u16(IFLA_VLAN_ID, 1))),
                errno.EINVAL, "name", "missing"),
    "empty name": (new_vlan(""), errno.EINVAL, "name", "1..15"),
    "name of 16": (new_vlan("x" * 16), errno.EINVAL, "name", "x" * 16, "1..15"),
    "name of 60000": (new_vlan("x" * 60000), errno.EINVAL, "name", "60000", "1..15"),
    "name with /": (new_vlan("a/b"), errno.EINVAL, "name 'a/b'", "'/'"),
    "name with a blank": (new_vlan("a b"), errno.EINVAL, "name 'a b'", "white space"),
    "name with a tab": (new_vlan("a\tb"), errno.EINVAL, "name", "white space"),
    "name with a newline": (new_vlan("a\nb"), errno.EINVAL, "name", "white space"),
    "name with a colon": (new_vlan("a:b"), errno.EINVAL, "name 'a:b'", "':'"),
    "name .": (new_vlan("."), errno.EINVAL, "name '.'"),
    "name ..": (new_vlan(".."), errno.EINVAL, "name '..'"),
    "mtu 67": (new_vlan("new", 99, u32(IFLA_MTU, 67)), errno.EINVAL, "mtu 67", "68.."),
    "mtu over the parent's": (new_vlan("new", 99, u32(IFLA_MTU, 1501)), errno.EINVAL, "mtu 1501", "68..1500"),
    "mtu 4294967295": (new_vlan("new", 99, u32(IFLA_MTU, 2**32 - 1)), errno.EINVAL, "mtu 4294967295", "65535"),
    "mtu of a dummy": (new("new", kind("dummy"), u32(IFLA_MTU, 65536), parent=None), errno.EINVAL, "mtu 65536", "65535"),
    "multicast MAC": (new_vlan("new", 99, attr(IFLA_ADDRESS, b"\x01\0\x5e\0\0\1")), errno.EADDRNOTAVAIL, "address",
                      "01:00:5e:00:00:01", "unicast"),
    "no MAC": (new_vlan("new", 99, attr(IFLA_ADDRESS, bytes(6))), errno.EADDRNOTAVAIL, "address", "unicast"),
    "alias of 256": (new_vlan("new", 99, string(IFLA_IFALIAS, "x" * 256)), errno.EINVAL, "alias", "255"),
    "ifindex beyond the limit": (new_vlan("new", 99)[:1] + (fixed_link(200001),) + new_vlan("new", 99)[2:],
                                 errno.ERANGE, "200001", "1..200000"),
    "negative ifindex": (new_vlan("new", 99)[:1] + (fixed_link(-3),) + new_vlan("new", 99)[2:], errno.EINVAL, "-3"),
    "no kind": (new("new"), errno.EINVAL, "type", "vlan"),
    "unknown kind": (new("new", kind("bridge")), errno.EOPNOTSUPP, "bridge", "vlan"),
    "kind port": (new("new", kind("port"), parent=None), errno.EOPNOTSUPP, "port", "--port"),
    "parameter of no kind": (new("new", kind("dummy", u16(IFLA_VLAN_ID, 1)), parent=None), errno.EINVAL, "attribute 1"),
    "unknown attribute": (new_vlan("new", 99, u32(200, 1)), errno.EINVAL, "attribute 200", "unknown"),
    "the same attribute twice": (new_vlan("new", 99, u32(IFLA_MTU, 1000), u32(IFLA_MTU, 1000)), errno.EINVAL, "mtu",
                                 "twice"),
    "more attributes than there are": (new_vlan("new", 99, *[u32(IFLA_MTU, 1000)] * 3000), errno.EINVAL, "mtu", "twice"),
    "mtu of 3 bytes": (new_vlan("new", 99, attr(IFLA_MTU, b"abc")), errno.EINVAL, "mtu", "3 bytes", "4"),
    "mtu of 8 bytes": (new_vlan("new", 99, u64(IFLA_MTU, 1000)), errno.EINVAL, "mtu", "8 bytes", "4"),
    "mtu of 0 bytes": (new_vlan("new", 99, attr(IFLA_MTU)), errno.EINVAL, "mtu", "0 bytes", "4"),
    "MAC of 5 bytes": (new_vlan("new", 99, attr(IFLA_ADDRESS, MAC[:5])), errno.EINVAL, "address", "5 bytes", "6"),
    "MAC of 20 bytes": (new_vlan("new", 99, attr(IFLA_ADDRESS, MAC * 3 + b"ab")), errno.EINVAL, "address", "20", "6"),
    "tag of 4 bytes": (new("new", kind("vlan", u32(IFLA_VLAN_ID, 1))), errno.EINVAL, "id", "4 bytes", "2"),
    "name without an end": ((RTM_NEWLINK, fixed_link(), attr(IFLA_IFNAME, b"new"), kind("dummy")), errno.EINVAL, "name",
                            "NUL"),
    "name of 0 bytes": ((RTM_NEWLINK, fixed_link(), attr(IFLA_IFNAME), kind("dummy")), errno.EINVAL, "name", "NUL"),
    "attribute beyond the message": (new_vlan("new", 99, attr(IFLA_MTU, b"abcd", length=400)), errno.EINVAL, "length"),
    "attribute of length 3": (new_vlan("new", 99, attr(IFLA_MTU, b"abcd", length=3)), errno.EINVAL, "length"),
    "attribute of length 0": (new_vlan("new", 99, attr(IFLA_MTU, b"abcd", length=0)), errno.EINVAL, "length"),
    "half an attribute": (new_vlan("new", 99, b"\x08\0"), errno.EINVAL, "length"),
    "nested attribute beyond its parent": (new("new", nest(IFLA_LINKINFO, attr(IFLA_INFO_KIND, b"vlan\0", length=99))),
                                           errno.EINVAL, "length"),
    "half a fixed header": ((RTM_NEWLINK, fixed_link()[:9]), errno.EINVAL, "16"),
    "no fixed header": ((RTM_NEWLINK,), errno.EINVAL, "16"),
}


@pytest.mark.sanitizer
@pytest.mark.parametrize("request_,code,texts", [(case[0], case[1], case[2:]) for case in LINK_CASES.values()],
                         ids=list(LINK_CASES))
def test_new_link(route, request_, code, texts):
    check(route.refused(*request_, flags=CREATE), code, *texts)


CASES = {
    "change an unknown interface": ((RTM_NEWLINK, fixed_link(), string(IFLA_IFNAME, "nope"), u32(IFLA_GROUP, 1)), 0,
                                    errno.ENODEV, "nope"),
    "change an unknown ifindex": ((RTM_NEWLINK, fixed_link(4711), u32(IFLA_GROUP, 1)), 0, errno.ENODEV, "4711"),
    "change nothing that is named": ((RTM_NEWLINK, fixed_link(), u32(IFLA_GROUP, 1)), 0, errno.EINVAL, "name"),
    "change the parent": ((RTM_NEWLINK, fixed_link(), string(IFLA_IFNAME, "v10"), u32(IFLA_LINK, 1)), 0,
                          errno.EOPNOTSUPP, "v10"),
    "change the mtu": ((RTM_NEWLINK, fixed_link(), string(IFLA_IFNAME, "v10"), u32(IFLA_GROUP, 5), u32(IFLA_MTU, 1501)),
                       0, errno.EINVAL, "mtu 1501", "68..1500"),
    "rename to one that exists": ((RTM_NEWLINK, fixed_link(2), string(IFLA_IFNAME, "v20")), 0, errno.EEXIST, "v20"),
    "rename to a bad name": ((RTM_SETLINK, fixed_link(2), string(IFLA_IFNAME, "a/b")), 0, errno.EINVAL, "a/b"),
    "delete an unknown one": ((RTM_DELLINK, fixed_link(), string(IFLA_IFNAME, "nope")), 0, errno.ENODEV, "nope"),
    "delete an unknown ifindex": ((RTM_DELLINK, fixed_link(4711)), 0, errno.ENODEV, "4711"),
    "delete nothing": ((RTM_DELLINK, fixed_link()), 0, errno.EINVAL, "name"),
    "delete a port": ((RTM_DELLINK, fixed_link(1)), 0, errno.EOPNOTSUPP, "port0"),
    "get an unknown one": ((RTM_GETLINK, fixed_link(), string(IFLA_IFNAME, "nope")), 0, errno.ENODEV, "nope"),
    "dump with an unknown condition": ((RTM_GETLINK, fixed_link(), nest(ATTR_SELECTOR, u32(77, 1))), NLM_F_DUMP,
                                       errno.EINVAL, "77"),
    "dump of an unknown parent": ((RTM_GETLINK, fixed_link(), nest(ATTR_SELECTOR, string(SELECT_PARENT, "nope"))),
                                  NLM_F_DUMP, errno.ENODEV, "parent", "nope"),
    "dump of tags upside down": ((RTM_GETLINK, fixed_link(), nest(ATTR_SELECTOR, u16(SELECT_OUTER_FIRST, 9),
                                                                  u16(SELECT_OUTER_LAST, 8))), NLM_F_DUMP,
                                 errno.EINVAL, "vlan 9-8", "1..4094"),
    "address twice": ((RTM_NEWADDR, fixed_addr(), ipv4(IFA_LOCAL, "10.0.0.1"), DEV), CREATE, errno.EEXIST,
                      "10.0.0.1/24", "v10"),
    "address on nothing": ((RTM_NEWADDR, fixed_addr(), ipv4(IFA_LOCAL, "10.0.0.3")), CREATE, errno.EINVAL, "interface"),
    "address on an unknown one": ((RTM_NEWADDR, fixed_addr(), ipv4(IFA_LOCAL, "10.0.0.3"), string(ATTR_DEVICE, "nope")),
                                  CREATE, errno.ENODEV, "nope"),
    "no address": ((RTM_NEWADDR, fixed_addr(), DEV), CREATE, errno.EINVAL, "local", "missing"),
    "prefix of 33": ((RTM_NEWADDR, fixed_addr(33), ipv4(IFA_LOCAL, "10.0.0.3"), DEV), CREATE, errno.EINVAL, "33",
                     "0..32"),
    "address 0.0.0.0": ((RTM_NEWADDR, fixed_addr(), ipv4(IFA_LOCAL, "0.0.0.0"), DEV), CREATE, errno.EADDRNOTAVAIL,
                        "0.0.0.0"),
    "address 127.0.0.1": ((RTM_NEWADDR, fixed_addr(8), ipv4(IFA_LOCAL, "127.0.0.1"), DEV), CREATE, errno.EADDRNOTAVAIL,
                          "127.0.0.1/8"),
    "address 224.0.0.1": ((RTM_NEWADDR, fixed_addr(), ipv4(IFA_LOCAL, "224.0.0.1"), DEV), CREATE, errno.EADDRNOTAVAIL,
                          "224.0.0.1/24"),
    "address of 16 bytes": ((RTM_NEWADDR, fixed_addr(), attr(IFA_LOCAL, bytes(16)), DEV), CREATE, errno.EINVAL, "local",
                            "family"),
    "IPv6 address": ((RTM_NEWADDR, fixed_addr(64, 0, socket.AF_INET6), attr(IFA_LOCAL, bytes(16)), DEV), CREATE, None,
                     ""),
    "unknown address deleted": ((RTM_DELADDR, fixed_addr(), ipv4(IFA_LOCAL, "10.0.0.3"), DEV), 0, errno.EADDRNOTAVAIL,
                                "10.0.0.3/24", "v10"),
    "half an address header": ((RTM_NEWADDR, fixed_addr()[:4]), CREATE, errno.EINVAL, "8"),
    "route twice": ((RTM_NEWROUTE, fixed_route(16), ipv4(RTA_DST, "172.16.0.0"), ipv4(RTA_GATEWAY, "10.0.0.2")), CREATE,
                    errno.EEXIST, "172.16.0.0/16"),
    "route by an unreachable gateway": ((RTM_NEWROUTE, fixed_route(8), ipv4(RTA_DST, "11.0.0.0"),
                                         ipv4(RTA_GATEWAY, "99.0.0.1")), CREATE, errno.ENETUNREACH, "99.0.0.1"),
    "route by an unknown device": ((RTM_NEWROUTE, fixed_route(8), ipv4(RTA_DST, "11.0.0.0"), u32(RTA_OIF, 4711)), CREATE,
                                   errno.ENODEV, "4711"),
    "route by a device that is down": ((RTM_NEWROUTE, fixed_route(8), ipv4(RTA_DST, "11.0.0.0"),
                                        string(ATTR_DEVICE, "v20")), CREATE, errno.ENETDOWN, "v20", "down"),
    "route to nowhere": ((RTM_NEWROUTE, fixed_route(8), ipv4(RTA_DST, "11.0.0.0")), CREATE, errno.EINVAL, "via", "dev"),
    "route prefix of 33": ((RTM_NEWROUTE, fixed_route(33), ipv4(RTA_DST, "11.0.0.0"), DEV), CREATE, errno.EINVAL, "33",
                           "0..32"),
    "route with host bits": ((RTM_NEWROUTE, fixed_route(8), ipv4(RTA_DST, "11.0.0.1"), DEV), CREATE, errno.EINVAL,
                             "11.0.0.1/8"),
    "route of an unknown type": ((RTM_NEWROUTE, fixed_route(8, 77), ipv4(RTA_DST, "11.0.0.0"), DEV), CREATE,
                                 errno.EOPNOTSUPP, "77"),
    "route of an unknown table": ((RTM_NEWROUTE, fixed_route(8), ipv4(RTA_DST, "11.0.0.0"), u32(RTA_TABLE, 77), DEV),
                                  CREATE, errno.EOPNOTSUPP, "77"),
    "blackhole with a gateway": ((RTM_NEWROUTE, fixed_route(8, 6), ipv4(RTA_DST, "11.0.0.0"),
                                  ipv4(RTA_GATEWAY, "10.0.0.2")), CREATE, errno.EINVAL, "via"),
    "unknown route deleted": ((RTM_DELROUTE, fixed_route(8), ipv4(RTA_DST, "11.0.0.0")), 0, errno.ESRCH, "11.0.0.0/8"),
    "no route": ((RTM_GETROUTE, fixed_route(32), ipv4(RTA_DST, "99.0.0.1")), 0, errno.ENETUNREACH, "99.0.0.1"),
    "neighbour twice": ((RTM_NEWNEIGH, fixed_neigh(), ipv4(NDA_DST, "10.0.0.2"), attr(NDA_LLADDR, MAC), DEV), CREATE,
                        errno.EEXIST, "10.0.0.2"),
    "neighbour without a MAC": ((RTM_NEWNEIGH, fixed_neigh(), ipv4(NDA_DST, "10.0.0.3"), DEV), CREATE, errno.EINVAL,
                                "lladdr"),
    "neighbour without an address": ((RTM_NEWNEIGH, fixed_neigh(), attr(NDA_LLADDR, MAC), DEV), CREATE, errno.EINVAL,
                                     "dst"),
    "neighbour with half a MAC": ((RTM_NEWNEIGH, fixed_neigh(), ipv4(NDA_DST, "10.0.0.3"), attr(NDA_LLADDR, MAC[:3]),
                                   DEV), CREATE, errno.EINVAL, "lladdr", "3 bytes", "6"),
    "neighbour of an unknown state": ((RTM_NEWNEIGH, fixed_neigh(0, 0x47), ipv4(NDA_DST, "10.0.0.3"),
                                       attr(NDA_LLADDR, MAC), DEV), CREATE, errno.EINVAL, "state"),
    "neighbour on nothing": ((RTM_NEWNEIGH, fixed_neigh(), ipv4(NDA_DST, "10.0.0.3"), attr(NDA_LLADDR, MAC)), CREATE,
                             errno.EINVAL, "interface"),
    "neighbour on one that is down": ((RTM_NEWNEIGH, fixed_neigh(), ipv4(NDA_DST, "10.0.0.3"), attr(NDA_LLADDR, MAC),
                                       string(ATTR_DEVICE, "v20")), CREATE, errno.ENETDOWN, "v20", "down"),
    "unknown neighbour deleted": ((RTM_DELNEIGH, fixed_neigh(), ipv4(NDA_DST, "10.0.0.3"), DEV), 0, errno.ENOENT,
                                  "10.0.0.3"),
    "unknown message type": ((9999, bytes(16)), 0, errno.EOPNOTSUPP, "9999"),
    "message type of rtnetlink that is not ours": ((72, bytes(16)), 0, errno.EOPNOTSUPP, "72"),
    "generic message on a route connection": ((GENERIC, generic(STATUS)), 0, errno.EOPNOTSUPP, str(GENERIC)),
    "second hello": ((HELLO, u32(HELLO_VERSION, 1)), 0, errno.EOPNOTSUPP, str(HELLO)),
}


@pytest.mark.sanitizer
@pytest.mark.parametrize("request_,flags,code,texts", [(case[0], case[1], case[2], case[3:]) for case in CASES.values()],
                         ids=list(CASES))
def test_route_messages(route, request_, flags, code, texts):
    refusal = route.refused(*request_, flags=flags)
    if code is not None:
        check(refusal, code, *texts)


def ranges(*given):
    return bulk_add("n{}", given)


GENERIC_CASES = {
    "unknown command": (generic(200), errno.EOPNOTSUPP, "200"),
    "command 0": (generic(0), errno.EOPNOTSUPP, "0"),
    "half a header": (b"\1\1", errno.EINVAL, "4"),
    "unknown attribute": (generic(LINK_COUNT, u32(3000, 1)), errno.EINVAL, "3000"),
    "range upside down": (ranges((IFLA_VLAN_ID, 9, 8)), errno.ERANGE, "vlan id 9-8", "1..4094"),
    "range from 0": (ranges((IFLA_VLAN_ID, 0, 8)), errno.ERANGE, "vlan id 0-8", "1..4094"),
    "range to 4095": (ranges((IFLA_VLAN_ID, 1, 4095)), errno.ERANGE, "4095", "1..4094"),
    "range to 4294967295": (ranges((IFLA_VLAN_ID, 1, 2**32 - 1)), errno.ERANGE, "4294967295", "1..4094"),
    "range twice": (ranges((IFLA_VLAN_ID, 1, 2), (IFLA_VLAN_ID, 3, 4)), errno.EINVAL, "vlan id", "twice"),
    "range of what has none": (ranges((IFLA_VLAN_PROTOCOL, 1, 2)), errno.EINVAL, str(IFLA_VLAN_PROTOCOL)),
    "range without a tag": (ranges((VLAN_INNER, 1, 2)), errno.EINVAL, "vlan id", "missing"),
    "no template": (generic(BULK_ADD, string(B_NAME, "n{}")), errno.EINVAL, "template"),
    "template with a name": (bulk_add("n{}", [(1, 1, 2)], template=[string(IFLA_IFNAME, "x"), kind("dummy")]),
                             errno.EINVAL, "name"),
    "count 0": (bulk_add("n{}", [(1, 1, 2)], count=0), errno.EINVAL, "count"),
    "count over the product": (bulk_add("n{}", [(1, 1, 2)], count=3), errno.ERANGE, "count 3", "2"),
    "count over the limit": (bulk_add("n{}", [], count=200001, template=[kind("dummy")]), errno.ERANGE, "200001",
                             "200000"),
    "count 2^64 - 1": (bulk_add("n{}", [], count=2**64 - 1, template=[kind("dummy")]), errno.ERANGE,
                       "18446744073709551615"),
    "name that does not vary": (bulk_add("n", [(1, 1, 2)]), errno.EINVAL, "name 'n'", "{}"),
    "name that repeats": (bulk_add("n{outer}", [(1, 1, 2), (VLAN_INNER, 1, 2)]), errno.EEXIST, "n1"),
    "name with an open brace": (bulk_add("n{", [(1, 1, 2)]), errno.EINVAL, "n{"),
    "name with an unknown field": (bulk_add("n{x}", [(1, 1, 2)]), errno.EINVAL, "{x}", "{outer}"),
    "name of 65": (bulk_add("n{}" + "x" * 62, [(1, 1, 2)]), errno.EINVAL, "name", "64"),
    "names too long": (bulk_add("n{}" + "x" * 14, [(1, 1, 2)]), errno.EINVAL, "15"),
    "tag in the middle": (bulk_add("n{}", [(1, 8, 12)]), errno.EEXIST, "vlan id 10", "v10", "nothing was changed"),
    "delete by nothing": (generic(BULK_DEL), errno.EINVAL, "selector"),
    "delete by two": (generic(BULK_DEL, string(B_NAME, "n{}"), attr(B_LISTED)), errno.EINVAL, "exactly one"),
    "delete by an empty selector": (generic(BULK_DEL, nest(B_SELECTOR)), errno.EINVAL, "condition"),
    "delete group 0": (generic(BULK_DEL, nest(B_SELECTOR, u32(SELECT_GROUP, 0))), errno.EINVAL, "group 0"),
    "delete kind port": (generic(BULK_DEL, nest(B_SELECTOR, string(SELECT_KIND, "port"))), errno.EOPNOTSUPP, "port0",
                         "nothing was changed"),
    "delete an unknown name": (generic(BULK_DEL, string(B_NAME, "v10{}"), u64(B_COUNT, 1)), errno.ENODEV, "v100"),
    "delete too many": (generic(BULK_DEL, string(B_NAME, "n{}"), u64(B_COUNT, 2**63)), errno.ERANGE,
                        "9223372036854775808"),
    "delete tags upside down": (generic(BULK_DEL, nest(B_SELECTOR, u16(SELECT_OUTER_FIRST, 20), u16(SELECT_OUTER_LAST, 10))),
                                errno.EINVAL, "20-10", "1..4094"),
    "which of an unknown port": (generic(LINK_WHICH, string(WHICH_PORT, "nope")), errno.ENODEV, "nope"),
    "which of no port": (generic(LINK_WHICH, string(WHICH_PORT, "v10")), errno.EINVAL, "v10"),
    "which of nothing": (generic(LINK_WHICH), errno.EINVAL, ""),
    "which tag 4095": (generic(LINK_WHICH, string(WHICH_PORT, "port0"), u16(WHICH_OUTER, 4095)), errno.ERANGE, "4095",
                       "1..4094"),
    "which protocol": (generic(LINK_WHICH, string(WHICH_PORT, "port0"), u16(WHICH_OUTER, 1), u16(WHICH_PROTOCOL, 1)),
                       errno.EPROTONOSUPPORT, "0x0001", "0x8100"),
    "batch end": (generic(BATCH_END), errno.EINVAL, "batch"),
    "timeout of 4 bytes": (generic(RECLAIM_WAIT, u32(RECLAIM_TIMEOUT, 1)), errno.EINVAL, "timeout", "4 bytes", "8"),
}


@pytest.mark.sanitizer
@pytest.mark.parametrize("body,code,texts", [(case[0], case[1], case[2:]) for case in GENERIC_CASES.values()],
                         ids=list(GENERIC_CASES))
def test_generic_messages(generic_client, body, code, texts):
    check(generic_client.refused(GENERIC, body), code, *texts)


def test_route_message_on_a_generic_connection(generic_client):
    check(generic_client.refused(RTM_GETLINK, fixed_link()), errno.EOPNOTSUPP, str(RTM_GETLINK))


def test_batch_twice(generic_client):
    generic_client.done(GENERIC, generic(BATCH_BEGIN))
    check(generic_client.refused(GENERIC, generic(BATCH_BEGIN)), errno.EALREADY, "batch")
    generic_client.done(GENERIC, generic(BATCH_END))


# Hello


HELLOS = {
    "wrong version": ([u32(HELLO_VERSION, 2)], errno.EPROTONOSUPPORT, "version 2", "1"),
    "no version": ([u32(HELLO_FAMILY, 0)], errno.EPROTONOSUPPORT, "version"),
    "unknown family": ([u32(HELLO_VERSION, 1), u32(HELLO_FAMILY, 9)], errno.EPROTONOSUPPORT, "family 9"),
    "unknown namespace": ([u32(HELLO_VERSION, 1), string(HELLO_NETNS, "blue")], errno.ENOENT, "blue"),
    "version of 2 bytes": ([u16(HELLO_VERSION, 1)], errno.EINVAL, "version", "2 bytes", "4"),
    "unknown attribute": ([u32(HELLO_VERSION, 1), u32(99, 1)], errno.EINVAL, "99"),
    "name of 1000": ([u32(HELLO_VERSION, 1), string(HELLO_CLIENT, "x" * 1000)], errno.EINVAL, "client", "64"),
}


@pytest.mark.sanitizer
@pytest.mark.parametrize("attributes,code,texts", [(case[0], case[1], case[2:]) for case in HELLOS.values()],
                         ids=list(HELLOS))
def test_hello(daemon, unchanged, attributes, code, texts):  # pylint: disable=unused-argument
    with Client(daemon.socket_path, hello=False) as client:
        check(client.refused(HELLO, *attributes), code, *texts)
        with pytest.raises(Closed):
            client.receive()


@pytest.mark.sanitizer
@pytest.mark.parametrize("first", [(RTM_GETLINK, fixed_link()), (RTM_NEWLINK, vlan("new", "port0", 99)),
                                   (GENERIC, generic(STATUS)), (9999,)])
def test_no_hello(daemon, unchanged, first):  # pylint: disable=unused-argument
    with Client(daemon.socket_path, hello=False) as client:
        check(client.refused(*first, flags=CREATE if first[0] == RTM_NEWLINK else 0), errno.EPROTO, "hello")
        with pytest.raises(Closed):
            client.receive()


@pytest.mark.sanitizer
def test_what_follows_a_refused_hello_is_not_executed(daemon, unchanged):  # pylint: disable=unused-argument
    with Client(daemon.socket_path, hello=False) as client:
        client.send(message(HELLO, NLM_F_REQUEST, 1, u32(HELLO_VERSION, 7))
                    + message(RTM_NEWLINK, NLM_F_REQUEST | NLM_F_ACK | CREATE, 2, vlan("new", "port0", 99)))
        answers = client.receive()
        assert [answer.sequence for answer in answers] == [1]
        with pytest.raises(Closed):
            client.receive()


@pytest.mark.sanitizer
def test_hello_and_request_in_one_datagram(daemon, unchanged):  # pylint: disable=unused-argument
    with Client(daemon.socket_path, hello=False) as client:
        client.send(message(HELLO, NLM_F_REQUEST, 1, u32(HELLO_VERSION, 1))
                    + message(RTM_GETLINK, NLM_F_REQUEST | NLM_F_ACK, 2, fixed_link(1)))
        seen = []
        while len(seen) < 3:
            seen += [(answer.kind, answer.sequence) for answer in client.receive()]
        assert seen == [(HELLO, 1), (RTM_NEWLINK, 2), (NLMSG_ERROR, 2)]


# Datagrams


FINE = message(RTM_GETLINK, NLM_F_REQUEST | NLM_F_ACK, 77, fixed_link(1))

DATAGRAMS = {
    "one byte": (b"\x20", "1 bytes"),
    "15 bytes": (FINE[:15], "15 bytes"),
    "length 0": (message(RTM_NEWLINK, NLM_F_REQUEST, 5, fixed_link(), length=0), "length 0"),
    "length 15": (message(RTM_NEWLINK, NLM_F_REQUEST, 5, fixed_link(), length=15), "length 15"),
    "longer than it is": (message(RTM_NEWLINK, NLM_F_REQUEST, 5, fixed_link(), length=400), "length 400"),
    "length 4294967295": (message(RTM_NEWLINK, NLM_F_REQUEST, 5, fixed_link(), length=2**32 - 1), "4294967295"),
    "cut in the middle": (message(RTM_NEWLINK, NLM_F_REQUEST | CREATE, 5, vlan("new", "port0", 99))[:-20], "length"),
    "rubbish behind a message": (FINE + b"\0\0\0", "3 bytes"),
}


@pytest.mark.sanitizer
@pytest.mark.parametrize("datagram,text", DATAGRAMS.values(), ids=list(DATAGRAMS))
def test_datagram(route, datagram, text):
    route.send(datagram)
    refusals = []
    while not refusals:
        refusals = [refusal for answer in route.receive() if answer.kind == NLMSG_ERROR
                    and (refusal := acknowledgement(answer)) is not None]
    check(refusals[0], errno.EINVAL, text)
    route.done(RTM_GETLINK, fixed_link(1))  # the connection goes on


@pytest.mark.sanitizer
@pytest.mark.parametrize("size", [MAX_DATAGRAM + 4, 200000])
def test_oversized_datagram(route, size):
    """It is refused as a whole: not even its first message is executed."""
    one = message(RTM_NEWLINK, NLM_F_REQUEST | CREATE, 5, vlan("new", "port0", 99))
    route.send(one + message(NLMSG_NOOP, 0, 0, bytes(size - len(one) - 16)))
    (answer,) = route.receive()
    check(acknowledgement(answer), errno.EMSGSIZE, str(size), "65536")
    route.done(RTM_GETLINK, fixed_link(1))


def test_largest_datagram(route):
    one = message(RTM_GETLINK, NLM_F_REQUEST | NLM_F_ACK, 5, fixed_link(1))
    route.send(message(NLMSG_NOOP, 0, 0, bytes(MAX_DATAGRAM - len(one) - 16)) + one)
    assert route.collect(5)[1] is None


def test_empty_datagram(daemon, route):
    """Looks like the end of the connection, and is taken for it."""
    route.socket.send(b"")
    with pytest.raises(Closed):
        while True:
            route.receive()
    with Client(daemon.socket_path) as other:
        other.done(RTM_GETLINK, fixed_link(1))


@pytest.mark.sanitizer
def test_messages_of_a_datagram_succeed_and_fail_one_by_one(daemon, route):
    flags = NLM_F_REQUEST | CREATE
    route.send(message(RTM_NEWLINK, flags, 101, vlan("n1", "port0", 901))
               + message(RTM_NEWLINK, flags, 102, vlan("n1", "port0", 902))
               + message(RTM_NEWLINK, flags | NLM_F_ACK, 103, vlan("n3", "port0", 903)))
    seen = []
    while len(seen) < 2:
        seen += route.receive()
    assert [(answer.sequence, acknowledgement(answer) is None) for answer in seen] == [(102, False), (103, True)], \
        "an acknowledgement only for who asks, an error always"
    assert sorted(daemon.names("vlan 900-999")) == ["n1", "n3"]
    daemon("link del vlan 900-999")


@pytest.mark.sanitizer
def test_chained_messages_stop_at_the_first_error(daemon, route):
    flags = NLM_F_REQUEST | CREATE | NLM_F_ACK
    route.send(message(RTM_NEWLINK, flags, 101, vlan("n1", "port0", 901))
               + message(RTM_NEWLINK, flags | FLAG_CHAINED, 102, vlan("n1", "port0", 902))
               + message(RTM_NEWLINK, flags | FLAG_CHAINED, 103, vlan("n3", "port0", 903)))
    route.send(message(RTM_NEWLINK, flags | FLAG_CHAINED, 104, vlan("n4", "port0", 904))
               + message(RTM_NEWLINK, flags, 105, vlan("n5", "port0", 905)))
    seen = []
    while len(seen) < 5:
        seen += route.receive()
    codes = [0 if (refusal := acknowledgement(answer)) is None else refusal.code for answer in seen]
    assert codes == [0, errno.EEXIST, errno.ECANCELED, errno.ECANCELED, 0]
    assert sorted(daemon.names("vlan 900-999")) == ["n1", "n5"]
    daemon("link del vlan 900-999")


# Clients that misbehave


@pytest.fixture
def crowd(daemon, unchanged):  # pylint: disable=unused-argument
    """So many interfaces that a dump of them does not fit into a socket."""
    daemon("link bulk add count 30000 name 'c{}' link port0 group 9 type vlan id 1001-2000 inner 1-30")
    yield
    daemon("link del group 9")


@pytest.mark.sanitizer
def test_a_client_that_stops_reading(daemon, crowd):  # pylint: disable=unused-argument
    """It asks for large dumps and never reads them: it gets stuck, nobody else, and it is not given memory for ever."""
    with contextlib.ExitStack() as stack:
        deaf = [stack.enter_context(Client(daemon.socket_path)) for _ in range(3)]
        for client in deaf:
            client.socket.setblocking(False)
            with pytest.raises(BlockingIOError):
                for number in range(100000):
                    client.socket.send(message(RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP, number, fixed_link()))
        rss = daemon.rss_kib()
        other = stack.enter_context(Client(daemon.socket_path))
        counter = stack.enter_context(Client(daemon.socket_path, GENERIC_FAMILY))
        for _ in range(50):
            other.create(vlan("new", "port0", 901))
            assert counter.count() == 30006
            other.done(RTM_DELLINK, fixed_link(), string(IFLA_IFNAME, "new"))
        assert len(other.done(RTM_GETLINK, fixed_link(), flags=NLM_F_DUMP)) == 30005
        assert daemon.rss_kib() - rss < 64 * 1024, "what is unread is not piled up"
        # Whoever reads again gets whole answers.
        deaf[0].socket.setblocking(True)
        answers = deaf[0].receive()
        while not any(answer.kind == NLMSG_DONE for answer in answers):
            answers += deaf[0].receive()
        assert sum(answer.kind == RTM_NEWLINK and answer.sequence == 0 for answer in answers) == 30005


@pytest.mark.sanitizer
def test_a_dump_tells_when_the_set_changed(daemon, crowd):  # pylint: disable=unused-argument
    """It does not repeat or miss what was there all the time, and says that it is not of one moment."""
    with Client(daemon.socket_path) as slow, Client(daemon.socket_path, GENERIC_FAMILY) as other:
        slow.send(message(RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP, 5, fixed_link()))
        first = slow.receive()
        names = "".join(f"c{n} " for n in range(0, 30000, 3)).split()
        for at in range(0, len(names), 1000):
            other.done(GENERIC, generic(BULK_NAMES, *[string(B_NAME_ENTRY, name) for name in names[at:at + 1000]]))
        result, refusal = other.bulk(generic(BULK_DEL, attr(B_LISTED)))
        assert refusal is None and result == (10000, 10000, 0)
        answers = list(first)
        while answers[-1].kind != NLMSG_DONE:
            answers += slow.receive()
        assert answers[-1].flags & 0x10, "NLM_F_DUMP_INTR"
        ids = [answer.attributes(16)[ATTR_ID] for answer in answers if answer.kind == RTM_NEWLINK]
        seen = [answer.attributes(16)[IFLA_IFNAME] for answer in answers if answer.kind == RTM_NEWLINK]
        assert len(set(ids)) == len(ids)
        assert {f"c{n}\0".encode() for n in range(30000) if n % 3} <= set(seen)


@pytest.mark.sanitizer
def test_a_client_that_dies_in_mid_message(daemon, unchanged):  # pylint: disable=unused-argument
    whole = message(RTM_NEWLINK, NLM_F_REQUEST | NLM_F_ACK | CREATE, 9, vlan("new", "port0", 901))
    for cut in range(1, len(whole), 7):
        client = Client(daemon.socket_path)
        client.send(whole[:cut])
        client.close()
    with Client(daemon.socket_path) as other:
        other.done(RTM_GETLINK, fixed_link(1))


@pytest.mark.sanitizer
@pytest.mark.parametrize("pause_ms", [0, 0, 1, 2, 5, 10, 20, 40])
def test_a_client_that_dies_in_mid_bulk(daemon, unchanged, pause_ms):  # pylint: disable=unused-argument
    """All or none; and the names and tags of none are free."""
    bulk = bulk_add("b{}", [(IFLA_VLAN_ID, 1001, 3000), (VLAN_INNER, 1, 20)])
    with Client(daemon.socket_path, GENERIC_FAMILY) as other:
        before = other.count()
        client = Client(daemon.socket_path, GENERIC_FAMILY)
        client.send(message(GENERIC, NLM_F_REQUEST | NLM_F_ACK, 9, bulk))
        time.sleep(pause_ms / 1000)
        client.close()
        eventually(lambda: daemon.status()["clients"], lambda count: count <= 3, "clients")
        count = other.count()
        assert count in (before, before + 40000)
        if count == before:
            result, refusal = other.bulk(bulk)
            assert refusal is None and result == (40000, 40000, 0)
        # And the same for a delete.
        client = Client(daemon.socket_path, GENERIC_FAMILY)
        delete = generic(BULK_DEL, nest(B_SELECTOR, u16(SELECT_OUTER_FIRST, 1001), u16(SELECT_OUTER_LAST, 3000)))
        client.send(message(GENERIC, NLM_F_REQUEST | NLM_F_ACK, 9, delete))
        time.sleep(pause_ms / 1000)
        client.close()
        eventually(lambda: daemon.status()["clients"], lambda count: count <= 3, "clients")
        count = other.count()
        assert count in (before, before + 40000)
        if count != before:
            result, refusal = other.bulk(delete)
            assert refusal is None and result == (40000, 40000, 0)


def test_a_client_that_dies_with_an_open_batch(daemon, unchanged):  # pylint: disable=unused-argument
    """Acknowledged deletes stay deleted, and are reclaimed although the batch was never ended."""
    daemon("link bulk add name 'b{}' link port0 type vlan id 1001-1100")
    client = Client(daemon.socket_path, GENERIC_FAMILY)
    client.done(GENERIC, generic(BATCH_BEGIN))
    result, refusal = client.bulk(generic(BULK_DEL, nest(B_SELECTOR, u16(SELECT_OUTER_FIRST, 1001),
                                                         u16(SELECT_OUTER_LAST, 1100))))
    assert refusal is None and result == (100, 100, 0)
    client.close()
    daemon("reclaim wait")
    eventually(lambda: daemon.status()["backlog_objects"], 0, "backlog")


@pytest.mark.sanitizer
def test_two_bulks_at_once_for_the_same_names(daemon, unchanged):  # pylint: disable=unused-argument
    """One of them wins all; what it claimed is a conflict for the other, and nothing is made twice."""
    bulk = bulk_add("b{}", [(IFLA_VLAN_ID, 1001, 3000), (VLAN_INNER, 1, 20)])
    with Client(daemon.socket_path, GENERIC_FAMILY) as one, Client(daemon.socket_path, GENERIC_FAMILY) as two:
        before = one.count()
        for client in (one, two):
            client.send(message(GENERIC, NLM_F_REQUEST | NLM_F_ACK, 999, bulk))
        refusals = [client.collect(999)[1] for client in (one, two)]
        assert [refusal is None for refusal in refusals].count(True) <= 1
        won = any(refusal is None for refusal in refusals)
        assert one.count() == before + (40000 if won else 0)
        daemon("link del vlan 1001-3000")


# Mutations


def valid_messages():
    """(family, message kind, flags, body) of all sorts, some of which change things."""
    yield from ((ROUTE_FAMILY, *words) for words in [
        (RTM_NEWLINK, CREATE, vlan("m1", "port0", 3001, 7, u32(IFLA_MTU, 1000), u32(IFLA_GROUP, 7), attr(IFLA_ADDRESS, MAC),
                                   string(IFLA_IFALIAS, "alias"))),
        (RTM_NEWLINK, 0, fixed_link(2, IFF_UP, IFF_UP) + u32(IFLA_GROUP, 3)),
        (RTM_DELLINK, 0, fixed_link() + string(IFLA_IFNAME, "m1")),
        (RTM_GETLINK, NLM_F_DUMP, fixed_link() + nest(ATTR_SELECTOR, u32(SELECT_GROUP, 7), string(SELECT_PARENT, "port0"))),
        (RTM_NEWADDR, CREATE, fixed_addr() + ipv4(IFA_LOCAL, "10.7.0.1") + DEV),
        (RTM_DELADDR, 0, fixed_addr() + ipv4(IFA_LOCAL, "10.7.0.1") + DEV),
        (RTM_GETADDR, NLM_F_DUMP, fixed_addr(0)),
        (RTM_NEWROUTE, CREATE, fixed_route(16) + ipv4(RTA_DST, "172.17.0.0") + ipv4(RTA_GATEWAY, "10.0.0.2")),
        (RTM_DELROUTE, 0, fixed_route(16) + ipv4(RTA_DST, "172.17.0.0")),
        (RTM_GETROUTE, 0, fixed_route(32) + ipv4(RTA_DST, "172.16.0.1")),
        (RTM_NEWNEIGH, CREATE, fixed_neigh() + ipv4(NDA_DST, "10.0.0.9") + attr(NDA_LLADDR, MAC) + DEV),
        (RTM_DELNEIGH, 0, fixed_neigh() + ipv4(NDA_DST, "10.0.0.9") + DEV),
    ])
    yield from ((GENERIC_FAMILY, GENERIC, 0, body) for body in [
        bulk_add("m{}", [(IFLA_VLAN_ID, 3002, 3003), (VLAN_INNER, 1, 3)], count=6),
        generic(BULK_DEL, string(B_NAME, "m{}"), u64(B_COUNT, 6)),
        generic(BULK_NAMES, string(B_NAME_ENTRY, "m0"), string(B_NAME_ENTRY, "m1")),
        generic(BULK_DEL, attr(B_LISTED), attr(B_FORCE)),
        generic(BULK_DEL, nest(B_SELECTOR, u32(SELECT_GROUP, 7), u16(SELECT_OUTER_FIRST, 3000), u16(SELECT_OUTER_LAST, 3999))),
        generic(LINK_COUNT, nest(B_SELECTOR, string(SELECT_KIND, "vlan"))),
        generic(LINK_WHICH, string(WHICH_PORT, "port0"), u16(WHICH_OUTER, 10)),
        generic(STATUS), generic(BATCH_BEGIN), generic(BATCH_END), generic(RECLAIM_SHOW),
    ])


def mutate(rng, data):
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        how = rng.randrange(5)
        at = rng.randrange(len(data)) if data else 0
        if how == 0 and data:
            data[at] ^= 1 << rng.randrange(8)
        elif how == 1 and data:
            data[at] = rng.choice((0, 1, 0x7f, 0x80, 0xff, rng.randrange(256)))
        elif how == 2 and len(data) > 1:
            del data[at:at + rng.choice((1, 2, 4, 8))]
        elif how == 3:
            data[at:at] = rng.randbytes(rng.choice((1, 2, 4, 8)))
        elif how == 4 and len(data) > 4:
            at &= ~1
            struct.pack_into("=H", data, min(at, len(data) - 2), rng.choice((0, 1, 3, 4, 5, 8, 16, 255, 4095, 65535)))
    return bytes(data[:MAX_DATAGRAM])


@pytest.mark.sanitizer
def test_a_thousand_mutations(lab):
    """Of valid messages: the daemon answers or closes, lives, and its tables agree with each other."""
    seed = int(os.environ.get("MAYFLY_TEST_SEED", random.SystemRandom().randrange(2**32)))
    print(f"MAYFLY_TEST_SEED={seed}")
    rng = random.Random(seed)
    daemon = lab.daemon(config=CONFIG.replace("200000", "5000"))
    daemon("link add v10 link port0 up type vlan id 10")
    daemon("addr add 10.0.0.1/24 dev v10")
    messages = list(valid_messages())
    clients = {}
    sentinel = 0x7fff0000
    for number in range(1000):
        family, kind_, flags, body = rng.choice(messages)
        datagram = message(kind_, NLM_F_REQUEST | NLM_F_ACK | flags, number, body)
        # Now and then unharmed, so that there is something to break.
        if rng.random() < 0.9:
            datagram = mutate(rng, datagram)
        sentinel += 1
        last = (message(RTM_GETLINK, NLM_F_REQUEST | NLM_F_ACK, sentinel, fixed_link(1)) if family == ROUTE_FAMILY else
                message(GENERIC, NLM_F_REQUEST | NLM_F_ACK, sentinel, generic(STATUS)))
        try:
            if family not in clients:
                clients[family] = Client(daemon.socket_path, family)
            client = clients[family]
            if datagram:
                client.send(datagram)
            client.send(last)
            client.collect(sentinel)
        except Closed:
            clients.pop(family).close()
        assert daemon.running, f"the daemon died of mutation {number}: {datagram.hex()}\n{daemon.log()}"
    for client in clients.values():
        client.close()
    links = daemon.json("link show")
    assert daemon.count() == len(links) == daemon.status()["interfaces"]
    assert len({link["id"] for link in links}) == len({link["ifname"] for link in links}) == len(links)
    owners = {}
    for link in links:
        data = link["linkinfo"].get("info_data")
        if data:
            key = (data["protocol"], data["id"], data.get("inner"))
            assert owners.setdefault(key, link["ifname"]) == link["ifname"], key
    for (protocol, outer, inner), name in owners.items():
        tags = f"{outer}.{inner}" if inner else outer
        assert daemon.json(f"link which port0 {tags} protocol {protocol}")["ifname"] == name
    for name in ("vlan", "dummy"):
        daemon(f"link del type {name}")
    daemon("addr flush dev port0")
    daemon("link set port0 down")
    for route in daemon.json("route show"):
        daemon(["route", "del", route.get("type", "unicast"), route["dst"]])
    resources = eventually(daemon.resources, lambda r: r["backlog_objects"] == 0)
    assert (resources["interfaces"], resources["addresses"], resources["neighbours"]) == (1, 0, 0), resources
