#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""One flow of numbered packets between two kernel hosts, so that every loss shows.

  flow.py send    --output FILE --rate N --size N (--udp ADDRESS:PORT | --device DEV --mac MAC --stream S ...)
  flow.py receive --output FILE (--udp ADDRESS:PORT | --device DEV --stream S ...)

A flow is either UDP of the kernel's own stack, untagged, or a set of streams (TAGS,SOURCE,DESTINATION with TAGS
'100' or '100.7') that a packet socket sends and receives with their VLAN tags: that needs no VLAN support in the
kernel. The sender repeats warm-up packets, which nobody counts, until SIGUSR1; then it sends numbered packets at the
rate until SIGTERM. The receiver makes FILE.warm once each stream has delivered a warm-up packet; after SIGTERM it reads
on until nothing has come for half a second. Both then write what they counted to FILE, as JSON.

A packet that the kernel refuses is counted and does not use up a number: sent minus received is what was lost behind
the sender. --size counts the whole frame, its tags and the 4 bytes of checksum that veth does not carry.
"""
from __future__ import annotations

import argparse
import errno
import json
import select
import signal
import socket
import struct
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

ETH_P_ALL = 0x0003
ETH_P_IP = 0x0800
ETH_P_8021Q = 0x8100
SOL_PACKET = 263
PACKET_STATISTICS = 6
PACKET_AUXDATA = 8
PACKET_IGNORE_OUTGOING = 23
TP_STATUS_VLAN_VALID = 1 << 4
SO_RCVBUFFORCE = 33
SO_SNDBUFFORCE = 32
SOCKET_BUFFER_BYTES = 32 << 20

FCS_BYTES = 4
NUMBER = struct.Struct("!HHI")  # mark, stream, sequence number
WARM_UP = 0x4D57
COUNTED = 0x4D44
UDP_PORT = 9

TICK_S = 0.002
WARM_UP_PAUSE_S = 0.05
# A sender that was not scheduled for a while offers less instead of catching up in one burst.
MOST_AT_ONCE = 64
QUIET_S = 0.5


class Signals:
    """SIGUSR1 starts, SIGTERM ends; SIGINT belongs to the script that started us."""

    def __init__(self) -> None:
        self.go = False
        self.stop = False
        signal.signal(signal.SIGUSR1, lambda *_: setattr(self, "go", True))
        signal.signal(signal.SIGTERM, lambda *_: setattr(self, "stop", True))
        signal.signal(signal.SIGINT, signal.SIG_IGN)


@dataclass(frozen=True)
class Stream:
    tags: tuple[int, ...]
    source: str
    destination: str

    @staticmethod
    def parse(text: str) -> Stream:
        tags, source, destination = text.split(",")
        return Stream(tuple(int(tag) for tag in tags.split(".")), source, destination)


def checksum(header: bytes) -> int:
    total = sum(struct.unpack(f"!{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def tagged_frame(stream: Stream, source_mac: bytes, destination_mac: bytes, size: int) -> bytes:
    """The frame without its payload's number."""
    ethernet = destination_mac + source_mac
    for tag in stream.tags:
        ethernet += struct.pack("!HH", ETH_P_8021Q, tag)
    ethernet += struct.pack("!H", ETH_P_IP)
    ip_bytes = size - FCS_BYTES - len(ethernet)
    addresses = socket.inet_aton(stream.source) + socket.inet_aton(stream.destination)
    ip = struct.pack("!BBHHHBBH", 0x45, 0, ip_bytes, 0, 0, 64, socket.IPPROTO_UDP, 0) + addresses
    ip = ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:]
    # UDP over IPv4 may leave its checksum out: 0.
    udp = struct.pack("!HHHH", UDP_PORT, UDP_PORT, ip_bytes - 20, 0)
    return ethernet + ip + udp


def packet_socket(device: str, protocol: int) -> socket.socket:
    """Receives nothing with protocol 0."""
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    if protocol != 0:
        sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, SOCKET_BUFFER_BYTES)
        sock.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        sock.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    sock.bind((device, protocol))
    return sock


@dataclass
class Sender:
    sock: socket.socket
    target: tuple[str, int] | None  # of UDP
    heads: list[bytes]  # of each stream, what stands before the number
    tails: list[bytes]  # and behind it
    rate: float
    sent: list[int] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)

    def send(self, stream: int, mark: int, number: int) -> bool:
        packet = self.heads[stream] + NUMBER.pack(mark, stream, number) + self.tails[stream]
        try:
            if self.target is None:
                self.sock.send(packet)
            else:
                self.sock.sendto(packet, self.target)
        except OSError as error:
            if mark == COUNTED:
                self.refused[errno.errorcode.get(error.errno or 0, str(error.errno))] += 1
            return False
        return True

    def warm_up(self, signals: Signals) -> None:
        while not signals.go and not signals.stop:
            for stream in range(len(self.heads)):
                self.send(stream, WARM_UP, 0)
            time.sleep(WARM_UP_PAUSE_S)

    def run(self, signals: Signals) -> dict[str, object]:
        self.sent = [0] * len(self.heads)
        self.warm_up(signals)
        started = time.monotonic()
        offered = 0
        missed = 0
        while not signals.stop:
            due = int((time.monotonic() - started) * self.rate) - offered - missed
            now = min(due, MOST_AT_ONCE)
            missed += due - now
            for _ in range(now):
                stream = offered % len(self.heads)
                offered += 1
                if self.send(stream, COUNTED, self.sent[stream]):
                    self.sent[stream] += 1
            time.sleep(TICK_S)
        return {
            "sent": self.sent,
            "refused": dict(self.refused),
            "not_offered": missed,
            "seconds": time.monotonic() - started,
        }


