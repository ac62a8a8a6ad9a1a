# SPDX-License-Identifier: BSD-3-Clause
"""The daemon as a service: what it tells the service manager, its unit, its rights, and how it is installed."""

import contextlib
import functools
import grp
import json
import os
import pathlib
import pwd
import select
import shutil
import signal
import socket
import stat
import subprocess

import pytest

from frames import udp
from lab import BUILD, GIVE_UP, MAYFLY, MAYFLYD, ROOT, eventually, run

NULL = {"port0": "net_null0,no-rx=1"}


class Manager:
    """What the daemon sees of systemd: a datagram socket."""

    def __init__(self, address):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self.socket.bind(address)
        self.name = address.replace("\0", "@")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def next(self):
        """The next message: its assignments."""
        assert select.select([self.socket], [], [], GIVE_UP)[0], "nothing was said"
        return self._read()

    def _read(self):
        lines = self.socket.recv(4096).decode().splitlines()
        return dict(line.split("=", 1) for line in lines)

    def until(self, key):
        """All messages up to the first that assigns this."""
        messages = [self.next()]
        while key not in messages[-1]:
            messages.append(self.next())
        return messages

    def waiting(self):
        messages = []
        while select.select([self.socket], [], [], 0)[0]:
            messages.append(self._read())
        return messages


def with_environment(daemon, **variables):
    daemon.command = ["env", *(f"{name}={value}" for name, value in variables.items()), *daemon.command]
    return daemon


# What the service manager is told


@pytest.mark.sanitizer
@pytest.mark.parametrize("abstract", [False, True])
def test_ready_when_ports_run_and_the_socket_answers(lab, abstract):
    address = f"\0mf-test-{os.getpid()}-notify" if abstract else str(lab.directory / "notify")
    with Manager(address) as manager:
        daemon = with_environment(lab.prepare(ports={**NULL, "port1": "net_ring0"}), NOTIFY_SOCKET=manager.name).spawn()
        ready = manager.next()
        # Nothing is waited for any more.
        assert daemon.answers()
        assert [port["state"] for port in daemon.json("port show")] == ["running", "running"], "of all ports"
        assert ready == {"READY": "1", "STATUS": "2 ports, 1 worker, 2 interfaces"}
        daemon("link bulk add name v{} link port0 up type vlan id 1-1000")
        assert manager.next() == {"STATUS": "2 ports, 1 worker, 1,002 interfaces"}
        daemon.stop()
        assert manager.waiting() == [{"STOPPING": "1", "STATUS": "stopping"}]


@pytest.mark.sanitizer
def test_not_ready_while_a_port_is_missing(lab):
    """A daemon that cannot start says why, and never that it is ready."""
    with Manager(str(lab.directory / "notify")) as manager:
        daemon = with_environment(lab.prepare(ports={**NULL, "port1": "net_af_packet0,iface=nope"}),
                                  NOTIFY_SOCKET=manager.name).spawn()
        assert daemon.wait() == 1
        (message,) = manager.waiting()
        assert message["ERRNO"] == "19" and "'nope' does not exist" in message["STATUS"], message
        assert message["STATUS"] in daemon.log()
        daemon.check_gone()


def test_not_ready_while_the_socket_is_taken(lab):
    one = lab.daemon(ports=NULL)
    with Manager(str(lab.directory / "notify")) as manager:
        two = with_environment(lab.prepare(ports=NULL), NOTIFY_SOCKET=manager.name)
        two.command[two.command.index("--socket") + 1] = one.socket_path
        two.spawn()
        assert two.wait() == 1
        assert [set(message) for message in manager.waiting()] == [{"ERRNO", "STATUS"}]


