"""What is asked: each question gives a section of the page, whether all results agreed, and what is drawn."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from epsjoin import estimate, fit_epsilon, iter_self_join

from .contenders import (
    Clusters,
    Contender,
    are_same_clusters,
    ckdtree_pairs,
    epsjoin_clusters,
    epsjoin_pairs,
    join_contenders,
    machine_limit,
    sklearn_clusters,
)
from .measure import LIMIT, Call, Round, growth_bytes, peak_bytes, race, timed
from .page import count, megabytes, seconds, spread, table
from .sets import BY_NAME, GROWTH_DIMENSIONS, GROWTH_ROWS, SETS, Set, skin

NEIGHBOURS = 5
FIT_ROWS = 200_000  # ten times the usual, for 2,000,000 rows: 4.9 neighbours come out, not 4.4
STREAM_PAIRS = 50_000_000
CKDTREE_ROWS = (
    630_000  # no more than this in the table of growth: 2,000,000 rows take it half a minute a round
)


class Curve(NamedTuple):
    """CPU seconds of the contenders at each x, which is n or d; a contender may stop early."""

    axis: str
    label: str
    x: list[int]
    seconds: dict[str, list[float]]

    @property
    def picture(self) -> str:
        return f"pictures/benchmarks-growth-{self.axis}.svg"


@dataclass
class Answer:
    """A section of the page.

    Parameters
    ----------
    title, lines : its heading and its text, a table for the most part.
    is_right : whether all contenders agreed.
    ratios : peer's CPU seconds / ours, of each round, by set.
    curve : cost against size.
    """

    title: str
    lines: list[str]
    is_right: bool = True
    ratios: dict[str, list[float]] = field(default_factory=dict)
    curve: Curve | None = None


class Stored(NamedTuple):
    """Points in a file, for the processes that measure."""

    file: Path
    eps: float
    shape: tuple[int, int]

    @property
    def size(self) -> str:
        return f"{self.shape[0]:,} × {self.shape[1]}"


def save(chosen: Set, file: Path) -> Stored:
    points = chosen.make()
    eps = chosen.eps
    if eps is None:
        eps = fit_epsilon(points, sample_rows=FIT_ROWS).eps_for(neighbours=NEIGHBOURS)
    np.save(file, points)
    return Stored(file, eps, (points.shape[0], points.shape[1]))


@contextmanager
def stored(call: Call, chosen: Set) -> Iterator[Stored]:
    """The set's points in a file that is deleted afterwards."""
    with TemporaryDirectory(prefix="epsjoin-bench-") as folder:
        yield call(save, chosen, Path(folder) / "points.npy")


def medians(rounds: Sequence[Round], clock: str = "cpu") -> dict[str, float]:
    return {name: statistics.median(getattr(one[name], clock) for one in rounds) for name in rounds[0]}


def ratios(rounds: Sequence[Round], peer: str, mine: str, clock: str = "cpu") -> list[float]:
    return [getattr(one[peer], clock) / getattr(one[mine], clock) for one in rounds]


def agreed(rounds: Iterable[Round]) -> tuple[str, bool]:
    """The number of pairs, or the different ones."""
    answers = sorted({run.answer for one in rounds for run in one.values()})
    if len(answers) == 1:
        return count(answers[0]), True
    return f"**DIFFERENT: {', '.join(map(count, answers))}**", False


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def joins(
    call: Call,
    sets: Sequence[Set] = SETS,
    rounds: int | None = None,
    of_set: Callable[[Set], Mapping[str, Contender]] = join_contenders,
) -> Answer:
    """All pairs within eps: CPU, wall and memory against the peer."""
    answer = Answer("All pairs within eps, one thread", [])
    rows = []
    for chosen in sets:
        contenders = of_set(chosen)
        peer, mine, unsorted = contenders
        with stored(call, chosen) as points:
            timings = call(race, contenders, points.file, points.eps, rounds or chosen.rounds, machine_limit)
            peaks = {name: call(peak_bytes, one, points.file, points.eps) for name, one in contenders.items()}
        pairs, is_right = agreed(timings)
        answer.is_right &= is_right
        cpu, wall = medians(timings), medians(timings, "wall")
        answer.ratios[chosen.name] = ratios(timings, peer, mine)
        rows.append(
            [
                f"{chosen.name}: {chosen.what}",
                points.size,
                f"{points.eps:g}",
                pairs,
                peer,
                f"{seconds(cpu[peer])} / {seconds(cpu[mine])}",
                f"{seconds(wall[peer])} / {seconds(wall[mine])}",
                f"**{spread(answer.ratios[chosen.name])}**",
                spread(ratios(timings, peer, unsorted)),
                seconds(cpu[LIMIT]),
                spread(ratios(timings, mine, LIMIT)),
                f"{megabytes(peaks[peer])} / {megabytes(peaks[mine])}",
            ]
        )
        _say(f"{chosen.name}: {pairs} pairs, {spread(answer.ratios[chosen.name])}")
    head = ["set", "n × d", "eps", "pairs", "peer", "CPU s: peer / epsjoin", "wall s", "times faster, by CPU"]
    answer.lines = table([*head, "unsorted", "limit CPU s", "× limit", "peak MB"], rows)
    return answer


