# SPDX-License-Identifier: BSD-3-Clause
"""mayfly-perf at small sizes: what it prints is compared with what others counted."""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time

import jsonschema
import pytest
from frames import udp
from lab import BUILD, GIVE_UP, ROOT, eventually

PERF = BUILD / "app/mayfly-perf/mayfly-perf"
SCHEMA = json.loads((ROOT / "docs/perf-report.schema.json").read_text())
EAL = pathlib.Path("/var/run/dpdk")


@contextlib.contextmanager
def started(*words, netns=None):
    """The running tool; afterwards it has ended, and nothing of it is left."""
    inside = ["ip", "netns", "exec", netns] if netns else []
    with tempfile.TemporaryDirectory(prefix="mf-test-perf-") as folder:
        process = subprocess.Popen([*inside, str(PERF), *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, env={**os.environ, "TMPDIR": folder})
        try:
            yield process
            assert process.poll() is not None
            assert not os.listdir(folder)
            assert not (EAL / f"mayfly-{process.pid}").exists()
        finally:
            if process.poll() is None:
                process.kill()
            process.communicate()


def perf(*words, netns=None, status=0):
    with started(*words, netns=netns) as process:
        out, errors = process.communicate(timeout=GIVE_UP)
    assert process.returncode == status, (out, errors)
    return out, errors


def report_of(*words, netns=None):
    out, errors = perf(*words, "--stats-period", "0s", "--json", "-", netns=netns)
    report = json.loads(out)
    jsonschema.validate(report, SCHEMA)
    report["fact"] = {fact["name"]: fact["value"] for fact in report["facts"]}
    report["result"] = {(result["name"], result.get("phase", "")): result for result in report["results"]}
    # The summary for people has every number, too.
    for result in report["results"]:
        assert result["label"] in errors
    for fact in report["facts"]:
        assert fact["label"] in errors
    return report


@pytest.mark.parametrize("kind, each", [("vlan", 1), ("dummy", 1), ("veth", 2), ("netns", 1)])
def test_churn_of_a_running_daemon(lab, kind, each):
    """Every interface that it says it deleted was reclaimed by the daemon, and nothing else is gone or left."""
    daemon = lab.daemon(lab.netns("router"), {"p0": "net_null0,no-rx=1"})
    daemon("link add keep link p0 group 5 type vlan id 5")
    links = daemon.json("link show")
    resources = daemon.resources()
    before = daemon.json("reclaim show")["retired"]
    count, rounds = 300, 2
    report = report_of("churn", "--socket", daemon.socket_path, "--interfaces", count, "--rounds", rounds, "--kind", kind,
                       "--bare")
    ways = ["batch", "single"] if kind == "netns" else ["bulk", "batch", "single"]
    for way in ways:
        for name in ("create_rate", "delete_rate", "reclaim_time", "first_create_time", "bytes_each"):
            result = report["result"][name, f"{way}, bare"]
            assert result["count"] == rounds
            assert result["min"] <= result["median"] <= result["max"]
        created = report["result"]["create_rate", f"{way}, bare"]
        spent = report["result"]["create_time", f"{way}, bare"]
        assert created["max"] == pytest.approx(count * 1e9 / spent["min"])
    # A round is count objects and the one made again at once; the first round of each way is not counted.
    retired = daemon.json("reclaim show")["retired"] - before
    assert retired >= len(ways) * (rounds + 1) * (count + 1) * each
    assert daemon.json("link show") == links
    assert daemon.resources() == resources
    assert [mark["kind"] for mark in report["marks"]] == ["create", "delete"] * len(ways) * (rounds + 1)


@pytest.mark.sanitizer
def test_churn_in_a_daemon_of_its_own():
    report = report_of("churn", "--interfaces", 500, "--rounds", 1, "--ways", "bulk,batch")
    assert set(phase for name, phase in report["result"] if name == "create_rate") == {
        "bulk, bare", "bulk, dressed", "batch, bare", "batch, dressed"}
    assert report["result"]["other_request", ""]["count"] > 0


def test_churn_leaves_interfaces_of_others_alone(lab):
    daemon = lab.daemon(lab.netns("router"), {"p0": "net_null0,no-rx=1"})
    daemon("link add mine link p0 group 7001 type vlan id 7")
    _, errors = perf("churn", "--socket", daemon.socket_path, "--interfaces", 10, status=1)
    assert "interfaces of group 7001 are there already" in errors
    assert daemon.link("mine")
    assert "no port of this name" in perf("churn", "--socket", daemon.socket_path, "--link", "p9", status=1)[1]


@pytest.mark.sanitizer
@pytest.mark.parametrize("words", [["--size", "imix", "--order", "random"], ["--family", "6", "--size", "78"]])
def test_forward_with_devices_of_its_own(words):
    report = report_of("forward", "--interfaces", 200, "--duration", "400ms", *words)
    fact = report["fact"]
    assert fact["rx_packets"] > 0
    assert fact["drops"] == fact["balance_difference"] == 0
    stages = {stage["stage"]: stage for stage in report["stages"]}
    # Counted over nearly the same time by the workers and by the stages: everything that came was classified.
    assert stages["classify"]["packets"] == pytest.approx(fact["rx_packets"], rel=0.2)
    clocks = report["result"]["clocks_per_packet", ""]["median"]
    assert 0 < report["result"]["clocks_outside_bursts", ""]["median"] < clocks


@pytest.mark.sanitizer
def test_forward_counts_what_is_on_the_wire(lab):
    """Traffic from outside: the receiver's count is the report's."""
    netns = lab.netns("router")
    sender, receiver = lab.raw_host("a", netns, "d0"), lab.raw_host("b", netns, "d1")
    with started("forward", "-a", "net_af_packet0,iface=d0", "-a", "net_af_packet1,iface=d1", "--interfaces", 4,
                 "--duration", "4s", "--stats-period", "0s", "--idle", "adaptive", "--json", "-", netns=netns) as process:
        told = ""
        while (mac := re.search(r"sent to ([0-9a-f:]{17})[^:]*:\n(.*)\n", told)) is None:
            line = process.stderr.readline()
            assert line, told
            told += line
        assert "tags 1.1 to 10.128.0.1  ..  tags 1.2 to 10.128.0.2" in mac[2]
        wanted = udp(mac[1], sender.mac, "198.18.0.1", "10.128.0.2", tags=(1, 1))
        tries = 0

        def forwarded():
            nonlocal tries
            sender.send(wanted)
            tries += 1
            return receiver.receive(0.1) is not None

        eventually(forwarded, True, "the first packet")
        time.sleep(1)  # it warms up before it counts
        for _ in range(100):
            sender.send(wanted)
            assert receiver.receive() is not None
        out, errors = process.communicate(timeout=GIVE_UP)
    assert process.returncode == 0, errors
    report = json.loads(out)
    facts = {fact["name"]: fact["value"] for fact in report["facts"]}
    assert facts["drops"] == facts["balance_difference"] == 0
    # What was sent until the first came through may have come before it counted.
    assert 100 <= facts["tx_packets"] == facts["rx_packets"] <= 100 + tries


@pytest.mark.sanitizer
def test_survive(tmp_path):
    report = report_of("survive", "--interfaces", 20, "--churn", 200, "--duration", "1200ms", "--probe-rate", 2000,
                       "--report", tmp_path / "out")
    fact = report["fact"]
    assert fact["probe_sent"] > 0
    assert fact["probe_received"] == fact["probe_sent"]
    assert fact["lost"] == fact["reordered"] == fact["duplicated"] == fact["drops"] == fact["balance_difference"] == 0
    assert fact["churned"] >= 3 * 200
    whats = [mark["what"] for mark in report["marks"]]
    assert whats.count("quiet") == whats.count("churn") == 3
    assert whats.count("create 200") == whats.count("delete 200") == fact["churned"] / 200
    assert sum(count for histogram in report["histograms"] for _, count in histogram["buckets"]) == fact["probe_sent"]
    assert sum(report["result"]["latency", phase]["count"] for phase in ("quiet", "churn")) == fact["probe_sent"]
    written = json.loads((tmp_path / "out/report.json").read_text())
    assert written["facts"] == report["facts"]
    assert "</html>" in (tmp_path / "out/index.html").read_text()


@pytest.mark.parametrize("name", ["ipoe-1to1", "lns-flap", "k8s-node", "vpn-hub"])
def test_scenario(tmp_path, name):
    """Each workload at a hundredth of its size and time: nobody is lost, and everything is back in the end."""
    text = (ROOT / f"config/scenarios/{name}.yaml").read_text()
    for size, small in ((r"inner 1-(?:1000|2500)\b", "inner 1-10"), (r"inner: 1-(?:1000|2500)\b", "inner: 1-10"),
                        (r"sessions: \d+", "sessions: 480"), (r"(duration|after|every): (\d+)s", r"\1: \g<2>00ms"),
                        (r"(every|after): \d{3}ms\n    times: \d+", r"\1: 100ms\n    times: 2"), (r"expect: .*", "expect: {lost: 0}")):
        text = re.sub(size, small, text)
    file = tmp_path / "small.yaml"
    file.write_text(text)
    report = report_of("scenario", file, "--idle", "adaptive", "--probe-rate", 1000)
    fact = report["fact"]
    assert fact["expectations_missed"] == fact["lost"] == fact["balance_difference"] == 0
    assert fact["probe_received"] == fact["probe_sent"] > 0
    assert any(name == "flap_line" for name, _ in report["result"])


def test_interrupted_run_leaves_nothing():
    with started("churn", "--interfaces", 2000, "--rounds", 100000, "--ways", "bulk", "--stats-period",
                 "100ms") as process:
        assert "interfaces" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=GIVE_UP)
    assert process.returncode == 1, errors
    assert "interrupted" in out


@pytest.mark.parametrize("words, status, said", [
    (["forward", "-a", "net_af_packet0,iface=nope", "-a", "net_null1"], 1, ["nope"]),
    (["forward", "-a", "0000:ff:1f.7", "-a", "net_null1"], 1, ["0000:ff:1f.7"]),
    (["churn", "--socket", "/nowhere/mayfly.sock"], 1, ["/nowhere/mayfly.sock"]),
    (["churn", "--json", "/nowhere/x.json", "--interfaces", "10", "--rounds", "1"], 1, ["/nowhere/x.json"]),
    (["forward", "-l", "0,1023", "--duration", "100ms"], 1, ["1023"]),
    (["fly"], 2, ["expected one of churn, forward, survive, scenario"]),
])
def test_bad_input(words, status, said):
    _, errors = perf(*words, status=status)
    for word in said:
        assert word in errors
    assert "terminate" not in errors