@pytest.mark.sanitizer
def test_watchdog(lab):
    """WATCHDOG=1 comes again and again; not when it is meant for another process."""
    with Manager(str(lab.directory / "notify")) as manager:
        daemon = with_environment(lab.prepare(ports=NULL), NOTIFY_SOCKET=manager.name, WATCHDOG_USEC="30000000").spawn()
        manager.until("READY")
        assert manager.next() == {"WATCHDOG": "1"} and manager.next() == {"WATCHDOG": "1"}
        daemon.stop()
    with Manager(str(lab.directory / "notify2")) as manager:
        daemon = with_environment(lab.prepare(ports=NULL), NOTIFY_SOCKET=manager.name, WATCHDOG_USEC="30000000",
                                  WATCHDOG_PID="1").spawn()
        manager.until("READY")
        daemon("link add d type dummy")
        assert manager.next() == {"STATUS": "1 port, 1 worker, 2 interfaces"}
        daemon.stop()


def test_a_manager_that_does_not_read_disturbs_nobody(lab):
    """The socket's queue is full from the start: the daemon works, and says it all once there is room."""
    with Manager(str(lab.directory / "notify")) as manager:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as others:
            others.setblocking(False)
            others.connect(str(lab.directory / "notify"))
            with contextlib.suppress(BlockingIOError):
                while True:
                    others.send(b"NOISE=1\n")
            daemon = with_environment(lab.prepare(ports=NULL), NOTIFY_SOCKET=manager.name).start()
            daemon("link add d type dummy")
            assert set().union(*manager.waiting()) == {"NOISE"}
            assert manager.until("READY")[-1]["READY"] == "1"
            daemon.stop()


@pytest.mark.parametrize("name,text", [
    ("relative", "expected a path"), ("/" + "x" * 120, "at most"), ("/nonexistent/notify", "No such file"),
    ("@mf-test-nobody", "refused")])
def test_a_bad_name_is_a_warning(lab, name, text):
    daemon = with_environment(lab.prepare(ports=NULL), NOTIFY_SOCKET=name).start()
    assert "NOTIFY_SOCKET" in daemon.log() and text in daemon.log(), daemon.log()


# Without privileges


NOBODY = pwd.getpwnam("nobody")


def public(daemon, program):
    """A copy that everybody may run; the build directory may be root's alone."""
    for directory in (daemon.directory, daemon.directory.parent):
        directory.chmod(0o755)
    copy = daemon.directory / program.name
    shutil.copy(program, copy)
    copy.chmod(0o755)
    return str(copy)


def as_nobody(daemon, *rights, gid=NOBODY.pw_gid, groups=(), locked=None):
    """Runs it as an ordinary user; rights are capabilities it keeps, locked is how many bytes it may lock."""
    grant = [f"--groups={','.join(map(str, groups))}"] if groups else ["--clear-groups"]
    if rights:
        kept = ",".join(f"+{right}" for right in rights)
        grant += [f"--inh-caps=-all,{kept}", f"--ambient-caps=-all,{kept}", f"--bounding-set=-all,{kept}"]
    else:
        grant += ["--inh-caps=-all", "--bounding-set=-all"]
    os.chown(daemon.directory, NOBODY.pw_uid, gid)
    at = daemon.command.index(str(MAYFLYD))
    daemon.command[at] = public(daemon, MAYFLYD)
    daemon.command[at:at] = ["setpriv", f"--reuid={NOBODY.pw_uid}", f"--regid={gid}", *grant, "--no-new-privs"]
    if locked is not None:
        daemon.command[at:at] = ["prlimit", f"--memlock={locked}:{locked}"]
    return daemon


def runtime_directory(daemon, parent):
    return pathlib.Path(parent) / "dpdk" / f"mayfly-{daemon.pid}"


