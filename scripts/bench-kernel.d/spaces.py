# SPDX-License-Identifier: BSD-3-Clause
"""Network namespaces of the kernel that nobody else sees, and the moment when those that were deleted are really gone.

World is a user namespace and a mount namespace with a /run of their own, held by one process. `ip netns add` inside
makes names that exist there only, so nothing of this machine can be touched by mistake, and when the process dies all
is gone.

When is a network namespace gone? `ip netns del` only drops a name: the kernel takes the namespace apart in a batch
later, and gives the memory of its `struct net` back in the batch after that one. The kernel counts the network namespaces
of a user namespace and takes one off when it is through with it; a limit on that number (user.max_net_namespaces, which
each user namespace has for itself) makes the moment visible, without being disturbed by the namespaces of others: another
one can be made exactly when those before are gone. So one is made, which says that the victims are through, and then a
second one, which says that the one before the first is: a later batch, with an rcu_barrier() in it, is over. By then
everything that was deleted before, interfaces and their IPv6 state included, has been freed.
"""
from __future__ import annotations

import errno
import time
from contextlib import ExitStack
from pathlib import Path

from process import CLONE_NEWNET, CLONE_NEWNS, CLONE_NEWUSER, Channel, Forked, Refused, Runner, call

MS_REC, MS_PRIVATE = 0x4000, 0x40000
LIMIT = Path("/proc/sys/user/max_net_namespaces")
NO_LIMIT = 1 << 30
LOOK_S = 0.0005
GIVE_UP_S = 120.0


def _hold(channel: Channel) -> None:
    call("unshare", CLONE_NEWUSER | CLONE_NEWNS)
    channel.tell("made")
    channel.hear()  # the user is mapped
    call("mount", b"none", b"/", None, MS_REC | MS_PRIVATE, None)
    call("mount", b"tmpfs", b"/run", b"tmpfs", 0, None)
    channel.tell("ready")
    while channel.hear() is not None:
        pass


class World:
    """Named network namespaces in a user namespace of their own. Its commands are run by `runner`."""

    def __init__(self, closing: ExitStack) -> None:
        self.holder = Forked(_hold)
        closing.callback(self.holder.close)
        try:
            self.holder.hear()
            for kind in ("uid_map", "gid_map"):
                Path(f"/proc/{self.holder.pid}/{kind}").write_text("0 0 1\n", encoding="ascii")
            self.holder.ask("mapped")
        except (OSError, Refused) as error:
            raise Refused(
                f"no user namespace of its own could be made ({error}): is sysctl user.max_user_namespaces 0, or is "
                "this a container that may not?"
            ) from error
        spaces = f"/proc/{self.holder.pid}/ns"
        self.inside = [f"{spaces}/user", f"{spaces}/mnt"]
        self.runner = Runner(self.inside, own_net=True)
        closing.callback(self.runner.close)
        self.living = 1
        self.clock = Forked(_watch_clock, self.inside)
        closing.callback(self.clock.close)

    def net(self, name: str) -> str:
        """Seen from outside: for processes that enter nothing else."""
        return f"/proc/{self.holder.pid}/root/run/netns/{name}"

    def add(self, name: str, *lines: str) -> None:
        """And some lines for a shell inside."""
        self.runner.run(["ip", "netns", "add", name])
        self.living += 1
        self.shell(name, *lines)

    def delete(self, name: str) -> float:
        seconds = self.runner.timed(["ip", "netns", "del", name])
        self.living -= 1
        return seconds

    def shell(self, name: str, *lines: str) -> None:
        self.runner.run(["sh", "-ec", "\n".join(lines)], name)

    def gone(self) -> float:
        """Seconds from now until all that was deleted is gone."""
        return float(self.clock.ask(self.living))


def _limit(most: int) -> None:
    LIMIT.write_text(f"{most}\n", encoding="ascii")


def _make_one_more(most: int, until: float) -> None:
    """The caller leaves its network namespace for a new one as soon as fewer than `most` are left."""
    _limit(most)
    try:
        while True:
            try:
                return call("unshare", CLONE_NEWNET)
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
            if time.monotonic() > until:
                raise Refused(f"the kernel has not taken all network namespaces apart after {GIVE_UP_S:.0f} s")
            time.sleep(LOOK_S)
    finally:
        _limit(NO_LIMIT)


def _watch_clock(channel: Channel) -> None:
    call("unshare", CLONE_NEWNET)
    while (living := channel.hear()) is not None:
        begin = time.monotonic()
        most = living + 2  # those, the one this process is in, and a new one
        _make_one_more(most, begin + GIVE_UP_S)
        _make_one_more(most, begin + GIVE_UP_S)
        channel.tell(time.monotonic() - begin)


def _unshare(channel: Channel) -> None:
    count = channel.hear()
    worst = 0.0
    begin = last = time.monotonic()
    for _ in range(count):
        call("unshare", CLONE_NEWNET)
        now = time.monotonic()
        worst = max(worst, now - last)
        last = now
    channel.tell({"seconds": last - begin, "worst_s": worst, "made": count})


def unshare_loop(world: World, count: int) -> dict[str, float]:
    """unshare(CLONE_NEWNET) `count` times; each ends the one before it, and the last ends with the process."""
    process = Forked(_unshare, world.inside)
    try:
        return dict(process.ask(count))
    finally:
        process.close()
