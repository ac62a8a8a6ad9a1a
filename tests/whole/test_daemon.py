# SPDX-License-Identifier: BSD-3-Clause
"""The daemon as a process: how it starts, refuses to start, ends, and lives beside others."""

import os
import signal
import subprocess

import pytest

from frames import IP, Ether, routed, udp
from lab import GIVE_UP, MAYFLYD, eventually

NULL = {"port0": "net_null0,no-rx=1"}


def fails(lab, status, *texts, **how):
    """It ends by itself with this status, says why, and leaves nothing."""
    daemon = lab.prepare(**how).spawn()
    assert daemon.wait() == status, daemon.log()
    for text in texts:
        assert text in daemon.log(), f"'{text}' is not in: {daemon.log()}"
    daemon.check_log()
    daemon.check_gone()
    return daemon


def check(lab, config, *options):
    path = lab.directory / "check.yaml"
    path.write_text(config)
    return subprocess.run([MAYFLYD, "-c", path, "--check", *options], capture_output=True, text=True, timeout=GIVE_UP)


@pytest.mark.sanitizer
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_it_and_nothing_is_left(lab, how):
    daemon = lab.daemon(ports=NULL)
    assert daemon.runtime_directory.is_dir()
    daemon("link bulk add name v{} link port0 up type vlan id 1-1000")
    daemon("addr add 10.0.0.1/24 dev v7")
    daemon("neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 dev v7")
    daemon("route add 172.16.0.0/12 via 10.0.0.2")
    daemon.stop(how)


@pytest.mark.sanitizer
def test_signal_with_parked_packets_and_children(lab):
    netns = lab.netns("router")
    host = lab.raw_host("host", netns, "d0")
    daemon = lab.daemon(netns, {"p0": "net_af_packet0,iface=d0"})
    daemon("link add o link p0 up type vlan id 5")
    daemon("link bulk add name i{} link o up type vlan id 1-10")
    daemon("addr add 10.0.0.1/24 dev i3")
    daemon("addr add 10.1.0.1/24 dev p0")
    mac = daemon.link("p0")["address"]
    host.send(*[udp(mac, host.mac, "10.1.0.2", f"10.0.0.{n}") for n in range(2, 12)])
    eventually(lambda: daemon.balance()["parked"], 10, "parked")
    daemon.stop()


def test_signal_in_mid_bulk(lab):
    """The bulk is cut short; the daemon still ends well."""
    from control import GENERIC, GENERIC_FAMILY, NLM_F_ACK, NLM_F_REQUEST, Client, bulk_add, message
    daemon = lab.daemon(ports=NULL)
    with Client(daemon.socket_path, GENERIC_FAMILY) as client:
        client.send(message(GENERIC, NLM_F_REQUEST | NLM_F_ACK, 9, bulk_add("b{}", [(1, 1, 4000), (64, 1, 100)])))
        daemon.stop()


@pytest.mark.sanitizer
def test_two_daemons_side_by_side(lab):
    one, two = lab.daemon(ports=NULL), lab.daemon(ports=NULL)
    assert one.status()["boot_id"] != two.status()["boot_id"]
    assert (one.status()["pid"], two.status()["pid"]) == (one.pid, two.pid)
    one("link add v link port0 type vlan id 1")
    assert one.count() == 2 and two.count() == 1
    one.stop()
    two("link add v link port0 type vlan id 1")
    assert two.runtime_directory.is_dir(), "the other's is its own"


@pytest.mark.sanitizer
def test_second_daemon_on_the_same_socket(lab):
    one = lab.daemon(ports=NULL)
    two = lab.prepare(ports=NULL)
    two.command[two.command.index("--socket") + 1] = one.socket_path
    two.spawn()
    assert two.wait() == 1
    assert one.socket_path in two.log() and "another mayflyd answers there" in two.log()
    two.check_log()
    assert not two.runtime_directory.exists()
    assert one.count() == 1, "the first goes on"


