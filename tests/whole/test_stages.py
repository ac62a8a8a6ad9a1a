# SPDX-License-Identifier: BSD-3-Clause
"""`mayfly stats stages`: what the stages of a running daemon were given is what was sent, and only while it is on."""

import pytest

from frames import arp_request, echo, routed, udp
from lab import eventually

# Stages that every packet forwarded from p0 to p1 meets once.
FORWARDED = ("rx", "classify", "input", "check_sources", "look_up", "route", "neighbour", "encapsulate", "tx", "tx_count",
             "loop")


@pytest.fixture(scope="module")
def router(shared_lab):
    netns = shared_lab.netns("router")
    hosts = [shared_lab.raw_host(f"host{n}", netns, f"d{n}") for n in range(2)]
    daemon = shared_lab.daemon(netns, {f"p{n}": f"net_af_packet{n},iface=d{n}" for n in range(2)})
    daemon.batch(*[f"addr add 10.{n}.0.1/24 dev p{n}" for n in range(2)],
                 *[f"neigh add 10.{n}.0.2 lladdr {hosts[n].mac} dev p{n}" for n in range(2)])
    return daemon, hosts, [daemon.link(f"p{n}")["address"] for n in range(2)]


def packets(document):
    return {stage["stage"]: stage["packets"] for stage in document["stages"] if stage["packets"] != 0}


def forward(router, count):
    _, (left, right), macs = router
    frames = [udp(macs[0], left.mac, "10.0.0.2", "10.1.0.2", id=number) for number in range(count)]
    left.send(*frames)
    right.expect(*[routed(frame, right.mac, macs[1]) for frame in frames])


@pytest.mark.sanitizer
def test_counts_are_those_of_what_was_sent(router):
    daemon, (left, right), macs = router
    assert "off" in daemon("stats stages") and not daemon.json("stats stages")["on"]
    forward(router, 10)
    assert packets(daemon.json("stats stages")["all"]) == {}, "off, which it is at first, counts nothing"

    daemon("stats stages on")
    forward(router, 200)
    left.send(*[arp_request(left.mac, "10.0.0.2", "10.0.0.1") for _ in range(7)])
    right.send(*[echo(macs[1], right.mac, "10.1.0.2", "10.1.0.1") for _ in range(5)])
    expected = dict.fromkeys(FORWARDED, 200)
    for stage in ("rx", "loop", "classify", "input", "encapsulate", "tx", "tx_count"):
        expected[stage] += 7 + 5
    expected.update(check_sources=205, look_up=210, route=210, neighbour=205, local=5)
    shown = eventually(lambda: daemon.json("stats stages"), lambda seen: packets(seen["all"]) == expected, "the counts")
    for host, answers in ((left, 7), (right, 5)):
        for _ in range(answers):
            assert host.receive() is not None

    (worker,) = shown["workers"]
    assert worker["worker"] == 0 and worker["received"] == 212 and packets(worker) == expected
    assert {key: shown["all"][key] for key in shown["all"]} == {key: worker[key] for key in shown["all"]}
    for stage in worker["stages"]:
        if stage["packets"] == 0:
            assert stage["clocks_per_packet"] is None
            continue
        assert 1 <= stage["packets_per_vector"] == stage["packets"] / stage["vectors"] <= 64 * 2, stage
        assert stage["clocks"] > 0 and stage["clocks_per_packet"] == stage["clocks"] / stage["packets"], stage
        assert stage["clocks_per_vector"] == stage["clocks"] / stage["vectors"], stage
    by_name = {stage["stage"]: stage for stage in worker["stages"]}
    assert by_name["idle"]["vectors"] > 0 and by_name["idle"]["clocks"] <= worker["idle_clocks"]
    assert worker["clocks"] == sum(stage["clocks"] for stage in worker["stages"])
    assert worker["clocks"] <= shown["clock_hz"] * (shown["counted_ns"] / 1e9 + 1)
    assert sum(stage["share_percent"] or 0 for stage in worker["stages"]) == pytest.approx(100)
    work = sum(stage["clocks"] for stage in worker["stages"]
               if stage["stage"] not in ("idle", "messages", "housekeeping"))
    bursts = by_name["rx"]["clocks"] + by_name["tx"]["clocks"]
    assert worker["clocks_per_packet"] == pytest.approx(work / 212)
    assert worker["clocks_per_packet_outside_bursts"] == pytest.approx((work - bursts) / 212)


def test_off_reset_and_on_again(router):
    daemon, _, _ = router
    daemon("stats stages on")
    daemon("stats stages reset")
    forward(router, 20)
    once = dict.fromkeys(FORWARDED, 20)
    eventually(lambda: packets(daemon.json("stats stages")["all"]), once, "counts after the reset")
    text = daemon("stats stages")
    lines = [line.split() for line in text.splitlines()]
    assert ["worker", "0", "vectors", "packets", "packets/vector", "clocks/packet", "clocks/vector", "share"] in lines
    assert [line[2] for line in lines if line[:1] == ["look_up"]] == ["20"]
    assert "20 packets received, clocks per packet: " in text and "outside rx and tx bursts" in text
    assert "look_up6" not in text and "look_up6" in daemon("-d stats stages")
    assert lines[-1][0] == "on,"

    daemon("stats stages off")
    forward(router, 5)
    # A loop that had begun before may have counted some of them.
    still = packets(daemon.json("stats stages")["all"])
    forward(router, 30)
    kept = daemon.json("stats stages")
    assert not kept["on"] and packets(kept["all"]) == still
    assert kept["counted_ns"] == daemon.json("stats stages")["counted_ns"]
    assert daemon("stats stages").splitlines()[-1].startswith("off, ")

    daemon("stats stages on")
    forward(router, 3)
    eventually(lambda: packets(daemon.json("stats stages")["all"]), dict.fromkeys(FORWARDED, 3), "counts from nothing")
    daemon("stats stages off")


def test_bad_words(router):
    daemon, _, _ = router
    daemon.refuse("stats stages frog", "unknown word 'frog': expected on, off or reset", status=2)
    daemon.refuse("stats stages on now", "unknown word 'now'", status=2)
    daemon.refuse("stats stages reset off", "unknown word 'off'", status=2)
    assert not daemon.json("stats stages")["on"]
