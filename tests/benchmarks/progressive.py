"""``make bench-progressive``: joins larger than memory, the first pairs, and whether the estimate holds.

Each set is written as Parquet and joined in a process of its own, whose growth is measured as in ``make
bench``; CPU time beside that of reading the same file into memory and ``self_join``. The peers have one table
in memory and take the other in chunks, or build an index first. An anti join, whose pairs nobody could keep,
has a limit of seconds and of bytes, and a verdict.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import epsjoin
from epsjoin import Band, Similarity
from epsjoin.local.progressive.driver import Driver
from epsjoin.local.progressive.options import Options
from epsjoin.local.progressive.running import RunningEstimate
from epsjoin.local.progressive.sizes import Sizes
from epsjoin.local.progressive.sources import ArraySource
from epsjoin.local.progressive.spill import Spill
from oracles.papers import spilled_bytes

from .measure import clocked, growth_bytes, in_own_process, timed
from .page import count, machine, put, seconds, table
from .sets import BY_NAME, Points, cad

PAGE = Path(__file__).resolve().parents[2] / "docs" / "benchmarks" / "progressive.md"
GROUP_ROWS = 1 << 16
"""Rows of a row group."""
PEER_ROWS, PEER_CHUNK = 60_000, 10_000
"""Rows that the peers join, and rows of a chunk of theirs."""
ANTI_EPS, ANTI_PAIRS = 1.5, 5_159_105_997
"""Threshold of the anti join, and the pairs of an inner join, as ``tests/data/expected.json`` says."""
ANTI_SECONDS, ANTI_BYTES = 10, 300_000_000
"""What the anti join may take."""


class Joined(NamedTuple):
    """What a join of a file took.

    Parameters
    ----------
    pairs, cpu, growth : number of pairs, CPU seconds of all, bytes that the process grew by.
    first_cpu : CPU seconds until the first pairs.
    counters : of the join.
    """

    pairs: int
    cpu: float
    growth: int
    first_cpu: float
    counters: dict[str, Any]


def write(points: Iterator[Points], file: Path) -> None:
    """Parquet without compression, so that reading is not what is measured."""
    writer = None
    for some in points:
        for begin in range(0, len(some), GROUP_ROWS):
            rows = some[begin : begin + GROUP_ROWS]
            group = pa.table({f"x{i}": rows[:, i] for i in range(rows.shape[1])})
            if writer is None:
                writer = pq.ParquetWriter(file, group.schema, compression="none", use_dictionary=False)
            writer.write_table(group)
    if writer is not None:
        writer.close()


def copies(n: int) -> Iterator[Points]:
    """The points of cad16L, n times beside each other."""
    points = BY_NAME["cad16L"].make()
    for number in range(n):
        yield points + 2.0 * number


def join_file(file: Path, eps: float, memory: str) -> Joined:
    """Join a file after a small one, for which everything is compiled and imported."""
    small = np.random.default_rng(0).random((9000, 16))
    list(epsjoin.progressive_join(small, on=Similarity(eps), memory="2MB"))
    counters: dict[str, Any] = {}
    marks: list[float] = []

    def work() -> None:
        begin = time.process_time()
        pairs = 0
        with epsjoin.progressive_join(file, on=Similarity(eps), memory=memory, counters=counters) as found:
            for batch, *_ in found:
                if not marks:
                    marks.append(time.process_time() - begin)
                pairs += len(batch.left)
        marks.extend((time.process_time() - begin, pairs))

    growth = growth_bytes(work)
    return Joined(int(marks[2]), marks[1], growth, marks[0], counters)


def self_join_cpu(file: Path, eps: float) -> float:
    """CPU seconds of reading the same file and joining it in memory."""
    epsjoin.self_join(np.random.default_rng(0).random((9000, 16)), eps)

    def work() -> None:
        read = pq.read_table(file, use_threads=False)
        points = np.stack([column.to_numpy() for column in read.columns], axis=1)
        del read
        epsjoin.self_join(points, eps)

    return clocked(work).cpu


def files_section(folder: Path) -> list[str]:
    """The sets from Parquet."""
    rows = []
    for name, n, memory in (("cad16L", 1, "64MB"), ("four copies of cad16L", 4, "256MB")):
        file, eps = folder / f"{n}.parquet", BY_NAME["cad16L"].eps
        assert eps is not None
        write(copies(n), file)
        joined = in_own_process(join_file, file, eps, memory)
        whole = in_own_process(self_join_cpu, file, eps)
        counters = joined.counters
        stored = counters["bytes_written"] / counters["replicas"]
        formula = spilled_bytes(counters["replicas"], 8 * 16 + 8 + 4 + 8 + 1, counters["runs"], 32)
        assert abs(stored - 149) < 1
        written = f"{counters['bytes_written'] / 2**20:,.0f}"
        rows.append(
            [
                *(name, memory, count(joined.pairs), f"{joined.first_cpu:.3f}"),
                f"{100 * counters['first_pair_rows'] / counters['rows']:.2f} %",
                f"{seconds(joined.cpu)} ({joined.cpu / whole:.2f}x)",
                f"{joined.growth / 2**20:,.0f}",
                f"{written} ({100 * counters['bytes_written'] / formula:.1f} %)",
                f"{counters['runs']}, {counters['replicas'] / counters['rows']:.3f}",
            ]
        )
    head = [
        *("set", "memory", "pairs", "CPU s to the first", "rows read before"),
        *("CPU s (`self_join`)", "grows by MB", "MB written (of the formula)", "runs, rows per point"),
    ]
    return ["", "## From Parquet", "", *table(head, rows)]


def by_tree(points: Points, eps: float) -> Iterator[int]:
    """A tree of each chunk, and each pair of chunks."""
    from scipy.spatial import cKDTree

    chunks = [points[at : at + PEER_CHUNK] for at in range(0, len(points), PEER_CHUNK)]
    for i, chunk in enumerate(chunks):
        tree = cKDTree(chunk)
        yield len(tree.query_pairs(eps, output_type="ndarray"))
        for other in chunks[i + 1 :]:
            yield int(tree.count_neighbors(cKDTree(other), eps))


def by_sklearn(points: Points, eps: float) -> Iterator[int]:
    """An index of all points, asked chunk by chunk; each pair comes twice and counts once."""
    from sklearn.neighbors import NearestNeighbors

    index = NearestNeighbors(radius=eps).fit(points)
    for at in range(0, len(points), PEER_CHUNK):
        found = index.radius_neighbors(points[at : at + PEER_CHUNK], return_distance=True)[1]
        yield sum(np.count_nonzero(near > row) for row, near in enumerate(found, at))


def by_duckdb(points: Points, eps: float) -> Iterator[int]:
    """A range join along the first axis, and the distance of what it lets through; one answer."""
    import duckdb

    columns = [f"x{axis}" for axis in range(points.shape[1])]
    rows = pa.table({"row": np.arange(len(points)), **dict(zip(columns, points.T, strict=True))})
    connection = duckdb.connect(config={"threads": 1, "memory_limit": "256MB"})
    connection.register("rows", rows)
    connection.execute("CREATE TABLE points AS SELECT * FROM rows")
    squares = " + ".join(f"(a.{name} - b.{name}) * (a.{name} - b.{name})" for name in columns)
    query = (  # of names and numbers of this file
        f"SELECT count(*) FROM points a JOIN points b ON b.x0 BETWEEN a.x0 - {eps!r} AND a.x0 + {eps!r} "
        f"WHERE a.row < b.row AND {squares} <= {eps * eps!r}"
    )
    found = connection.execute(query).fetchone()
    yield 0 if found is None else int(found[0])


def by_us(points: Points, eps: float) -> Iterator[int]:
    with epsjoin.progressive_join(points, on=Similarity(eps), memory="8MB") as found:
        for batch, *_ in found:
            yield len(batch.left)


def race(contender: Callable[[Points, float], Iterator[int]]) -> tuple[float, float, int]:
    """CPU seconds to the first answer and to the last, and the number of pairs."""
    points, eps = cad(PEER_ROWS), 0.012
    list(contender(points[:2000], eps))
    begin = time.process_time()
    answers = contender(points, eps)
    found = next(answers)
    first = time.process_time() - begin
    found += sum(answers)
    return first, time.process_time() - begin, found


def peers_section() -> list[str]:
    """The first pairs and all of them, of us and of others."""
    rows = []
    contenders = [
        ("`progressive_join`, 8 MB", by_us),
        ("`cKDTree` of chunks (pairs of chunks only counted)", by_tree),
        ("`NearestNeighbors.radius_neighbors` of chunks", by_sklearn),
    ]
    if find_spec("duckdb"):
        contenders.append(("DuckDB, range join along one axis (only counted)", by_duckdb))
    for name, contender in contenders:
        first, cpu, pairs = in_own_process(race, contender)
        rows.append([name, f"{first:.3f}", seconds(cpu), count(pairs)])
    text = f"## Beside others, {PEER_ROWS:,} rows of the surface, 16 columns"
    return ["", text, "", *table(["", "CPU s to the first pairs", "CPU s", "pairs"], rows)]


class Alone(NamedTuple):
    """What an anti join of skin's even rows with its odd ones took.

    Parameters
    ----------
    rows : even rows without a partner.
    cpu, wall : seconds of the first join, of all threads.
    growth : bytes that the process grew by during the second.
    candidates : rows that were compared.
    """

    rows: int
    cpu: float
    wall: float
    growth: int
    candidates: int


def anti_join(eps: float) -> Alone:
    """Join once for the time and once for the memory, after a small one for which everything is compiled."""
    points = BY_NAME["skin"].make()
    even, odd = points[::2], points[1::2]
    counters: dict[str, int] = {}

    def join(step: int = 1, counters: dict[str, int] | None = None) -> int:
        some = even[::step], odd[::step]
        return len(epsjoin.join(*some, eps, how="anti", n_jobs=2, counters=counters).left)

    join(100)
    cpu, wall, rows = timed(lambda: join(counters=counters))
    return Alone(rows, cpu, wall, growth_bytes(join), counters["candidates"])


def anti_section() -> list[str]:
    """The rows of a dense set without a partner, whose pairs nobody could keep."""
    done = in_own_process(anti_join, ANTI_EPS)
    holds = done.wall <= ANTI_SECONDS and done.growth <= ANTI_BYTES
    limits = f"{ANTI_SECONDS} s and {ANTI_BYTES / 1e6:.0f} MB"
    row = [
        *(f"{ANTI_EPS:g}", count(ANTI_PAIRS), count(done.candidates), count(done.rows)),
        *(f"{done.cpu:.2f}", f"{done.wall:.2f}", f"{done.growth / 1e6:,.0f}"),
        f"{'holds' if holds else 'does not hold'}: {limits}",
    ]
    head = [
        *("eps", "pairs, never made", "rows compared", "even rows without a partner"),
        *("CPU s, two threads", "wall s", "grows by MB", "verdict"),
    ]
    return ["", "## An anti join of a dense set: skin's even rows and its odd ones", "", *table(head, [row])]


class Estimated(NamedTuple):
    """A join of one seed: the pairs, the estimates, and whether the order check passed after so many runs."""

    pairs: int
    estimates: dict[tuple[str, int], RunningEstimate]
    is_random: dict[int, bool]


def estimates(seed: int, *, by_cluster: bool, n: int = 2000, eps: float = 0.05) -> Estimated:
    """Estimates of the join of two tables of a mixture in one dimension, in 20 runs."""
    centres, weights = (
        np.random.default_rng(7).random(20) * 100,
        np.random.default_rng(8).dirichlet([0.7] * 20),
    )
    tables = []
    for number in (2 * seed, 2 * seed + 1):
        random = np.random.default_rng(number)
        cluster = random.choice(20, n, p=weights)
        cluster = np.sort(cluster) if by_cluster else cluster
        tables.append((centres[cluster] + random.normal(size=n) * 0.5)[:, None])
    counters: dict[str, Any] = {}
    spill = Spill(None, counters)
    sizes = Sizes(2 * n // 20, (), 64, 10, 50)
    driver = Driver(
        [ArraySource(one) for one in tables], Band(eps), Options("inner", "last", sizes), spill, counters
    )
    found: dict[tuple[str, int], RunningEstimate] = {}
    is_random: dict[int, bool] = {}
    pairs = 0
    try:
        for batch in driver.run():
            pairs += len(batch.pairs.left)
            if batch.phase == "runs":
                found.setdefault(("run", driver.n_runs), batch.estimate)
                is_random[driver.n_runs] = driver.is_random
            else:
                for percent in (10, 50, 90):
                    if 100 * driver.merged >= percent:
                        found.setdefault(("merge", percent), batch.estimate)
    finally:
        spill.close()
    return Estimated(pairs, found, is_random)


def coverage(done: list[Estimated], at: tuple[str, int]) -> tuple[float, float, float, int]:
    """First and last tenth of estimate / truth, the fraction of intervals that hold it, how many."""
    known = [(one.pairs, one.estimates[at]) for one in done if at in one.estimates]
    ratios = [estimate.pairs / pairs for pairs, estimate in known if estimate.pairs is not None]
    holds = [
        estimate.low <= pairs <= estimate.high
        for pairs, estimate in known
        if estimate.low is not None and estimate.high is not None
    ]
    low, high = np.quantile(ratios, [0.1, 0.9]).tolist()
    return low, high, float(np.mean(holds)) if holds else float("nan"), len(holds)


def coverage_section(seeds: int) -> list[str]:
    """The table of the estimate."""
    rows = []
    for by_cluster in (False, True):
        done = [estimates(seed, by_cluster=by_cluster) for seed in range(seeds)]
        cells = []
        for at in (("run", 1), ("run", 5), ("run", 10), ("merge", 10), ("merge", 50), ("merge", 90)):
            low, high, holds, n = coverage(done, at)
            held = f"({holds:.2f} of {n})" if n else "(no interval)"
            cells.append(f"{low:.2f} – {high:.2f} {held}")
        alarms = [[not one.is_random.get(k, True) for one in done] for k in (2, 5, 19)]
        cells.append(", ".join(f"{100 * np.mean(alarm):.1f} %" for alarm in alarms))
        rows.append(["by cluster" if by_cluster else "shuffled", *cells])
    head = ["rows come", "after run 1", "5", "10", "merge 10 %", "50 %", "90 %", "alarms after 2, 5, 19 runs"]
    text = f"estimate / truth, 10 – 90 % of {seeds} seeds (intervals that hold the truth)"
    return ["", f"## The estimate while it runs: {text}", "", *table(head, rows)]


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=("files", "peers", "anti", "estimate"))
    parser.add_argument("--seeds", type=int, default=200)
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        sections = {
            "files": lambda: files_section(Path(folder)),
            "peers": peers_section,
            "anti": anti_section,
            "estimate": lambda: coverage_section(chosen.seeds),
        }
        if chosen.only:
            print("\n".join(sections[chosen.only]()))
            return
        lines = [machine(), *(line for section in sections.values() for line in section())]
    put(PAGE, "\n".join(lines))


if __name__ == "__main__":
    main(sys.argv[1:])
