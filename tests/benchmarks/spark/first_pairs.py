"""``make bench-first-pairs``: a join of frames that adds its pairs every second, or all of them at once.

When are the first pairs there, and what does it cost the rest? And what does it cost that a join tells how
far it is (:mod:`benchmarks.spark.telling`)? It prints; nothing is written.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..measure import in_own_process
from ..page import machine, seconds, spread, table
from ..sets import BY_NAME
from .bench import RUN, Bench, rows_in, timed
from .telling import HEAD as TELLING_HEAD
from .telling import race_watched

SETS = ("cad16L", "uni8")
HEAD = ["", "wall s", "CPU s", "wall / at once", "CPU / at once", "first pairs, of the wall", "versions"]


class FirstPairs(Bench):
    """The two joins."""

    def join(self, increments: float | None) -> Mapping[str, float]:
        """Pairs, and the seconds until the first of them were committed."""
        from deltalake import DeltaTable

        import epsjoin.spark
        from epsjoin.lake.lake import Slice
        from epsjoin.spark.rows import scan

        points = scan.read(self.job.spark, self.job.lake, Slice("points", RUN))
        out = tempfile.mkdtemp(dir=self.folder) + "/pairs"
        began = time.time()
        epsjoin.spark.similarity_join(points, eps=self.eps, columns="point", to=out, increments=increments)
        history = DeltaTable(out).history()
        first = min(each["timestamp"] for each in history if each["operation"] == "WRITE") / 1e3 - began
        return {"pairs": rows_in(Path(out)), "first": first, "versions": len(history)}


def race(name: str, rounds: int) -> list[list[str]]:
    """A row for each of both; the first round warms up and is not told."""
    chosen = BY_NAME[name]
    assert chosen.eps is not None
    ways: dict[str, float | None] = {"at once": None, "every second": 1.0}
    with tempfile.TemporaryDirectory(prefix="bench-first-pairs-") as folder:
        bench = FirstPairs(chosen.make(), chosen.eps, 2, Path(folder))
        runs: list[dict[str, Any]] = []
        for number in range(rounds + 1):
            order = list(ways.items())[:: 1 if number % 2 else -1]
            runs.append({way: timed(lambda every=every: bench.join(every)) for way, every in order})
    pairs = {run[way].counters["pairs"] for run in runs for way in ways}
    if len(pairs) != 1:
        raise AssertionError(f"not always the same pairs: {pairs}")
    rows = []
    for way in ways:
        taken = [run[way] for run in runs[1:]]
        once = [run["at once"] for run in runs[1:]]
        best = min(taken, key=lambda each: each.wall)
        rows.append(
            [
                f"{name}, {way}",
                seconds(best.wall),
                seconds(best.cpu),
                spread([mine.wall / other.wall for mine, other in zip(taken, once, strict=True)]),
                spread([mine.cpu / other.cpu for mine, other in zip(taken, once, strict=True)]),
                spread([each.counters["first"] / each.wall for each in taken]),
                f"{max(each.counters['versions'] for each in taken):g}",
            ]
        )
    return rows


def race_telling(name: str, rounds: int) -> list[list[str]]:
    """What telling costs both joins in parts."""
    from epsjoin.spark.join import merge_join, replicate

    chosen = BY_NAME[name]
    assert chosen.eps is not None
    with tempfile.TemporaryDirectory(prefix="bench-telling-") as folder:
        bench = FirstPairs(chosen.make(), chosen.eps, 2, Path(folder))
        replicate.run(bench.job)
        works = {
            f"{name}, `merge_join`": lambda: merge_join.run(bench.job),
            f"{name}, `similarity_join(to=)`": lambda: bench.join(None),
        }
        return race_watched(works, rounds)


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench-first-pairs", description=__doc__)
    parser.add_argument("--only", choices=SETS)
    parser.add_argument("--rounds", type=int, default=5)
    wished = parser.parse_args()
    names = [wished.only] if wished.only else SETS
    print("\n".join([machine(), ""]))
    for head, measure in ((HEAD, race), (TELLING_HEAD, race_telling)):
        rows = [row for name in names for row in in_own_process(measure, name, wished.rounds)]
        print("\n".join([*table(head, rows), ""]), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
