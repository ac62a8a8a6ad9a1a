# SPDX-License-Identifier: BSD-3-Clause
"""A laboratory: network namespaces, veth pairs, hosts and daemons, all of which are gone when it closes.

    with Lab() as lab:
        here = lab.netns("router")                      # mf-test-<pid>-<n>-router
        left = lab.raw_host("left", here, "d0")         # veth: d0 in the router's namespace, h0 at the host
        daemon = lab.daemon(here, {"p0": "net_af_packet0,iface=d0"})
        daemon("addr add 10.0.0.1/24 dev p0")           # the mayfly command, which must succeed
        daemon.refuse("link add v0 link nope type vlan id 1", "nope")
        daemon.json("link show")

What a test waits for is awaited with `eventually`, which gives up after GIVE_UP seconds: how long a machine took is
never a result. Closing a daemon checks its exit status, its log, and that it leaves nothing behind.
"""

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import pathlib
import re
import select
import shlex
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("MAYFLY_BUILD", ROOT / "build"))
MAYFLYD = BUILD / "app/mayflyd/mayflyd"
MAYFLY = BUILD / "app/mayfly/mayfly"

GIVE_UP = 90  # seconds
PREFIX = "mf-test"

# What a log must never contain: leaks that the daemon noticed itself, and reports of sanitizers.
BAD_LOG = re.compile(r"not back|Sanitizer|runtime error:|does not stop|does not close|can not be removed")

_libc = ctypes.CDLL(None, use_errno=True)
_CLONE_NEWNET = 0x40000000
_PR_SET_PDEATHSIG = 1


def run(*command, **more):
    """A command that must succeed; its output."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=GIVE_UP, **more)
    assert done.returncode == 0, f"{shlex.join(map(str, command))}: {done.stderr.strip()}"
    return done.stdout


def eventually(look, expected, what="it"):
    """Looks until what it sees is what is expected (a value, or a predicate); returns what it saw."""
    deadline = time.monotonic() + GIVE_UP
    while True:
        seen = look()
        if expected(seen) if callable(expected) else seen == expected:
            return seen
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: seen {seen!r}" + ("" if callable(expected) else f", expected {expected!r}"))
        time.sleep(0.02)


@contextlib.contextmanager
def inside(netns):
    """This thread in another network namespace; sockets made here stay there."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    there = os.open(f"/run/netns/{netns}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        if _libc.setns(there, _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"setns {netns}")
        yield
    finally:
        if _libc.setns(home, _CLONE_NEWNET) != 0:
            os._exit(70)  # everything that follows would happen in the wrong namespace
        os.close(there)
        os.close(home)


def is_instrumented():
    """Whether the daemon is built with AddressSanitizer, whose quarantine keeps freed memory."""
    return "libasan" in run("ldd", MAYFLYD)


class RawHost:
    """A far end of a veth without a kernel's IP behind it: frames go out and come in byte by byte."""

    _SO_RCVBUFFORCE = 33
    _SOL_PACKET = 263
    _PACKET_AUXDATA = 8
    _PACKET_STATISTICS = 6
    _PACKET_IGNORE_OUTGOING = 23
    _VLAN_VALID = 1 << 4
    _TPID_VALID = 1 << 6

    def __init__(self, netns, device):
        self.netns = netns
        self.device = device
        self.mac = json.loads(run("ip", "-n", netns, "-j", "link", "show", "dev", device))[0]["address"]
        with inside(netns):
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0)
        self.socket.setsockopt(socket.SOL_SOCKET, self._SO_RCVBUFFORCE, 16 << 20)
        self.socket.setsockopt(self._SOL_PACKET, self._PACKET_AUXDATA, 1)
        self.socket.setsockopt(self._SOL_PACKET, self._PACKET_IGNORE_OUTGOING, 1)
        self.socket.bind((device, 3))  # ETH_P_ALL

    def send(self, *frames):
        for frame in frames:
            self.socket.send(bytes(frame))

    def receive(self, give_up=GIVE_UP):
        """The next frame as it was on the wire (the kernel had taken its outer tag out), None after give_up seconds."""
        if not select.select([self.socket], [], [], give_up)[0]:
            return None
        frame, ancillary, _, _ = self.socket.recvmsg(65536, 256)
        for level, kind, data in ancillary:
            if level != self._SOL_PACKET or kind != self._PACKET_AUXDATA:
                continue
            status, _, _, _, _, tci, tpid = struct.unpack("IIIHHHH", data[:20])
            if status & self._VLAN_VALID:
                tpid = tpid if status & self._TPID_VALID else 0x8100
                frame = frame[:12] + struct.pack("!HH", tpid, tci) + frame[12:]
        return frame

    def expect(self, *frames):
        """The next frames are these, byte by byte."""
        for number, frame in enumerate(map(bytes, frames)):
            got = self.receive()
            assert got is not None, f"{self.device}: frame {number} of {len(frames)} did not arrive: {frame.hex()}"
            assert got == frame, f"{self.device}: frame {number}\n  got      {got.hex()}\n  expected {frame.hex()}"

    def waiting(self):
        """What has arrived and was not read."""
        frames = []
        while (frame := self.receive(0)) is not None:
            frames.append(frame)
        return frames

    def ring_drops(self):
        """Frames this socket had no room for."""
        packets_and_drops = self.socket.getsockopt(self._SOL_PACKET, self._PACKET_STATISTICS, 8)
        return struct.unpack("II", packets_and_drops)[1]

    def close(self):
        self.socket.close()


