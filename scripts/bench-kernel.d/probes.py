# SPDX-License-Identifier: BSD-3-Clause
"""What others see meanwhile: a flow of packets across two interfaces that stay, and a client that wants something else.

Both are processes of their own that hear "start" and "stop" and answer the latter with what they saw.

flow    UDP packets at a fixed rate from one host to another, numbered. A packet's latency runs from just before its
        send() until the receiving host's kernel got it from its device (SO_TIMESTAMPNS), so it does not hang on when this
        process is scheduled; a packet that could not be sent in time is late or not offered: counted, and no loss.
client  sets the MTU of an interface that stays, by the same message for both. Its latency runs from the moment when the
        request was due: one that waits for the one before it has waited, too.
"""
from __future__ import annotations

import select
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import netlink
from process import Channel, Refused, enter

PORT = 9000
PAYLOAD = struct.Struct("!QQ")  # number, time of sending in ns; number 0 warms up
SO_RCVBUFFORCE = 33
SO_TIMESTAMPNS = 35
SOCKET_BUFFER_BYTES = 32 << 20
WARM_UP_S = 30.0
WARM_UP_PAUSE_S = 0.05
QUIET_S = 0.3
# A sender that was not scheduled for so long offers less instead of catching up in one burst.
LATEST_S = 0.1
CLIENT_PERIOD_S = 0.005


def percentile(ordered: list[int], share: float) -> float | None:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] / 1e3 if ordered else None


def latencies(values_ns: list[int]) -> dict[str, float | None]:
    ordered = sorted(values_ns)
    return {"p50_us": percentile(ordered, 0.5), "p99_us": percentile(ordered, 0.99), "max_us": percentile(ordered, 1)}


def heard(channel: Channel, wait_s: float) -> bool:
    return bool(select.select([channel.end], [], [], max(0.0, wait_s))[0])


@dataclass
class Flow:
    """From one network namespace (a path) to an address in another."""

    source: str
    destination: str
    address: str
    rate: float
    seen: set[int] = field(default_factory=set)
    latencies_ns: list[int] = field(default_factory=list)
    warm: bool = False
    duplicated: int = 0

    def open(self) -> None:
        enter([self.source])
        self.sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sender.connect((self.address, PORT))
        enter([self.destination])
        self.receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.receiver.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, SOCKET_BUFFER_BYTES)
        self.receiver.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self.receiver.bind((self.address, PORT))
        self.receiver.setblocking(False)

    def send(self, number: int) -> bool:
        try:
            self.sender.send(PAYLOAD.pack(number, time.time_ns()))
        except OSError:
            return False
        return True

    def drain(self) -> bool:
        any_came = False
        while True:
            try:
                data, ancillary, _, _ = self.receiver.recvmsg(64, 64)
            except BlockingIOError:
                return any_came
            any_came = True
            number, sent_ns = PAYLOAD.unpack(data)
            if number == 0:
                self.warm = True
            elif number in self.seen:
                self.duplicated += 1
            else:
                self.seen.add(number)
                ((_, _, stamp),) = ancillary
                seconds, nanoseconds = struct.unpack("=qq", stamp)
                self.latencies_ns.append(seconds * 1_000_000_000 + nanoseconds - sent_ns)

    def warm_up(self) -> None:
        until = time.monotonic() + WARM_UP_S
        while not self.warm:
            if time.monotonic() > until:
                raise Refused(f"no packet of the flow to {self.address} came through within {WARM_UP_S:.0f} s")
            self.send(0)
            time.sleep(WARM_UP_PAUSE_S)
            self.drain()
        while self.drain():
            time.sleep(WARM_UP_PAUSE_S)

    def watch(self, channel: Channel) -> dict[str, object]:
        self.seen, self.latencies_ns, self.duplicated = set(), [], 0
        sent = refused = not_offered = 0
        latest = 0.0
        received_before = udp_received()
        period = 1 / self.rate
        due = time.monotonic()
        while not heard(channel, due - time.monotonic()):
            late = time.monotonic() - due
            latest = max(latest, late)
            if late > LATEST_S:
                missed = int(late / period)
                not_offered += missed
                due += missed * period
            if self.send(sent + 1):
                sent += 1
            else:
                refused += 1
            due += period
            self.drain()
        quiet_since = time.monotonic()
        while time.monotonic() - quiet_since < QUIET_S:
            if self.drain():
                quiet_since = time.monotonic()
            time.sleep(0.01)
        return {
            "sent": sent,
            "received": len(self.seen),
            "lost": sent - len(self.seen),
            "duplicated": self.duplicated,
            "refused": refused,
            "not_offered": not_offered,
            "sender_latest_us": latest * 1e6,
            "received_by_kernel": udp_received() - received_before,
            **latencies(self.latencies_ns),
        }

    def serve(self, channel: Channel) -> None:
        self.open()
        self.warm_up()
        channel.tell("ready")
        while channel.hear() is not None:
            watched = self.watch(channel)
            channel.hear()  # stop
            channel.tell(watched)


def udp_received() -> int:
    """Of the host that this process is in, by its kernel's own count."""
    with open("/proc/thread-self/net/snmp", encoding="ascii") as snmp:
        names, values = [line.split() for line in snmp if line.startswith("Udp:")]
    return int(values[names.index("InDatagrams")])


def watch_client(client: netlink.Client, ifindex: int, channel: Channel) -> dict[str, object]:
    waited: list[int] = []
    due = time.monotonic_ns()
    while not heard(channel, (due - time.monotonic_ns()) / 1e9):
        client.ask(netlink.RTM_SETLINK, netlink.set_mtu(ifindex, 1400 + len(waited) % 2))
        waited.append(time.monotonic_ns() - due)
        due += int(CLIENT_PERIOD_S * 1e9)
    return {"requests": len(waited), **latencies(waited)}


def serve_client(connect: Callable[[], netlink.Client], ifindex: int) -> Callable[[Channel], None]:
    def serve(channel: Channel) -> None:
        client = connect()
        channel.tell("ready")
        while channel.hear() is not None:
            watched = watch_client(client, ifindex, channel)
            channel.hear()  # stop
            channel.tell(watched)

    return serve
