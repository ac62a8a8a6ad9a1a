# SPDX-License-Identifier: BSD-3-Clause
"""What `mayfly help` and `mayfly OBJECT help` say, taken apart: the one list of commands there is.

A help text is made of usages, which begin with 'mayfly', and of definitions, which begin with a word in capitals and
a colon; deeper indentation continues either. What follows several blanks, or stands in parentheses, is a remark.
"""

import re
import subprocess

from lab import GIVE_UP, MAYFLY, MAYFLYD

_REMARK = re.compile(r"(?<=\S)\s{2,}.*|(^|\s)\([^)]*\).*")
_DEFINITION = re.compile(r"([A-Z]+):(?:\s+(.*))?$")


def _run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, timeout=GIVE_UP)
    assert done.returncode == 0 and done.stdout, f"{command}: exit {done.returncode}: {done.stderr}"
    return done.stdout


class HelpText:
    def __init__(self, text):
        self.usages = []
        self.definitions = {}  # name -> [lines]
        where = None
        for line in text.splitlines():
            indent = len(line) - len(line.lstrip())
            words = line.strip().removeprefix("Usage: ")
            definition = _DEFINITION.match(line) if indent == 0 else None
            if words == "mayfly" or words.startswith("mayfly "):
                where = self.usages
                where.append(_REMARK.sub("", words))
            elif definition and definition[1] != "Usage":
                where = self.definitions.setdefault(definition[1], [])
                if definition[2]:
                    where.append(_REMARK.sub("", definition[2]))
            elif indent > 0 and where is not None:
                words = _REMARK.sub("", words).strip()
                if words and where is self.definitions.get("KIND"):
                    where.append(words)
                elif words:
                    where[-1] += " " + words
            else:
                where = None  # a sentence


def general():
    return HelpText(_run(MAYFLY, "help"))


def objects():
    """The names of the objects."""
    return general().definitions["OBJECT"][0].split(" | ")


def of_object(name):
    return HelpText(_run(MAYFLY, name, "help"))


def expected_by(*words):
    """What the parser itself knows: it lists all of it when it is given nonsense."""
    done = subprocess.run([MAYFLY, *words, "nonsense"], capture_output=True, text=True, check=False, timeout=GIVE_UP)
    found = re.search(r"'nonsense': expected one of (.*)", done.stderr)
    assert done.returncode == 2 and found, f"mayfly {words} nonsense: exit {done.returncode}: {done.stderr}"
    return found[1].split(", ")


def options():
    """mayfly's: '-n[etns] NAME'."""
    lines = _run(MAYFLY, "help").split("OPTIONS: ")[1].splitlines()
    found = [match[1] for line in lines if (match := re.match(r"\s*(--?[a-z\[\]]+(?: [A-Z]+)?)(?:\s\s|$)", line))]
    assert len(found) > 5, found
    return found


def daemon_options():
    """mayflyd's: '--socket PATH'."""
    found = []
    for line in _run(MAYFLYD, "--help").splitlines():
        if match := re.match(r"  (-\S*.*?)(?:\s\s|$)", line):
            found += match[1].split(", ")
    assert len(found) > 5, found
    return found
