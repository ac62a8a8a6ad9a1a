# SPDX-License-Identifier: BSD-3-Clause
"""A client of the control socket that can send anything: netlink framing by struct, nothing of Mayfly's own code.

    with Client(path) as client:
        client.refused(RTM_NEWLINK, fixed_link(), string(IFLA_IFNAME, "x/y"))    # -> Refusal(errno, text)
"""

import errno
import select
import socket
import struct
import time

from lab import GIVE_UP

# <linux/netlink.h>, <linux/rtnetlink.h>, <linux/if_link.h>, <linux/if_addr.h>, <linux/neighbour.h>
NLMSG_NOOP, NLMSG_ERROR, NLMSG_DONE = 1, 2, 3
NLM_F_REQUEST, NLM_F_MULTI, NLM_F_ACK = 1, 2, 4
NLM_F_ROOT, NLM_F_MATCH, NLM_F_DUMP = 0x100, 0x200, 0x300
NLM_F_REPLACE, NLM_F_EXCL, NLM_F_CREATE = 0x100, 0x200, 0x400
NLMSGERR_ATTR_MSG = 1
NLA_F_NESTED = 0x8000
RTM_NEWLINK, RTM_DELLINK, RTM_GETLINK, RTM_SETLINK = 16, 17, 18, 19
RTM_NEWADDR, RTM_DELADDR, RTM_GETADDR = 20, 21, 22
RTM_NEWROUTE, RTM_DELROUTE, RTM_GETROUTE = 24, 25, 26
RTM_NEWNEIGH, RTM_DELNEIGH, RTM_GETNEIGH = 28, 29, 30
IFLA_ADDRESS, IFLA_IFNAME, IFLA_MTU, IFLA_LINK = 1, 3, 4, 5
IFLA_LINKINFO, IFLA_IFALIAS, IFLA_STATS64, IFLA_GROUP = 18, 20, 23, 27
IFLA_INFO_KIND, IFLA_INFO_DATA = 1, 2
IFLA_VLAN_ID, IFLA_VLAN_PROTOCOL = 1, 5
IFA_ADDRESS, IFA_LOCAL = 1, 2
RTA_DST, RTA_OIF, RTA_GATEWAY, RTA_TABLE = 1, 4, 5, 15
NDA_DST, NDA_LLADDR = 1, 2
IFF_UP = 1

# lib/control/protocol.hpp
VERSION = 1
MAX_DATAGRAM = 65536
HELLO, GENERIC = 0x0e, 0x20
ROUTE_FAMILY, GENERIC_FAMILY = 0, 16
HELLO_VERSION, HELLO_FAMILY, HELLO_NETNS, HELLO_CLIENT, HELLO_BOOT_ID, HELLO_DAEMON, HELLO_PID = range(1, 8)
HELLO_GROUPS = 8
ATTR_DEVICE, ATTR_ID, ATTR_CREATED, ATTR_NETNS, ATTR_SELECTOR, ATTR_DROPS, ATTR_DROP, ATTR_CHILDREN = range(
    0x1000, 0x1008)
ATTR_MERGED = 0x1008
VLAN_INNER = 64
FLAG_CHAINED = 0x1000
(SELECT_GROUP, SELECT_PARENT, SELECT_KIND, SELECT_OUTER_FIRST, SELECT_OUTER_LAST, SELECT_INNER_FIRST,
 SELECT_INNER_LAST, SELECT_ADMIN_UP, SELECT_LIMIT) = range(1, 10)
(BATCH_BEGIN, BATCH_END, BULK_ADD, BULK_NAMES, BULK_DEL, BULK_RESULT, BULK_PROGRESS, LINK_COUNT, LINK_WHICH, PORT_SHOW,
 RECLAIM_SHOW, RECLAIM_WAIT, STATS, DROPS, STATUS) = range(1, 16)
(B_NAME, B_COUNT, B_TEMPLATE, B_UP, B_RANGE, R_PARAMETER, R_FIRST, R_LAST, B_FORCE, B_DRY_RUN, B_SELECTOR, B_LISTED,
 B_NAME_ENTRY, B_WANT_PROGRESS, B_MATCHED, B_CHANGED, B_FAILED, B_DURATION, B_TO_RECLAIM, B_FAILURE, F_NAME, F_ERRNO,
 F_TEXT, B_DONE, B_TOTAL, VALUE_COUNT) = range(1, 27)