@pytest.mark.parametrize("variable", ["XDG_RUNTIME_DIR", "RUNTIME_DIRECTORY"])
def test_an_ordinary_user_runs_it(lab, variable):
    source = lab.directory / "in.pcap"
    from scapy.utils import PcapWriter
    with PcapWriter(str(source), linktype=1) as writer:
        for number in range(10):
            writer.write(udp("02:00:00:00:00:01", "02:00:00:00:00:02", "10.0.0.2", "10.1.0.2", tags=[7], id=number))
    source.chmod(0o644)
    daemon = lab.prepare(ports={"null": "net_null0,no-rx=1", "ring": "net_ring0",
                                "file": f"net_pcap0,rx_pcap={source},tx_pcap={lab.directory}/daemon0/out.pcap"})
    as_nobody(with_environment(daemon, **{variable: daemon.directory}))
    daemon.start()
    assert os.stat(f"/proc/{daemon.pid}").st_uid == NOBODY.pw_uid
    assert "CapEff:\t0000000000000000" in pathlib.Path(f"/proc/{daemon.pid}/status").read_text()
    assert runtime_directory(daemon, daemon.directory).is_dir()
    eventually(lambda: daemon.drops(), {"unknown_tag": 10}, "the file's packets")
    daemon("link bulk add name v{} link null up type vlan id 1-4000")
    daemon("addr add 10.0.0.1/24 dev v7")
    daemon("link del parent null")
    daemon("reclaim wait")
    daemon.stop()
    assert not runtime_directory(daemon, daemon.directory).exists()
    assert os.stat(daemon.directory / "out.pcap").st_uid == NOBODY.pw_uid


def refused(daemon, *texts):
    daemon.spawn()
    assert daemon.wait() == 1, daemon.log()
    for text in texts:
        assert text in daemon.log(), f"'{text}' is not in: {daemon.log()}"
    daemon.check_log()


def test_packet_sockets_need_capabilities(lab):
    netns = lab.netns("router")
    lab.raw_host("host", netns, "d0")
    daemon = lab.prepare(netns, {"p0": "net_af_packet0,iface=d0"})
    refused(as_nobody(with_environment(daemon, XDG_RUNTIME_DIR=daemon.directory)), "CAP_NET_RAW")
    daemon = lab.prepare(netns, {"p0": "net_af_packet0,iface=d0"})
    refused(as_nobody(with_environment(daemon, XDG_RUNTIME_DIR=daemon.directory), "net_raw"), "CAP_NET_ADMIN")
    daemon = lab.prepare(netns, {"p0": "net_af_packet0,iface=d0"})
    as_nobody(with_environment(daemon, XDG_RUNTIME_DIR=daemon.directory), "net_raw", "net_admin", locked=1 << 20)
    refused(daemon, "its memory is locked", "1 MiB", "LimitMEMLOCK", "CAP_IPC_LOCK")
    # What the unit gives, and rings that fit what anybody may lock.
    daemon = lab.prepare(netns, {"p0": "net_af_packet0,iface=d0,framecnt=256"})
    as_nobody(with_environment(daemon, XDG_RUNTIME_DIR=daemon.directory), "net_raw", "net_admin").start()
    assert daemon.json("port show")[0]["promiscuous"]


@pytest.mark.parametrize("devargs,right", [("net_tap0,iface=mft0", "CAP_NET_ADMIN"),
                                           ("net_pcap0,iface=d0", "CAP_NET_RAW"),
                                           ("net_af_xdp0,iface=d0", "CAP_NET_RAW, CAP_NET_ADMIN, CAP_SYS_ADMIN")])
def test_other_devices_name_the_capability(lab, devargs, right):
    netns = lab.netns("router")
    lab.raw_host("host", netns, "d0")
    daemon = lab.prepare(netns, {"p0": devargs})
    refused(as_nobody(with_environment(daemon, XDG_RUNTIME_DIR=daemon.directory)), "p0", f"needs {right},")
    if "," in right:
        return  # XDP also wants to lock more memory than anybody may
    # With this one right and no other.
    daemon = lab.prepare(netns, {"p0": devargs})
    name = right.removeprefix("CAP_").lower()
    as_nobody(with_environment(daemon, XDG_RUNTIME_DIR=daemon.directory), name).start()
    assert daemon.names() == ["p0"]


