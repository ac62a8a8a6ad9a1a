# SPDX-License-Identifier: BSD-3-Clause
"""`link bulk add`, `link bulk del` and `link del SELECTOR`: names, ranges, counts, and that they do all or nothing."""

import json
import re

import pytest

from lab import eventually


def tags(mayfly, selector="type vlan"):
    return {link["ifname"]: (link["linkinfo"]["info_data"]["id"], link["linkinfo"]["info_data"].get("inner"))
            for link in mayfly.json(f"link show {selector}")}


def unchanged(mayfly):
    return mayfly.count(), mayfly.json("link show"), mayfly.json("addr show"), mayfly.json("route show")


# Names, ranges, counts


@pytest.mark.sanitizer
def test_the_last_range_varies_fastest(mayfly):
    answer = mayfly.json("link bulk add name 'sub{}' link port0 group 4 up type vlan id 10-12 inner 1-2")
    assert {key: answer[key] for key in ("matched", "created", "failed", "failures", "dry_run")} == {
        "matched": 6, "created": 6, "failed": 0, "failures": [], "dry_run": False}
    assert answer["duration_ns"] > 0
    assert tags(mayfly) == {"sub0": (10, 1), "sub1": (10, 2), "sub2": (11, 1), "sub3": (11, 2), "sub4": (12, 1),
                            "sub5": (12, 2)}
    for link in mayfly.json("link show type vlan"):
        assert link["group"] == "4" and link["operstate"] == "UP" and link["link"] == "port0"


@pytest.mark.parametrize("pattern,words,expected", [
    ("sub{}", "id 5-7", ["sub0", "sub1", "sub2"]),
    ("sub%d", "id 5-7", ["sub0", "sub1", "sub2"]),
    ("s{n}x", "id 5-6", ["s0x", "s1x"]),
    ("s{n:06}", "id 5-6", ["s000000", "s000001"]),
    ("{parent}.{outer}", "id 5-6", ["port0.5", "port0.6"]),
    ("{outer}.{inner}", "id 5 inner 8-9", ["5.8", "5.9"]),
    ("x{outer}-{n:02}", "id 4094 inner 4093-4094", ["x4094-00", "x4094-01"]),
    (None, "id 5-6", ["port0.5", "port0.6"]),
    (None, "id 5 inner 1-2", ["port0.5.1", "port0.5.2"]),
])
def test_names(mayfly, pattern, words, expected):
    mayfly(["link", "bulk", "add", *(["name", pattern] if pattern else []), "link", "port0", "type", "vlan",
            *words.split()])
    assert mayfly.names("type vlan") == expected


def test_count(mayfly):
    mayfly("link bulk add count 3 name a{} link port0 type vlan id 1-100 inner 1-2")
    assert tags(mayfly) == {"a0": (1, 1), "a1": (1, 2), "a2": (2, 1)}
    mayfly("link bulk add count 4 name d{} mtu 9000 type dummy")
    assert [(link["ifname"], link["mtu"]) for link in mayfly.json("link show type dummy")] == [
        (f"d{n}", 9000) for n in range(4)]
    assert len({link["address"] for link in mayfly.json("link show type dummy")}) == 4
    text = mayfly("link bulk add count 1 name one link port0 type vlan id 9")
    assert re.fullmatch(r"link bulk add: matched 1 created 1 failed 0 in \S+ \S+\n", text), text


@pytest.mark.parametrize("words,status,texts", [
    ("name x link port0 type vlan id 1-2", 1, ["'x'", "{}"]),
    ("name x{} link port0 type vlan id 0-2", 1, ["vlan id", "1..4094"]),
    ("name x{} link port0 type vlan id 1-4095", 1, ["4095", "1..4094"]),
    ("name x{} link port0 type vlan id 1-70000", 1, ["70000", "1..4094"]),
    ("name x{} link port0 type vlan id 5-1", 2, ["5-1"]),
    ("name x{} link port0 type vlan id 1-x", 2, ["x"]),
    ("name x{} link nope type vlan id 1-2", 1, ["nope"]),
    ("name x{} type vlan id 1-2", 2, ["link PARENT"]),
    ("name x{} link port0 type vlan", 2, ["id"]),
    ("name x{} link port0 type vlan id 7", 2, ["count"]),
    ("count 3 name x{} link port0 type vlan id 1-2", 1, ["count 3", "2"]),
    ("count 0 name x{} link port0 type vlan id 1-2", 1, ["count", "0"]),
    ("count 5000000 name x{} type dummy", 1, ["5000000"]),
    ("name 'x{' link port0 type vlan id 1-2", 1, ["x{"]),
    ("name 'x{colour}' link port0 type vlan id 1-2", 1, ["colour", "{outer}"]),
    ("name 'x/{}' link port0 type vlan id 1-2", 1, ["x/0", "'/'"]),
    ("name 'much.too.long..{}' link port0 type vlan id 1-2", 1, ["15"]),
    ("name x{} link port0 mtu 9000 type vlan id 1-2", 1, ["9000", "1500"]),
    ("name x{} link port0 mtu 67 type vlan id 1-2", 1, ["67"]),
    ("name x{} link port0 address 02:00:00:00:00:01 type vlan id 1-2", 2, ["address"]),
    ("count 2 name x{} link port0 type vlan id 1", 1, ["vlan id 1", "x0"]),
    ("count 2 name x{} type port", 2, ["port"]),
])
def test_bulk_add_is_refused(mayfly, words, status, texts):
    before = unchanged(mayfly)
    mayfly.refuse(f"link bulk add {words}", *texts, status=status)
    assert unchanged(mayfly) == before


