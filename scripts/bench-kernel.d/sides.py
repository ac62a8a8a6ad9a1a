# SPDX-License-Identifier: BSD-3-Clause
"""The two sides, Linux and Mayfly, with the same words: make a namespace, carry out a file of commands in it, delete,
wait until what was deleted is gone.

Both forward between the same two kernel hosts, over two links each, which stay while the rest is churned:

    host a  a0 - r0  router (the kernel forwards)   r1 - b0  host b
            a1 - d0  dp     (mayflyd, net_af_packet) d1 - b1
"""
from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import netlink
from probes import Flow, serve_client
from process import Forked, Refused, Runner, end, inside, spawn
from spaces import World, unshare_loop

GROUP = 7
STAYS = "churn"  # the namespace whose interfaces come and go
DIES = "dying"  # the one that goes with its interfaces
RSS_SLACK_BYTES = 1 << 20
RSS_WAIT_S = 10.0
FIRST_RSS_WAIT_S = 0.5  # while tables grow to their first size
START_S = 60.0
LOOK_S = 0.001


class Network:
    """The hosts, the router, and the links between them."""

    def __init__(self, closing: ExitStack) -> None:
        self.world = World(closing)
        for net in ("a", "b", "router", "dp"):
            settings = "/proc/sys/net/ipv6/conf"
            self.world.add(net, *(f"echo 1 > {settings}/{of}/disable_ipv6" for of in ("all", "default")))
        self._cable("a", 1, 2)
        self._cable("b", 2, 1)
        self.world.shell("router", "echo 1 > /proc/sys/net/ipv4/ip_forward",
                         "ip address add 10.1.1.1/24 dev r0", "ip link set r0 up",
                         "ip address add 10.1.2.1/24 dev r1", "ip link set r1 up")
        self.world.shell("dp", "ip link set d0 up", "ip link set d1 up")

    def _cable(self, host: str, number: int, other: int) -> None:
        lines = []
        for net, far, device in ((1, "router", "r"), (2, "dp", "d")):
            own, end_of_it = f"{host}{net - 1}", f"{device}{number - 1}"
            lines += [
                f"ip link add {own} type veth peer name {end_of_it} netns {far}",
                # With the offload on, the kernel sends UDP into a veth with unfinished checksums, as no wire carries.
                f"ethtool -K {own} tx off > /dev/null",
                f"ip address add 10.{net}.{number}.2/24 dev {own}",
                f"ip link set {own} up",
                f"ip route add 10.{net}.{other}.0/24 via 10.{net}.{number}.1",
            ]
        self.world.shell(host, *lines)


class Side:
    """What both have. `watchers`: the processes of probes.py."""

    name: str
    key: str
    watchers: dict[str, Forked]

    def warmed_up(self) -> None:
        pass

    def before(self) -> None:
        pass

    def watch(self) -> None:
        for watcher in self.watchers.values():
            watcher.tell("start")

    def watched(self) -> dict[str, Any]:
        for watcher in self.watchers.values():
            watcher.tell("stop")
        return {name: watcher.hear() for name, watcher in self.watchers.items()}

    def _start(self, closing: ExitStack, flow: Flow, client: Forked) -> None:
        self.watchers = {"flow": Forked(flow.serve), "client": client}
        for watcher in self.watchers.values():
            closing.callback(watcher.close)
        for watcher in self.watchers.values():
            watcher.hear()


class Linux(Side):
    name = "Linux"
    key = "linux"

    def __init__(self, network: Network, closing: ExitStack, rate: float) -> None:
        self.world = network.world
        self.runner = self.world.runner
        self.world.shell("router", "ip link add keep0 type veth peer name keep1")
        (keep,) = json.loads(self.runner.run(["ip", "-j", "link", "show", "keep0"], "router"))
        self.netns_add(STAYS)
        client = Forked(serve_client(netlink.linux, keep["ifindex"]), [self.world.net("router")])
        self._start(closing, Flow(self.world.net("a"), self.world.net("b"), "10.1.2.2", rate), client)

    def netns_add(self, name: str) -> None:
        settings = "/proc/sys/net/ipv6/conf/default"
        # Forwarding: as a router, so that nobody asks for one.
        self.world.add(name, "ip link set lo up",
                       f"echo 0 > {settings}/disable_ipv6", f"echo 1 > {settings}/forwarding")

    def netns_del(self, name: str) -> float:
        return self.world.delete(name)

    def batch(self, name: str, lines: Path) -> float:
        return self.runner.timed(["ip", "-batch", str(lines)], name)

    def group_del(self, name: str) -> float:
        return self.runner.timed(["ip", "link", "del", "group", str(GROUP)], name)

    def one_request(self) -> float:
        return self.runner.timed(["ip", "link", "show", "lo"], STAYS)

    def interfaces(self, name: str) -> int:
        """Without lo."""
        with inside(self.world.net(name)), open("/proc/thread-self/net/dev", encoding="ascii") as devices:
            return sum(":" in line for line in devices) - 1

    def gone(self) -> dict[str, Any]:
        """From now."""
        return {"gone_s": self.world.gone()}

    def netns_loop(self, count: int) -> dict[str, Any]:
        loop: dict[str, Any] = unshare_loop(self.world, count)
        return {**loop, **self.gone()}


