#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Counts test results for scripts/test: prints 'PASSED FAILED', and what failed on standard error.

  test-count.py meson STATUS TESTLOG_JSON XML_DIRECTORY   GoogleTest cases one by one, other tests by their exit status
  test-count.py pytest STATUS JUNIT_XML

STATUS is the exit status of the runner. A crash, a timeout, a missing report or a runner that failed without saying
why is at least one failure: broken must never look like passed.
"""

import json
import os
import sys
import xml.etree.ElementTree as ElementTree


def cases(path):
    """(passed, failed, skipped, names of failed) of a GoogleTest or JUnit report."""
    passed = skipped = 0
    failed = []
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        if case.find("failure") is not None or case.find("error") is not None:
            failed.append(name)
        elif case.find("skipped") is not None or case.get("result") == "skipped":
            skipped += 1
        elif case.get("status") != "notrun":
            passed += 1
    return passed, len(failed), skipped, failed


def report(failures, skipped):
    for name in failures:
        print(f"failed: {name}", file=sys.stderr)
    if skipped:
        print(f"skipped: {skipped}", file=sys.stderr)


def count_program(entry, directory):
    """Counts of one test program: (passed, skipped, names of failed)."""
    result = entry["result"]
    if result in ("SKIP", "EXPECTEDFAIL"):
        return 0, 1, []
    good = result == "OK"
    program = next((os.path.basename(word) for word in entry["command"]
                    if os.path.exists(os.path.join(directory, os.path.basename(word) + ".xml"))), None)
    if program is None:
        return (1, 0, []) if good else (0, 0, [f"{entry['name']} ({result})"])
    try:
        passed, _, skipped, failed = cases(os.path.join(directory, program + ".xml"))
    except ElementTree.ParseError:
        passed, skipped, failed = 0, 0, [f"{entry['name']} (unreadable report)"]
    if not good and not failed:
        failed = [f"{entry['name']} ({result}, exit status {entry['returncode']})"]
    return passed, skipped, failed


def count_meson(status, log, directory):
    passed, skipped, failed = 0, 0, []
    try:
        with open(log, encoding="utf-8") as lines:
            entries = [json.loads(line) for line in lines if line.strip()]
    except (OSError, ValueError):
        entries = []
    if not entries:
        failed.append(f"unit tests: no results in {log}")
    for entry in entries:
        more_passed, more_skipped, more_failed = count_program(entry, directory)
        passed += more_passed
        skipped += more_skipped
        failed += more_failed
    if status != 0 and not failed:
        failed.append(f"unit tests: the runner ended with status {status}")
    report(failed, skipped)
    return passed, len(failed)


PYTEST_NOTHING_COLLECTED = 5


def count_pytest(status, path):
    passed, skipped, failed = 0, 0, []
    try:
        passed, _, skipped, failed = cases(path)
    except (OSError, ElementTree.ParseError):
        failed.append(f"whole-process tests: no results in {path}")
    if status not in (0, PYTEST_NOTHING_COLLECTED) and not failed:
        failed.append(f"whole-process tests: pytest ended with status {status}")
    report(failed, skipped)
    return passed, len(failed)


def main(words):
    if len(words) == 4 and words[0] == "meson":
        passed, failed = count_meson(int(words[1]), words[2], words[3])
    elif len(words) == 3 and words[0] == "pytest":
        passed, failed = count_pytest(int(words[1]), words[2])
    else:
        print(__doc__, file=sys.stderr)
        return 2
    print(passed, failed)
    return 0


sys.exit(main(sys.argv[1:]))
