# SPDX-License-Identifier: BSD-3-Clause
"""Reports for the tests of the report page. Nothing in them was measured: each value follows from a formula, so that a
test can say what the page must show."""
import math

SECOND = 1_000_000_000
KINDS = ("create", "delete")
COLUMNS = ("at_ns", "rx_pps", "tx_pps", "drops_pps", "lost", "latency_p50_ns", "latency_p99_ns", "latency_p999_ns",
           "latency_max_ns", "grace_p50_ns", "grace_p99_ns", "backlog_objects", "backlog_bytes", "rss_bytes", "interfaces")


def empty() -> dict:
    """The least that is a report."""
    return {"run": "churn", "version": "0.1.0", "started": "2026-01-02T03:04:05Z", "command": "mayfly-perf churn",
            "machine": {"cpus": 2, "model": "made up", "kernel": "6.18", "hugepages": False, "tsc_hz": 2_100_000_000,
                        "notes": []},
            "settings": {}, "results": [], "facts": [], "series": {"columns": ["at_ns"], "rows": []}, "marks": [],
            "histograms": [], "stages": []}


def wave(number: int, period: float) -> float:
    """Between -1 and 1, rough enough to look like samples."""
    return 0.7 * math.sin(number * 2 * math.pi / period) + 0.3 * math.sin(number * 2.399963 * 5)


def marks(seconds: float, rounds: int) -> list[dict]:
    """Quiet for a quarter of the run, then rounds of a create, a pause and a delete."""
    quiet = seconds / 4
    found = [{"from_ns": 0, "until_ns": int(quiet * SECOND), "what": "quiet", "kind": "quiet"}]
    length = (seconds - quiet) / rounds
    for number in range(rounds):
        start = quiet + number * length
        for place, kind in enumerate(KINDS):
            begin = start + length * (0.1 + 0.5 * place)
            found.append({"from_ns": int(begin * SECOND), "until_ns": int((begin + 0.3 * length) * SECOND),
                          "what": f"{kind} 50,000", "kind": kind})
    return found


def row(number: int, at_ns: int, busy: str | None) -> list:
    share = 1.0 if busy else 0.0
    median = 9_000 * (1 + 0.2 * share) * (1 + 0.05 * wave(number, 37))
    backlog = int(48_000 * (0.6 + 0.4 * wave(number, 11))) if busy == "delete" else 0
    grace = [None, None] if busy is None else [14_000 * (1 + 0.3 * wave(number, 13)), 230_000 * (1 + 0.5 * wave(number, 17))]
    return [at_ns, 5_200_000 * (1 - 0.03 * share + 0.004 * wave(number, 29)),
            5_200_000 * (1 - 0.03 * share + 0.004 * wave(number, 29)), 1_200 * max(0.0, wave(number, 41)) * share, 0,
            median, median * 2.4, median * (7 + 3 * share), median * (25 + 60 * share * abs(wave(number, 7))), *grace,
            backlog, backlog * 416, int((185 + 21 * share) * 2**20 + 2**18 * wave(number, 53)),
            100_000 + (50_000 if busy else 0)]


def histogram(label: str, typical_ns: float, tail: float) -> dict:
    """Buckets 1/32 wide as the tool has them, empty ones left out: a bell on the log axis and a thin tail."""
    buckets = []
    for exponent in range(10, 23):
        for part in range(32):
            upper = (32 + part + 1) * 2**(exponent - 5) - 1
            away = math.log(upper / typical_ns)
            share = math.exp(-away * away / 0.05) * 2_000_000 + tail * max(0.0, math.exp(-abs(away - 1.5) * 2.2) - 0.002)
            count = int(share * 32 / (32 + part))
            if count > 0:
                buckets.append([upper, count])
    return {"name": "latency", "label": label, "unit": "ns", "buckets": buckets}


def survive(samples: int = 200, seconds: float = 20, rounds: int = 4) -> dict:
    """A run of which everything is there."""
    report = empty()
    bands = marks(seconds, rounds)
    rows = []
    for number in range(samples):
        at_ns = int((number + 1) * seconds * SECOND / samples)
        busy = next((mark["kind"] for mark in bands[1:] if mark["from_ns"] <= at_ns <= mark["until_ns"]), None)
        rows.append(row(number, at_ns, busy))
    report.update({
        "run": "survive",
        "command": f"mayfly-perf survive --interfaces 100000 --churn 50000 --duration {seconds:g} --report out/",
        "settings": {"interfaces": 100_000, "churn": 50_000, "kind": "vlan", "packet_size": 64, "traffic": "net_ring",
                     "duration_s": seconds, "dressed": True, "socket": None},
        "results": [
            {"name": "create_rate", "label": "created", "unit": "interfaces/s", "phase": "bulk, bare", "count": 10,
             "min": 812_345, "median": 1_282_912, "p99": 1_391_871, "p999": 1_391_871, "max": 1_391_871},
            {"name": "delete_rate", "label": "deleted", "unit": "interfaces/s", "phase": "bulk, bare", "count": 10,
             "min": 3_024_743, "median": 3_232_794, "p99": 3_882_626, "p999": 3_882_626, "max": 3_882_626},
            {"name": "latency", "label": "latency", "unit": "ns", "phase": "quiet", "count": 12_345_678,
             "min": 812, "median": 9_021, "p99": 21_503, "p999": 62_976, "max": 240_123},
            {"name": "latency", "label": "latency", "unit": "ns", "phase": "churn", "count": 37_012_345,
             "min": 790, "median": 10_815, "p99": 27_647, "p999": 102_400, "max": 3_410_000},
            {"name": "first_create", "label": "first create during a teardown", "unit": "ns", "count": 0,
             "min": None, "median": None, "p99": None, "p999": None, "max": None},
            {"name": "bytes", "label": "memory of an interface", "unit": "B", "count": 10,
             "min": 279, "median": 281.5, "p99": 329, "p999": 329, "max": 329},
        ],
        "facts": [{"name": "sent", "label": "packets sent", "value": 104_000_000, "unit": "packets"},
                  {"name": "lost", "label": "packets lost", "value": 0, "unit": "packets"},
                  {"name": "kept", "label": "throughput, of quiet", "value": 97.1, "unit": "%"},
                  {"name": "rss_kept", "label": "memory kept", "value": 131_072, "unit": "B"}],
        "series": {"columns": list(COLUMNS), "rows": rows},
        "limits": {"backlog_objects": 1_000_000, "backlog_bytes": 24 * 2**20},
        "marks": bands,
        "histograms": [histogram("latency, quiet", 9_000, 3_000), histogram("latency, churn", 10_800, 40_000)],
        "stages": [{"stage": name, "packets": 104_000_000 - 1_000 * place, "vectors": 1_700_000 + 11_000 * place,
                    "clocks": 104_000_000 * clocks}
                   for place, (name, clocks) in enumerate([("rx", 31), ("classify", 20), ("input", 9), ("lookup", 33),
                                                           ("route", 9), ("neighbour", 7), ("encapsulate", 9), ("tx", 28)])],
    })
    report["machine"]["notes"] = ["2 CPUs are shared with other processes", "no hugepages: tables are on 4 KiB pages"]
    return report
