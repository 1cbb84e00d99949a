"""``make bench-increments``: what the steps of a run cost by increment, and joining all points.

Its page is docs/benchmarks/increments.md. One process per set holds a session, in which all steps run; its
start is not counted. Every round begins each change, and one whole run, with a copy of the base's lake. CPU
is that of driver, JVM and workers, by a control group.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from tiny import coordinate, key, new_lake

from ..measure import cpu_meter, in_own_process, timed
from ..page import count, machine, put, seconds, spread, table
from ..sets import BY_NAME
from .bench import environment

PAGE = Path(__file__).resolve().parents[3] / "docs" / "benchmarks" / "increments.md"
BASE, RUN = "2023-01-01", "2023-02-01"
WHOLE = "whole"
CHANGES: Mapping[str, tuple[float, bool]] = {
    "1 % at random": (0.01, False),
    "1 % in one place": (0.01, True),
    "0.1 % at random": (0.001, False),
    "nothing": (0.0, False),
}
"""The changes: the fraction of the rows, and whether they are neighbours on the first axis."""

ROUNDS = {"cad16L": 3, "uni8": 5, "clusters": 4}
"""Rounds where nobody says another number."""

SETS = {"cad16L": 0.4, "uni8": 0.2}
"""The sets, and what replicate and merge_join may cost by increment at 1 % at random, of a whole run's."""

CPU = dict[str, dict[str, list[float]]]
"""CPU seconds by kind (a change, or ``WHOLE``), step and round."""