@pytest.mark.sanitizer
def test_socket_file_of_a_killed_daemon_is_replaced(lab):
    killed = lab.daemon(ports=NULL)
    killed.kill()
    assert os.path.exists(killed.socket_path)
    answer = killed.cli("link show")
    assert answer.status == 1 and killed.socket_path in answer.err
    again = lab.prepare(ports=NULL)
    again.command[again.command.index("--socket") + 1] = killed.socket_path
    again.socket_path = killed.socket_path
    again.start()
    assert again.count() == 1
    again.stop()
    # A killed process cannot clean up; this one's directory is the test's to remove.
    subprocess.run(["rm", "-r", str(killed.runtime_directory)], check=False)


def test_socket_mode_and_directory(lab):
    directory = lab.directory / "made" / "for" / "it"
    daemon = lab.prepare(ports=NULL, config="socket:\n  mode: '0600'\n")
    daemon.socket_path = str(directory / "mayfly.sock")
    daemon.command[daemon.command.index("--socket") + 1] = daemon.socket_path
    daemon.start()
    assert os.stat(daemon.socket_path).st_mode & 0o777 == 0o600
    other = lab.daemon(ports=NULL)
    assert os.stat(other.socket_path).st_mode & 0o777 == 0o660


@pytest.mark.sanitizer
def test_environment_names_the_socket(lab):
    daemon = lab.daemon(ports=NULL)
    from lab import MAYFLY
    done = subprocess.run([MAYFLY, "link", "count"], capture_output=True, text=True, check=False, timeout=GIVE_UP,
                          env={**os.environ, "MAYFLY_SOCKET": daemon.socket_path})
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr


# Configuration


GOOD = """
eal:
  memory: 128MiB
workers:
  count: 1
  idle:
    policy: adaptive
    after: 100us
    sleep: 1ms
mbufs:
  count: 4096
ports:
  - name: east
    devargs: net_null0,no-rx=1
    mtu: 1400
  - name: west
    devargs: net_ring0
interfaces:
  limit: 1000
teardown:
  workers: 1
  policy: fail
  high_objects: 100
  low_objects: 10
log:
  level: debug
"""


@pytest.mark.sanitizer
def test_configuration_is_applied(lab):
    done = check(lab, GOOD)
    assert done.returncode == 0, done.stderr
    assert "MiB" in done.stdout
    daemon = lab.daemon(config=GOOD, ports={"extra": "net_null1,no-rx=1"})
    assert daemon.names() == ["east", "west", "extra"]
    assert daemon.link("east")["mtu"] == 1400
    status = daemon.status()
    assert (status["mbufs"], status["interfaces_limit"]) == (4096, 1000)
    shown = daemon.json("reclaim show")
    assert (shown["policy"], shown["workers"], shown["high_objects"]) == ("fail", 1, 100)
    assert "debug" in daemon.log()
    # The limit is one.
    daemon.refuse("link bulk add count 998 name d{} type dummy", "1000", "nothing was changed")
    assert daemon.count() == 3


@pytest.mark.sanitizer
def test_files_in_the_tree_are_good(lab):
    from lab import ROOT
    for name in ("mayflyd.yaml", "two-ports.yaml"):
        done = subprocess.run([MAYFLYD, "-c", ROOT / "config" / name, "--check"], capture_output=True, text=True,
                              check=False, timeout=GIVE_UP)
        assert done.returncode == 0, done.stderr
    assert check(lab, "").returncode == 0, "an empty file means the defaults"


