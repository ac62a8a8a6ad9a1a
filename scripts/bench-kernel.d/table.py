# SPDX-License-Identifier: BSD-3-Clause
"""Rows of figures of both sides, as a Markdown table and as JSON."""
from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

Measurement = dict[str, Any]


@dataclass(frozen=True)
class Figure:
    """A row: `take` finds its value in one round's measurement of one side."""

    key: str
    words: str
    unit: str
    higher_is_better: bool
    take: Callable[[Measurement], float | None]


def _rate(count: str, seconds: str, and_until_gone: bool = False) -> Callable[[Measurement], float]:
    def take(of: Measurement) -> float:
        spent = of[seconds] + (of["gone_s"] if and_until_gone else 0)
        return float(of[count] / spent)

    return take


def _churn(way: str, words: str, creates: bool) -> Iterable[tuple[str, Figure]]:
    if creates:
        created = _rate("interfaces", "created_s")
        yield way, Figure(f"{way}_created_per_s", f"{words}: created", "interfaces/s", True, created)
    deleted, gone = _rate("interfaces", "deleted_s"), _rate("interfaces", "deleted_s", True)
    yield way, Figure(f"{way}_deleted_per_s", f"{words}: deleted", "interfaces/s", True, deleted)
    yield way, Figure(f"{way}_gone_per_s", f"{words}: deleted until gone", "interfaces/s", True, gone)


def _seen(window: str, words: str) -> Iterable[tuple[str, Figure]]:
    at = f"watch_{window}"

    def of(watcher: str, key: str) -> Callable[[Measurement], float | None]:
        return lambda measured: measured[watcher][key]

    if window != "idle":
        churned = _rate("churned", "seconds")
        yield at, Figure(f"{at}_churned_per_s", f"{words}, meanwhile: churned", "interfaces/s", True, churned)
    yield at, Figure(f"{at}_lost", f"{words}, meanwhile: packets lost", "packets", False, of("flow", "lost"))
    for watcher, name, shares in (("flow", "packet", ("p50", "p99")), ("client", "request", ("p50", "p99", "max"))):
        for share in shares:
            yield at, Figure(f"{at}_{name}_{share}_us", f"{words}, meanwhile: {name} {share}", "us", False,
                             of(watcher, f"{share}_us"))


WAYS = {"batch": "one by one", "group": "by group", "netns": "with their namespace"}
FIGURES: list[tuple[str, Figure]] = [
    *(figure for way, words in WAYS.items() for figure in _churn(way, words, way == "batch")),
    ("loop", Figure("loop_per_s", "namespaces in a loop: made", "namespaces/s", True, _rate("made", "seconds"))),
    ("loop", Figure("loop_gone_per_s", "namespaces in a loop: made until all are gone", "namespaces/s", True,
                    _rate("made", "seconds", True))),
    ("loop", Figure("loop_worst_ms", "namespaces in a loop: slowest one", "ms", False, lambda of: of["worst_s"] * 1e3)),
    *(figure for window, words in {"idle": "nothing", **WAYS}.items() for figure in _seen(window, words)),
    ("floor", Figure("request_ms", "one command that only asks, its process included", "ms", False,
                     lambda of: of["request_s"] * 1e3)),
    ("floor", Figure("nothing_gone_ms", "waiting until nothing is gone", "ms", False, lambda of: of["gone_s"] * 1e3)),
]


def _summary(values: list[float | None]) -> dict[str, Any]:
    known = [value for value in values if value is not None]
    if not known:
        return {"values": values, "min": None, "median": None, "max": None}
    return {"values": values, "min": min(known), "median": statistics.median(known), "max": max(known)}


def _ratio(figure: Figure, linux: float | None, mayfly: float | None) -> float | None:
    """How many times better Mayfly's median is."""
    better, worse = (mayfly, linux) if figure.higher_is_better else (linux, mayfly)
    return better / worse if better and worse else None


def rows(measured: dict[str, dict[str, list[Measurement]]]) -> list[dict[str, Any]]:
    """`measured`: side -> what -> one measurement a round."""
    found = []
    for what, figure in FIGURES:
        sides = {side: _summary([figure.take(one) for one in measured[side][what]]) for side in ("linux", "mayfly")}
        ratio = _ratio(figure, sides["linux"]["median"], sides["mayfly"]["median"])
        found.append({
            "key": figure.key, "what": figure.words, "unit": figure.unit,
            "better": "higher" if figure.higher_is_better else "lower", **sides, "ratio": ratio,
        })
    return found


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def _cell(summary: dict[str, Any]) -> str:
    return " / ".join(_number(summary[key]) for key in ("min", "median", "max"))


def markdown(found: list[dict[str, Any]], linux: str) -> str:
    lines = [f"| | unit | {linux} | Mayfly | Mayfly better by |", "|---|---|---|---|---|"]
    for row in found:
        ratio = f"{_number(row['ratio'])} x" if row["ratio"] is not None else ""
        lines.append(f"| {row['what']} | {row['unit']} | {_cell(row['linux'])} | {_cell(row['mayfly'])} | {ratio} |")
    return "\n".join(lines)
