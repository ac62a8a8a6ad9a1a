# SPDX-License-Identifier: BSD-3-Clause
"""The manual pages say what the programs do: every command, option and configuration key is in them, and nothing else.

The lists come from the programs (their help texts) and from lib/config; whoever adds something is told which line the
page wants.
"""

import pathlib
import re
import shutil
import subprocess

import pytest
import yaml

import help_texts
from lab import GIVE_UP, MAYFLYD, ROOT

MANUAL = ROOT / "docs/man"


def plain(text):
    """scdoc without its marks."""
    text = re.sub(r"(?<!\\)\*|(?<![A-Za-z0-9\\])_|(?<!\\)_(?![A-Za-z0-9])", "", text)
    return re.sub(r"\s+", " ", text.replace("\\", "")).strip()


def marked(text):
    """How a usage is written in scdoc: names of values underlined, words to type bold."""
    def mark(match):
        word = match[0]
        if re.fullmatch(r"[A-Z]+", word):
            return f"_{word}_"
        return f"*{word}*" if re.search(r"[A-Za-z]", word) else word

    return re.sub(r"-*[A-Za-z0-9_.]+(?:-[a-z]+)*", mark, text).replace("* *", " ")


def page(name):
    return (MANUAL / f"{name}.scd").read_text()


def lines(name):
    """Its lines without marks, literal blocks left out."""
    return [plain(line) for line in re.sub(r"(?ms)^```$.*?^```$", "", page(name)).splitlines()]


def compare(name, documented, actual):
    missing = [text for text in actual if text not in documented]
    invented = [text for text in documented if text not in actual]
    where = f"docs/man/{name}.scd"
    told = [f"{where}: add the line\n    {marked(text)}" for text in missing]
    told += [f"{where}: no program knows this any more, remove it\n    {text}" for text in invented]
    assert not told, "\n".join(told)


# mayfly(8)


def test_every_command_is_in_the_help():
    """The manual is compared with the help texts; these with what the parser takes."""
    assert [*help_texts.objects(), "help"] == help_texts.expected_by()
    for name in help_texts.objects():
        shown = set()
        for usage in help_texts.of_object(name).usages:
            words = usage.split()[2:3] or ["show"]
            shown |= set(words[0].split("|"))
        for command in help_texts.expected_by(name):
            assert any(command.startswith(word) for word in shown), (
                f"'mayfly {name} help' does not show '{command}', which is a command: hide it or write its usage")


def test_every_command_is_in_the_manual():
    actual = []
    for name in help_texts.objects():
        usages = help_texts.of_object(name).usages
        assert usages and all(usage.startswith(f"mayfly {name}") for usage in usages), (name, usages)
        actual += [plain(usage) for usage in usages]
    assert len(actual) > 20, "the help texts could not be read"
    assert [plain(marked(usage)) for usage in actual] == actual, "what compare() proposes is what it wants"
    assert "mayfly link show [NAME | SELECTOR]" in actual and "mayfly reclaim wait [timeout 60s]" in actual, actual
    documented = [line for line in lines("mayfly.8") if re.match(r"mayfly [a-z]", line)]
    compare("mayfly.8", [line for line in documented if not re.match(r"mayfly (- |speaks )", line)], actual)


def test_every_definition_is_in_the_manual():
    """SELECTOR, ROUTE, STATE ...: what several commands have in common. Those in prose are left to the author."""
    actual = {}
    for name in help_texts.objects():
        for what, text in help_texts.of_object(name).definitions.items():
            for part in text:
                if re.search(r"[\[|]", part) or what == "KIND":
                    actual[plain(part if what == "KIND" else f"{what}: {part}")] = None
    actual[plain("OBJECT: " + help_texts.general().definitions["OBJECT"][0])] = None
    assert len(actual) > 5, actual
    documented = [line for line in lines("mayfly.8") if re.match(r"[A-Z]+: .*|type [a-z]", line)]
    compare("mayfly.8", documented, list(actual))


def test_every_option_is_in_the_manual():
    documented = [line for line in lines("mayfly.8") if re.match(r"-[-a-z\[\]]+( [A-Z]+)?$", line)]
    compare("mayfly.8", documented, help_texts.options())


# mayflyd(8)


def test_every_option_of_the_daemon_is_in_the_manual():
    documented = [line for line in lines("mayflyd.8") if re.match(r"-[-a-z]* ?([A-Z=]+|EAL options)?$", line)]
    compare("mayflyd.8", documented, help_texts.daemon_options())


