# SPDX-License-Identifier: BSD-3-Clause
"""scripts/quickstart from outside: its table against counts of the kernel and the daemon, and what it leaves behind."""
import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
from lab import MAYFLY

ROOT = Path(__file__).resolve().parents[2]
QUICKSTART = ROOT / "scripts" / "quickstart"
SMALL = ("--interfaces", "2000", "--rounds", "2", "--rate", "500")
STREAMS = 8
DEADLINE_S = 180
# Hosts ask for their router's address now and then, after the table's counts were taken as well.
MOST_ARP = 10


class Done:
    """A run of the script that has ended."""

    def __init__(self, *words: str, **more) -> None:
        with subprocess.Popen([QUICKSTART, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              **more) as script:
            self.id = script.pid
            try:
                self.stdout, self.stderr = script.communicate(timeout=DEADLINE_S)
            except subprocess.TimeoutExpired:
                script.terminate()  # it takes all away
                raise
        self.returncode = script.returncode


def output_of(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def traces(run_id: int) -> list[str]:
    """What a run has left in the system. Others may be under way on this machine."""
    name = f"mayfly-qs-{run_id}"
    found = [name] if Path("/run", name).exists() else []
    return found + [line for line in output_of("ip", "netns").splitlines() if line.startswith(f"{name}-")]


def strayed_links() -> set[str]:
    """Its links belong into its namespaces."""
    return {link["ifname"] for link in json.loads(output_of("ip", "-j", "link", "show"))} & {"a0", "b0", "dp0", "dp1"}


def processes_of(run_id: int) -> list[tuple[str, int]]:
    lines = Path(f"/run/mayfly-qs-{run_id}/processes").read_text().splitlines()
    return [(line.split()[0], int(line.split()[1])) for line in lines]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0] != "Z"
    except OSError:
        return False


def eal_directory(pid: int) -> Path:
    return Path(os.environ.get("RUNTIME_DIRECTORY", "/var/run")) / "dpdk" / f"mayfly-{pid}"


def numbers(line: str) -> list[int]:
    return [int(number.replace(",", "")) for number in re.findall(r"-?\d[\d,]*", line)]


def line_of(table: str, start: str) -> str:
    lines = [line.strip() for line in table.splitlines() if line.strip().startswith(start)]
    assert len(lines) == 1, f"lines that start with {start!r}: {lines}"
    return lines[0]


def flow_line(table: str, start: str) -> dict[str, int]:
    names = ("sent", "refused", "received", "lost", "duplicated", "reordered", "misdelivered")
    return dict(zip(names, numbers(line_of(table, start).removeprefix(start)), strict=True))


class Kept:
    """A run that --keep has left, and what the daemon and the kernel say about it."""

    def __init__(self) -> None:
        self.done = Done(*SMALL, "--keep")
        assert self.done.returncode == 0, self.done.stdout + self.done.stderr
        assert not strayed_links()
        self.id = self.done.id
        self.directory = Path(f"/run/mayfly-qs-{self.id}")

    def mayfly(self, *words: str):
        return json.loads(output_of(str(MAYFLY), "--socket", f"{self.directory}/mayfly.sock", "-j", *words))

    def link_packets(self, side: str, device: str) -> tuple[int, int]:
        shown = json.loads(output_of("ip", "-n", f"{self.directory.name}-{side}", "-j", "-s", "link", "show", device))
        return shown[0]["stats64"]["rx"]["packets"], shown[0]["stats64"]["tx"]["packets"]

    def udp_datagrams(self, side: str) -> int:
        text = output_of("ip", "netns", "exec", f"{self.directory.name}-{side}", "cat", "/proc/net/snmp")
        names, values = [line.split() for line in text.splitlines() if line.startswith("Udp:")]
        return int(values[names.index("InDatagrams")])

    def stop(self) -> None:
        processes = processes_of(self.id)
        done = Done("--stop", str(self.id))
        assert done.returncode == 0, done.stderr
        assert traces(self.id) == []
        assert not any(alive(pid) for _, pid in processes)
        assert not any(eal_directory(pid).exists() for _, pid in processes)


@pytest.fixture(scope="module")
def kept():
    run = Kept()
    yield run
    run.stop()


def test_table_says_what_it_is(kept):
    assert "veth, kernel path: not a NIC figure" in kept.done.stdout
    assert f"--stop {kept.id}" in kept.done.stdout.splitlines()[-1]


def test_rounds_in_table(kept):
    rounds = [line for line in kept.done.stdout.splitlines() if re.match(r"  (first|\d+) ", line)]
    assert [line.split()[0] for line in rounds] == ["first", "1", "2"]
    assert not re.search("INCOMPLETE|NOT BACK", kept.done.stdout)
    assert all(figure > 0 for line in rounds for figure in numbers(line)[:4])


def test_only_what_stays_is_left(kept):
    assert kept.mayfly("link", "count")["count"] == 2 + 2 * STREAMS
    assert kept.mayfly("reclaim", "show")["backlog_objects"] == 0


def test_tagged_flow_against_counters_of_interfaces(kept):
    shown = flow_line(kept.done.stdout, "VLAN a -> b")
    sent = json.loads((kept.directory / "send-tagged.json").read_text())["sent"]
    links = {link["ifname"]: link["stats64"] for link in kept.mayfly("-s", "link", "show", "type", "vlan")}
    assert shown["sent"] == sum(sent) > 0
    assert shown["sent"] - shown["received"] == shown["lost"]
    assert shown["duplicated"] == shown["misdelivered"] == 0
    # Beside the counted packets each stream carried the same number of warm-up packets.
    assert len({links[f"access{index}"]["rx"]["packets"] - sent[index] for index in range(STREAMS)}) == 1
    for index in range(STREAMS):
        assert links[f"access{index}"]["rx"]["packets"] == links[f"core{index}"]["tx"]["packets"]


def test_untagged_flow_against_the_kernel(kept):
    shown = flow_line(kept.done.stdout, "plain b -> a")
    assert 0 < shown["received"] < kept.udp_datagrams("a")
    assert shown["sent"] - shown["received"] == shown["lost"]


def test_balance_against_the_kernel(kept):
    rx, originated, tx, drops, punted, parked, difference = numbers(line_of(kept.done.stdout, "balance"))
    assert difference == 0 == rx + originated - tx - drops - punted - parked
    a_rx, a_tx = kept.link_packets("a", "a0")
    b_rx, b_tx = kept.link_packets("b", "b0")
    losses = numbers(line_of(kept.done.stdout, "device      veth"))
    assert 0 <= a_tx + b_tx - rx <= MOST_ARP + sum(losses)
    assert 0 <= a_rx + b_rx - tx + sum(losses) <= MOST_ARP + sum(losses)


def test_second_run_beside_one_that_was_kept(kept):
    done = Done(*SMALL)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"an earlier run was kept (mayfly-qs-{kept.id})" in done.stdout
    assert flow_line(done.stdout, "VLAN a -> b")["sent"] > 0
    assert kept.mayfly("link", "count")["count"] == 2 + 2 * STREAMS
    assert traces(done.id) == []


def test_dry_run_changes_nothing():
    before = (ROOT / "build").exists(), Path("/proc/sys/vm/nr_hugepages").read_text()
    environment = {key: value for key, value in os.environ.items() if key != "MAYFLY_BUILD"}
    done = Done("--dry-run", env=environment)
    assert done.returncode == 0, done.stderr
    for word in ("packages", "namespaces", "links", "files", "sysctls", "hugepages", "mayfly-qs-ID-dp"):
        assert word in done.stdout
    assert ((ROOT / "build").exists(), Path("/proc/sys/vm/nr_hugepages").read_text()) == before
    assert traces(done.id) == []
    assert not strayed_links()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_nothing(number):
    # A background job of a shell inherits an ignored SIGINT, which bash then cannot trap.
    with subprocess.Popen([QUICKSTART, *SMALL, "--rounds", "1000"], text=True, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE,
                          preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)) as script:
        try:
            churning = Path(f"/run/mayfly-qs-{script.pid}/before.json")
            until = time.monotonic() + DEADLINE_S
            while not churning.exists() and script.poll() is None and time.monotonic() < until:
                time.sleep(0.05)
            assert churning.exists(), script.stderr.read() if script.poll() is not None else "no traffic"
            processes = processes_of(script.pid)
            assert {"mayflyd", "send-tagged", "receive-untagged"} <= {name for name, _ in processes}
        finally:
            script.send_signal(number)
        try:
            assert script.wait(DEADLINE_S) == 128 + number
        except subprocess.TimeoutExpired:
            script.terminate()
            raise
        assert "SIGKILL" not in script.stderr.read()
    assert traces(script.pid) == []
    assert not any(alive(pid) for _, pid in processes)
    assert not any(eal_directory(pid).exists() for _, pid in processes)
    assert not strayed_links()


@pytest.mark.parametrize("words, reason", [
    (["--interfaces", "9"], "--interfaces '9': expected a number from 10 to 1000000"),
    (["--rate", "10k"], "--rate '10k': expected a number from 1 to 4999"),
    (["--size"], "--size '': expected a number from 64 to 1518"),
    (["--fast"], "option '--fast': expected "),
])
def test_usage_errors(words, reason):
    done = Done(*words)
    assert done.returncode == 2
    assert reason in done.stderr
    assert traces(done.id) == []


def test_unknown_run_cannot_be_stopped():
    done = Done("--stop", "999999999")
    assert done.returncode == 1
    assert "there is no run of this number" in done.stderr


def test_missing_programs_are_named(tmp_path):
    done = Done(env={**os.environ, "MAYFLY_BUILD": str(tmp_path)})
    assert done.returncode == 1
    assert f"{tmp_path} has no app/mayflyd/mayflyd" in done.stderr
    assert traces(done.id) == []
