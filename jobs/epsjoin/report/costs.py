"""The costs of a run, expected and measured, and the time and counters of its jobs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from epsjoin.findings import Findings, MatchFindings, RunFindings, to_number
from epsjoin.pipeline import jobs_of
from epsjoin.report import words

PHASES = ("start", "read", "work", "write", "commit")
"""What the time of a job is divided into, in the order of the page."""

CPU = {
    "cpu_seconds_driver": "the drivers' Python",
    "cpu_seconds_jvm": "their JVMs",
    "cpu_seconds_workers": "the Python workers of tasks",
}
"""Counters of CPU time, and whose time they are."""


_RUNNING = re.compile(r"pairs_expected_at_(\d+)_percent")
"""Counters of what a join expected when so many percent of its parts were done."""


class Cost(NamedTuple):
    """One cost of the join.

    Parameters
    ----------
    name : what is counted.
    expected, measured : the two numbers; ``None`` if one is not known.
    write : writes such a number as text.
    text : what the number means.
    """

    name: str
    expected: float | None
    measured: float | None
    write: Callable[[object], str]
    text: str


def list_costs(findings: Findings) -> list[Cost]:
    """List what the plan expected and what the run measured: replicas, candidates and pairs first."""
    n, plan = findings.n_points, findings.plan
    joined = findings.counters.get("merge_join", {})
    replicas, candidates = to_number(findings.n_replicas), to_number(findings.n_candidates)
    all_pairs = n * (n - 1) // 2
    per_point = f"{words.measure(replicas / n, digits=3)} per point" if replicas is not None and n else ""
    compared = "pairs of rows that are compared"
    if candidates is not None and all_pairs:
        compared += f"; {words.percent(candidates / all_pairs)} of all pairs"
    largest = "replicas that one task joins"
    worker = "of the largest worker of the join; expected: an upper bound"
    starting = to_number(joined.get("starting_seconds"))
    tasks = "all tasks together, as on one core"
    if starting is not None:
        tasks += f"; without loading and compiling, {words.duration(starting)}"
    rows: list[tuple[str, str, object, Callable[[object], str], str]] = [
        ("replicas", "expected_rows", replicas, words.count, per_point),
        ("candidates", "expected_candidates", candidates, words.count, compared),
        ("pairs", "expected_pairs", findings.n_pairs, words.count, "the result"),
        ("largest part", "expected_part_rows", joined.get("largest_part_rows"), words.count, largest),
        ("memory", "expected_worker_bytes", joined.get("largest_worker_bytes"), words.size, worker),
        ("joining", "expected_seconds", joined.get("joining_seconds"), words.duration, tasks),
    ]
    if plan.get("base"):  # an increment has no parts
        rows = [row for row in rows if row[0] != "largest part"]
    costs = [
        Cost(name, to_number(plan.get(key)), to_number(found), write, text)
        for name, key, found, write, text in rows
    ]
    return [*costs[:3], *_list_running(joined, to_number(findings.n_pairs)), *costs[3:]]


def _list_running(joined: Mapping[str, Any], n_pairs: float | None) -> list[Cost]:
    """What the join itself expected while it ran, with intervals, and what came."""
    found = []
    for percent, name in sorted((int(kept[1]), kept[0]) for kept in map(_RUNNING.fullmatch, joined) if kept):
        expected, low, high = (to_number(joined.get(f"{name}{end}")) for end in ("", "_low", "_high"))
        if expected is not None:
            interval = f"{words.count(low)} to {words.count(high)} at 95 %, from those parts"
            found.append(
                Cost(f"pairs, at {percent} % of the parts", expected, n_pairs, words.count, interval)
            )
    return found


class Step(NamedTuple):
    """The time and the counters of a job.

    Parameters
    ----------
    job : name of the job.
    seconds, seconds_before : wall-clock time in this run and in the run before; ``None`` if not known.
    phases : seconds by the names in ``PHASES``, which add up to ``seconds``; empty if the start was not told
        apart.
    cpu_seconds : CPU of driver, JVM and workers; ``None`` if not known.
    counters : names and values of the job's other counters as text.
    """

    job: str
    seconds: float | None
    seconds_before: float | None
    phases: dict[str, float]
    cpu_seconds: float | None
    counters: list[tuple[str, str]]


def list_steps(findings: RunFindings) -> list[Step]:
    """List the jobs of the run in the order of the pipeline, unknown ones after them."""
    return [
        Step(
            job,
            to_number(findings.counters[job].get("seconds")),
            to_number(findings.seconds_before.get(job)),
            _divide_seconds(findings.counters[job]),
            _add_known(findings.counters[job], CPU),
            _write_counters(findings.counters[job]),
        )
        for job in sorted(findings.counters, key=_place_of)
    ]


def _place_of(job: str) -> tuple[int, str]:
    """Where a job stands in the order of all chains; one of a second data set follows the first one's."""
    jobs = dict.fromkeys((*jobs_of("trees"), *jobs_of("match")))  # documents have the jobs of points, too
    places = (place for place, name in enumerate(jobs) if job == name or job.startswith(f"{name}_"))
    return next(places, len(jobs)), job


