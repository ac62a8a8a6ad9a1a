# SPDX-License-Identifier: BSD-3-Clause
"""bash completion: it knows what the help texts and the running daemon know, and never disturbs."""

import os
import re
import shlex
import signal
import subprocess

import pytest

import help_texts
from lab import BUILD, GIVE_UP, MAYFLY, MAYFLYD, ROOT

COMPLETION = ROOT / "scripts/completion"


def complete(program, *words, environment=None):
    """COMPREPLY for a command line whose last word is being typed."""
    function = f"_{program.name}"
    script = (f"set -u; source {shlex.quote(str(COMPLETION / program.name))}\n"
              f"COMP_WORDS=({shlex.join([str(program), *words])}); COMP_CWORD={len(words)}\n"
              f"set +u; {function} {shlex.quote(str(program))} {shlex.quote(words[-1])} ''\n"
              "printf '%s\\n' \"${COMPREPLY[@]}\"")
    done = subprocess.run(["bash", "--norc", "-c", script], capture_output=True, text=True, check=False,
                          timeout=GIVE_UP, stdin=subprocess.DEVNULL, env={**os.environ, **(environment or {})})
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return [line for line in done.stdout.splitlines() if line]


@pytest.fixture(name="typed", scope="module")
def _typed(shared_lab):
    """mayfly's completion, with a daemon that has an interface of an unkind name."""
    daemon = shared_lab.daemon(ports={"east": "net_null0,no-rx=1", "west": "net_ring0"})
    daemon(["link", "add", "v7", "link", "east", "type", "vlan", "id", "7"])
    daemon(["link", "add", "$(kill$$)", "type", "dummy"])

    def type_words(*words):
        return complete(MAYFLY, *words, environment={"MAYFLY_SOCKET": daemon.socket_path})

    type_words.daemon = daemon
    return type_words


NAMES = ["east", "west", "v7", "\\$\\(kill\\$\\$\\)"]
NOBODY = {"MAYFLY_SOCKET": "/nonexistent/mayfly.sock"}


def test_objects_and_commands_are_those_of_the_help():
    assert complete(MAYFLY, "") == [*help_texts.objects(), "help"]
    for name in help_texts.objects():
        commands = []
        for usage in help_texts.of_object(name).usages:
            for word in usage.split()[2:3]:
                commands += [part for part in word.split("|") if part not in commands and re.match("[a-z]", part)]
        assert complete(MAYFLY, name, "", environment=NOBODY) == [*commands, "help"], name


def test_options_are_those_of_the_help():
    spelled = {re.sub(r"[\[\]]", "", option.split()[0]) for option in help_texts.options()}
    assert set(complete(MAYFLY, "-")) == spelled
    assert complete(MAYFLY, "-j", "-st") == ["-statistics"]
    for words in (["-s"], ["-d", "-j"], ["-br"], ["-netns", "x", "-force"], ["-n", "x"], ["--socket", "x"], ["-b", "x"]):
        assert complete(MAYFLY, *words, "lin") == ["link"], words
    assert set(complete(MAYFLYD, "-")) == {re.split("[ =]", option)[0] for option in help_texts.daemon_options()
                                           if not option.startswith("-- ")}


def test_every_keyword_offered_is_one_of_the_code():
    """Prose of a help text must not become words to type."""
    code = "".join(path.read_text() for path in [*(ROOT / "app/mayfly").glob("*.cpp"),
                                                 ROOT / "lib/iface/kind_parameters.hpp"])
    known = set(re.findall(r'"([^" ]+)"', code)) | {"del"}
    offered = {}
    for name in help_texts.objects():
        for command in complete(MAYFLY, name, "", environment=NOBODY):
            if command == "help":
                continue
            for words in ((name, command, ""), (name, command, "x", "x", "")):
                for word in complete(MAYFLY, *words, environment=NOBODY):
                    offered[word] = (name, command)
    assert len(offered) > 40, offered
    # Where a file is expected, those that are here are offered.
    strange = {word: where for word, where in offered.items()
               if word not in known and not os.path.exists(word)}
    assert not strange, strange