def test_a_socket_where_the_user_may_not_write(lab):
    for path, text in (("/nonexistent/mayfly.sock", "the directory /nonexistent does not exist and cannot be made"),
                       ("/etc/mayfly.sock", "may not write to /etc")):
        daemon = lab.prepare(ports=NULL)
        daemon.command[daemon.command.index("--socket") + 1] = path
        refused(as_nobody(with_environment(daemon, XDG_RUNTIME_DIR=daemon.directory)), path, text, "--socket",
                f"uid {NOBODY.pw_uid}")


def test_a_runtime_directory_where_the_user_may_not_write(lab):
    """Not only the directory itself: somebody else's dpdk/ in a directory for all is as bad."""
    private = lab.directory / "private"
    private.mkdir()
    daemon = lab.prepare(ports=NULL)
    refused(as_nobody(with_environment(daemon, XDG_RUNTIME_DIR=private)), f"may not write to {private}:",
            "set XDG_RUNTIME_DIR")
    taken = lab.directory / "taken"
    (taken / "dpdk").mkdir(parents=True)
    taken.chmod(0o777)
    daemon = lab.prepare(ports=NULL)
    refused(as_nobody(with_environment(daemon, XDG_RUNTIME_DIR=taken)), f"may not write to {taken}/dpdk:")


# The socket's group


def some_group():
    """Another group than root's and nobody's."""
    return next(entry for entry in grp.getgrall() if entry.gr_gid not in (0, NOBODY.pw_gid, os.getgid()))


def as_user(uid, gid, *command):
    return subprocess.run(["setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups", *command],
                          capture_output=True, text=True, check=False, timeout=GIVE_UP)


def test_members_of_the_group_may_use_the_socket(lab):
    group = some_group()
    daemon = lab.daemon(ports=NULL, config=f"socket:\n  group: {group.gr_name}\n")
    about = os.stat(daemon.socket_path)
    assert (about.st_gid, stat.S_IMODE(about.st_mode)) == (group.gr_gid, 0o660)
    mayfly = public(daemon, MAYFLY)
    member = as_user(NOBODY.pw_uid, group.gr_gid, mayfly, "--socket", daemon.socket_path, "link", "count")
    assert (member.returncode, member.stdout) == (0, "1\n"), member.stderr
    other = as_user(NOBODY.pw_uid, NOBODY.pw_gid, mayfly, "--socket", daemon.socket_path, "link", "count")
    assert other.returncode == 1 and f"open to group '{group.gr_name}'" in other.stderr, other.stderr


def test_a_group_that_does_not_exist(lab):
    daemon = lab.prepare(ports=NULL, config="socket:\n  group: no-such-group\n")
    refused(daemon, "socket.group 'no-such-group': no such group")
    daemon.check_gone()


def test_an_ordinary_user_gives_the_socket_to_own_groups_only(lab):
    group = some_group()
    config = f"socket:\n  group: {group.gr_name}\n"
    daemon = lab.prepare(ports=NULL, config=config)
    refused(as_nobody(with_environment(daemon, XDG_RUNTIME_DIR=daemon.directory)), "socket.group", group.gr_name,
            "CAP_CHOWN")
    daemon = lab.prepare(ports=NULL, config=config)
    as_nobody(with_environment(daemon, XDG_RUNTIME_DIR=daemon.directory), groups=[group.gr_gid]).start()
    assert os.stat(daemon.socket_path).st_gid == group.gr_gid


# What is installed


@pytest.fixture(name="installed", scope="module")
def _installed(tmp_path_factory):
    """`meson install` of this build, in a directory of its own; (directory, meson's own words)."""
    root = tmp_path_factory.mktemp("root")
    # What there is not yet is not built here.
    done = subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild"], capture_output=True, text=True, check=False,
                          timeout=GIVE_UP, env={**os.environ, "DESTDIR": str(root)})
    assert done.returncode == 0, done.stdout + done.stderr
    return root, done.stdout