class TagShim:
    """A TAP device, t0, in front of a raw host: what the kernel sends gets tags, what has just these tags reaches it.
    Stands in for the kernel's own VLAN devices, which not every kernel has."""

    _TUNSETIFF = 0x400454ca
    _IFF_TAP_NO_PI = 0x1002

    def __init__(self, host, tags):
        self.host = host
        self.tags = b"".join(struct.pack("!HH", 0x8100, vid) for vid in tags)
        with inside(host.netns):
            self.tap = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
            fcntl.ioctl(self.tap, self._TUNSETIFF, struct.pack("16sH22x", b"t0", self._IFF_TAP_NO_PI))
        self.stopping, self.stop = os.pipe()
        self.thread = threading.Thread(target=self._pump)
        self.thread.start()

    def _pump(self):
        while True:
            ready, _, _ = select.select([self.host.socket, self.tap, self.stopping], [], [])
            if self.stopping in ready:
                return
            if self.tap in ready:
                with contextlib.suppress(BlockingIOError):
                    frame = os.read(self.tap, 65536)
                    self.host.send(frame[:12] + self.tags + frame[12:])
            if self.host.socket in ready:
                frame = self.host.receive(0)
                rest = frame[12 + len(self.tags):]
                if frame[12:12 + len(self.tags)] == self.tags and rest[:2] not in (b"\x81\0", b"\x88\xa8"):
                    os.write(self.tap, frame[:12] + rest)

    def close(self):
        os.write(self.stop, b"x")
        self.thread.join()
        for descriptor in (self.tap, self.stopping, self.stop):
            os.close(descriptor)


class Answer:
    """What a mayfly command said."""

    def __init__(self, done):
        self.status = done.returncode
        self.out = done.stdout
        self.err = done.stderr