REFUSED = {
    "unknown key": ("log:\n  levle: info\n", 2, "levle", "level"),
    "unknown section": ("\n\nworkesr:\n  count: 1\n", 3, "workesr", "workers"),
    "duplicate key": ("log:\n  level: info\n  level: debug\n", 3, "log.level", "twice", ":2"),
    "duplicate section": ("log:\n  level: info\nlog:\n  level: info\n", 3, "log", "twice", ":1"),
    "wrong type": ("workers:\n  count: many\n", 2, "workers.count", "many"),
    "list for a value": ("workers:\n  count: [1]\n", 2, "workers.count", "list", "value"),
    "value for a map": ("workers: 3\n", 1, "workers", "map"),
    "map for a list": ("ports:\n  name: x\n", 1, "ports", "list"),
    "out of range": ("workers:\n  count: 65\n", 2, "workers.count", "65", "1..64"),
    "octal": ("workers:\n  count: 0x\n", 2, "workers.count", "0x"),
    "no as a boolean": ("eal:\n  hugepages: no\n", 2, "eal.hugepages", "no", "false"),
    "no unit": ("workers:\n  idle:\n    sleep: 5\n", 3, "workers.idle.sleep", "5"),
    "sleep too long": ("workers:\n  idle:\n    sleep: 2ms\n", 3, "workers.idle.sleep", "2ms", "1 us..1"),
    "port without devargs": ("ports:\n  - name: a\n", 2, "ports[0].devargs", "missing"),
    "port with a bad name": ("ports:\n  - name: a/b\n    devargs: net_null0\n", 2, "ports[0].name", "a/b", "'/'"),
    "port name of 16": ("ports:\n  - name: abcdefghijklmnop\n    devargs: net_null0\n", 2, "ports[0].name", "1..15"),
    "port name twice": ("ports:\n  - name: a\n    devargs: net_null0\n  - name: a\n    devargs: net_null1\n", 4,
                        "ports[1].name", "'a'", ":2"),
    "device twice": ("ports:\n  - name: a\n    devargs: net_null0\n  - name: b\n    devargs: net_null0,no-rx=1\n", 5,
                     "ports[1].devargs", "net_null0", ":3"),
    "mtu over the mbufs": ("ports:\n  - name: a\n    devargs: net_null0\n    mtu: 9000\n", 4, "ports[0].mtu", "9000",
                           "mbufs.size"),
    "marks upside down": ("teardown:\n  high_objects: 10\n  low_objects: 10\n", 3, "teardown.low_objects", "10"),
    "cpus without count": ("workers:\n  cpus: [0, 1]\n", 2, "workers.cpus", "list of 2"),
    "mbufs over the memory": ("eal:\n  memory: 64MiB\nmbufs:\n  count: 100000\n", 2, "eal.memory", "64MiB"),
    "not YAML": ("ports: [\n", None, "not YAML"),
    "two documents": ("log:\n  level: info\n---\nlog:\n  level: info\n", 3, "document"),
    "bad mode": ("socket:\n  mode: '0999'\n", 2, "socket.mode", "0999", "0777"),
}


@pytest.mark.parametrize("config,line,texts", [(case[0], case[1], case[2:]) for case in REFUSED.values()],
                         ids=list(REFUSED))
def test_configuration_is_refused(lab, config, line, texts):
    done = check(lab, config)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"check.yaml:{line if line is not None else ''}" in done.stderr, done.stderr
    for text in texts:
        assert text in done.stderr, f"'{text}' is not in: {done.stderr}"


@pytest.mark.sanitizer
def test_a_bad_configuration_starts_no_daemon(lab):
    fails(lab, 1, "mayflyd.yaml:1", "nonsense", config="nonsense: 1\n")


@pytest.mark.parametrize("words,texts", [
    (["--nonsense"], ["--nonsense", "nearest"]),
    (["-c"], ["-c", "missing"]),
    (["--port", "port0"], ["port0", "NAME=DEVARGS"]),
    (["--port", "a=net_null0", "--port", "a=net_null1"], ["'a'", "exists already"]),
    (["--workers", "0"], ["--workers", "1..64"]),
    (["--log-level", "loud"], ["loud", "debug"]),
    (["--socket", "a", "--socket", "b"], ["--socket", "twice"]),
    (["--socket", "/tmp/" + "x" * 110], ["socket.path", "107"]),
])
def test_command_line_is_refused(words, texts):
    done = subprocess.run([MAYFLYD, *words], capture_output=True, text=True, check=False, timeout=GIVE_UP)
    assert done.returncode == 2, done.stdout + done.stderr
    for text in texts:
        assert text in done.stderr, f"'{text}' is not in: {done.stderr}"


def test_help_and_version():
    for word in ("--help", "--version"):
        done = subprocess.run([MAYFLYD, word], capture_output=True, text=True, check=False, timeout=GIVE_UP)
        assert done.returncode == 0 and "mayflyd" in done.stdout, done.stderr


def test_missing_file():
    done = subprocess.run([MAYFLYD, "-c", "/nonexistent.yaml"], capture_output=True, text=True, check=False,
                          timeout=GIVE_UP)
    assert done.returncode == 1 and "/nonexistent.yaml" in done.stderr


