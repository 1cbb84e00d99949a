"""What a run was expected to cost beside what it cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from epsjoin.findings import Findings, known
from epsjoin.pipeline import JOBS
from epsjoin.report import words


class Line(NamedTuple):
    """One cost.

    Parameters
    ----------
    name : of what is counted.
    expected, measured : ``None`` where it is not known.
    write : puts a number into words.
    text : what the number means.
    """

    name: str
    expected: float | None
    measured: float | None
    write: Callable[[object], str]
    text: str


def lines(findings: Findings) -> list[Line]:
    """Give what the plan expected and what was measured: replicas, candidates and pairs first."""
    n, plan = findings.n_points, findings.plan
    joined = findings.counters.get("merge_join", {})
    replicas, candidates = known(findings.n_replicas), known(findings.n_candidates)
    all_pairs = n * (n - 1) // 2
    per_point = f"{words.measure(replicas / n, digits=3)} per point" if replicas is not None and n else ""
    share = "distance computations"
    if candidates is not None and all_pairs:
        share += f"; {words.percent(candidates / all_pairs)} of all pairs"
    return [
        Line("replicas", known(plan.get("expected_rows")), replicas, words.count, per_point),
        Line("candidates", known(plan.get("expected_candidates")), candidates, words.count, share),
        Line("pairs", known(plan.get("expected_pairs")), findings.n_pairs, words.count, "the result"),
        Line(
            "largest part",
            known(plan.get("expected_part_rows")),
            known(joined.get("largest_part_rows")),
            words.count,
            "replicas that one task joins",
        ),
        Line(
            "memory",
            known(plan.get("expected_worker_bytes")),
            known(joined.get("largest_worker_bytes")),
            words.size,
            "of the largest worker of the join; expected: a bound",
        ),
        Line(
            "joining",
            known(plan.get("expected_seconds")),
            known(joined.get("joining_seconds")),
            words.duration,
            "all tasks together, as on one core",
        ),
    ]


class Step(NamedTuple):
    """What a job took and counted.

    Parameters
    ----------
    job : its name.
    seconds, seconds_before : wall-clock time now and in the run before; ``None`` where it is not known.
    counters : of the job, without its seconds, in words.
    """

    job: str
    seconds: float | None
    seconds_before: float | None
    counters: list[tuple[str, str]]


def steps(findings: Findings) -> list[Step]:
    """Give the jobs in the order of the pipeline, others after them."""
    order = {job: place for place, job in enumerate(JOBS)}
    return [
        Step(
            job,
            known(findings.counters[job].get("seconds")),
            known(findings.seconds_before.get(job)),
            _counters(findings.counters[job]),
        )
        for job in sorted(findings.counters, key=lambda job: (order.get(job, len(JOBS)), job))
    ]


def _counters(counters: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(name, _counter(name, value)) for name, value in sorted(counters.items()) if name != "seconds"]


def _counter(name: str, value: float) -> str:
    if name == "bytes" or name.endswith("_bytes"):
        return words.size(value)
    if name.endswith("seconds"):
        return words.duration(value)
    return words.measure(value) if value != int(value) else words.count(value)