class Daemon:
    def __init__(self, network: Network, build: Path, directory: Path) -> None:
        self.socket = directory / "mayfly.sock"
        self.log = directory / "mayflyd.log"
        words = [str(build / "app/mayflyd/mayflyd"), "--socket", str(self.socket), "--log-level", "warning"]
        for number in (0, 1):
            words += ["--port", f"port{number}=net_af_packet{number},iface=d{number}"]
        with self.log.open("wb") as log:
            # A session of its own: Ctrl-C is the benchmark's business.
            self.process = spawn(words, [network.world.net("dp")], signal.SIGTERM, stdout=log, stderr=log,
                                 start_new_session=True)

    def wait_until_ready(self) -> None:
        until = time.monotonic() + START_S
        while True:
            try:
                return netlink.mayfly(self.socket, netlink.ROUTE).close()
            except OSError:
                pass
            if self.process.poll() is not None or time.monotonic() > until:
                last = self.log.read_text(errors="replace").strip().splitlines()[-1:]
                raise Refused(f"mayflyd did not start: {''.join(last) or 'it said nothing'}")
            time.sleep(LOOK_S)

    def rss(self) -> int:
        for line in Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise Refused("mayflyd ended")

    def close(self) -> None:
        end(self.process)
        # The daemon removes them itself unless it was killed.
        self.socket.unlink(missing_ok=True)
        runtime = os.environ.get("RUNTIME_DIRECTORY", "/var/run")
        shutil.rmtree(f"{runtime}/dpdk/mayfly-{self.process.pid}", ignore_errors=True)


class Mayfly(Side):
    name = "Mayfly"
    key = "mayfly"

    def __init__(self, network: Network, closing: ExitStack, rate: float, build: Path, directory: Path) -> None:
        self.daemon = Daemon(network, build, directory)
        closing.callback(self.daemon.close)
        self.daemon.wait_until_ready()
        self.cli = [str(build / "app/mayfly/mayfly"), "--socket", str(self.daemon.socket)]
        self.runner = Runner()
        closing.callback(self.runner.close)
        self.runner.run([*self.cli, "-batch", "-"], text="address add 10.2.1.1/24 dev port0\n"
                        "address add 10.2.2.1/24 dev port1\nlink add keep0 type veth peer name keep1\n")
        (keep,) = json.loads(self.runner.run([*self.cli, "-j", "link", "show", "keep0"]))
        self.control = netlink.mayfly(self.daemon.socket, netlink.GENERIC_FAMILY)
        closing.callback(self.control.close)
        self.netns_add(STAYS)
        self.rss_before, self.rss_wait_s = self.daemon.rss(), FIRST_RSS_WAIT_S
        path = self.daemon.socket
        client = Forked(serve_client(lambda: netlink.mayfly(path, netlink.ROUTE), keep["ifindex"]))
        self._start(closing, Flow(network.world.net("a"), network.world.net("b"), "10.2.2.2", rate), client)

    def netns_add(self, name: str) -> None:
        self.runner.run([*self.cli, "netns", "add", name])

    def netns_del(self, name: str) -> float:
        return self.runner.timed([*self.cli, "netns", "del", name])

    def batch(self, name: str, lines: Path) -> float:
        return self.runner.timed([*self.cli, "-n", name, "-batch", str(lines)])

    def group_del(self, name: str) -> float:
        return self.runner.timed([*self.cli, "-n", name, "link", "del", "group", str(GROUP)])

    def one_request(self) -> float:
        return self.runner.timed([*self.cli, "link", "show", "keep0"])

    def interfaces(self, name: str) -> int:
        client = netlink.mayfly(self.daemon.socket, netlink.GENERIC_FAMILY, name)
        try:
            return client.link_count()
        finally:
            client.close()

    def warmed_up(self) -> None:
        self.rss_wait_s = RSS_WAIT_S

    def before(self) -> None:
        self.rss_before = self.daemon.rss()

    def gone(self) -> dict[str, Any]:
        """From now until all that was deleted is reclaimed and, seen from outside, the memory is back."""
        begin = time.monotonic()
        self.control.ask(netlink.GENERIC, netlink.generic(netlink.RECLAIM_WAIT))
        until = begin + self.rss_wait_s
        while (kept := self.daemon.rss() - self.rss_before) > RSS_SLACK_BYTES and time.monotonic() < until:
            time.sleep(LOOK_S)
        return {"gone_s": time.monotonic() - begin, "rss_kept_bytes": kept}

    def netns_loop(self, count: int) -> dict[str, Any]:
        """A request and its answer each."""
        self.before()
        name = netlink.attribute(netlink.NETNS_NAME, b"loop\0")
        add, delete = (netlink.generic(command, name) for command in (netlink.NETNS_ADD, netlink.NETNS_DEL))
        worst = 0.0
        begin = last = time.monotonic()
        for _ in range(count):
            self.control.ask(netlink.GENERIC, add)
            self.control.ask(netlink.GENERIC, delete)
            now = time.monotonic()
            worst = max(worst, now - last)
            last = now
        return {"seconds": last - begin, "worst_s": worst, "made": count, **self.gone()}


def version(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return (done.stdout or done.stderr).strip().splitlines()[0]