# All or nothing


@pytest.mark.sanitizer
@pytest.mark.parametrize("conflict,texts", [
    ("link add sub500 link port1 type vlan id 1", ["sub500", "exists"]),
    ("link add other link port0 type vlan id 3 inner 77", ["vlan id 3 inner 77", "other"]),
], ids=["name", "tag"])
def test_a_conflict_in_the_middle_changes_nothing(mayfly, conflict, texts):
    mayfly(conflict)
    before = unchanged(mayfly)
    bulk = "link bulk add name 'sub{}' link port0 up type vlan id 1-10 inner 1-100"
    mayfly.refuse(bulk, *texts, "nothing was changed")
    assert unchanged(mayfly) == before
    dry = mayfly.cli("-j " + bulk + " --dry-run")
    assert '"failed":1' in dry.out and unchanged(mayfly) == before
    # With -force what can be made is made, and the exit status still tells.
    answer = mayfly.refuse("-force " + bulk)
    assert re.search(r"matched 1000 created 999 failed 1 ", answer.out), answer.out
    assert mayfly.count("type vlan") == 1000
    # What was claimed and given back is free for others.
    mayfly("link del type vlan")
    assert mayfly(bulk).startswith("link bulk add: matched 1000 created 1000 failed 0 in ")


def test_force_reports_the_first_ten_failures(mayfly):
    mayfly("link bulk add name 'sub{}' link port1 type vlan id 1-20")
    answer = mayfly.cli("-j -force link bulk add name 'sub{}' link port0 type vlan id 1-30")
    result = json.loads(answer.out)
    assert answer.status == 1
    assert (result["matched"], result["created"], result["failed"]) == (30, 10, 20)
    assert [failure["ifname"] for failure in result["failures"]] == [f"sub{n}" for n in range(10)]
    assert all(failure["errno"] == 17 and failure["text"] for failure in result["failures"])
    text = mayfly.cli("-force link bulk add name 'sub{}' link port0 type vlan id 1-30").out
    assert "failed 30" in text and "and 20 more" in text


@pytest.mark.sanitizer
def test_dry_run_changes_nothing(mayfly):
    before = unchanged(mayfly)
    answer = mayfly.json("link bulk add name 'sub{}' link port0 type vlan id 1-100 --dry-run")
    assert (answer["matched"], answer["created"], answer["failed"], answer["dry_run"]) == (100, 100, 0, True)
    assert unchanged(mayfly) == before
    mayfly("link bulk add name 'sub{}' link port0 group 3 type vlan id 1-100")
    before = unchanged(mayfly)
    for words, matched in (("link del group 3 --dry-run", 100), ("link del vlan 1-10 --dry-run", 10),
                           ("link bulk del name 'sub{}' count 7 --dry-run", 7), ("link del sub5 --dry-run", 1)):
        answer = mayfly.json(words)
        assert (answer["matched"], answer["deleted"], answer["failed"]) == (matched, matched, 0), words
        assert "(dry run: nothing changed)" in mayfly(words)
        assert unchanged(mayfly) == before, words
    answer = mayfly.json("link bulk del - --dry-run", stdin="sub1 sub2")
    assert answer["deleted"] == 2 and unchanged(mayfly) == before


# bulk del


@pytest.mark.sanitizer
def test_bulk_del_by_pattern(mayfly):
    mayfly("link bulk add name 'sub{}' link port0 type vlan id 1-100")
    text = mayfly("link bulk del name 'sub{}' count 40")
    assert re.fullmatch(r"link bulk del: matched 40 deleted 40 failed 0 in \S+ \S+; \S+ \S+ to reclaim \(reclaim wait\)\n",
                        text), text
    assert mayfly.names("type vlan") == [f"sub{n}" for n in range(40, 100)]
    before = unchanged(mayfly)
    mayfly.refuse("link bulk del name 'sub{}' count 60", "sub0", "does not exist", "nothing was changed")
    assert unchanged(mayfly) == before
    answer = mayfly.refuse("-force link bulk del name 'sub{}' count 60")
    assert "deleted 20 failed 40" in answer.out
    assert mayfly.count("type vlan") == 40
    for words in ("link bulk del name 'sub{}'", "link bulk del count 4", "link bulk del", "link bulk del nonsense"):
        mayfly.refuse(words, status=2)