# mayflyd.yaml(5)


class Key:
    def __init__(self, path, line):
        self.path = path
        match = re.match(r"(?P<type>Number|Size|Duration|Boolean|Text|Mode|One of|List of \w+)\b"
                         r"(?:, (?P<least>[^ ,]+)\.\.(?P<most>[^ ,.]+))?", line)
        assert match, f"{path}: its line begins with a type and maybe a range: {line}"
        self.type, self.least, self.most = match["type"], match["least"], match["most"]
        self.words = re.findall(r"\*(\w+)\*", line.split(". Default")[0]) if self.type == "One of" else []
        default = re.search(r"\. (?:Default: \*(.*)\*|(Mandatory)|(Default: .+))\.$", line)
        assert default, f"{path}: its line ends with 'Default: *VALUE*.' or 'Mandatory.': {line}"
        self.default, self.mandatory, self.prose = default[1], bool(default[2]), default[3]


def documented_keys():
    found = re.findall(r"(?m)^\*([a-z_.\[\]]+)\*\n\t(.*)$", page("mayflyd.yaml.5"))
    keys = {path: Key(path, line) for path, line in found}
    assert len(keys) == len(found) > 20, "each key once"
    return keys


def document(values):
    """YAML of {"ports[].name": text, "workers.idle.after": text}, the texts as they are."""
    tree = {}
    for path, text in values.items():
        node = tree
        *sections, last = path.split(".")
        for section in sections:
            if section.endswith("[]"):
                node = node.setdefault(section[:-2], [{}])[0]
            else:
                node = node.setdefault(section, {})
        node[last] = text

    def flow(node):
        if isinstance(node, dict):
            return "{" + ", ".join(f"{key}: {flow(value)}" for key, value in node.items()) + "}"
        return "[" + ", ".join(map(flow, node)) + "]" if isinstance(node, list) else node

    return "".join(f"{key}: {flow(value)}\n" for key, value in tree.items())


def check(directory, values):
    """What `mayflyd --check` says against it; nothing when it is accepted."""
    path = directory / "f.yaml"
    path.write_text(document(values))
    done = subprocess.run([MAYFLYD, "-c", path, "--check"], capture_output=True, text=True, check=False, timeout=GIVE_UP)
    assert done.returncode in (0, 1), done.stderr
    assert (done.returncode == 0) == (done.stderr == ""), done.stderr
    return done.stderr.strip().removeprefix(f"mayflyd: {path}:")


def mandatory_beside(keys, path):
    """What must be given for the key to be looked at: the mandatory ones of its list's entries."""
    if "[]" not in path:
        return {}
    start = path[:path.rindex("[]") + 2]
    examples = {"name": "p0", "devargs": "net_null0"}
    return {other: examples[other.rsplit(".", 1)[1]] for other, key in keys.items()
            if key.mandatory and other.startswith(start)}


def key_words_of_the_code():
    """Every word that lib/config accepts as a key, from the lists it gives to YamlMap."""
    words = set()
    for source in pathlib.Path(ROOT / "lib/config").glob("*.cpp"):
        for found in re.findall(r"\b(?:Keys|std::string_view) k\w*Keys\[\] = \{(.*?)\};", source.read_text(), re.S):
            words |= set(re.findall(r'"(\w+)"', found))
    assert {"workers", "idle", "after", "rx_descriptors"} <= words, words
    return words


def test_every_key_is_in_the_manual():
    documented = {word for path in documented_keys() for word in re.split(r"(?:\[\])?\.", path)}
    # Those of the network are explained in prose.
    documented |= set(re.findall(r"\*(\w+)\*", page("mayflyd.yaml.5").split("# NETWORK")[1].split("# EXAMPLES")[0]))
    missing = key_words_of_the_code() - documented
    assert not missing, ("docs/man/mayflyd.yaml.5.scd: keys without an entry like\n"
                         "    *section.key*\n    \tNumber, 1..64. Default: *1*.\n" + "\n".join(sorted(missing)))


def test_every_key_of_the_manual_is_accepted_with_its_default(tmp_path):
    keys = documented_keys()
    values = {path: key.default for path, key in keys.items() if key.default is not None}
    for path in values.copy():
        values |= mandatory_beside(keys, path)
    assert check(tmp_path, values) == "", "the manual's defaults, all in one file"


def flatten(node, path=""):
    if isinstance(node, dict):
        return {key: value for name, child in node.items()
                for key, value in flatten(child, f"{path}.{name}" if path else name).items()}
    if isinstance(node, list) and node and isinstance(node[0], dict):
        return flatten(node[0], path + "[]")
    return {path: node}