# Ports


@pytest.mark.sanitizer
@pytest.mark.parametrize("devargs,texts", [
    ("net_nonsense0", ["port0", "net_nonsense0", "known are", "net_af_packet"]),
    ("net_af_packet0", ["port0", "iface=NAME"]),
    ("net_af_packet0,iface=nope", ["port0", "nope", "does not exist", "lo"]),
    ("net_af_packet0,iface=an-interface-name-too-long", ["port0", "1..15"]),
    ("net_pcap0,rx_pcap=/nonexistent.pcap", ["port0", "/nonexistent.pcap", "No such file"]),
    ("net_pcap0,rx_iface_in=nope,tx_iface=nope", ["port0", "nope", "does not exist"]),
    ("0000:7f:1f.7", ["port0", "no such PCI device"]),
])
def test_device_that_is_not_there(lab, devargs, texts):
    fails(lab, 1, *texts, netns=lab.netns("router"), ports={"port0": devargs})


def test_one_bad_port_of_two(lab):
    fails(lab, 1, "port1", "nope", netns=lab.netns("router"),
          ports={"port0": "net_null0,no-rx=1", "port1": "net_af_packet0,iface=nope"})


def test_device_that_cannot_give_what_is_configured(lab):
    """Two workers need two queues, which a pcap device of one interface does not have."""
    netns = lab.netns("router")
    lab.raw_host("host", netns, "d0")
    fails(lab, 1, "port0", "net_pcap0 has 1 receive queue", "2 workers", "set rx_queues: 1", netns=netns,
          ports={"port0": "net_pcap0,rx_iface_in=d0,tx_iface=d0"}, options=["--workers", "2"])


@pytest.mark.sanitizer
def test_mtu_that_the_kernel_interface_does_not_have(lab):
    netns = lab.netns("router")
    lab.raw_host("host", netns, "d0", mtu=1400)
    fails(lab, 1, "port0", "mtu 1500", "1400", "ip link set dev d0", netns=netns,
          ports={"port0": "net_af_packet0,iface=d0"})


@pytest.mark.sanitizer
def test_ring_port(lab):
    """What leaves by a net_ring comes back by it: a packet goes round until its TTL is used up."""
    netns = lab.netns("router")
    host = lab.raw_host("host", netns, "d0")
    daemon = lab.daemon(netns, {"p0": "net_af_packet0,iface=d0", "ring": "net_ring0"})
    daemon("link add r7 link ring up type vlan id 7")
    daemon("addr add 10.7.0.1/24 dev r7")
    daemon("addr add 10.0.0.1/24 dev p0")
    daemon(f"neigh add 10.7.0.2 lladdr {daemon.link('r7')['address']} dev r7")
    # Nobody is asked for: a question is repeated every second, and that many more packets would leave.
    daemon(f"neigh add 10.0.0.2 lladdr {host.mac} dev p0")
    before = daemon.check_balance()
    with daemon.dropping(on="r7", side="rx", ttl_exceeded=1):
        host.send(udp(daemon.link("p0")["address"], host.mac, "10.0.0.2", "10.7.0.2", ttl=10))
    after = daemon.check_balance()
    # Nine rounds, and the ICMP error.
    grown = {key: after[key] - before[key] for key in ("rx", "tx", "originated", "parked")}
    assert grown == {"rx": 1 + 9, "tx": 9 + 1, "originated": 1, "parked": 0}
    assert daemon.link("r7")["stats64"]["rx"]["packets"] == daemon.link("r7")["stats64"]["tx"]["packets"] == 9


