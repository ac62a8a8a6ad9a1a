#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""quickstart's table, from the files that flow.py and measure.py wrote into one directory.

  report.py DIRECTORY

Reads before.json and after.json (counters), churn.json, and send-FLOW.json and receive-FLOW.json of each flow. A packet
that the sender's kernel refused was never on the way. One that was sent and did not come is charged to the device when
a counter of the devices on its way says so, to the receiver when its socket does, and otherwise to Mayfly. The exit
status is 0 only when Mayfly lost nothing, its balance is even, and all memory came back.
"""
from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# In the first round tables grow to their first size, in huge pages, and keep a few of them.
MOST_KEPT_BYTES = 16 << 20


@dataclass(frozen=True)
class Way:
    """Of a flow: the link it is sent on, the port it arrives at; the port it leaves by, the link behind that."""

    flow: str
    words: str
    sender: str
    in_port: str
    out_port: str
    leaves: str


WAYS = (
    Way("tagged", "VLAN a -> b", "a0", "port0", "port1", "dp1"),
    Way("untagged", "plain b -> a", "b0", "port1", "port0", "dp0"),
)


class Run:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.before = self.read("before")
        self.after = self.read("after")
        self.churn: list[dict[str, Any]] = self.read("churn")
        self.settings = self.read("settings")

    def read(self, name: str) -> Any:
        return json.loads((self.directory / f"{name}.json").read_text())

    def link(self, device: str, key: str) -> int:
        return self.after["links"][device][key] - self.before["links"][device][key]

    def port(self, name: str, key: str) -> int:
        return self.after["ports"][name][key] - self.before["ports"][name][key]

    def drops(self) -> dict[str, int]:
        changes = {reason: total - self.before["drops"].get(reason, 0) for reason, total in self.after["drops"].items()}
        return {reason: change for reason, change in changes.items() if change != 0}

    def device_losses(self, way: Way) -> dict[str, int]:
        # A veth counts at its sending end what the far end had no room for. rx_dropped says more than that: the kernel
        # counts there each frame with two tags that its own stack has no use for, though packet sockets got it.
        return {
            "veth": self.link(way.sender, "tx_dropped") + self.link(way.leaves, "tx_dropped"),
            "imissed": self.port(way.in_port, "imissed"),
            "rx_nombuf": self.port(way.in_port, "rx_nombuf"),
            "ierrors": self.port(way.in_port, "ierrors"),
            "oerrors": self.port(way.out_port, "oerrors"),
        }


@dataclass
class Losses:
    lost: int = 0
    refused: int = 0
    device: int = 0
    receiver: int = 0
    wrong: int = 0  # duplicated or delivered to another interface

    def mayfly(self, drops: int) -> int:
        """What nobody else lost; and never less than what Mayfly says it dropped, if as much is missing."""
        return min(self.lost, max(self.lost - self.device - self.receiver, drops))


def mib(count: int) -> str:
    return f"{count / (1 << 20):.1f}"


def row(*cells: object) -> str:
    first, *others = cells
    return f"  {first!s:<14}" + "".join(f"{cell!s:>14}" for cell in others)


def print_offered(run: Run, seconds: float, sent: int) -> None:
    settings = run.settings
    print("Mayfly quickstart: veth, kernel path: not a NIC figure")
    print(f"  machine     {settings['machine']}")
    print(f"  devices     2 x veth through net_af_packet, {run.after['status']['workers']} worker, no hugepages")
    print(
        f"  offered     {len(WAYS)} x {settings['rate']:,} packets/s of {settings['size']} B "
        f"(tags and checksum included); on the wire {sent / seconds:,.0f} packets/s for {seconds:.1f} s"
    )


def print_churn(run: Run) -> bool:
    interfaces = run.settings["interfaces"]
    print(
        f"\nChurn: {interfaces:,} VLAN interfaces (two tags) created and deleted, {len(run.churn)} times, "
        "while packets flow"
    )
    print(row("", "created/s", "created/s", "deleted/s", "deleted/s", "memory back") + "   RSS in MiB")
    print(row("round", "command", "daemon", "command", "daemon", "after") + "   before / peak / after")
    good = True
    for number, turn in enumerate(run.churn):
        complete = turn["created"] == turn["counted"] == turn["deleted"] == interfaces and turn["left"] == 0
        kept = turn["rss_after"] - turn["rss_before"]
        back_again = turn["memory_back"] or (turn["first"] and kept <= MOST_KEPT_BYTES)
        good = good and complete and back_again
        rates = [
            f"{turn[count] / turn[seconds]:,.0f}"
            for count, seconds in (
                ("created", "created_s"),
                ("created", "created_daemon_s"),
                ("deleted", "deleted_s"),
                ("deleted", "deleted_daemon_s"),
            )
        ]
        back = f"{turn['memory_back_ms']:.1f} ms"
        if not turn["memory_back"]:
            back = f"{mib(kept)} MiB kept" if back_again else "NOT BACK"
        rss = " / ".join(mib(turn[key]) for key in ("rss_before", "rss_peak", "rss_after"))
        name = "first" if turn["first"] else number
        print(row(name, *rates, back) + f"   {rss}" + ("" if complete else "  INCOMPLETE"))
    return good


def print_flows(run: Run) -> tuple[Losses, dict[str, int]]:
    total = Losses()
    devices: dict[str, int] = {}
    print("\nPackets on the interfaces that stay")
    print(row("flow", "sent", "refused", "received", "lost", "duplicated", "reordered", "misdelivered"))
    for way in WAYS:
        sender = run.read(f"send-{way.flow}")
        receiver = run.read(f"receive-{way.flow}")
        sent, received = sum(sender["sent"]), sum(receiver["received"])
        refused = sum(sender["refused"].values())
        counts = [receiver[key] for key in ("duplicated", "reordered", "misdelivered")]
        print(row(way.words, *(f"{count:,}" for count in (sent, refused, received, sent - received, *counts))))
        total.lost += sent - received
        total.refused += refused
        total.receiver += receiver["socket_dropped"]
        total.wrong += receiver["duplicated"] + receiver["misdelivered"]
        for name, count in run.device_losses(way).items():
            devices[name] = devices.get(name, 0) + count
    return total, devices


def print_losses(total: Losses, devices: dict[str, int], drops: dict[str, int]) -> int:
    # A packet that the device's full ring refused is the device's, though Mayfly has to count it.
    devices["tx_full"] = drops.pop("tx_full", 0)
    total.device = sum(devices.values())
    by_mayfly = total.mayfly(sum(drops.values()))
    print(f"  lost: {total.lost:,}; by Mayfly {by_mayfly:,}")
    print(f"  sender      refused by its kernel {total.refused:,} (never sent, not in 'lost')")
    print("  device      " + ", ".join(f"{name} {count:,}" for name, count in devices.items()))
    print(f"  receiver    no room in its socket {total.receiver:,}")
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in drops.items())
    print("  Mayfly      " + (reasons or "no drop of any reason"))
    return by_mayfly


def print_balance(balance: dict[str, int]) -> None:
    print(
        "  balance     rx {rx:,} + originated {originated:,} = tx {tx:,} + drops {drops:,} + punted {punted:,} "
        "+ parked {parked:,}, difference {difference:,}".format(**balance)
    )


def main() -> int:
    run = Run(Path(sys.argv[1]))
    senders = [run.read(f"send-{way.flow}") for way in WAYS]
    sent = sum(sum(sender["sent"]) for sender in senders)
    print_offered(run, max(sender["seconds"] for sender in senders), sent)
    churned = print_churn(run)
    total, devices = print_flows(run)
    by_mayfly = print_losses(total, devices, run.drops())
    balance = run.after["balance"]
    print_balance(balance)
    return 0 if churned and by_mayfly == 0 and total.wrong == 0 and balance["difference"] == 0 and sent > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