def test_defaults_are_those_of_the_example():
    """config/mayflyd.yaml has every default, which the unit tests compare with the code's, comments included."""
    text = (ROOT / "config/mayflyd.yaml").read_text().replace("\nports: []", "")
    text = re.sub(r"(?m)^#network:\n(#  .*\n)+", "", text)
    text = re.sub(r"(?m)^#(ports:|  )", r"\1", text).replace("# memory:", "memory:")
    example = flatten(yaml.load(text, yaml.BaseLoader))
    keys = documented_keys()
    assert example.pop("network") == []
    assert set(example) == set(keys), set(example) ^ set(keys)
    for path, key in keys.items():
        if key.mandatory or key.prose:
            continue
        assert yaml.load(key.default, yaml.BaseLoader) == example[path], f"{path}: the example says {example[path]!r}"


def _scaled(text):
    number, unit = re.fullmatch(r"(\d+)([A-Za-z]*)", text).groups()
    return int(number), unit


# One less than 1us is 999ns.
FINER = {"us": (1000, "ns"), "ms": (1000, "us"), "s": (1000, "ms"), "KiB": (1024, "B"), "MiB": (1024, "KiB"),
         "GiB": (1024, "MiB"), "B": (1, "B"), "": (1, "")}


def outside(text, step):
    number, unit = _scaled(text)
    factor, finer = FINER[unit]
    value = number * factor + step
    return f"{value}{finer}" if value >= 0 else None


RANGED = [path for path, key in documented_keys().items() if key.least and key.type in ("Number", "Size", "Duration")]


@pytest.mark.parametrize("path", RANGED)
def test_ranges_are_exact(tmp_path, path):
    """The manual's bounds are accepted, or refused for another reason than the range; one more and one less are not."""
    keys = documented_keys()
    key = keys[path]
    for bound, step in ((key.least, -1), (key.most, 1)):
        wrong = outside(bound, step)
        if wrong is None:
            continue
        refusal = check(tmp_path, mandatory_beside(keys, path) | {path: wrong})
        assert path.replace("[]", "[0]") in refusal and "accepted" in refusal and wrong in refusal, (wrong, refusal)
        said = check(tmp_path, mandatory_beside(keys, path) | {path: bound})
        assert said != refusal.replace(wrong, bound), f"{bound} is refused: {said}"


def test_choices_are_exact(tmp_path):
    chosen = {path: key for path, key in documented_keys().items() if key.type == "One of"}
    assert chosen
    for path, key in chosen.items():
        for word in key.words:
            assert check(tmp_path, {path: word}) == "", (path, word)
        assert check(tmp_path, {path: "nonsense"}).endswith("expected one of " + ", ".join(key.words)), path


def test_mode_and_lists(tmp_path):
    keys = documented_keys()
    assert (keys["socket.mode"].least, keys["socket.mode"].most) == ("0000", "0777")
    for mode, accepted in (("'0000'", True), ("'0777'", True), ("'1000'", False)):
        assert (check(tmp_path, {"socket.mode": mode}) == "") == accepted, mode
    most = keys["workers.cpus"].most
    assert check(tmp_path, {"workers.cpus": f"[{most}]"}) == ""
    assert "accepted" in check(tmp_path, {"workers.cpus": f"[{int(most) + 1}]"})


# All pages


@pytest.mark.parametrize("name", ["mayfly.8", "mayflyd.8", "mayfly-perf.8", "mayflyd.yaml.5"])
def test_page_renders(tmp_path, name):
    if shutil.which("scdoc") is None:
        pytest.skip("scdoc is not installed")
    done = subprocess.run(["scdoc"], input=page(name), capture_output=True, text=True, check=False, timeout=GIVE_UP)
    assert done.returncode == 0, done.stderr
    title, section = name.rsplit(".", 1)
    assert f'.TH "{title}" "{section}"' in done.stdout
    for heading in ("NAME", "DESCRIPTION", "EXAMPLES", "SEE ALSO"):
        assert f".SH {heading}" in done.stdout, heading
    if shutil.which("groff"):
        (tmp_path / name).write_text(done.stdout)
        shown = subprocess.run(["groff", "-man", "-Tutf8", "-ww", tmp_path / name], capture_output=True, text=True,
                               check=False, timeout=GIVE_UP)
        assert shown.returncode == 0 and shown.stderr == "", shown.stderr