@pytest.mark.parametrize("words,expected", [
    (["l", "sh"], ["show"]),
    (["link", "set", "v7", "m"], ["mtu"]),
    (["link", "bulk", ""], ["add", "replace", "del"]),
    (["link", "bulk", "d"], ["del"]),
    (["link", "bulk", "add", "co"], ["count"]),
    (["link", "bulk", "del", "co"], ["count"]),
    (["link", "add", "new", "type", ""], ["vlan", "dummy", "veth"]),
    (["link", "add", "new", "type", "vlan", "protocol", "802.1a"], ["802.1ad"]),
    (["link", "add", "new", "type", "vlan", "i"], ["index", "id", "inner"]),
    (["link", "show", "type", "v"], ["vlan", "veth"]),
    (["link", "show", "vl"], ["vlan"]),
    (["route", "add", "blackh"], ["blackhole"]),
    (["r", "add", "default", "v"], ["via"]),
    (["route", "show", "table", ""], ["main", "local", "all"]),
    (["neighbour", "show", "nud", "per"], ["permanent"]),
    (["neigh", "add", "10.0.0.1", "lla"], ["lladdr"]),
    (["route", "add", "10.0.0.0/8", "via", ""], []),
    (["nonsense", ""], ["help"]),
])
def test_words(words, expected):
    assert complete(MAYFLY, *words, environment=NOBODY) == expected


@pytest.mark.parametrize("words", [
    ["link", "set", ""], ["address", "add", "10.0.0.1/24", "dev", ""], ["link", "add", "new", "link", ""],
    ["-j", "link", "show", "parent", ""], ["route", "flush", "dev", ""]])
def test_names_come_from_the_daemon(typed, words):
    assert [word for word in typed(*words) if word in NAMES] == NAMES


def test_names_by_what_is_asked_for(typed):
    assert typed("port", "show", "") == ["east", "west", "xstats"]
    assert typed("link", "which", "w") == ["west"]
    assert typed("link", "del", "v") == ["vlan", "v7"]
    assert typed("address", "show", "ea") == ["east"]
    assert typed("-n", "") == ["default"]
    assert not set(typed("link", "add", "")) & set(NAMES), "the name of a new interface is new"
    path = typed.daemon.socket_path
    assert complete(MAYFLY, "--socket", path, "link", "set", "v", environment=NOBODY) == ["v7"]


def test_silent_without_a_daemon():
    assert complete(MAYFLY, "port", "show", "", environment=NOBODY) == ["xstats"]
    assert complete(MAYFLY, "link", "show", "dev", "", environment=NOBODY)
    assert complete(MAYFLY, "-n", "", environment=NOBODY) == []


def test_does_not_hang_on_a_daemon_that_is_stuck(typed):
    os.kill(typed.daemon.pid, signal.SIGSTOP)
    try:
        assert typed("port", "show", "") == ["xstats"]
    finally:
        os.kill(typed.daemon.pid, signal.SIGCONT)
    assert typed("port", "show", "") == ["east", "west", "xstats"]


def test_files(tmp_path):
    (tmp_path / "plan.batch").touch()
    for words in (["-batch", f"{tmp_path}/p"], ["-b", f"{tmp_path}/p"], ["--socket", f"{tmp_path}/p"]):
        assert complete(MAYFLY, *words) == [f"{tmp_path}/plan.batch"]
    for words in (["-c", f"{tmp_path}/p"], ["--socket", "=", f"{tmp_path}/p"]):
        assert complete(MAYFLYD, *words) == [f"{tmp_path}/plan.batch"]


def test_values_of_the_daemon():
    assert complete(MAYFLYD, "--log-level", "") == ["error", "warning", "info", "debug"]
    assert complete(MAYFLYD, "--log-level", "=", "w") == ["warning"]
    assert complete(MAYFLYD, "--workers", "") == []
    assert complete(MAYFLYD, "--", "--no") == []
    assert complete(MAYFLYD, "--check", "--he") == ["--help"]


def test_a_program_that_is_not_there():
    script = (f"source {shlex.quote(str(COMPLETION / 'mayfly'))}; COMP_WORDS=(mayfly l ''); COMP_CWORD=2\n"
              f"PATH={shlex.quote(str(BUILD))}:/nonexistent; _mayfly no-such-program; echo \"${{COMPREPLY[*]}}\"")
    done = subprocess.run(["bash", "--norc", "-c", script], capture_output=True, text=True, check=False, timeout=GIVE_UP)
    assert (done.returncode, done.stdout, done.stderr) == (0, "help\n", "")
