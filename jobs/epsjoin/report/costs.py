"""The costs of a run, expected and measured, and the time and counters of its jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from epsjoin.findings import Findings, to_number
from epsjoin.pipeline import JOBS
from epsjoin.report import words


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
    computed = "distance computations"
    if candidates is not None and all_pairs:
        computed += f"; {words.percent(candidates / all_pairs)} of all pairs"
    largest = "replicas that one task joins"
    worker = "of the largest worker of the join; expected: an upper bound"
    starting = to_number(joined.get("starting_seconds"))
    tasks = "all tasks together, as on one core"
    if starting is not None:
        tasks += f"; without loading and compiling, {words.duration(starting)}"
    rows: list[tuple[str, str, object, Callable[[object], str], str]] = [
        ("replicas", "expected_rows", replicas, words.count, per_point),
        ("candidates", "expected_candidates", candidates, words.count, computed),
        ("pairs", "expected_pairs", findings.n_pairs, words.count, "the result"),
        ("largest part", "expected_part_rows", joined.get("largest_part_rows"), words.count, largest),
        ("memory", "expected_worker_bytes", joined.get("largest_worker_bytes"), words.size, worker),
        ("joining", "expected_seconds", joined.get("joining_seconds"), words.duration, tasks),
    ]
    return [
        Cost(name, to_number(plan.get(key)), to_number(found), write, text)
        for name, key, found, write, text in rows
    ]


class Step(NamedTuple):
    """The time and the counters of a job.

    Parameters
    ----------
    job : name of the job.
    seconds, seconds_before : wall-clock time in this run and in the run before; ``None`` if not known.
    counters : names and values of the job's counters as text, without ``seconds``.
    """

    job: str
    seconds: float | None
    seconds_before: float | None
    counters: list[tuple[str, str]]


def list_steps(findings: Findings) -> list[Step]:
    """List the jobs of the run in the order of the pipeline, unknown ones after them."""
    order = {job: number for number, job in enumerate(JOBS)}
    return [
        Step(
            job,
            to_number(findings.counters[job].get("seconds")),
            to_number(findings.seconds_before.get(job)),
            _write_counters(findings.counters[job]),
        )
        for job in sorted(findings.counters, key=lambda job: (order.get(job, len(JOBS)), job))
    ]


def _write_counters(counters: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [
        (name, _write_counter(name, value)) for name, value in sorted(counters.items()) if name != "seconds"
    ]


def _write_counter(name: str, value: float) -> str:
    if name == "bytes" or name.endswith("_bytes"):
        return words.size(value)
    if name.endswith("seconds"):
        return words.duration(value)
    if name == "eps":
        return words.exact(value)
    return words.measure(value) if value != int(value) else words.count(value)