def threads(
    call: Call,
    sets: Sequence[Set] = (BY_NAME["uni2"], BY_NAME["uni8"], BY_NAME["cad16L"]),
    rounds: int | None = None,
) -> Answer:
    """Two threads of ours against one, and against the peer, which has one, by wall time."""
    one, two = "epsjoin", "epsjoin, n_jobs=2"
    contenders: dict[str, Contender] = {
        "cKDTree": ckdtree_pairs,
        one: epsjoin_pairs,
        two: partial(epsjoin_pairs, n_jobs=2),
    }
    answer = Answer("Two threads", [])
    rows = []
    for chosen in sets:
        with stored(call, chosen) as points:
            timings = call(race, contenders, points.file, points.eps, rounds or chosen.rounds)
        pairs, is_right = agreed(timings)
        answer.is_right &= is_right
        wall, cpu = medians(timings, "wall"), medians(timings)
        rows.append(
            [
                f"{chosen.name}, {points.size}",
                pairs,
                " / ".join(seconds(wall[name]) for name in contenders),
                " / ".join(seconds(cpu[name]) for name in contenders),
                f"**{spread(ratios(timings, one, two, 'wall'))}**",
                spread(ratios(timings, two, one)),
                spread(ratios(timings, "cKDTree", two, "wall")),
            ]
        )
        _say(f"threads: {chosen.name}: {pairs} pairs, {spread(ratios(timings, one, two, 'wall'))}")
    names = "cKDTree / one / two threads"
    head = ["set", "pairs", f"wall s: {names}", f"CPU s: {names}", "two against one, by wall"]
    answer.lines = table([*head, "CPU of two / of one", "than cKDTree, by wall"], rows)
    return answer


def dbscan(
    call: Call,
    sets: Sequence[Set] = (BY_NAME["cad16"], BY_NAME["hist64"]),
    rounds: int | None = None,
    mine: Callable[[Any, float], Clusters] = epsjoin_clusters,
) -> Answer:
    """Clusters against scikit-learn: as it chooses its search, and by its tree."""
    contenders: dict[str, Contender] = {
        "auto": sklearn_clusters,
        "kd_tree": partial(sklearn_clusters, algorithm="kd_tree"),
        "epsjoin": mine,
    }
    answer, rows = Answer("DBSCAN, min_pts 5", []), []
    for chosen in sets:
        with stored(call, chosen) as points:
            timings = call(race, contenders, points.file, points.eps, rounds or 1)
        found = timings[0]["epsjoin"].answer
        is_right = all(are_same_clusters(found, run.answer) for one in timings for run in one.values())
        answer.is_right &= is_right
        clusters = count(len(np.unique(found.labels[found.is_core])))
        cpu = medians(timings)
        by = {name: spread(ratios(timings, name, "epsjoin")) for name in ("auto", "kd_tree")}
        rows.append(
            [
                f"{chosen.name}, {points.size}, eps {points.eps:g}",
                clusters if is_right else f"{clusters} **DIFFERENT**",
                *(seconds(cpu[name]) for name in contenders),
                f"**{by['auto']}**",
                f"**{by['kd_tree']}**",
            ]
        )
        _say(f"dbscan {chosen.name}: {clusters} clusters, {by['auto']}, {by['kd_tree']}")
    head = ["set", "clusters", "CPU s: scikit-learn", 'scikit-learn, algorithm="kd_tree"', "epsjoin"]
    answer.lines = [
        "scikit-learn with `n_jobs=2`, epsjoin with one thread. Core points, noise and the clusters of core "
        "points are the same, or the row says so.",
        "",
        *table([*head, "times faster, by CPU", "than kd_tree"], rows),
    ]
    return answer