@functools.cache
def meson_options():
    return {option["name"]: option["value"]
            for option in json.loads(run("meson", "introspect", BUILD, "--buildoptions"))}


def meson_option(name):
    return meson_options()[name]


def prefix_in(root):
    return root / meson_option("prefix").lstrip("/")


def sysconfdir():
    return pathlib.Path(meson_option("prefix")) / meson_option("sysconfdir")


def test_everything_is_installed(installed):
    root, _ = installed
    prefix = prefix_in(root)
    expected = ["bin/mayfly", "bin/mayfly-perf", "sbin/mayflyd", "lib/systemd/system/mayflyd.service", "lib/sysusers.d/mayfly.conf",
                "share/bash-completion/completions/mayfly", "share/bash-completion/completions/mayflyd",
                "share/doc/mayfly/README.md", "share/doc/mayfly/LICENSE", "share/doc/mayfly/examples/mayflyd.yaml",
                "share/doc/mayfly/examples/two-ports.yaml", "share/doc/mayfly/examples/70-mayfly-vfio.rules"]
    expected += [f"share/doc/mayfly/examples/scenarios/{file.name}" for file in (ROOT / "config/scenarios").iterdir()]
    if shutil.which("scdoc"):
        expected += ["share/man/man8/mayfly.8", "share/man/man8/mayflyd.8", "share/man/man8/mayfly-perf.8",
                     "share/man/man5/mayflyd.yaml.5"]
    missing = [name for name in expected if not (prefix / name).is_file()]
    assert not missing, missing
    files = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
    known = {str((prefix / name).relative_to(root)) for name in expected}
    known.add(str(sysconfdir() / "mayfly/mayflyd.yaml").lstrip("/"))
    assert files == known, files ^ known
    for name in ("bin/mayfly", "sbin/mayflyd"):
        assert os.access(prefix / name, os.X_OK), name


def test_installed_programs_run(installed, lab):
    prefix = prefix_in(installed[0])
    assert run(prefix / "bin/mayfly", "--version").startswith("mayfly ")
    assert "Usage: mayfly link add" in run(prefix / "bin/mayfly", "link", "help")
    assert run(prefix / "sbin/mayflyd", "--version").startswith("mayflyd ")
    daemon = lab.prepare(config=pathlib.Path(f"{installed[0]}{sysconfdir()}/mayfly/mayflyd.yaml").read_text())
    daemon.command[daemon.command.index(str(MAYFLYD))] = str(prefix / "sbin/mayflyd")
    daemon.start()
    assert run(prefix / "bin/mayfly", "--socket", daemon.socket_path, "link", "count") == "0\n"


def test_installed_configuration_is_good_and_kept(installed, tmp_path):
    root, _ = installed
    path = pathlib.Path(f"{root}{sysconfdir()}/mayfly/mayflyd.yaml")
    assert path.read_text() == (ROOT / "config/mayflyd.yaml").read_text()
    run(MAYFLYD, "-c", path, "--check")
    # What an operator has edited stays, and so does a link to elsewhere.
    script = ROOT / "config/install-if-absent"
    edited = tmp_path / "edited.yaml"
    edited.write_text("workers: {count: 2}\n")
    dangling = tmp_path / "dangling.yaml"
    dangling.symlink_to("/nonexistent")
    for there in (edited, dangling):
        assert "Keeping" in run(script, ROOT / "config/mayflyd.yaml", there)
    assert edited.read_text() == "workers: {count: 2}\n" and dangling.is_symlink()


def unit_of(root):
    return prefix_in(root) / "lib/systemd/system/mayflyd.service"


def settings(path):
    """Each setting of the unit: all its values."""
    found = {}
    for line in path.read_text().splitlines():
        if line and line[0] not in "#[":
            name, value = line.split("=", 1)
            found.setdefault(name, []).append(value)
    return found


