# SPDX-License-Identifier: BSD-3-Clause
"""The page of `mayfly-perf --report` as the program writes it: as an HTML parser reads it, and, where there is a Chromium,
as a browser draws it. What the page computes is tested by tests/app/mayfly-perf/test_report_figures.js."""
import copy
import html.parser
import json
import shutil
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import report_samples
from lab import BUILD

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "docs" / "perf-report.schema.json").read_text(encoding="utf-8"))
SOURCES = ROOT / "app" / "mayfly-perf"
PARTS = ("report_page.css", "report_figures.js", "report_plots.js", "report_timeline.js", "report_histograms.js", "report_page.js")
EMBED = SOURCES / "embed_report_page.py"
WRITER = BUILD / "tests" / "app" / "mayfly-perf" / "write_report_page"
VOID = {"meta", "link", "br", "hr", "img", "input"}
HOSTILE = "</script><script>document.title = 'taken'</script><!-- <b id=\"taken\">&amp; @json@"
BROWSER_DEADLINE_S = 180


class Node:
    def __init__(self, name: str, attributes: dict) -> None:
        self.name = name
        self.attributes = attributes
        self.children: list = []

    def all(self):
        yield self
        for child in self.children:
            if isinstance(child, Node):
                yield from child.all()

    def named(self, name: str) -> list:
        return [node for node in self.all() if node.name == name]

    def with_class(self, name: str) -> list:
        return [node for node in self.all() if name in (node.attributes.get("class") or "").split()]

    @property
    def text(self) -> str:
        return "".join(child if isinstance(child, str) else child.text for child in self.children)


