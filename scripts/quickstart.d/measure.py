#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What quickstart measures of a running mayflyd, from outside: counters, and the churn of its interfaces.

  measure.py counters --output FILE --cli PROGRAM --socket PATH --namespaces PREFIX
  measure.py churn    --output FILE --cli PROGRAM --socket PATH --pid PID --interfaces N --rounds N --tags 'WORDS'

'churn' creates N VLAN interfaces on port0 with one command and deletes them with another, round after round. Times are
those of the whole command, the start of its process included, next to the daemon's own figure. Memory is the RSS that
the kernel shows in /proc/PID/status; it is back when 'reclaim wait' has returned and the RSS is at most 1 MiB above
what it was before the round. One more round comes first, in which tables grow to their first size.
"""
from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GROUP = 100
SETTLE_S = 0.5
SAMPLE_S = 0.002
RSS_SLACK_BYTES = 1 << 20
RSS_WAIT_S = 10.0
FIRST_RSS_WAIT_S = 1.0


class Refused(Exception):
    pass


@dataclass(frozen=True)
class Cli:
    program: str
    socket: str

    def __call__(self, words: str) -> Any:
        command = [self.program, "--socket", self.socket, "-j", *words.split()]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Refused(f"mayfly {words}: exit status {done.returncode}: {(done.stderr or done.stdout).strip()}")
        return json.loads(done.stdout) if done.stdout.strip() else None


def link_counters(namespace: str, device: str) -> dict[str, int]:
    words = ["ip", "-n", namespace, "-j", "-s", "link", "show", "dev", device]
    shown = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)[0]["stats64"]
    return {f"{way}_{key}": shown[way][key] for way in ("rx", "tx") for key in ("packets", "dropped", "errors")}


def counters(cli: Cli, namespaces: str) -> dict[str, Any]:
    links = {"a0": "a", "dp0": "dp", "dp1": "dp", "b0": "b"}
    return {
        "links": {device: link_counters(f"{namespaces}-{side}", device) for device, side in links.items()},
        "ports": {port["ifname"]: port for port in cli("port show")},
        "drops": {drop["reason"]: drop["total"] for drop in cli("stats drops")["drops"]},
        "balance": cli("stats")["balance"],
        "status": cli("status"),
    }


def rss_bytes(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise Refused(f"mayflyd (process {pid}) ended")


class PeakRss:
    """Samples in a thread of its own while the block runs."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.peak = 0
        self.done = threading.Event()
        self.thread = threading.Thread(target=self.sample)

    def sample(self) -> None:
        while not self.done.wait(SAMPLE_S):
            try:
                self.peak = max(self.peak, rss_bytes(self.pid))
            except (OSError, Refused):
                return

    def __enter__(self) -> PeakRss:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.done.set()
        self.thread.join()


def wait_for_memory(pid: int, level: int, longest_s: float) -> None:
    until = time.monotonic() + longest_s
    while rss_bytes(pid) > level + RSS_SLACK_BYTES and time.monotonic() < until:
        time.sleep(SAMPLE_S)


def churn_round(cli: Cli, pid: int, interfaces: int, tags: str, first: bool) -> dict[str, Any]:
    before = rss_bytes(pid)
    others = cli("link count")["count"]
    with PeakRss(pid) as rss:
        started = time.monotonic()
        created = cli(f"link bulk add count {interfaces} name sub{{}} link port0 group {GROUP} type vlan {tags}")
        created_s = time.monotonic() - started
        counted = cli("link count")["count"] - others

        started = time.monotonic()
        deleted = cli(f"link del group {GROUP}")
        acknowledged = time.monotonic()
        cli("reclaim wait")
        waited = time.monotonic()
        wait_for_memory(pid, before, FIRST_RSS_WAIT_S if first else RSS_WAIT_S)
        back = time.monotonic()
    after = rss_bytes(pid)
    return {
        "first": first,
        "created": created["created"],
        "counted": counted,
        "created_s": created_s,
        "created_daemon_s": created["duration_ns"] / 1e9,
        "deleted": deleted["deleted"],
        "deleted_s": acknowledged - started,
        "deleted_daemon_s": deleted["duration_ns"] / 1e9,
        "left": cli("link count")["count"] - others,
        "reclaim_wait_ms": (waited - acknowledged) * 1e3,
        "memory_back_ms": (back - acknowledged) * 1e3,
        "rss_before": before,
        "rss_peak": max(rss.peak, before, after),
        "rss_after": after,
        "memory_back": after <= before + RSS_SLACK_BYTES,
    }


def churn(cli: Cli, args: argparse.Namespace) -> list[dict[str, Any]]:
    rounds = []
    for number in range(args.rounds + 1):
        time.sleep(SETTLE_S)
        rounds.append(churn_round(cli, args.pid, args.interfaces, args.tags, number == 0))
    time.sleep(SETTLE_S)
    return rounds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("counters", "churn"))
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--cli", required=True)
    parser.add_argument("--socket", required=True)
    parser.add_argument("--namespaces", metavar="PREFIX")
    parser.add_argument("--pid", type=int)
    parser.add_argument("--interfaces", type=int)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--tags")
    args = parser.parse_args()
    cli = Cli(args.cli, args.socket)
    try:
        result = counters(cli, args.namespaces) if args.what == "counters" else churn(cli, args)
    except (Refused, OSError, subprocess.CalledProcessError, KeyError) as error:
        print(f"quickstart: {args.what}: {error}", file=sys.stderr)
        return 1
    args.output.write_text(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
