# SPDX-License-Identifier: BSD-3-Clause
"""scripts/bench-kernel from outside: its numbers against what `ip` and `mayfly` really left, and what it leaves behind.

It runs with an `ip`, a `mayfly` and a `mayflyd` that do as the real ones and write down how many interfaces there are
after each command that changed them."""
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import time
from pathlib import Path

import pytest
from lab import GIVE_UP, MAYFLY, MAYFLYD, eventually

ROOT = Path(__file__).resolve().parents[2]
BENCH = ROOT / "scripts" / "bench-kernel"
PAIRS, NAMESPACES, ROUNDS = 7, 12, 2
SMALL = ("--pairs", str(PAIRS), "--namespaces", str(NAMESPACES), "--rounds", str(ROUNDS), "--seconds", "0.2")
SMALLEST = ("--pairs", "1", "--namespaces", "1", "--rounds", "1", "--seconds", "0.1", "--rate", "50")
WAYS = ("batch", "group", "netns")
SIDES = ("linux", "mayfly")
DEADLINE_S = 240

IP = """#!/bin/sh
{ip} "$@"
status=$?
case "$*" in
  -batch*create) echo "linux created $(grep -c '^link add' "$2") $({ip} -o link show | wc -l)" >> {log} ;;
  -batch*delete) echo "linux deleted 0 $({ip} -o link show | wc -l)" >> {log} ;;
  'link del group'*) echo "linux deleted 0 $({ip} -o link show | wc -l)" >> {log} ;;
  'netns del'*) echo "linux dropped 0 $({ip} netns list | grep -c dying)" >> {log} ;;
esac
exit $status
"""
MAYFLY_SHIM = """#!/bin/sh
{mayfly} "$@"
status=$?
count() {{ {mayfly} --socket "$2" -n "$4" -br link show 2> /dev/null | wc -l; }}
case "$*" in
  *-batch*create) echo "mayfly created $(grep -c '^link add' "$6") $(count "$@")" >> {log} ;;
  *-batch*delete) echo "mayfly deleted 0 $(count "$@")" >> {log} ;;
  *'link del group'*) echo "mayfly deleted 0 $(count "$@")" >> {log} ;;
  *'netns del'*) echo "mayfly dropped 0 $({mayfly} --socket "$2" netns list | grep -c dying)" >> {log} ;;
esac
exit $status
"""
MAYFLYD_SHIM = """#!/bin/sh
echo $$ > {log}.pid
exec {mayflyd} "$@"
"""


class Tools:
    """The programs that write down, in a build directory and a PATH of their own."""

    def __init__(self, directory: Path) -> None:
        self.build = directory / "build"
        self.log = directory / "log"
        self.log.touch()
        where = {"ip": shutil.which("ip"), "mayfly": MAYFLY, "mayflyd": MAYFLYD, "log": self.log}
        self.write(directory / "bin/ip", IP, where)
        self.write(self.build / "app/mayfly/mayfly", MAYFLY_SHIM, where)
        self.write(self.build / "app/mayflyd/mayflyd", MAYFLYD_SHIM, where)
        path = f"{directory}/bin:{os.environ['PATH']}"
        self.environment = {**os.environ, "PATH": path, "MAYFLY_BUILD": str(self.build)}

    @staticmethod
    def write(path: Path, text: str, where: dict) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.format(**where))
        path.chmod(0o755)

    def lines(self, side: str) -> list[tuple[str, int, int]]:
        """What happened, how many interfaces it was to make, how many there are."""
        words = [line.split() for line in self.log.read_text().splitlines()]
        return [(what, int(wanted), int(there)) for of, what, wanted, there in words if of == side]

    def check_daemon_gone(self) -> None:
        pid = Path(f"{self.log}.pid").read_text().strip()
        eventually(lambda: alive(int(pid)), False, "the daemon's end")
        assert not Path(os.environ.get("RUNTIME_DIRECTORY", "/var/run"), "dpdk", f"mayfly-{pid}").exists()


def start(*words: str, tools: Tools) -> subprocess.Popen:
    return subprocess.Popen([BENCH, *words], env=tools.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True)


def finish(bench: subprocess.Popen) -> tuple[str, str]:
    try:
        return bench.communicate(timeout=DEADLINE_S)
    except subprocess.TimeoutExpired:
        bench.terminate()
        raise


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0] != "Z"
    except OSError:
        return False