class Daemon:
    """A mayflyd with a socket of its own. Calling it runs a mayfly command that must succeed."""

    def __init__(self, directory, netns, ports, config=None, options=(), eal=()):
        self.directory = directory
        self.socket_path = str(directory / "mayfly.sock")
        self.log_path = directory / "mayflyd.log"
        self.command = [str(MAYFLYD), "--socket", self.socket_path]
        if netns is not None:
            self.command = ["ip", "netns", "exec", netns] + self.command
        if config is not None:
            (directory / "mayflyd.yaml").write_text(config)
            self.command += ["-c", str(directory / "mayflyd.yaml")]
        for name, devargs in ports.items():
            self.command += ["--port", f"{name}={devargs}"]
        self.command += list(options) + (["--", *eal] if eal else [])
        self.process = None
        self.problems = []

    # Life

    def spawn(self):
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                # So that a killed test run leaves no daemon.
                preexec_fn=lambda: _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM))
        return self

    def start(self):
        self.spawn()
        eventually(lambda: self.process.poll() is not None or self.answers(), True, "the daemon's start")
        assert self.process.poll() is None, f"{shlex.join(self.command)}: exit {self.process.returncode}\n{self.log()}"
        return self

    def answers(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as probe:
            try:
                probe.connect(self.socket_path)
            except OSError as error:
                assert error.errno in (errno.ENOENT, errno.ECONNREFUSED), error
                return False
        return True

    @property
    def pid(self):
        return self.process.pid

    @property
    def runtime_directory(self):
        return pathlib.Path(f"/var/run/dpdk/mayfly-{self.pid}")

    @property
    def running(self):
        return self.process is not None and self.process.poll() is None

    def log(self):
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def check_log(self):
        bad = [line for line in self.log().splitlines() if BAD_LOG.search(line)]
        assert not bad, "in the daemon's log:\n" + "\n".join(bad)

    def wait(self):
        """Its exit status, once it has ended by itself."""
        try:
            return self.process.wait(GIVE_UP)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"the daemon did not end\n{self.log()}") from None

    def kill(self):
        if self.running:
            self.process.kill()
        self.process.wait()

    def stop(self, how=signal.SIGTERM):
        """Ends it, and checks that it ends well and leaves nothing."""
        if self.process is None or self.process.returncode is not None:
            return
        self.process.send_signal(how)
        status = self.wait()
        assert status == 0, f"the daemon's exit status is {status}\n{self.log()}"
        self.check_log()
        self.check_gone()

    def check_gone(self):
        assert not os.path.exists(self.socket_path), "the daemon left its socket"
        assert not self.runtime_directory.exists(), "the daemon left its EAL directory"
        assert not os.path.exists(f"/proc/{self.pid}"), "the daemon left a process"

    # Commands

    def cli(self, words, stdin=None):
        command = [str(MAYFLY), "--socket", self.socket_path]
        command += shlex.split(words) if isinstance(words, str) else list(words)
        return Answer(subprocess.run(command, input=stdin, stdin=None if stdin is not None else subprocess.DEVNULL,
                                     capture_output=True, text=True, timeout=GIVE_UP))

    def __call__(self, words, stdin=None):
        answer = self.cli(words, stdin)
        assert answer.status == 0, f"mayfly {words}: exit {answer.status}: {answer.err.strip()}"
        return answer.out

    def batch(self, *lines):
        """Many commands for the price of one process."""
        return self("-batch -", stdin="".join(line + "\n" for line in lines))

    def forget(self, ports):
        """Removes whatever a test may have made on these ports."""
        lines = [f"link del type {kind}" for kind in ("vlan", "dummy")]
        for port in ports:  # down forgets routes and neighbours, permanent ones too
            lines += [f"addr flush dev {port}", f"link set {port} down alias ''", f"link set {port} up mtu 1500 group 0"]
        for route in self.json("route show") + self.json("-6 route show"):
            if "dev" not in route:
                lines.append(f"route del {route['type']} {route['dst']}")
        self.batch(*lines)

    def refuse(self, words, *texts, status=1, stdin=None):
        """The command is refused with this exit status and a text that names all of these."""
        answer = self.cli(words, stdin)
        said = answer.err
        assert answer.status == status, f"mayfly {words}: exit {answer.status}, expected {status}: {answer.out}{said}"
        for text in texts:
            assert text in said, f"mayfly {words}: '{text}' is not in: {said}"
        return answer

    def json(self, words, stdin=None):
        return json.loads(self("-j " + words, stdin))

    def link(self, name):
        (link,) = self.json(f"-s link show {name}")
        return link

    def names(self, selector=""):
        return [link["ifname"] for link in self.json(f"link show {selector}")]

    def count(self, selector=""):
        return self.json(f"link count {selector}")["count"]

    # What must hold

    def balance(self):
        return self.json("stats")["balance"]

    def check_balance(self):
        balance = self.balance()
        assert balance["difference"] == 0, balance
        assert balance["rx"] + balance["originated"] == sum(
            balance[key] for key in ("tx", "drops", "punted", "parked")), balance
        return balance

    def drops(self):
        document = self.json("stats drops")
        assert document["balance"]["difference"] == 0, document["balance"]
        return {drop["reason"]: drop["total"] for drop in document["drops"] if drop["total"] != 0}

    @contextlib.contextmanager
    def dropping(self, on=None, side=None, **expected):
        """What happens inside drops exactly these packets, and all of them on one interface (`on`, `side` rx or tx)."""
        def read():
            return (self.drops(), self.link(on)) if on else (self.drops(), None)

        before, link_before = read()
        yield

        def grown(now, then):
            return {reason: total - then.get(reason, 0) for reason, total in now.items()
                    if total != then.get(reason, 0)}

        eventually(lambda: grown(self.drops(), before), expected, "drops")
        if on is None:
            return
        link = self.link(on)
        assert grown(link["drops"], link_before["drops"]) == expected, (on, link["drops"], link_before["drops"])
        for of in ("rx", "tx"):
            dropped = link["stats64"][of]["dropped"] - link_before["stats64"][of]["dropped"]
            assert dropped == (sum(expected.values()) if of == side else 0), (on, of, dropped)

    def status(self):
        return self.json("status")

    def resources(self):
        """What must be as before when all that was made is gone again."""
        self("reclaim wait")
        status = self.status()
        return {key: status[key] for key in
                ("interfaces", "addresses", "routes", "neighbours", "mbufs_free", "blocks", "backlog_objects")}

    def rss_kib(self):
        for line in pathlib.Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
        raise AssertionError("no VmRSS")