def growth(
    call: Call, axis: str, label: str, sets: Sequence[Set], x: Sequence[int], rounds: int | None = None
) -> Answer:
    """Cost against a size, with eps chosen so that the number of neighbours stays."""
    answer, rows = Answer(f"Growth with {axis}", []), []
    curve = Curve(axis, label, list(x), {"cKDTree": [], "epsjoin": []})
    for chosen in sets:
        with stored(call, chosen) as points:
            contenders: dict[str, Contender] = {"epsjoin": epsjoin_pairs}
            if points.shape[0] <= CKDTREE_ROWS:
                contenders = {"cKDTree": ckdtree_pairs, **contenders}
            timings = call(race, contenders, points.file, points.eps, rounds or chosen.rounds)
        pairs, is_right = agreed(timings)
        answer.is_right &= is_right
        cpu = medians(timings)
        for name in contenders:
            curve.seconds[name].append(cpu[name])
        has_peer = "cKDTree" in contenders
        neighbours = 2.0 * timings[0]["epsjoin"].answer / points.shape[0]
        rows.append(
            [
                chosen.name,
                f"{points.eps:g}",
                f"{neighbours:.1f}" if is_right else pairs,
                seconds(cpu["cKDTree"]) if has_peer else "–",
                seconds(cpu["epsjoin"]),
                spread(ratios(timings, "cKDTree", "epsjoin")) if has_peer else "–",
            ]
        )
        _say(f"growth, {axis} = {chosen.name}: {neighbours:.2f} neighbours, {seconds(cpu['epsjoin'])} s")
    head = [axis, "eps", "neighbours per point", "cKDTree CPU s", "epsjoin CPU s", "times faster, by CPU"]
    answer.lines, answer.curve = table(head, rows), curve
    answer.lines += ["", f"![CPU seconds against {axis}](../{curve.picture})"]
    return answer


def growth_rows(call: Call, sets: Sequence[Set] = GROWTH_ROWS, rounds: int | None = None) -> Answer:
    x = [int(one.name.replace(",", "")) for one in sets]
    answer = growth(call, "n", "n: rows of 16 dimensions, five neighbours per point", sets, x, rounds)
    assert answer.curve is not None
    said = []  # every other set has ten times the rows
    for name, cost in answer.curve.seconds.items():
        tens = [f"× {cost[i + 2] / cost[i]:.1f} ({x[i]:,} to {x[i + 2]:,})" for i in range(len(cost) - 2)]
        said.append(f"{name} {', '.join(tens) or 'not measured'}")
    text = f"Ten times the rows cost {'; '.join(said)}. Quadratic would be × 100."
    answer.lines += ["", text]
    return answer


def growth_dimensions(
    call: Call, sets: Sequence[Set] = GROWTH_DIMENSIONS, rounds: int | None = None
) -> Answer:
    x = [int(one.name) for one in sets]
    return growth(call, "d", "d: dimensions of 100,000 rows, five neighbours per point", sets, x, rounds)


class Streamed(NamedTuple):
    """What one pass over the batches gave and took."""

    shape: tuple[int, int]
    eps: float
    expected: float
    pairs: int
    batches: int
    cpu: float
    wall: float
    peak: int


def consume(make: Callable[[], Any], pairs: int) -> Streamed:
    """Join the points at the eps at which about so many pairs are expected; count them and forget them."""
    points = make()
    low, high = 1e-6, float(np.ptp(points, axis=0).max())
    while high / low > 1.01:
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if estimate(points, middle).pairs < pairs else (low, middle)
    eps = float(f"{high:.3g}")
    sum(len(batch.left) for batch in iter_self_join(points[:: max(1, len(points) // 2_000)].copy(), eps))
    sizes: list[int] = []

    def join() -> None:
        sizes.extend(len(batch.left) for batch in iter_self_join(points, eps))

    run = timed(lambda: growth_bytes(join))
    expected = estimate(points, eps).pairs
    return Streamed(points.shape, eps, expected, sum(sizes), len(sizes), run.cpu, run.wall, run.answer)


def stream(call: Call, make: Callable[[], Any] = skin, pairs: int = STREAM_PAIRS) -> Answer:
    """Memory of a join that is consumed batch by batch."""
    got = call(consume, make, pairs)
    head = ["set", "eps", "pairs", "expected by `estimate`", "batches", "CPU s", "wall s", "peak MB"]
    row = [
        f"{make.__name__}, {got.shape[0]:,} × {got.shape[1]}",
        f"{got.eps:g}",
        count(got.pairs),
        count(round(got.expected)),
        count(got.batches),
        seconds(got.cpu),
        seconds(got.wall),
        f"**{megabytes(got.peak)}**",
    ]
    _say(f"stream: {got.pairs:,} pairs, {megabytes(got.peak)} MB")
    text = (
        "`iter_self_join` on all rows, each batch counted and forgotten. Kept, the pairs would take "
        f"{megabytes(24 * got.pairs)} MB (24 bytes each)."
    )
    return Answer("Pairs as a stream", [text, "", *table(head, [row])])