PORT_ADD, PORT_DEL, PORT_XSTATS = 16, 17, 18
RECLAIM_TIMEOUT = 20
WHICH_PORT, WHICH_PROTOCOL, WHICH_OUTER, WHICH_INNER = 1, 2, 3, 4


# Building


def align(data):
    return data + b"\0" * (-len(data) % 4)


def attr(number, payload=b"", length=None):
    """length: another one than the attribute has."""
    return align(struct.pack("=HH", 4 + len(payload) if length is None else length, number) + payload)


def u8(number, value):
    return attr(number, struct.pack("=B", value))


def u16(number, value):
    return attr(number, struct.pack("=H", value))


def be16(number, value):
    return attr(number, struct.pack("!H", value))


def u32(number, value):
    return attr(number, struct.pack("=I", value))


def u64(number, value):
    return attr(number, struct.pack("=Q", value))


def string(number, text):
    return attr(number, text.encode() + b"\0")


def ipv4(number, text):
    return attr(number, socket.inet_aton(text))


def nest(number, *inside):
    return attr(number | NLA_F_NESTED, b"".join(inside))


def message(kind, flags, sequence, *parts, length=None):
    body = b"".join(parts)
    return align(struct.pack("=IHHII", 16 + len(body) if length is None else length, kind, flags, sequence, 0) + body)


def fixed_link(index=0, flags=0, change=0):
    return struct.pack("=BxHiII", 0, 0, index, flags, change)


def fixed_addr(length=24, index=0, family=socket.AF_INET):
    return struct.pack("=BBBBI", family, length, 0, 0, index)


def fixed_route(length=24, kind=1, family=socket.AF_INET, table=254):
    return struct.pack("=BBBBBBBBI", family, length, 0, 0, table, 4, 0, kind, 0)


def fixed_neigh(index=0, state=0x80, family=socket.AF_INET):
    return struct.pack("=BxxxiHBB", family, index, state, 0, 0)


def generic(command, *attributes):
    return struct.pack("=BBH", command, 1, 0) + b"".join(attributes)


def kind(name, *data):
    return nest(IFLA_LINKINFO, string(IFLA_INFO_KIND, name), nest(IFLA_INFO_DATA, *data))


def vlan(name, parent, vid, inner=None, *more):
    """The body of an RTM_NEWLINK."""
    data = [u16(IFLA_VLAN_ID, vid)] + ([u16(VLAN_INNER, inner)] if inner is not None else [])
    return fixed_link() + string(IFLA_IFNAME, name) + string(ATTR_DEVICE, parent) + kind("vlan", *data) + b"".join(more)


def bulk_add(name, ranges, *more, template=None, count=None):
    shared = template if template is not None else [string(ATTR_DEVICE, "port0"), kind("vlan")]
    return generic(BULK_ADD, string(B_NAME, name), nest(B_TEMPLATE, *shared),
                   *([u64(B_COUNT, count)] if count is not None else []),
                   *[nest(B_RANGE, u16(R_PARAMETER, parameter), u32(R_FIRST, first), u32(R_LAST, last))
                     for parameter, first, last in ranges], *more)


# Reading


class Message:
    def __init__(self, kind_, flags, sequence, payload):
        self.kind, self.flags, self.sequence, self.payload = kind_, flags, sequence, payload

    def attributes(self, fixed):
        return parse(self.payload[fixed:])


def parse(data):
    """The attributes, the last of a number winning."""
    found = {}
    while len(data) >= 4:
        length, number = struct.unpack("=HH", data[:4])
        assert 4 <= length <= len(data), f"an answer's attribute {number} has the length {length}"
        found[number & 0x3fff] = data[4:length]
        data = data[(length + 3) & ~3:]
    return found


def split(datagram):
    messages = []
    while datagram:
        assert len(datagram) >= 16, "an answer ends in the middle of a header"
        length, kind_, flags, sequence, _ = struct.unpack("=IHHII", datagram[:16])
        assert 16 <= length <= len(datagram), f"an answer of {length} B in {len(datagram)} B"
        messages.append(Message(kind_, flags, sequence, datagram[16:length]))
        datagram = datagram[(length + 3) & ~3:]
    return messages


class Refusal:
    def __init__(self, code, text):
        self.code, self.text = code, text

    def __repr__(self):
        return f"{errno.errorcode.get(self.code, self.code)} '{self.text}'"