def change(points: Any, ids: Any, fraction: float, *, is_local: bool) -> tuple[Any, Any]:
    """Change some rows: half of them move, a quarter goes, as many come; where the others are."""
    import numpy as np

    random = np.random.default_rng(1)
    n_changed = round(fraction * len(points))
    first = int(random.integers(0, len(points) - n_changed))
    near = np.argsort(points[:, 0], kind="stable")[first : first + n_changed]
    rows = random.permutation(near) if is_local else random.choice(len(points), n_changed, replace=False)
    moved, deleted = rows[: n_changed // 2], rows[n_changed // 2 : n_changed // 2 + n_changed // 4]
    among = near if is_local else np.arange(len(points))
    n_placed = len(moved) + len(deleted)
    at = points[random.choice(among, n_placed)] if n_placed else points[:0]
    at = at + random.normal(0, 1e-3, at.shape)
    now = points.copy()
    now[moved] = at[: len(moved)]
    came = at[len(moved) :]
    kept = np.setdiff1d(np.arange(len(points)), deleted)
    new_ids = ids.max() + 1 + np.arange(len(came))
    return np.concatenate((now[kept], came)), np.concatenate((ids[kept], new_ids))


def measure(name: str, n_rows: int | None, rounds: int) -> tuple[int, str, CPU, dict[str, float]]:
    """Measure a set, in a process of its own: its rows, whose CPU it is, that CPU, the pairs by kind."""
    os.environ |= environment(2)
    with cpu_meter() as meter, tempfile.TemporaryDirectory(prefix="bench-increments-") as scratch:
        meter.add(os.getpid())  # before the session starts what it starts
        import numpy as np
        import pyarrow as pa
        import pyarrow.csv as pcsv

        from epsjoin.params import RunParams
        from epsjoin.spark.job.job import Job
        from epsjoin.spark.job.session import get_session
        from epsjoin.spark.startup.rehearse import STEPS

        folder, chosen = Path(scratch), BY_NAME[name]
        points = chosen.make()[:n_rows]
        ids = np.arange(len(points))
        names = [f"x{axis}" for axis in range(points.shape[1])]

        def write(run: str, rows: Any, of: Any) -> None:
            columns = [of, *(rows[:, axis] for axis in range(rows.shape[1]))]
            pcsv.write_csv(pa.table(columns, ["id", *names]), folder / f"{run}.csv")

        columns = [key(), *map(coordinate, names)]
        lake = new_lake(folder, columns, path="{date}.csv", interval="month")
        params = RunParams(eps=chosen.eps)
        job = Job(partial(get_session, "bench"), lake, BASE, params, folder)
        write(BASE, points, ids)
        for step in STEPS.values():
            step(job)
        cpu: CPU = {}
        pairs: dict[str, float] = {}
        changed = {kind: change(points, ids, of[0], is_local=of[1]) for kind, of in CHANGES.items()}
        for number in range(rounds):
            # what is loaded once is loaded by the base, and by the changes that are no goals
            kinds = (WHOLE, *reversed(changed))
            for kind in kinds:
                rows, of = changed[next(iter(CHANGES)) if kind == WHOLE else kind]
                write(RUN, rows, of)
                place = folder / f"lake-{number}"
                shutil.copytree(folder / "lake", place)
                increment = 0.0 if kind == WHOLE else params.increment
                mine = replace(
                    job,
                    lake=replace(lake, uri=place.as_uri()),
                    run=RUN,
                    params=replace(params, increment=increment),
                )
                for step_name, step in STEPS.items():
                    before = meter.seconds()
                    counters = step(mine)
                    spent = meter.seconds() - before
                    cpu.setdefault(kind, {}).setdefault(step_name, []).append(spent)
                    if step_name == "merge_join":
                        is_increment = "joined_pairs" in counters
                        if is_increment == (kind == WHOLE):
                            raise RuntimeError(
                                f"{kind}: this was {'' if is_increment else 'not '}an increment"
                            )
                        pairs[kind] = counters["pairs"]
                    print(f"  {name} {kind} {step_name}: {spent:.2f} CPU s", flush=True)
                shutil.rmtree(place)
        if pairs[WHOLE] != pairs[next(iter(CHANGES))]:
            raise RuntimeError("an increment has other pairs than a whole run")
        mine.spark.stop()
        return len(points), meter.counts, cpu, pairs


def join_ratios(cpu: CPU, kind: str) -> list[float]:
    """CPU of replicate and merge_join of a change, as a share of a whole run's: a number for each round."""
    mine, whole = (
        zip(cpu[each]["replicate"], cpu[each]["merge_join"], strict=True) for each in (kind, WHOLE)
    )
    return [sum(one) / sum(other) for one, other in zip(mine, whole, strict=True)]


def lines_of(name: str, found: tuple[int, str, CPU, dict[str, float]]) -> list[str]:
    """A set's table: the median µs of CPU a row of each step, and the verdict."""
    n_rows, counts, cpu, pairs = found
    kinds = [WHOLE, *CHANGES]
    middle = {kind: {step: median(of) for step, of in cpu[kind].items()} for kind in kinds}
    rows = [[step, *(seconds(1e6 * middle[kind][step] / n_rows) for kind in kinds)] for step in cpu[WHOLE]]
    rows.append(["all steps", *(seconds(1e6 * sum(middle[kind].values()) / n_rows) for kind in kinds)])
    ratios = {kind: join_ratios(cpu, kind) for kind in CHANGES}
    rows.append(["replicate + merge_join, of whole", "1", *map(spread, ratios.values())])
    rows.append(["pairs", *(count(int(pairs[kind])) for kind in kinds)])
    first = next(iter(CHANGES))
    verdict = "met" if median(ratios[first]) <= SETS[name] else "**missed**"
    said = f"replicate + merge_join at {first}: {spread(ratios[first])} of whole"
    goal = f"{said}; goal: at most {SETS[name]:g}, {verdict}."
    what = "Medians of µs of CPU a row, and of the ratio in each round (its smallest and largest)"
    return [f"{what}; the CPU is that of {counts}.", "", *table(["", *kinds], rows), "", goal]


CLUSTERS = "clusters"
"""What ``--only`` calls the clusters of arrays, updated and made anew."""
CLUSTERED, MIN_PTS = "cad16L", 5


def measure_clusters(n_rows: int | None, rounds: int) -> tuple[int, list[list[str]]]:
    """Measure clusters from those before, and from all pairs: the rows of the set, those of the table."""
    import numpy as np

    from epsjoin import dbscan, self_join, update_clusters, update_join
    from epsjoin.local.cluster.from_pairs import connect, number_points

    of = BY_NAME[CLUSTERED]
    points = np.ascontiguousarray(of.make()[:n_rows])
    ids = np.arange(len(points))
    pairs, clusters = self_join(points, of.eps, ids=ids), dbscan(points, of.eps, MIN_PTS)
    rows = []
    for kind, (fraction, is_local) in CHANGES.items():
        now, ids_now = change(points, ids, fraction, is_local=is_local)
        order = np.argsort(ids_now)
        now, ids_now = now[order], ids_now[order]
        pairs_now = update_join(pairs, points, now, ids, ids_now, of.eps)

        def anew(found: Any = pairs_now) -> Any:
            part = number_points(found.left, found.right)
            degree = 1 + np.bincount(np.concatenate(part[1:]), minlength=len(part.ids))
            return connect(part, found.distance, degree >= MIN_PTS)

        def update(found: Any = pairs_now, ids_now: Any = ids_now) -> Any:
            work: dict[str, int] = {}
            before = clusters, pairs, found, ids, ids_now
            return update_clusters(*before, MIN_PTS, counters=work), work

        runs = [(timed(update), timed(anew)) for _ in range(rounds)]
        found, work = runs[0][0].answer
        is_core = found.is_core[np.searchsorted(ids_now, pairs_now[:2])].all(axis=0)
        looked_at = work["united_pairs"] + work["border_pairs"]
        numbers = (len(pairs_now.left), int(is_core.sum()), work["hurt_clusters"], looked_at)
        best = (1e3 * min(run[way].cpu for run in runs) for way in (0, 1))
        rows.append([kind, *map(count, numbers), *map(seconds, best)])
    return len(points), rows


def cluster_lines(rows: Sequence[Sequence[str]]) -> list[str]:
    """The table of clusters."""
    head = ["changed", "pairs", "of two core points", "clusters hurt", "pairs looked at"]
    return [
        "The least of the rounds.",
        "",
        *table([*head, "ms by `update_clusters`", "ms from all pairs"], rows),
    ]


def main(arguments: Sequence[str], call: Callable[..., Any] = in_own_process) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only", choices=[*SETS, CLUSTERS], action="append", help="print it; no page is written"
    )
    parser.add_argument("--rows", type=int, help="only the first so many rows; no page is written")
    parser.add_argument("--rounds", type=int)
    given = parser.parse_args(arguments)
    lines = [f"{machine()}; local[2]. The machine had other work: trust ratios, not seconds."]
    for name in given.only or (*SETS, CLUSTERS):
        rounds = given.rounds or ROUNDS[name]
        if name == CLUSTERS:
            n_rows, rows = call(measure_clusters, given.rows, rounds)
            title, of_name = f"clusters of {CLUSTERED}, arrays", cluster_lines(rows)
        else:
            found = call(measure, name, given.rows, rounds)
            n_rows, title, of_name = found[0], name, lines_of(name, found)
        of_rounds = "one round" if rounds == 1 else f"{rounds} rounds"
        of_set = ["", f"## {title}, {count(n_rows)} rows, {of_rounds}", "", *of_name]
        print("\n".join(of_set), flush=True)
        lines += of_set
    if not given.only and not given.rows:
        put(PAGE, "\n".join(lines))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