def descendants(pid: int) -> set[int]:
    found = set()
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            for child in map(int, children.read_text().split()):
                found |= {child} | descendants(child)
        except OSError:
            pass
    return found


def directories(pid: int) -> list[Path]:
    return list(Path(os.environ.get("TMPDIR", "/tmp")).glob(f"mayfly-bk-{pid}-*"))


def mounted_namespaces() -> str:
    """Names of network namespaces are mounts."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return "".join(line for line in lines if re.search(r" \S*/netns/(dying|churn|router|dp|a|b) ", line))


class Run:
    def __init__(self, directory: Path) -> None:
        self.tools = Tools(directory)
        self.json_path = directory / "figures.json"
        begin = time.monotonic()
        bench = start(*SMALL, "--json", str(self.json_path), tools=self.tools)
        self.pid = bench.pid
        self.stdout, self.stderr = finish(bench)
        self.seconds = time.monotonic() - begin
        assert bench.returncode == 0, self.stderr
        self.document = json.loads(self.json_path.read_text())
        self.rows = {row["key"]: row for row in self.document["rows"]}
        self.measured = self.document["measured"]


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    return Run(tmp_path_factory.mktemp("bench-kernel"))


@pytest.mark.parametrize("side", SIDES)
def test_every_interface_was_there_and_went(done, side):
    """By `ip link show` and `mayfly link show` after each command."""
    without_lo = 1 if side == "linux" else 0
    seen = done.tools.lines(side)
    created = [wanted for what, wanted, _ in seen if what == "created"]
    assert all(there - without_lo == 2 * wanted for what, wanted, there in seen if what == "created")
    assert all(there - without_lo == 0 for what, _, there in seen if what == "deleted")
    assert all(there == 0 for what, _, there in seen if what == "dropped")
    assert len(created) == sum(what in ("deleted", "dropped") for what, _, _ in seen)

    of = done.measured[side]
    quiet = [one["interfaces"] for way in WAYS for one in of[way]]
    assert quiet == [2 * PAIRS] * (len(WAYS) * ROUNDS)
    watched = sum(one["churned"] for way in WAYS for one in of[f"watch_{way}"])
    assert watched > 0
    warm_up = 2 * sum(created[: len(WAYS)])
    assert 2 * sum(created) == warm_up + sum(quiet) + watched


@pytest.mark.parametrize("side", SIDES)
def test_packets_against_the_kernels_count(done, side):
    for window in ("idle", *WAYS):
        for seen in done.measured[side][f"watch_{window}"]:
            flow = seen["flow"]
            assert flow["sent"] > 0
            assert flow["received"] + flow["duplicated"] == flow["received_by_kernel"]
            assert flow["lost"] == flow["sent"] - flow["received"] >= 0
            assert 0 < flow["p50_us"] <= flow["p99_us"] <= flow["max_us"]
            assert seen["client"]["requests"] > 0


def test_rows_follow_from_what_was_measured(done):
    for side in SIDES:
        of = done.measured[side]
        for way in WAYS:
            assert done.rows[f"{way}_deleted_per_s"][side]["values"] == [
                pytest.approx(one["interfaces"] / one["deleted_s"]) for one in of[way]]
            assert done.rows[f"{way}_gone_per_s"][side]["values"] == [
                pytest.approx(one["interfaces"] / (one["deleted_s"] + one["gone_s"])) for one in of[way]]
        assert [one["made"] for one in of["loop"]] == [NAMESPACES] * ROUNDS
        assert done.rows["loop_worst_ms"][side]["values"] == [pytest.approx(one["worst_s"] * 1e3) for one in of["loop"]]
        assert done.rows["watch_group_lost"][side]["values"] == [one["flow"]["lost"] for one in of["watch_group"]]
    for row in done.rows.values():
        for side in SIDES:
            assert len(row[side]["values"]) == ROUNDS
            assert row[side]["min"] == min(row[side]["values"]) and row[side]["max"] == max(row[side]["values"])
            assert row[side]["median"] == statistics.median(row[side]["values"])
        linux, mayfly = (row[side]["median"] for side in SIDES)
        if linux and mayfly:
            assert row["ratio"] == pytest.approx(mayfly / linux if row["better"] == "higher" else linux / mayfly)
        else:
            assert row["ratio"] is None


def test_times_fit_into_the_run(done):
    keys = ("created_s", "deleted_s", "gone_s", "seconds", "request_s")
    every = [one for side in SIDES for rounds in done.measured[side].values() for one in rounds]
    spent = sum(one.get(key, 0) for one in every for key in keys)
    assert 0 < spent < done.document["took_s"] < done.seconds


def test_table_says_the_same(done):
    cells = {cell[0]: cell[1:] for line in done.stdout.splitlines() if line.startswith("|")
             for cell in [[part.strip() for part in line.strip("|").split("|")]]}
    for row in done.rows.values():
        unit, linux, mayfly, ratio = cells[row["what"]]
        assert unit == row["unit"]
        for shown, side in ((linux, "linux"), (mayfly, "mayfly")):
            figures = [float(figure.replace(",", "")) for figure in shown.split(" / ")]
            assert figures == [pytest.approx(row[side][key], rel=0.01, abs=0.01) for key in ("min", "median", "max")]
        assert (ratio == "") == (row["ratio"] is None)
    kernel = os.uname().release
    assert f"kernel {kernel}" in done.stdout and done.document["machine"]["kernel"] == kernel
    for note in done.document["not_comparable"]:
        assert note in done.stdout
    assert len(re.findall(r"^round \d of \d: ", done.stderr, re.M)) == ROUNDS * len(SIDES) * len(done.measured["linux"])


def test_nothing_is_left(done):
    done.tools.check_daemon_gone()
    assert directories(done.pid) == []
    assert mounted_namespaces() == ""


def test_smallest_size_as_json(tmp_path):
    bench = start(*SMALLEST, "-j", tools=Tools(tmp_path))
    stdout, stderr = finish(bench)
    assert bench.returncode == 0, stderr
    document = json.loads(stdout)
    assert document["settings"] == {"pairs": 1, "namespaces": 1, "rounds": 1, "seconds": 0.1, "rate": 50}
    assert all(row[side]["median"] is not None for row in document["rows"] for side in SIDES
               if row["key"].endswith("_per_s") or row["key"].endswith("_ms"))


def batch_under_way(pid: int) -> bool:
    for child in descendants(pid):
        try:
            words = Path(f"/proc/{child}/cmdline").read_text().split("\0")
        except OSError:
            continue
        if "-batch" in words and "lines-create" in " ".join(words) and "--socket" not in words:
            return True
    return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_leaves_nothing(number, tmp_path):
    tools = Tools(tmp_path)
    # A batch on the kernel's side that takes a while.
    bench = start("--pairs", "1000", "--namespaces", "1", tools=tools)
    try:
        family = eventually(lambda: batch_under_way(bench.pid) and descendants(bench.pid), bool, "a long batch")
        assert len(family) > 7, "holder, runners, clock, probes, the daemon, and a command"
    finally:
        bench.send_signal(number)
    _, stderr = finish(bench)
    eventually(lambda: [pid for pid in family if alive(pid)], [], "processes that are left")
    tools.check_daemon_gone()
    assert mounted_namespaces() == ""
    if number == signal.SIGKILL:
        for directory in directories(bench.pid):
            shutil.rmtree(directory)
        return
    assert bench.returncode == 128 + number
    assert "interrupted; everything is taken away" in stderr and "Traceback" not in stderr
    assert directories(bench.pid) == []


@pytest.mark.parametrize("words, reason", [
    (["--pairs", "0"], "'0': expected a number from 1 to 10,000"),
    (["--rounds", "many"], "'many': expected a number from 1 to 1,000"),
    (["--seconds", "0"], "'0': expected a number from 0.1 to 600"),
    (["--fast"], "--fast"),
])
def test_usage_errors(words, reason):
    done = subprocess.run([BENCH, *words], capture_output=True, text=True, timeout=GIVE_UP, check=False)
    assert done.returncode == 2
    assert reason in done.stderr


def test_needs(tmp_path):
    def refused(*command) -> str:
        done = subprocess.run(command, env=Tools(tmp_path).environment, capture_output=True, text=True, timeout=GIVE_UP,
                              check=False)
        assert done.returncode == 1 and done.stdout == "" and len(done.stderr.splitlines()) == 1, done.stderr
        return done.stderr

    assert "must run as root" in refused("unshare", "-U", BENCH)
    assert f"{tmp_path} has no app/mayflyd/mayflyd" in refused(BENCH, "--build", tmp_path)
    no_more = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$0\""
    assert "user.max_user_namespaces" in refused("unshare", "-Ur", "sh", "-c", no_more, BENCH)