@pytest.mark.sanitizer
def test_bulk_del_of_names_on_standard_input(mayfly):
    mayfly("link bulk add name 'sub{}' link port0 type vlan id 1-4000 inner 1-3")
    names = " \n\t".join(f"sub{n}" for n in range(10000))
    answer = mayfly.json("link bulk del -", stdin=names)
    assert (answer["matched"], answer["deleted"], answer["failed"]) == (10000, 10000, 0)
    assert mayfly.count("type vlan") == 2000
    before = unchanged(mayfly)
    mayfly.refuse("link bulk del -", "nope", "nothing was changed", stdin="sub11000 nope sub11001")
    mayfly.refuse("link bulk del -", "port0", "nothing was changed", stdin="sub11000 port0")
    assert unchanged(mayfly) == before
    answer = mayfly.refuse("-force link bulk del -", stdin="sub11000 nope sub11001")
    assert "deleted 2 failed 1" in answer.out
    assert mayfly.json("link bulk del -", stdin="\n")["matched"] == 0


def test_a_name_listed_twice(mayfly):
    """The interface cannot be deleted twice; which of the two readings is taken, nothing breaks."""
    mayfly("link bulk add name 'sub{}' link port0 type vlan id 1-3")
    before = unchanged(mayfly)
    answer = mayfly.cli("link bulk del -", stdin="sub0 sub1 sub0")
    assert answer.status in (0, 1)
    if answer.status == 1:
        assert unchanged(mayfly) == before
        assert "sub0" in answer.err
    else:
        assert mayfly.names("type vlan") == ["sub2"]


@pytest.mark.sanitizer
@pytest.mark.parametrize("selector,expected", [
    ("group 2", 30),
    ("parent port1", 20),
    ("type vlan", 70),
    ("vlan 1-10", 30),
    ("vlan 11", 1),
    ("vlan 1-5 inner 1-2", 10),
    ("parent port0 vlan 10-12", 3),
    ("group 2 vlan 12 parent port0", 1),
    ("type vlan down", 40),
    ("type vlan up", 30),
])
def test_delete_by_selector(mayfly, selector, expected):
    mayfly("link bulk add name a{} link port0 type vlan id 1-10")
    mayfly("link bulk add name b{} link port1 type vlan id 1-5 inner 1-4")
    mayfly("link bulk add name c{} link port0 group 2 up type vlan id 11-40")
    mayfly("link bulk add name d{} link port0 group 3 type vlan id 101 inner 1-10")
    others = set(mayfly.names("type vlan")) - set(mayfly.names(selector))
    assert mayfly.count(selector) == expected
    answer = mayfly.json(f"link del {selector}")
    assert (answer["matched"], answer["deleted"], answer["failed"]) == (expected, expected, 0)
    assert answer["to_reclaim_bytes"] > 0
    assert set(mayfly.names("type vlan")) == others


def test_a_selector_takes_the_children_too(mayfly):
    mayfly("link bulk add name o{} link port0 group 5 type vlan id 1-3")
    mayfly("link bulk add name i{} link o1 group 6 type vlan id 1-20")
    answer = mayfly.json("link del group 5")
    assert (answer["matched"], answer["deleted"]) == (23, 23)
    assert mayfly.count("type vlan") == 0


def test_selector_with_a_port_in_it_changes_nothing(mayfly):
    mayfly("link set port1 group 8")
    mayfly("link bulk add name v{} link port0 group 8 type vlan id 1-10")
    before = unchanged(mayfly)
    mayfly.refuse("link del group 8", "port1", "nothing was changed")
    assert unchanged(mayfly) == before
    answer = mayfly.refuse("-force link del group 8")
    assert "deleted 10 failed 1" in answer.out
    assert mayfly.count() == 2


# Much


def test_a_hundred_thousand(mayfly):
    empty = mayfly.resources()
    answer = mayfly.json("link bulk add count 100000 name 'sub{}' link port0 group 7 up type vlan id 1-4000 inner 1-25")
    assert (answer["matched"], answer["created"]) == (100000, 100000)
    assert mayfly.count() == 100002 and mayfly.count("group 7 vlan 17") == 25
    links = mayfly.json("link show group 7")
    assert len({link["id"] for link in links}) == len({link["ifname"] for link in links}) == 100000
    assert len({link["ifindex"] for link in links}) == 100000
    answer = mayfly.json("link bulk del name 'sub{}' count 100000")
    assert (answer["matched"], answer["deleted"]) == (100000, 100000)
    # All names and tags are free before anything is reclaimed.
    again = mayfly.json("link bulk add name 'sub{}' link port0 group 7 up type vlan id 1-4000 inner 1-25")
    assert again["created"] == 100000
    newest = max(link["id"] for link in links)
    assert min(link["id"] for link in mayfly.json("link show group 7 limit 100")) > newest
    mayfly("link del parent port0")
    eventually(mayfly.resources, empty)
