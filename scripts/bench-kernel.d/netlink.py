# SPDX-License-Identifier: BSD-3-Clause
"""One request at a time over a netlink socket of the kernel or over Mayfly's control socket, which carries the same
messages: so that a second client and a loop ask both the same way, without a process for each request."""
from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

from process import Refused

NLMSG_ERROR = 2
NLM_F_REQUEST, NLM_F_ACK = 1, 4
NLM_F_CAPPED, NLM_F_ACK_TLVS = 0x100, 0x200
NLMSGERR_ATTR_MSG = 1
RTM_SETLINK = 19
IFLA_MTU = 4
LONGEST = 1 << 16
ANSWER_S = 120.0

# lib/control/protocol.hpp
HELLO, GENERIC = 0x0E, 0x20
VERSION = 1
HELLO_VERSION, HELLO_FAMILY, HELLO_NETNS, HELLO_CLIENT = 1, 2, 3, 4
ROUTE, GENERIC_FAMILY = 0, 16
LINK_COUNT, RECLAIM_WAIT, NETNS_ADD, NETNS_DEL = 8, 12, 19, 20
NETNS_NAME, VALUE_COUNT = 1, 26


def attribute(number: int, payload: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(payload), number) + payload + b"\0" * (-len(payload) % 4)


def set_mtu(ifindex: int, mtu: int) -> bytes:
    return struct.pack("=BxHiII", 0, 0, ifindex, 0, 0) + attribute(IFLA_MTU, struct.pack("=I", mtu))


def generic(command: int, *attributes: bytes) -> bytes:
    return struct.pack("=BBH", command, 1, 0) + b"".join(attributes)


def attributes(data: bytes) -> dict[int, bytes]:
    found = {}
    while len(data) >= 4:
        length, number = struct.unpack_from("=HH", data)
        found[number & 0x3FFF] = data[4:length]
        data = data[max(4, length + 3 & ~3) :]
    return found


def refusal(answer: bytes) -> str:
    """What an NLMSG_ERROR says."""
    flags = struct.unpack_from("=H", answer, 6)[0]
    (code,) = struct.unpack_from("=i", answer, 16)
    if flags & NLM_F_ACK_TLVS:
        echoed = 16 if flags & NLM_F_CAPPED else struct.unpack_from("=I", answer, 20)[0] + 3 & ~3
        text = attributes(answer[20 + echoed :]).get(NLMSGERR_ATTR_MSG)
        if text is not None:
            return text.rstrip(b"\0").decode(errors="replace")
    return os.strerror(-code)


def messages(datagram: bytes) -> Iterator[bytes]:
    while len(datagram) >= 16:
        (length,) = struct.unpack_from("=I", datagram)
        yield datagram[:length]
        datagram = datagram[max(16, length + 3 & ~3) :]


class Client:
    def __init__(self, endpoint: socket.socket) -> None:
        self.socket = endpoint
        self.socket.settimeout(ANSWER_S)
        self.sequence = 0

    def message(self, kind: int, body: bytes, flags: int) -> bytes:
        self.sequence += 1
        return struct.pack("=IHHII", 16 + len(body), kind, NLM_F_REQUEST | flags, self.sequence, 0) + body

    def ask(self, kind: int, body: bytes) -> list[bytes]:
        """Returns when it is acknowledged, with the messages that were answered before."""
        self.socket.send(self.message(kind, body, NLM_F_ACK))
        answers: list[bytes] = []
        while True:
            try:
                datagram = self.socket.recv(LONGEST)
            except TimeoutError as error:
                raise Refused(f"a request had no answer within {ANSWER_S:.0f} s") from error
            if not datagram:
                raise Refused("mayflyd closed the connection")
            for answer in messages(datagram):
                answered, _, sequence = struct.unpack_from("=HHI", answer, 4)
                if sequence != self.sequence:
                    continue
                if answered != NLMSG_ERROR:
                    answers.append(answer)
                elif struct.unpack_from("=i", answer, 16)[0] != 0:
                    raise Refused(f"a request was refused: {refusal(answer)}")
                else:
                    return answers

    def link_count(self) -> int:
        """Of Mayfly's generic family: interfaces of the connection's namespace."""
        (answer,) = self.ask(GENERIC, generic(LINK_COUNT))
        return int(struct.unpack("=Q", attributes(answer[20:])[VALUE_COUNT])[0])

    def close(self) -> None:
        self.socket.close()


def linux() -> Client:
    """Of the network namespace that this process is in."""
    endpoint = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    endpoint.bind((0, 0))
    return Client(endpoint)


def mayfly(path: Path, family: int, netns: str = "default") -> Client:
    endpoint = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    endpoint.connect(str(path))
    client = Client(endpoint)
    words = {HELLO_NETNS: netns, HELLO_CLIENT: "bench-kernel"}
    numbers = {HELLO_VERSION: VERSION, HELLO_FAMILY: family}
    body = b"".join(attribute(key, struct.pack("=I", value)) for key, value in numbers.items())
    body += b"".join(attribute(key, value.encode() + b"\0") for key, value in words.items())
    endpoint.send(client.message(HELLO, body, 0))
    answer = endpoint.recv(LONGEST)
    if struct.unpack_from("=H", answer, 4)[0] != HELLO:
        raise Refused(f"mayflyd refused the connection: {refusal(answer)}")
    return client