def test_null_port(lab):
    """What is sent to net_null is gone, and counted; without no-rx it receives without end."""
    netns = lab.netns("router")
    host = lab.raw_host("host", netns, "d0")
    daemon = lab.daemon(netns, {"p0": "net_af_packet0,iface=d0", "null": "net_null0,no-rx=1"})
    daemon("addr add 10.0.0.1/24 dev p0")
    daemon("addr add 10.1.0.1/24 dev null")
    daemon("neigh add 10.1.0.2 lladdr 02:00:00:00:00:02 dev null")
    host.send(*[udp(daemon.link("p0")["address"], host.mac, "10.0.0.2", "10.1.0.2") for _ in range(100)])
    eventually(lambda: daemon.link("null")["stats64"]["tx"]["packets"], 100, "sent to nowhere")
    assert daemon.check_balance()["tx"] == 100
    endless = lab.daemon(ports={"null": "net_null0"})
    eventually(lambda: endless.link("null")["stats64"]["rx"]["packets"] > 1000, True, "frames from net_null")
    endless("link set null down")
    eventually(lambda: endless.drops().get("port_down", 0) > 1000, True, "port_down")
    balance = endless.check_balance()
    assert balance["rx"] >= balance["drops"] > 0 and balance["tx"] == 0


@pytest.mark.sanitizer
def test_pcap_files(lab):
    """The file's packets come in once, whatever is configured by then; what goes out is written, byte by byte."""
    from scapy.utils import PcapWriter, RawPcapReader
    mac = "02:00:00:00:00:01"
    source, sink = lab.directory / "in.pcap", lab.directory / "out.pcap"
    frames = [udp(mac, "02:00:00:00:00:02", "10.0.0.2", "10.1.0.2", tags=[7], id=n) for n in range(100)]
    with PcapWriter(str(source), linktype=1) as writer:
        for frame in frames:
            writer.write(frame)
    daemon = lab.daemon(ports={"replay": f"net_pcap0,rx_pcap={source},tx_pcap={sink}"})
    eventually(lambda: daemon.drops(), {"unknown_tag": 100}, "drops of the file")
    assert daemon.check_balance()["rx"] == 100
    daemon.stop()
    # Without end, into a file.
    daemon = lab.daemon(ports={"replay": f"net_pcap0,rx_pcap={source},infinite_rx=1",
                               "record": f"net_pcap1,tx_pcap={sink}"})
    daemon("addr add 10.1.0.1/24 dev record")
    daemon("neigh add 10.1.0.2 lladdr 02:00:00:00:00:03 dev record")
    daemon(f"link add v7 link replay address {mac} up type vlan id 7")  # from here on packets pass
    eventually(lambda: daemon.link("record")["stats64"]["tx"]["packets"] >= 100, True, "recorded")
    daemon("link set replay down")
    record = daemon.link("record")["address"]
    daemon.check_balance()
    daemon.stop()
    written = [frame for frame, _ in RawPcapReader(str(sink))]
    assert len(written) >= 100
    expected = {frame[IP].id: bytes(routed(frame, "02:00:00:00:00:03", record)) for frame in frames}
    for frame in written:
        assert frame == expected[Ether(frame)[IP].id]


@pytest.mark.sanitizer
def test_two_workers_share_a_port(lab):
    """Each has a queue of its own; counters are the sum of both."""
    netns = lab.netns("router")
    host = lab.raw_host("host", netns, "d0")
    other = lab.raw_host("other", netns, "d1")
    daemon = lab.daemon(netns, {"p0": "net_af_packet0,iface=d0,qpairs=2", "p1": "net_af_packet1,iface=d1,qpairs=2"},
                        options=["--workers", "2"])
    daemon("addr add 10.0.0.1/24 dev p0")
    daemon("addr add 10.1.0.1/24 dev p1")
    daemon(f"neigh add 10.1.0.2 lladdr {other.mac} dev p1")
    mac, out = daemon.link("p0")["address"], daemon.link("p1")["address"]
    frames = [udp(mac, host.mac, f"10.0.0.{n + 2}", "10.1.0.2", id=n) for n in range(200)]
    host.send(*frames)
    got = {other.receive() for _ in frames}
    assert got == {bytes(routed(frame, other.mac, out)) for frame in frames}
    stats = daemon.json("stats")
    assert len(stats["workers"]) == 2 and sum(worker["rx"] for worker in stats["workers"]) == stats["balance"]["rx"]
    eventually(lambda: daemon.link("p1")["stats64"]["tx"]["packets"], 200)
    daemon("link bulk add name v{} link p0 up type vlan id 1-1000")
    daemon("link del parent p0")
    daemon("reclaim wait")