def test_unit_starts_what_is_installed(installed):
    root, _ = installed
    unit = settings(unit_of(root))
    program, *words = unit["ExecStart"][0].split()
    assert words == ["-c", str(sysconfdir() / "mayfly/mayflyd.yaml")]
    assert pathlib.Path(f"{root}{program}").is_file() and pathlib.Path(f"{root}{words[1]}").is_file()
    # Without a port: the example's path of the control socket is what RuntimeDirectory makes.
    assert unit["Type"] == ["notify"] and unit["RuntimeDirectory"] == ["mayfly"]
    assert "path: /run/mayfly/mayfly.sock" in (ROOT / "config/mayflyd.yaml").read_text()
    user = (prefix_in(root) / "lib/sysusers.d/mayfly.conf").read_text()
    assert f"\nu {unit['User'][0]} " in user
    assert unit["AmbientCapabilities"] == unit["CapabilityBoundingSet"]


def systemd_analyze(*words):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd is not installed")
    return subprocess.run(["systemd-analyze", *map(str, words)], capture_output=True, text=True, check=False,
                          timeout=GIVE_UP)


def runnable_unit(root, directory):
    """A copy that systemd can check on this machine: the program is where it says, the manual pages are not asked for."""
    unit = directory / "mayflyd.service"
    lines = unit_of(root).read_text().splitlines()
    unit.write_text("".join(line.replace("ExecStart=", f"ExecStart={root}") + "\n" for line in lines
                            if not line.startswith("Documentation=")))
    return unit


def test_systemd_understands_the_unit(installed, tmp_path):
    done = systemd_analyze("verify", runnable_unit(installed[0], tmp_path))
    complaints = [line for line in done.stderr.splitlines() if "mayflyd.service" in line]
    assert done.returncode == 0 and not complaints, done.stderr


def test_the_unit_is_hardened(installed, tmp_path):
    """systemd's own measure, 0 (safe) to 10; the devices and the network are what remains."""
    unit = runnable_unit(installed[0], tmp_path)
    done = systemd_analyze("security", "--offline=true", "--no-pager", "--threshold=35", unit)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_unit_allows_every_system_call_of_the_daemon(installed, lab):
    """Seen by strace: start, packets, commands, end."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    allowed = set()
    for word in settings(unit_of(installed[0]))["SystemCallFilter"][0].split():
        allowed |= system_calls_of(word)
    netns = lab.netns("router")
    host = lab.raw_host("host", netns, "d0")
    trace = lab.directory / "trace"
    daemon = lab.prepare(netns, {"p0": "net_af_packet0,iface=d0", **NULL})
    at = daemon.command.index(str(MAYFLYD))
    daemon.command[at:at] = ["strace", "-f", "-qq", "-o", str(trace)]
    daemon.start()
    daemon("addr add 10.0.0.1/24 dev p0")
    host.send(b"\xff" * 64)
    daemon("link bulk add name v{} link p0 up type vlan id 1-4000")
    daemon("link del parent p0")
    daemon("reclaim wait")
    child = int(pathlib.Path(f"/proc/{daemon.pid}/task/{daemon.pid}/children").read_text().split()[0])
    os.kill(child, signal.SIGTERM)
    assert daemon.wait() == 0, daemon.log()
    used = set()
    for line in trace.read_text().splitlines():
        words = line.split(None, 1)
        if len(words) == 2 and "(" in words[1] and words[1][0].isalpha():
            used.add(words[1].split("(")[0])
    assert {"epoll_wait", "futex", "setsockopt", "sched_setaffinity"} & used, used
    # The EAL tries iopl, for old virtio devices, and goes on without.
    assert used - allowed <= {"iopl"}, used - allowed


def system_calls_of(name):
    """What a filter's word stands for, groups in groups included."""
    if not name.startswith("@"):
        return {name}
    found = set()
    for line in systemd_analyze("syscall-filter", name).stdout.splitlines()[1:]:
        word = line.strip()
        if word and not word.startswith("#"):
            found |= system_calls_of(word)
    return found