class Closed(Exception):
    """The daemon closed the connection."""


def acknowledgement(answer):
    """The Refusal that an NLMSG_ERROR is; None when it acknowledges."""
    (code,) = struct.unpack("=i", answer.payload[:4])
    if code == 0:
        return None
    text = parse(answer.payload[20:]).get(NLMSGERR_ATTR_MSG, b"\0")
    assert text.endswith(b"\0")
    return Refusal(-code, text[:-1].decode())


class Client:
    def __init__(self, path, family=ROUTE_FAMILY, hello=True, netns="default"):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
        self.socket.connect(path)
        self.sequence = 0
        self.daemon = None
        if hello:
            self.sequence += 1
            self.send(message(HELLO, NLM_F_REQUEST, self.sequence, u32(HELLO_VERSION, VERSION),
                              u32(HELLO_FAMILY, family), string(HELLO_CLIENT, "test"), string(HELLO_NETNS, netns)))
            (answer,) = self.receive()
            assert answer.kind == HELLO, acknowledgement(answer)
            self.daemon = answer.attributes(0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, datagram):
        try:
            self.socket.send(datagram)
        except (BrokenPipeError, ConnectionResetError):
            raise Closed from None

    def receive(self, give_up=GIVE_UP):
        """The messages of the next datagram."""
        if not select.select([self.socket], [], [], give_up)[0]:
            raise AssertionError("the daemon does not answer")
        try:
            datagram = self.socket.recv(MAX_DATAGRAM + 1)
        except ConnectionResetError:
            raise Closed from None
        if not datagram:
            raise Closed
        assert len(datagram) <= MAX_DATAGRAM
        return split(datagram)

    def next(self):
        self.sequence += 1
        return self.sequence

    def ask(self, kind_, *parts, flags=0):
        """One request: the answers before its acknowledgement, and None or its Refusal."""
        sequence = self.next()
        self.send(message(kind_, NLM_F_REQUEST | NLM_F_ACK | flags, sequence, *parts))
        return self.collect(sequence)

    def collect(self, sequence):
        answers = []
        deadline = time.monotonic() + GIVE_UP
        while time.monotonic() < deadline:
            for answer in self.receive():
                if answer.sequence != sequence:
                    continue
                if answer.kind == NLMSG_ERROR:
                    return answers, acknowledgement(answer)
                if answer.kind == NLMSG_DONE:
                    return answers, None
                answers.append(answer)
        raise AssertionError("the answers do not end")

    def done(self, kind_, *parts, flags=0):
        answers, refusal = self.ask(kind_, *parts, flags=flags)
        assert refusal is None, refusal
        return answers

    def refused(self, kind_, *parts, flags=0):
        _, refusal = self.ask(kind_, *parts, flags=flags)
        assert refusal is not None, "it was accepted"
        return refusal

    # Frequent questions

    def create(self, body):
        return self.done(RTM_NEWLINK, body, flags=NLM_F_CREATE | NLM_F_EXCL)

    def count(self):
        """Of a generic client."""
        (answer,) = self.done(GENERIC, generic(LINK_COUNT))
        return struct.unpack("=Q", answer.attributes(4)[VALUE_COUNT])[0]

    def bulk(self, body, flags=0):
        """(matched, changed, failed), Refusal or None."""
        answers, refusal = self.ask(GENERIC, body, flags=flags)
        results = [answer for answer in answers if answer.payload[0] == BULK_RESULT]
        if not results:
            return None, refusal
        found = results[0].attributes(4)
        return tuple(struct.unpack("=Q", found[number])[0] for number in (B_MATCHED, B_CHANGED, B_FAILED)), refusal

    def everything(self):
        """All links, addresses, routes and neighbours of a route client, without counters."""
        found = []
        for what, fixed, size in ((RTM_GETLINK, fixed_link(), 16), (RTM_GETADDR, fixed_addr(0), 8),
                                  (RTM_GETROUTE, fixed_route(0), 12), (RTM_GETNEIGH, fixed_neigh(0, 0), 12)):
            for answer in self.done(what, fixed, flags=NLM_F_DUMP):
                attributes = answer.attributes(size)
                attributes.pop(IFLA_STATS64, None) if what == RTM_GETLINK else None
                found.append((answer.kind, answer.payload[:size], tuple(sorted(attributes.items()))))
        return found
