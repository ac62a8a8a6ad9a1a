# SPDX-License-Identifier: BSD-3-Clause
"""Puts the report page into a C++ source: embed_report_page.py PAGE OUTPUT PART...

Each @NAME@ in PAGE stands for the PART of that file name, and @json@ for the report, which is not known yet: the source
has what stands before it and what stands after it.
"""
import re
import sys
from pathlib import Path

PLACEHOLDER = re.compile(r"@([a-z_]+(?:\.[a-z]+)?)@")
REPORT = "json"
# g++ takes string literals of any length, other compilers do not: adjacent lines are one string to all of them.
ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t"}


def assemble(page: str, parts: dict[str, str]) -> tuple[str, str]:
    """The page with its parts, before and after the report."""
    expected = sorted([REPORT, *parts])
    found = sorted(PLACEHOLDER.findall(page))
    if found != expected:
        raise ValueError(f"placeholders {found}: expected each of {expected} once")
    for name, text in parts.items():
        if re.search(r"</(script|style)|<!--", text, re.IGNORECASE):
            raise ValueError(f"{name}: '</script', '</style' or '<!--' would end the element it is put into")
    before, after = page.split(f"@{REPORT}@")
    return tuple(PLACEHOLDER.sub(lambda match: parts[match[1]].rstrip("\n"), half) for half in (before, after))


def literal(text: str) -> str:
    quoted = []
    for line in text.splitlines(keepends=True):
        escaped = "".join(ESCAPES.get(char) or (char if " " <= char <= "~" else
                          "".join(f"\\{byte:03o}" for byte in char.encode())) for char in line)
        quoted.append(f'    "{escaped}"')
    return "\n".join(quoted)


def main(page: str, output: str, *parts: str) -> None:
    texts = {Path(part).name: Path(part).read_text(encoding="utf-8") for part in parts}
    before, after = assemble(Path(page).read_text(encoding="utf-8"), texts)
    Path(output).write_text(f"""// Made by {Path(__file__).name}.
#include "mayfly-perf/report_page.hpp"

namespace mayfly::perf {{

extern const std::string_view kPageBeforeReport;
extern const std::string_view kPageAfterReport;

const std::string_view kPageBeforeReport =
{literal(before)};

const std::string_view kPageAfterReport =
{literal(after)};

}}  // namespace mayfly::perf
""", encoding="ascii")


try:
    main(*sys.argv[1:])
except ValueError as error:
    sys.exit(f"{Path(__file__).name}: {error}")
