"""An index of points: what joins and nearest neighbours need is made once and kept, in memory or a folder."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from epsjoin.errors import ArgumentError
from epsjoin.kernels.accelerate import read_only
from epsjoin.kernels.arrays import Floats
from epsjoin.kernels.neighbours.heaps import sort_nearest
from epsjoin.local.arguments import MAX_COLUMNS, check_count, check_points
from epsjoin.local.index import store
from epsjoin.local.index.parts import Part, Within, sort_pairs
from epsjoin.local.join.arrays import self_join
from epsjoin.local.metric import Metric, get_metric
from epsjoin.local.neighbours.nearest import KNearest
from epsjoin.local.neighbours.tree import make_lists
from epsjoin.local.neighbours.within import reach_of
from epsjoin.local.sweep.pairs import Pairs, concatenate

_MAX_ROWS_BY_LEAVES, _MAX_COLUMNS_BY_LEAVES = 3000, 3
"""Numbers of rows and columns up to which pairs of leaves are compared; beyond, a sweep is sooner."""

_APPENDING = threading.Lock()
"""Held while rows are added to an index; one for all, so that an index can be pickled."""


class Index:
    """Points that are kept for joins to come: a tree of boxes, grown once.

    Parameters
    ----------
    points : (n, d) array of finite floats or integers; copied. More can be appended.
    metric : name of a metric (see :func:`epsjoin.get_metric`), or a :class:`epsjoin.Metric`; "euclidean" by
        default.

    Raises
    ------
    ArgumentError
        As :func:`epsjoin.join`.

    See Also
    --------
    join, self_join : without an index; sooner for all pairs of large tables, and in threads.

    Notes
    -----
    Growing costs O(n log n); the index takes 16 bytes per coordinate, 8 per row, and for boxes a quarter of
    the embedded points' bytes at most. Its answers are those of :func:`epsjoin.join` and
    :func:`epsjoin.knn_join`, bit for bit. Threads may ask and append at once: an answer is that of all rows
    which had been appended when somebody asked.

    Rows that are appended make a tree of their own. A tree that is not twice as large as the next one is
    grown anew together with it, so that there are at most log2(n) + 1 trees, and each row is grown into about
    as many in its time (Bentley and Saxe, Decomposable searching problems I, J. Algorithms 1, 1980).

    Examples
    --------
    >>> index = Index([[0.0], [1.0], [5.0]])
    >>> index.join([[0.75]], eps=1.0)
    Pairs(left=array([0, 0]), right=array([0, 1]), distance=array([0.75, 0.25]))
    >>> index.append([[0.5]])
    >>> index.knn([[0.75]], k=2).neighbour.tolist()
    [[1, 3]]
    """

    def __init__(self, points: ArrayLike, metric: str | Metric = "euclidean") -> None:
        self.metric = get_metric(metric)
        values = check_points("points", points)
        self.metric.check(values, "points")
        self._d = values.shape[1]
        self._parts: list[Part] = []
        self._everything = self.metric.decision(math.inf)
        self._within: dict[float, Within] = {}
        self._add(values)

    @classmethod
    def read(cls, folder: str | Path, *, verify: bool = False) -> Index:
        """Read an index that :meth:`save` wrote; its arrays stay on disk until they are looked at.

        Parameters
        ----------
        folder : where it lies. It may be saved anew or deleted while the index is in use.
        verify : whether to read all of it now and compare it with its digests. Without, only its sizes are
            checked: do not read a folder that somebody else may have changed.

        Returns
        -------
        Index

        Raises
        ------
        ArgumentError
            There is no index in the folder, or one of a later format.
        TableError
            A file is missing or has another size, or other content than its digest says.

        Notes
        -----
        Trees of another version of epsjoin are grown anew from the points.
        """
        saved = store.read(Path(folder), verify=verify)
        index = cls(np.empty((0, saved.n_columns)), saved.metric)
        first = 0
        for points, tree in saved.parts:
            grown = Part.grow(first, points, saved.metric) if tree is None else Part.of(first, points, tree)
            index._parts.append(grown)
            first += len(points)
        return index

    def __len__(self) -> int:
        """Number of rows."""
        return _count_rows(self._parts)

    def __repr__(self) -> str:
        return f"Index({len(self)} rows x {self._d}, {self.metric.name})"

    def join(self, queries: ArrayLike, eps: float) -> Pairs:
        """Find every pair of a query and a row of the index within eps.

        Parameters
        ----------
        queries : (q, d) array of finite floats or integers; not modified.
        eps : threshold, see :func:`epsjoin.self_join`; one for all dimensions.

        Returns
        -------
        Pairs
            Exactly those of ``epsjoin.join(queries, points, eps, metric)``: left is the row of the query,
            right that of the point, sorted by both.

        Raises
        ------
        ArgumentError
            As :func:`epsjoin.join`.
        """
        asked, parts = self._check_eps(eps), self._parts
        values = self._check(queries)
        embedded = read_only(self.metric.embed(values))
        batches = [batch for part in parts for batch in part.within(asked, values, embedded)]
        found = _copy(batches)
        if len(parts) > 1:
            order = np.argsort(found.left, kind="stable")  # the rows of a part are below those of the next
            return Pairs(found.left[order], found.right[order], found.distance[order])
        return found

    def self_join(self, eps: float) -> Pairs:
        """Find every pair of rows of the index within eps.

        Parameters
        ----------
        eps : threshold, see :func:`epsjoin.self_join`; one for all dimensions.

        Returns
        -------
        Pairs
            Exactly those of ``epsjoin.self_join(points, eps, metric)``.

        Raises
        ------
        ArgumentError
            As :func:`epsjoin.self_join`.
        """
        asked, parts = self._check_eps(eps), self._parts
        n = _count_rows(parts)
        if n > _MAX_ROWS_BY_LEAVES or self._d > _MAX_COLUMNS_BY_LEAVES:
            return self_join(self._all_points(parts), eps, self.metric)
        return sort_pairs(n, list(self._pairs(parts, asked)))

    def _pairs(self, parts: list[Part], asked: Within) -> Iterator[Pairs]:
        """Find the pairs of every part, and those of each two parts."""
        for number, part in enumerate(parts):
            embedded = read_only(self.metric.embed(part.points))
            yield from part.pairs(asked, embedded)
            for before in parts[:number]:
                for right, left, distance in before.within(asked, part.points, embedded):
                    yield Pairs(left, right + part.first, distance)

    def knn(self, queries: ArrayLike | None, k: int) -> KNearest:
        """Find the k nearest rows of the index for every query.

        Parameters
        ----------
        queries : (q, d) array of finite floats or integers; not modified. None: the rows of the index, each
            of which is not its own neighbour.
        k : number of neighbours, 1 to n (to n - 1 if queries is None).

        Returns
        -------
        KNearest
            Exactly those of ``epsjoin.knn_join(queries, points, k, metric)``.

        Raises
        ------
        ArgumentError
            As :func:`epsjoin.knn_join`.
        """
        k, parts = check_count("k", k, most=MAX_COLUMNS), self._parts
        values = self._all_points(parts) if queries is None else self._check(queries)
        q, n_others = len(values), _count_rows(parts) - (queries is None)
        if not q:
            return KNearest(np.empty((0, k), np.int64), np.empty((0, k)))
        if k > n_others:
            raise ArgumentError(f"k must be at most the number of other points, {n_others}, not {k}")
        own = read_only(np.arange(q) if queries is None else np.full(q, -1))
        embedded, lists = read_only(self.metric.embed(values)), make_lists(q, k)
        for part in parts:
            part.nearest(self.metric, self._everything, values, embedded, lists, own)
        sort_nearest(np.arange(q + 1) * k, lists.ids.reshape(-1), lists.distances.reshape(-1))
        return KNearest(lists.ids, lists.distances)

    def append(self, points: ArrayLike) -> None:
        """Add rows behind those that are there.

        Parameters
        ----------
        points : (m, d) array of finite floats or integers; copied.

        Raises
        ------
        ArgumentError
            As :func:`epsjoin.join`; then nothing is added.

        Notes
        -----
        Each row is grown into O(log n) trees in the long run; now and then one call grows the tree of all
        rows anew. Appending many rows at once is cheaper than one by one.
        """
        self._add(self._check(points, "points"))

    def save(self, folder: str | Path) -> None:
        """Write the index into a folder, from which :meth:`read` reads it.

        Parameters
        ----------
        folder : made if it is not there. An index in it is replaced; all other files stay.

        Raises
        ------
        OSError
            It cannot be written; the index that was there is still there.

        Notes
        -----
        Killed at any moment, or without power, the folder has the old index or the new one: files are named
        by their content, and one small file, replaced last, says which of them make the index. Trees that
        have not changed since are not written again. One process at a time may write; others may read
        meanwhile.
        """
        store.write(Path(folder), self.metric, self._d, [(part.points, part.tree) for part in self._parts])

    def _add(self, points: Floats) -> None:
        if not len(points):
            return
        with _APPENDING:
            parts, first = list(self._parts), len(self)
            together = [points]
            while parts and len(parts[-1].points) < 2 * sum(map(len, together)):
                part = parts.pop()
                together.insert(0, part.points)
                first = part.first
            parts.append(Part.grow(first, np.concatenate(together), self.metric))
            self._parts = parts

    def _all_points(self, parts: list[Part]) -> Floats:
        if len(parts) == 1:
            return parts[0].points
        points: Floats = np.concatenate([np.empty((0, self._d)), *(part.points for part in parts)])
        return read_only(points)

    def _check(self, points: ArrayLike, name: str = "queries") -> Floats:
        values = check_points(name, points)
        if values.shape[1] != self._d:
            raise ArgumentError(
                f"{name} must have as many columns as the index, {self._d}, not {values.shape[1]}"
            )
        self.metric.check(values, name)
        return read_only(values)

    def _check_eps(self, eps: float) -> Within:
        """What is within this eps; the last one is kept, as a query rarely comes alone."""
        threshold = self.metric.check_eps(eps)
        asked = self._within.get(threshold)
        if asked is None:
            asked = Within(self.metric.decision(threshold), reach_of(self.metric, threshold, self._d))
            self._within = {threshold: asked}
        return asked


def _count_rows(parts: list[Part]) -> int:
    return sum(len(part.points) for part in parts)


def _copy(batches: list[Pairs]) -> Pairs:
    if len(batches) == 1:
        left, right, distance = batches[0]
        return Pairs(left.copy(), right.copy(), distance.copy())  # without the room behind them
    return concatenate(batches)
