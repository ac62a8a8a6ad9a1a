# SPDX-License-Identifier: BSD-3-Clause
"""`link bulk replace` and `--from FILE`: what is equal stays, what is missing comes, what is not listed goes."""

import json
import re

import pytest

ROWS = 20_000


def csv_of(plan):
    """The plan {name: {column: value}} as a file, its columns in the order in which they first appear."""
    columns = list(dict.fromkeys(column for row in plan.values() for column in row))
    lines = [",".join(["name", *columns])]
    lines += [",".join([name, *(str(row.get(column, "")) for column in columns)]) for name, row in plan.items()]
    return "\r\n".join(lines) + "\r\n"


def json_of(plan):
    return "".join(json.dumps({"name": name, **row}) + "\n" for name, row in plan.items())


def big_plan():
    return {f"s{n}": {"link": "port0", "type": "vlan", "id": 1 + n // 100, "inner": 1 + n % 100, "up": "up"}
            for n in range(ROWS)}


def counts(answer):
    return {key: answer[key] for key in ("matched", "created", "kept", "changed", "deleted", "failed")}


def ids(mayfly):
    return {link["ifname"]: link["id"] for link in mayfly.json("link show group 7")}


@pytest.mark.parametrize("write", [csv_of, json_of], ids=["csv", "json"])
def test_a_plan_of_twenty_thousand(mayfly, tmp_path, write):
    plan = big_plan()
    path = tmp_path / "plan"
    path.write_text(write(plan))
    replace = f"link bulk replace --from {path} --sweep group 7"
    assert counts(mayfly.json(replace)) == {
        "matched": ROWS, "created": ROWS, "kept": 0, "changed": 0, "deleted": 0, "failed": 0}
    before = ids(mayfly)
    assert counts(mayfly.json(replace)) == {
        "matched": ROWS, "created": 0, "kept": ROWS, "changed": 0, "deleted": 0, "failed": 0}
    assert ids(mayfly) == before
    # The control plane lost count: 1,000 sessions ended, 500 changed, 300 began.
    for n in range(1000):
        del plan[f"s{n * 7}"]
    for n in range(500):
        plan[f"s{n * 7 + 1}"]["alias"] = f"line {n}"
    for n in range(300):
        plan[f"t{n}"] = {"link": "port1", "type": "vlan", "id": 1 + n, "up": "up"}
    path.write_text(write(plan))
    expected = {"matched": ROWS + 300, "created": 300, "kept": ROWS - 1500, "changed": 500, "deleted": 1000, "failed": 0}
    dry = mayfly.json(replace + " --dry-run")
    assert counts(dry) == expected and dry["dry_run"] and ids(mayfly) == before
    assert counts(mayfly.json(replace)) == expected
    after = ids(mayfly)
    assert set(after) == set(plan)
    assert all(after[name] == before[name] for name in plan if name in before)
    assert mayfly.link("s1")["ifalias"] == "line 0"
    assert counts(mayfly.json(replace))["kept"] == len(plan)


@pytest.mark.sanitizer
def test_the_answer_and_the_log_line(mayfly):
    mayfly("link bulk add name s{} link port0 group 7 type vlan id 1-10")
    text = mayfly("link bulk replace name s{} link port0 alias x --sweep group 7 type vlan id 1-4")
    assert re.fullmatch(r"link bulk replace: matched 10 created 0 kept 0 changed 4 deleted 6 failed 0 in \S+ \S+; "
                        r"\S+ \S+ to reclaim \(reclaim wait\)\n", text), text
    text = mayfly("link bulk replace name s{} link port0 --sweep group 7 type vlan id 1-6 --dry-run")
    assert "created 2 kept 4 changed 0 deleted 0 failed 0" in text and "(dry run: nothing changed)" in text
    answer = mayfly.json("link bulk replace name s{} link port0 type vlan id 1-6")
    assert answer["boot_id"] == mayfly.status()["boot_id"]


@pytest.mark.sanitizer
def test_columns_and_defaults(mayfly):
    mayfly.batch("link add lo100 type dummy", "link set lo100 up", "addr add 100.64.0.1/16 dev lo100")
    rows = ('name,id,protocol,alias,up,mtu,unnumbered,rp_filter,addr,route,neigh\n'
            '\n'
            'a,1,802.1ad,"say ""hi"", twice",1,1400,lo100,strict,,100.64.0.7/32,100.64.0.7 lladdr 02:00:00:00:00:07\n'
            'b,2,,"two\nlines",down,,,,10.0.0.1/30 2001:db8::1/64,,\n'
            'c,3,,,yes,,,,,2001:db8:1::/56 100.64.0.9/32,\n')
    # The quoted line break is read as what it is, and then is nothing that an alias may have.
    mayfly.refuse("link bulk add --from - link port0 group 9 type vlan", "stdin:4: b: alias: control characters",
                  "nothing was changed", stdin=rows)
    rows = rows.replace("two\nlines", "two, words")
    answer = mayfly.json("link bulk add --from - link port0 group 9 type vlan", stdin=rows)
    assert (answer["matched"], answer["created"]) == (3, 3)
    a, b, c = (mayfly.link(name) for name in "abc")
    assert a["ifalias"] == 'say "hi", twice' and a["mtu"] == 1400 and a["operstate"] == "UP"
    assert a["linkinfo"]["info_data"]["protocol"] == "802.1ad"
    assert b["ifalias"] == "two, words" and b["operstate"] == "DOWN" and b["mtu"] == 1500
    assert {link["group"] for link in (a, b, c)} == {"9"}
    shown = mayfly("addr show dev b")
    assert "10.0.0.1/30" in shown and "2001:db8::1/64" in shown
    assert "dev a" in mayfly("route get 100.64.0.7") and "dev c" in mayfly("route get 100.64.0.9")
    assert "dev c" in mayfly("route get 2001:db8:1:ff::1")
    assert "02:00:00:00:00:07" in mayfly("neigh show dev a")
    again = mayfly.json("link bulk replace --from - link port0 type vlan --sweep group 9", stdin=rows)
    assert counts(again)["kept"] == 3, again
    # The same in JSON lines; another address replaces the one before.
    lines = ('{"name": "b", "id": 2, "up": false, "addr": ["10.0.0.5/30", "2001:db8::1/64"]}\n'
             '\n'
             '{"name": "c", "id": 3, "up": true, "alias": null}\n')
    answer = mayfly.json("link bulk replace --from - link port0 type vlan --sweep group 9", stdin=lines)
    assert counts(answer) == {"matched": 3, "created": 0, "kept": 1, "changed": 1, "deleted": 1, "failed": 0}
    shown = mayfly("addr show dev b")
    assert "10.0.0.5/30" in shown and "10.0.0.1/30" not in shown
    assert mayfly.link("c")["id"] == c["id"]


@pytest.mark.sanitizer
def test_dressing_by_steps(mayfly):
    mayfly("link bulk add name s{} link port0 group 7 up addr 10.0.0.1/30 step 4 addr 2001:db8::1/64 step /64 "
           "route 100.64.0.0/32 step 1 neigh 10.0.0.2 step 4 lladdr 02:00:00:00:00:fe step 1 type vlan id 1-300")
    shown = mayfly("addr show dev s299")
    assert "10.0.4.173/30" in shown and "2001:db8:0:12b::1/64" in shown
    assert "dev s299" in mayfly("route get 100.64.1.43")
    assert "10.0.4.174" in mayfly("neigh show dev s299") and "02:00:00:00:02:29" in mayfly("neigh show dev s299")
    for words, texts in (
            ("addr 255.255.255.1/30 step 4", ["addr 255.255.255.1", "300 members"]),
            ("addr 224.0.0.1/30", ["224.0.0.1/30"]),
            ("route 10.0.0.1/24 step /24", ["10.0.0.1/24"]),
            ("neigh 10.0.0.2 lladdr 01:00:00:00:00:01", ["01:00:00:00:00:01"]),
            ("neigh 10.0.0.2 lladdr 02:ff:ff:ff:ff:fe step 1", ["02:ff:ff:ff:ff:ff"])):
        mayfly.refuse(f"link bulk add name t{{}} link port1 up {words} type vlan id 1-300", *texts)
    mayfly.refuse("link bulk add name t{} link port1 route 10.0.0.0/24 type vlan id 1-3", "add 'up'")
    mayfly.refuse("link bulk add name t{} link port1 neigh 10.0.0.2 type vlan id 1-3", "lladdr", status=2)
    assert mayfly.count("parent port1") == 0


@pytest.mark.parametrize("text,texts", [
    ("name,link,type,id\na,port0,vlan,1\nb,port0,vlan,5000\n", ["plan:3", "vlan id 5000", "1..4094"]),
    ("name,link,type,id\na,port0,vlan,1\nb,port0,vlan,70000\n", ["plan:3: column id", "70000", "1..4094"]),
    ("name,link,type,id\na,port0,vlan,1\nb,port0,vlan,x\n", ["plan:3: column id", "'x'"]),
    ("name,link,type,colour\na,port0,vlan,1\n", ["plan:1: column 'colour'", "rp_filter"]),
    ("name,link,type,id,id\na,port0,vlan,1,1\n", ["plan:1: column 'id': given twice"]),
    ("name,link,type,id\na,port0,vlan,1\nb,port0,vlan\n", ["plan:3", "3 fields", "4 columns"]),
    ("name,link,type,id\na,port0,vlan,1\n\n\na,port0,vlan,2\n", ["plan:5: column name", "'a'", "line 2"]),
    ("name,link,type,id\na,port0,vlan,1\nb,nope,vlan,2\n", ["plan:3", "nope", "nothing was changed"]),
    ("name,link,type,id,mtu\na,port0,vlan,1,\nb,port0,vlan,2,9000\n", ["plan:3", "mtu 9000", "68..1500"]),
    ("name,link,type,id,up\na,port0,vlan,1,maybe\n", ["plan:2: column up", "'maybe'", "true"]),
    ("name,link,type,id,address\na,port0,vlan,1,xx\n", ["plan:2: column address", "'xx'"]),
    ("name,link,type,id,addr\na,port0,vlan,1,10.0.0.300/24\n", ["plan:2: column addr", "10.0.0.300"]),
    ("name,link,type\na,port0,vlan\n", ["plan:2", "'id'"]),
    ("name,type,id\na,dummy,5\n", ["plan:2: column id", "dummy"]),
    ("name,link,type,id\n,port0,vlan,1\n", ["plan:2: column name"]),
    ('name,link,type,id\n"a,port0,vlan,1\n', ["plan:2", "quote"]),
    ('name,link,type,id\na"b,port0,vlan,1\n', ["plan:2", "quote"]),
    ('{"name": "a", "link": "port0", "type": "vlan", "id": 1}\n{"name": "b"\n', ["plan:2", "JSON"]),
    ('{"name": "a", "link": "port0", "type": "vlan", "id": 1.5}\n', ["plan:1: column id", "1.5"]),
    ('{"name": "a", "link": "port0", "type": "vlan", "id": 1, "id": 2}\n', ["plan:1: column 'id': given twice"]),
    ('{"name": "a", "link": "port0", "type": "vlan", "id": 1, "x": 2}\n', ["plan:1: column 'x'"]),
    ("name,link,type,id\n", ["nothing is listed", "-force"]),
    ("", ["nothing is listed", "-force"]),
])
def test_bad_files(mayfly, tmp_path, text, texts):
    mayfly("link bulk add name s{} link port1 group 7 type vlan id 1-3")
    before = mayfly.json("link show")
    (tmp_path / "plan").write_text(text)
    done = mayfly.refuse(f"link bulk replace --from {tmp_path}/plan --sweep group 7", *texts)
    assert mayfly.json("link show") == before, done.out


@pytest.mark.parametrize("words,status,texts", [
    ("replace name s{} link port0 --sweep type vlan id 1-3", 2, ["group N"]),
    ("replace name s{} link port0 --sweep group 0 type vlan id 1-3", 1, ["group", "0"]),
    ("replace --from /nonexistent --sweep group 7", 1, ["/nonexistent"]),
    ("replace --from plan name s{}", 2, ["--from"]),
    ("add name s{} link port0 --sweep group 7 type vlan id 1-3", 2, ["--sweep"]),
])
def test_bad_words(mayfly, words, status, texts):
    mayfly.refuse(f"link bulk {words}", *texts, status=status)


@pytest.mark.sanitizer
def test_force(mayfly):
    mayfly("link bulk add name s{} link port0 group 7 type vlan id 1-10")
    rows = "name,id\n" + "".join(f"s{n},{n + 2}\n" for n in range(10)) + "bad,5000\n"
    mayfly.refuse("link bulk replace --from - link port0 type vlan --sweep group 7", "stdin:2", "s0", "-force",
                  stdin=rows)
    # Every tag moves on by one: what has them goes first.
    answer = mayfly.refuse("-force link bulk replace --from - link port0 type vlan --sweep group 7", stdin=rows)
    assert "created 10 kept 0 changed 0 deleted 10 failed 1" in answer.out, answer.out
    assert "stdin:12: bad: vlan id 5000" in answer.out
    assert [link["linkinfo"]["info_data"]["id"] for link in mayfly.json("link show group 7")] == list(range(2, 12))
    mayfly("-force link bulk replace --from - --sweep group 7", stdin="")
    assert mayfly.count("group 7") == 0