@dataclass
class Receiver:
    sock: socket.socket
    streams: list[Stream]  # empty: UDP
    counts: Counter[str] = field(default_factory=Counter)
    received: list[int] = field(default_factory=list)
    next: list[int] = field(default_factory=list)
    seen: list[bytearray] = field(default_factory=list)
    warm: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        streams = max(1, len(self.streams))
        self.received = [0] * streams
        self.next = [0] * streams
        self.seen = [bytearray() for _ in range(streams)]
        self.by_tags = {stream.tags: index for index, stream in enumerate(self.streams)}

    def count(self, stream: int, number: int) -> None:
        seen = self.seen[stream]
        if number >= len(seen):
            seen.extend(bytes(max(4096, number + 1 - len(seen))))
        if seen[number]:
            self.counts["duplicated"] += 1
            return
        seen[number] = 1
        self.received[stream] += 1
        if number < self.next[stream]:
            self.counts["reordered"] += 1
        else:
            self.next[stream] = number + 1

    def take(self, payload: bytes, arrived_on: int) -> None:
        if len(payload) < NUMBER.size:
            return
        mark, stream, number = NUMBER.unpack_from(payload)
        if mark not in (WARM_UP, COUNTED):
            return
        if stream != arrived_on:
            self.counts["misdelivered"] += 1
        elif mark == WARM_UP:
            self.warm.add(stream)
        else:
            self.count(stream, number)

    def take_frame(self, frame: bytes, ancillary: list[tuple[int, int, bytes]]) -> None:
        """The kernel takes the outer tag out of the frame and hands it over beside it."""
        tags = []
        for level, kind, data in ancillary:
            if level == SOL_PACKET and kind == PACKET_AUXDATA:
                status, _, _, _, _, tci, _ = struct.unpack_from("=IIIHHHH", data)
                if status & TP_STATUS_VLAN_VALID:
                    tags.append(tci & 0xFFF)
        at = 12
        while frame[at : at + 2] == b"\x81\x00":
            tags.append(int.from_bytes(frame[at + 2 : at + 4], "big") & 0xFFF)
            at += 4
        if frame[at : at + 2] != b"\x08\x00" or frame[at + 2 + 9 : at + 2 + 10] != b"\x11":
            return
        self.take(frame[at + 2 + 28 :], self.by_tags.get(tuple(tags), -1))

    def drain(self) -> bool:
        any_came = False
        while True:
            try:
                data, ancillary, _, _ = self.sock.recvmsg(2048, 128, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return any_came
            any_came = True
            if self.streams:
                self.take_frame(data, ancillary)
            else:
                self.take(data, 0)

    def run(self, signals: Signals, warm_file: Path) -> dict[str, object]:
        dropped_before = self.dropped()
        poller = select.poll()
        poller.register(self.sock, select.POLLIN)
        last_came = time.monotonic()
        reported = False
        while not signals.stop or time.monotonic() - last_came < QUIET_S:
            if poller.poll(100) and self.drain():
                last_came = time.monotonic()
            if not reported and len(self.warm) == len(self.received):
                warm_file.touch()
                reported = True
        return {
            "received": self.received,
            "duplicated": self.counts["duplicated"],
            "reordered": self.counts["reordered"],
            "misdelivered": self.counts["misdelivered"],
            "socket_dropped": self.dropped() - dropped_before,
        }

    def dropped(self) -> int:
        """What had no room in the socket, or failed the kernel's checks; in a namespace of our own that is all ours."""
        if self.streams:
            # Reading sets the kernel's counters back to 0.
            statistics = struct.unpack("=II", self.sock.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
            self.counts["packet_socket"] += statistics[1]
            return self.counts["packet_socket"]
        lines = [line.split() for line in Path("/proc/net/snmp").read_text().splitlines() if line.startswith("Udp:")]
        return int(dict(zip(lines[0], lines[1]))["InErrors"])


def udp_address(text: str) -> tuple[str, int]:
    address, port = text.rsplit(":", 1)
    return address, int(port)


def build_sender(args: argparse.Namespace) -> Sender:
    if args.udp:
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        heads, overhead = [b""], 14 + 28
        target = args.udp
    else:
        sock = packet_socket(args.device, 0)
        source_mac = sock.getsockname()[4]
        destination_mac = bytes.fromhex(args.mac.replace(":", ""))
        heads = [tagged_frame(stream, source_mac, destination_mac, args.size) for stream in args.stream]
        overhead, target = 0, None
    sock.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, SOCKET_BUFFER_BYTES)
    tails = [bytes(args.size - FCS_BYTES - overhead - len(head) - NUMBER.size) for head in heads]
    return Sender(sock, target, heads, tails, args.rate)


def build_receiver(args: argparse.Namespace) -> Receiver:
    if not args.udp:
        return Receiver(packet_socket(args.device, ETH_P_ALL), args.stream)
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, SOCKET_BUFFER_BYTES)
    sock.bind(args.udp)
    return Receiver(sock, [])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("role", choices=("send", "receive"))
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--rate", type=float, default=1000, help="packets per second")
    parser.add_argument("--size", type=int, default=64, help="bytes of a frame")
    parser.add_argument("--udp", type=udp_address, metavar="ADDRESS:PORT")
    parser.add_argument("--device")
    parser.add_argument("--mac", help="of the router")
    parser.add_argument("--stream", type=Stream.parse, action="append", default=[])
    args = parser.parse_args()
    signals = Signals()
    if args.role == "send":
        result = build_sender(args).run(signals)
    else:
        result = build_receiver(args).run(signals, args.output.with_suffix(".warm"))
    args.output.write_text(json.dumps(result))


if __name__ == "__main__":
    main()
