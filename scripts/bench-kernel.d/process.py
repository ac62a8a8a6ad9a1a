# SPDX-License-Identifier: BSD-3-Clause
"""Processes in namespaces of the kernel's, none of which outlives the one that started it.

A place is a list of /proc/PID/ns/* or /run/netns/* paths, which a new process enters one after the other before it does
anything else. All kinds of process here get a signal when this one dies, even by kill -9.

Commands are started and timed by a Runner, a small process of its own in the place where they belong: a command started
from here would have to enter that place between fork() and exec(), which costs several times as much as the command.
"""
from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
PR_SET_PDEATHSIG = 1
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
END_S = 15.0
LONGEST_MESSAGE = 1 << 16

_libc = ctypes.CDLL(None, use_errno=True)


class Refused(Exception):
    """A sentence for whoever started the benchmark."""


def call(name: str, *arguments: object) -> None:
    """A function of the C library that answers 0, or sets errno."""
    if getattr(_libc, name)(*arguments) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")


def die_with(parent: int, how: int) -> None:
    """After the last change of credentials, which the kernel forgets this over."""
    call("prctl", PR_SET_PDEATHSIG, how, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def enter(place: Sequence[str]) -> None:
    for path in place:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        call("setns", descriptor, 0)
        os.close(descriptor)


@contextlib.contextmanager
def inside(net: str) -> Iterator[None]:
    """This thread in another network namespace."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        enter([net])
        yield
    finally:
        call("setns", home, CLONE_NEWNET)
        os.close(home)


def spawn(command: Sequence[str], place: Sequence[str], how: int, **more: Any) -> subprocess.Popen[bytes]:
    parent = os.getpid()

    def prepare() -> None:
        enter(place)
        die_with(parent, how)

    return subprocess.Popen(command, preexec_fn=prepare, stdin=subprocess.DEVNULL, **more)


def end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextlib.contextmanager
def _signals_held() -> Iterator[None]:
    """No handler of ours may run in a child that was just forked."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Forked:
    """A function in a process of its own, which gets one end of a channel; here is the other end. It is the first of a
    process group: what it starts ends with it."""

    def __init__(self, function: Callable[[Channel], None], place: Sequence[str] = ()) -> None:
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        parent = os.getpid()
        with _signals_held():
            self.pid = os.fork()
            if self.pid == 0:
                here.close()
                self._child(function, place, Channel(there), parent)
            os.setpgid(self.pid, self.pid)
        there.close()
        self.channel = Channel(here)

    @staticmethod
    def _child(function: Callable[[Channel], None], place: Sequence[str], channel: Channel, parent: int) -> None:
        status = 1
        try:
            os.setpgid(0, 0)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, lambda *_: os.killpg(0, signal.SIGKILL))
            signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
            enter(place)
            die_with(parent, signal.SIGTERM)
            function(channel)
            status = 0
        except Exception as error:  # pylint: disable=broad-except
            with contextlib.suppress(OSError):
                channel.tell({"failed": str(error) or repr(error)})
        finally:
            os._exit(status)

    def tell(self, message: Any) -> None:
        try:
            self.channel.tell(message)
        except OSError:
            self.hear()  # why it ended
            raise

    def hear(self) -> Any:
        heard = self.channel.hear()
        if heard is None:
            raise Refused(f"a process of the benchmark ({self.pid}) ended too early")
        if isinstance(heard, dict) and "failed" in heard:
            raise Refused(heard["failed"])
        return heard

    def ask(self, message: Any) -> Any:
        self.tell(message)
        return self.hear()

    def close(self) -> None:
        self.channel.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


class Channel:
    """JSON, a message at a time."""

    def __init__(self, end: socket.socket) -> None:
        self.end = end

    def tell(self, message: Any) -> None:
        self.end.send(json.dumps(message).encode())

    def hear(self) -> Any:
        """None when the other end is closed."""
        heard = self.end.recv(LONGEST_MESSAGE)
        return json.loads(heard) if heard else None

    def close(self) -> None:
        self.end.close()


def _carry_out(order: dict[str, Any]) -> dict[str, Any]:
    begin = time.monotonic()
    done = subprocess.run(order["command"], input=order["text"], capture_output=True, text=True, check=False)
    seconds = time.monotonic() - begin
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()
        reason = said[0] if said else "it said nothing"
        raise Refused(f"'{' '.join(order['command'])}' failed with exit status {done.returncode}: {reason}")
    return {"seconds": seconds, "out": done.stdout if order["want"] else ""}


class Runner(Forked):
    """Runs commands that must succeed. `own_net`: in a network namespace of its own, from which it enters others by
    name for one command."""

    def __init__(self, place: Sequence[str] = (), own_net: bool = False) -> None:
        def serve(channel: Channel) -> None:
            if own_net:
                call("unshare", CLONE_NEWNET)
            while (order := channel.hear()) is not None:
                with inside(order["net"]) if order["net"] else contextlib.nullcontext():
                    answer = _carry_out(order)
                channel.tell(answer)

        super().__init__(serve, place)

    def _order(self, command: Sequence[str], net: str, text: str | None, want: bool) -> dict[str, Any]:
        path = f"/run/netns/{net}" if net else ""
        return dict(self.ask({"command": list(command), "net": path, "text": text, "want": want}))

    def run(self, command: Sequence[str], net: str = "", text: str | None = None) -> str:
        """What it printed; `text` is its standard input."""
        return str(self._order(command, net, text, True)["out"])

    def timed(self, command: Sequence[str], net: str = "") -> float:
        """Seconds from before its process exists until it has ended."""
        return float(self._order(command, net, None, False)["seconds"])