class Lab:
    _made = 0

    def __init__(self):
        Lab._made += 1
        self._name = f"{PREFIX}-{os.getpid()}-{Lab._made}"
        self._netns = []
        self._closing = contextlib.ExitStack()
        self.directory = pathlib.Path(self._closing.enter_context(tempfile.TemporaryDirectory(prefix=f"{PREFIX}-")))
        self._daemons = []
        self._hosts = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def netns(self, name):
        """A new network namespace without IPv6, whose unasked multicast would disturb the counting."""
        netns = f"{self._name}-{name}"
        run("ip", "netns", "add", netns)
        self._netns.append(netns)
        for what in ("all", "default"):
            run("ip", "netns", "exec", netns, "sysctl", "-qw", f"net.ipv6.conf.{what}.disable_ipv6=1")
        run("ip", "-n", netns, "link", "set", "lo", "up")
        return netns

    def veth(self, netns, device, far_netns, far_device, mtu):
        run("ip", "-n", netns, "link", "add", device, "mtu", mtu, "type", "veth",
            "peer", "name", far_device, "mtu", mtu, "netns", far_netns)
        for where, name in ((netns, device), (far_netns, far_device)):
            # veth passes packets on with unfinished checksums, which a real wire would not carry and Mayfly refuses.
            run("ip", "netns", "exec", where, "ethtool", "-K", name, "tx", "off")
            run("ip", "-n", where, "link", "set", name, "up")

    def raw_host(self, name, router, device, mtu=1600):
        netns = self.netns(name)
        self.veth(router, device, netns, "h0", mtu)
        host = RawHost(netns, "h0")
        self._hosts.append(host)
        return host

    def tap_on(self, netns, device="h0"):
        """A raw host on a device that a kernel host uses, too: it sees all frames of both."""
        host = RawHost(netns, device)
        self._hosts.append(host)
        return host

    def kernel_host(self, name, router, device, address=None, gateway=None, mtu=1500):
        """The name of a namespace whose kernel has the address on the far end, h0, and a default route."""
        netns = self.netns(name)
        self.veth(router, device, netns, "h0", mtu)
        if address:
            run("ip", "-n", netns, "addr", "add", address, "dev", "h0")
        if gateway:
            run("ip", "-n", netns, "route", "add", "default", "via", gateway)
        return netns

    def tagged_host(self, name, router, device, tags, address, gateway, mtu):
        """The same behind 802.1Q tags, outer first; the device is t0."""
        host = self.raw_host(name, router, device)
        self._hosts.insert(0, TagShim(host, tags))  # closed first
        run("ip", "-n", host.netns, "link", "set", "t0", "mtu", mtu, "up")
        run("ip", "-n", host.netns, "addr", "add", address, "dev", "t0")
        run("ip", "-n", host.netns, "route", "add", "default", "via", gateway)
        return host.netns

    def prepare(self, netns=None, ports=None, config=None, options=(), eal=()):
        """A daemon that is not started."""
        directory = self.directory / f"daemon{len(self._daemons)}"
        directory.mkdir()
        daemon = Daemon(directory, netns, ports or {}, config, options, eal)
        self._daemons.append(daemon)
        return daemon

    def daemon(self, *arguments, **more):
        return self.prepare(*arguments, **more).start()

    def close(self):
        problems = []
        for daemon in self._daemons:
            try:
                if daemon.running:
                    daemon.check_balance()
                daemon.stop()
            except Exception as problem:  # pylint: disable=broad-except
                problems.append(problem)
            finally:
                if daemon.process is not None:
                    daemon.kill()
                print(f"--- {shlex.join(daemon.command)}\n{daemon.log()[-8000:]}")
        for host in self._hosts:
            host.close()
        for netns in self._netns:
            subprocess.run(["ip", "netns", "del", netns], check=False, timeout=GIVE_UP)
        self._closing.close()
        if problems:
            raise problems[0]


def sweep():
    """Removes what a test run that was killed has left."""
    for netns in os.listdir("/run/netns") if os.path.isdir("/run/netns") else []:
        match = re.fullmatch(rf"{PREFIX}-(\d+)-.*", netns)
        if not match or os.path.exists(f"/proc/{match[1]}"):
            continue
        for pid in run("ip", "netns", "pids", netns).split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        subprocess.run(["ip", "netns", "del", netns], check=False, timeout=GIVE_UP)