def _divide_seconds(counters: Mapping[str, float]) -> dict[str, float]:
    """Divide a job's wall-clock time; between start and commits, by what kept driver and tasks busy."""
    total, start = to_number(counters.get("seconds")), to_number(counters.get("seconds_start"))
    if total is None or start is None:
        return {}
    commit = to_number(counters.get("seconds_commit")) or 0.0
    busy = {name: to_number(counters.get(f"seconds_{name}")) or 0.0 for name in ("read", "work", "write")}
    if not any(busy.values()):
        busy["work"] = 1.0
    scale = max(0.0, total - start - commit) / sum(busy.values())
    return {"start": start, **{name: value * scale for name, value in busy.items()}, "commit": commit}


def _add_known(counters: Mapping[str, float], names: Iterable[str]) -> float | None:
    """Add the counters that are known; ``None`` if none is."""
    known = [number for name in names if (number := to_number(counters.get(name))) is not None]
    return sum(known) if known else None


class Cpu(NamedTuple):
    """The CPU that the jobs of a run took, without the report.

    Parameters
    ----------
    seconds : of all jobs that counted it, user and system.
    parts : the same by what took it; only what is known.
    n_rows : records read from the snapshot, or from those of both data sets.
    n_jobs, n_counted : number of jobs, and of those that counted their CPU.
    """

    seconds: float
    parts: dict[str, float]
    n_rows: int
    n_jobs: int
    n_counted: int


def add_cpu(findings: RunFindings) -> Cpu | None:
    """Add up the CPU of the run's jobs; ``None`` if none of them counted it."""
    known = [seconds for step in list_steps(findings) if (seconds := step.cpu_seconds) is not None]
    if not known:
        return None
    parts = {
        text: [number for counters in findings.counters.values() if (number := _add_known(counters, [name]))]
        for name, text in CPU.items()
    }
    return Cpu(
        sum(known),
        {text: sum(numbers) for text, numbers in parts.items() if numbers},
        findings.n_read + (findings.partner.n_read if isinstance(findings, MatchFindings) else 0),
        len(findings.counters),
        len(known),
    )


def _write_counters(counters: Mapping[str, Any]) -> list[tuple[str, str]]:
    shown = {"seconds", *CPU, *(f"seconds_{name}" for name in PHASES)}
    return [
        (name, _write_counter(name, value))
        for name, value in sorted(counters.items())
        if name not in shown and not _RUNNING.match(name)
    ]


def _write_counter(name: str, value: float) -> str:
    if name == "bytes" or name.endswith("_bytes"):
        return words.size(value)
    if name.endswith("seconds"):
        return words.duration(value)
    if name == "eps":
        return words.exact(value)
    return words.measure(value) if value != int(value) else words.count(value)