class Tree(html.parser.HTMLParser):
    """The elements of a page; a tag that closes another element than the innermost is an error."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.root = Node("", {})
        self.open = [self.root]
        self.feed(text)
        self.close()
        assert self.open == [self.root], f"never closed: {[node.name for node in self.open[1:]]}"

    def handle_starttag(self, tag, attrs):
        assert len(attrs) == len(dict(attrs)), f"<{tag}> has an attribute twice: {attrs}"
        node = Node(tag, dict(attrs))
        self.open[-1].children.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_startendtag(self, tag, attrs):
        self.open[-1].children.append(Node(tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open[-1].name == tag, f"line {self.getpos()[0]}: </{tag}> in <{self.open[-1].name}>"
        self.open.pop()

    def handle_data(self, data):
        self.open[-1].children.append(data)


def page_of(report: dict) -> str:
    written = subprocess.run([WRITER], input=json.dumps(report, ensure_ascii=False).encode(), capture_output=True, check=True)
    return written.stdout.decode()


def hostile() -> dict:
    report = report_samples.survive()
    report["command"] = HOSTILE
    report["settings"]["name"] = HOSTILE
    report["marks"][1]["what"] = HOSTILE
    report["machine"]["notes"].append(HOSTILE)
    return report


SAMPLES = {
    "empty": report_samples.empty(),
    "one": report_samples.survive(samples=1),
    "survive": report_samples.survive(),
    "hostile": hostile(),
}


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("name", SAMPLES)
def test_the_page_holds_the_report_and_asks_for_nothing(name):
    report = SAMPLES[name]
    jsonschema.validate(report, SCHEMA, jsonschema.Draft202012Validator)
    root = Tree(page_of(report)).root
    scripts = root.named("script")
    assert [script.attributes.get("type") for script in scripts] == ["application/json"] + [None] * 5
    assert json.loads(scripts[0].text) == report
    for node in root.all():
        assert not {"src", "srcset", "action", "data", "background"} & node.attributes.keys(), node.attributes
        assert node.attributes.get("href", "data:,") == "data:,"
        assert not [key for key in node.attributes if key.startswith("on")]
    assert "default-src 'none'" in root.named("meta")[1].attributes["content"]
    for style in root.named("style"):
        assert "http" not in style.text and "@import" not in style.text
    ids = [node.attributes["id"] for node in root.all() if "id" in node.attributes]
    assert sorted(ids) == ["hatch-delete", "page", "report"]


def test_the_program_has_the_page_byte_for_byte():
    page = (SOURCES / "report_page.html").read_text(encoding="utf-8").replace("@json@", json.dumps(SAMPLES["empty"]))
    for part in PARTS:
        page = page.replace(f"@{part}@", (SOURCES / part).read_text(encoding="utf-8").rstrip("\n"))
    assert page_of(SAMPLES["empty"]) == page


@pytest.mark.parametrize("page, part, message", [
    ("<p>@json@", "x", "placeholders ['json']: expected each of ['json', 'part.js'] once"),
    ("@json@ @part.js@ @json@", "x", "placeholders ['json', 'json', 'part.js']: expected"),
    ("@json@ @part.js@ @other.js@", "x", "placeholders ['json', 'other.js', 'part.js']: expected"),
    ("@json@ @part.js@", "a = '</SCRIPT>'", "part.js: '</script', '</style' or '<!--' would end the element"),
    ("@json@ @part.js@", "a <!--b", "part.js: '</script', '</style' or '<!--' would end the element"),
])
def test_a_page_that_does_not_fit_together_is_not_built(tmp_path, page, part, message):
    (tmp_path / "page.html").write_text(page)
    (tmp_path / "part.js").write_text(part)
    done = subprocess.run([sys.executable, EMBED, tmp_path / "page.html", tmp_path / "out.cpp", tmp_path / "part.js"],
                          capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("embed_report_page.py: " + message)
    assert not (tmp_path / "out.cpp").exists()


def broken(change) -> dict:
    report = copy.deepcopy(SAMPLES["survive"])
    change(report)
    return report


@pytest.mark.parametrize("change", [
    lambda report: report.pop("results"),
    lambda report: report.update(more=1),
    lambda report: report["series"]["columns"].__setitem__(1, "rx"),
    lambda report: report["series"]["columns"].remove("at_ns"),
    lambda report: report["series"]["rows"][0].__setitem__(0, "0"),
    lambda report: report["marks"][0].update(kind="mass"),
    lambda report: report["results"][0].pop("p999"),
    lambda report: report["histograms"][0]["buckets"].append([1]),
    lambda report: report["histograms"][0]["buckets"].append([1, -1]),
    lambda report: report["settings"].update(list=[]),
    lambda report: report["limits"].update(objects=1),
    lambda report: report.update(started="today"),
])
def test_the_schema_refuses(change):
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken(change), SCHEMA, jsonschema.Draft202012Validator)


def drawn_by_chromium(tmp_path: Path, report: dict) -> Node:
    """The document after its scripts have run, which must say nothing to the browser's console."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed (scripts/deps --browser)")
    page = tmp_path / "index.html"
    page.write_text(page_of(report), encoding="utf-8")
    done = subprocess.run([chromium, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--window-size=1200,900",
                           f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", page.as_uri()],
                          capture_output=True, text=True, timeout=BROWSER_DEADLINE_S, check=True)
    assert "CONSOLE" not in done.stderr, done.stderr
    return Tree(done.stdout).root


def test_a_browser_draws_it(tmp_path):
    report = SAMPLES["hostile"]
    root = drawn_by_chromium(tmp_path, report)
    assert root.named("title")[0].text == "mayfly-perf survive 2026-01-02T03:04:05Z"
    assert root.named("code")[0].text == HOSTILE
    assert not [node for node in root.all() if node.attributes.get("id") == "taken"]
    assert [node.text for node in root.named("h2")] == ["Summary", "Over time", "Distribution", "Clocks per packet",
                                                        "Settings and machine"]
    assert [node.text for node in root.with_class("title")] == [
        "Throughput, Mpps", "Latency", "Packets lost", "Drops with a reason, kpps", "Grace period", "Teardown backlog, objects",
        "Teardown backlog, MiB", "Memory (RSS), MiB", "Interfaces", "Latency", "Latency, percentiles"]
    rows = [[cell.text for cell in row.named("td")] for row in root.named("tbody")[0].named("tr")]
    assert rows[0] == ["created", "bulk, bare", "interfaces/s", "10", "812,345", "1,282,912", "1,391,871", "1,391,871", "1,391,871"]
    assert rows[2] == ["latency", "quiet", "\u00b5s", "12,345,678", "0.812", "9.021", "21.503", "62.976", "240.123"]
    assert len(rows) == len(report["results"])
    assert [fact.text for fact in root.named("dd")] == ["104,000,000", "0", "97.1 %", "128 KiB"]
    bars = root.with_class("bar")
    assert len(bars) == len(report["stages"])
    assert bars[3].attributes["style"].startswith("width: 100.0%"), "the most expensive stage has the longest bar"
    for plot in root.with_class("plot"):
        drawing = plot.named("svg")[0]
        width = int(drawing.attributes["viewbox"].split()[2])
        assert 300 < width < 1200, "a plot is as wide as its column"
        assert drawing.with_class("grid")
        for path in drawing.named("path"):
            assert path.attributes["d"] and "NaN" not in path.attributes["d"]
    over_time = root.with_class("plot")[:9]
    for plot in over_time:
        assert {"band-create", "band-delete", "band-quiet"} <= {node.attributes.get("class") for node in plot.named("path")}
        assert "delete 50,000" in plot.text


def test_a_browser_draws_what_is_empty(tmp_path):
    root = drawn_by_chromium(tmp_path, SAMPLES["empty"])
    assert "This run measured nothing." in root.named("main")[0].text
