"""An index of points: what joins and nearest neighbours need, made once and kept in memory or in a folder."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from epsjoin.errors import ArgumentError
from epsjoin.kernels.accelerate import plain, read_only
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.kernels.neighbours.heaps import sort_nearest_in_rows
from epsjoin.kernels.sorting import argsort
from epsjoin.local.arguments import MAX_COLUMNS, check_count, int_column
from epsjoin.local.coordinates import check_points
from epsjoin.local.index import store
from epsjoin.local.index.parts import (
    Part,
    Piece,
    Within,
    all_rows,
    arrange,
    count_rows,
    end_of,
    sort_pairs,
    take_out,
)
from epsjoin.local.join.arrays import self_join
from epsjoin.local.metric import Metric, get_metric
from epsjoin.local.neighbours.nearest import KNearest
from epsjoin.local.neighbours.tree import make_lists
from epsjoin.local.neighbours.within import reach_of
from epsjoin.local.scale import WeightedMetric, check_weights, weigh_metric
from epsjoin.local.sweep.pairs import Pairs, concatenate

_MAX_ROWS_BY_LEAVES, _MAX_COLUMNS_BY_LEAVES = 3000, 3
"""Numbers of rows and columns up to which pairs of leaves are compared; beyond, a sweep is faster."""

_CHANGING = threading.Lock()
"""Held while rows are added to an index or removed; one for all, so that an index can be pickled."""


class Index:
    """Points that are kept with a tree of boxes, grown once, for joins with queries that come later.

    Parameters
    ----------
    points : (n, d) array of finite floats or integers; copied. More can be appended.
    metric : name of a metric (see :func:`epsjoin.get_metric`), or a :class:`epsjoin.Metric`; "euclidean" by
        default.
    weights : (d,) numbers of at least 0 that weigh the dimensions in every answer, see
        :func:`epsjoin.self_join`.

    Raises
    ------
    ArgumentError
        As :func:`epsjoin.join`.

    See Also
    --------
    join, self_join : without an index; faster for all pairs of large tables, and with threads.

    Notes
    -----
    Growing costs O(n log n); the index takes 16 bytes per coordinate, 8 per row, and for boxes a quarter of
    the embedded points' bytes at most. Its answers are those of :func:`epsjoin.join` and
    :func:`epsjoin.knn_join`, bit for bit. Threads may query, append and remove at once: an answer is that of
    the rows that were there when it was asked for.

    Rows that are appended make a tree of their own. A tree that is not twice as large as the next one is
    grown anew together with it, so that there are at most log2(n) + 1 trees, and each row is grown into about
    as many in the long run (Bentley and Saxe, Decomposable searching problems I, J. Algorithms 1, 1980).

    Where rows are removed, the others keep their numbers, and no number is given twice. Answers have these
    numbers, :attr:`rows` has those that are there.

    Examples
    --------
    >>> index = Index([[0.0], [1.0], [5.0]])
    >>> index.join([[0.75]], eps=1.0)
    Pairs(left=array([0, 0]), right=array([0, 1]), distance=array([0.75, 0.25]))
    >>> index.append([[0.5]])
    >>> index.knn([[0.75]], k=2).neighbour.tolist()
    [[1, 3]]
    """

    def __init__(
        self,
        points: ArrayLike,
        metric: str | Metric = "euclidean",
        *,
        weights: ArrayLike | None = None,
    ) -> None:
        self.metric = get_metric(metric)
        values = check_points("points", points)
        self.metric.check(values, "points")
        given = check_weights(self.metric, values.shape[1], weights)
        self._d = values.shape[1]
        self._search_by(self.metric if given is None else weigh_metric(self.metric, values, given))
        self._parts: list[Part] = []
        self._end = 0
        self._add(values)

    def _search_by(self, metric: Metric) -> None:
        """Set the metric that compares the rows; with weights it is not ``metric`` itself."""
        self._search = metric
        self._everything = metric.decision(math.inf)
        self._within: dict[float, Within] = {}

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
        if saved.scale is not None:
            index._search_by(WeightedMetric(saved.metric.name, saved.metric.p, saved.scale))
        for piece, tree in saved.parts:
            index._parts.append(Part.grow(piece, index._search) if tree is None else Part.of(piece, tree))
        index._end = saved.end
        return index

    def __len__(self) -> int:
        """Number of rows that are there."""
        return count_rows(self._parts)

    def __repr__(self) -> str:
        weighted = ", weighted" if self._search is not self.metric else ""
        return f"Index({len(self)} rows x {self._d}, {self.metric.name}{weighted})"

    @property
    def rows(self) -> Ints:
        """The numbers of the rows that are there, (n,) int64, ascending; 0 to n - 1 if none was removed."""
        return all_rows(self._parts)

    def join(self, queries: ArrayLike, eps: float) -> Pairs:
        """Find every pair of a query and a row of the index within eps.

        Parameters
        ----------
        queries : (q, d) array of finite floats or integers; not modified.
        eps : threshold, see :func:`epsjoin.self_join`; one for all dimensions.

        Returns
        -------
        Pairs
            Exactly those of ``epsjoin.join(queries, points, eps, metric)``, with the weights of the index:
            left is the row of the query, right that of the point, sorted by both.

        Raises
        ------
        ArgumentError
            As :func:`epsjoin.join`.
        """
        asked, parts = self._check_eps(eps), self._parts
        values = self._check(queries)
        embedded = read_only(self._search.embed(values))
        batches = [batch for part in parts for batch in part.within(asked, values, embedded)]
        found = _copy(batches)
        if len(parts) > 1:
            order = argsort(found.left)  # the rows of a part are below those of the next
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
            Exactly those of ``epsjoin.self_join(points, eps, metric)``, with the weights of the index.

        Raises
        ------
        ArgumentError
            As :func:`epsjoin.self_join`.
        """
        asked, parts = self._check_eps(eps), self._parts
        n = count_rows(parts)
        rows = None if n == end_of(parts) else all_rows(parts)
        if n > _MAX_ROWS_BY_LEAVES or self._d > _MAX_COLUMNS_BY_LEAVES:
            found = self_join(self._all_points(parts), eps, self.metric, weights=self._weights())
        else:
            batches = list(self._pairs(parts, asked))
            if rows is not None:  # numbers may be far larger than there are rows
                batches = [
                    Pairs(np.searchsorted(rows, left), np.searchsorted(rows, right), distance)
                    for left, right, distance in batches
                ]
            found = sort_pairs(n, batches)
        return found if rows is None else Pairs(rows[found.left], rows[found.right], found.distance)

    def _pairs(self, parts: list[Part], asked: Within) -> Iterator[Pairs]:
        """Find the pairs of every part, and those of each two parts."""
        for number, part in enumerate(parts):
            embedded = read_only(self._search.embed(part.points))
            yield from part.pairs(asked, embedded)
            for before in parts[:number]:
                for right, left, distance in before.within(asked, part.points, embedded):
                    yield Pairs(left, part.rows_of(right), distance)

    def knn(self, queries: ArrayLike | None, k: int) -> KNearest:
        """Find the k nearest rows of the index for every query.

        Parameters
        ----------
        queries : (q, d) array of finite floats or integers; not modified. None: the rows of the index, in the
            order of :attr:`rows`, each of which is not its own neighbour.
        k : number of neighbours, 1 to n (to n - 1 if queries is None).

        Returns
        -------
        KNearest
            Exactly those of ``epsjoin.knn_join(queries, points, k, metric)``, with the weights of the index.

        Raises
        ------
        ArgumentError
            As :func:`epsjoin.knn_join`.
        """
        k, parts = check_count("k", k, most=MAX_COLUMNS), self._parts
        values = self._all_points(parts) if queries is None else self._check(queries)
        q, n_others = len(values), count_rows(parts) - (queries is None)
        if not q:
            return KNearest(np.empty((0, k), np.int64), np.empty((0, k)))
        if k > n_others:
            raise ArgumentError(f"k must be at most the number of other points, {n_others}, not {k}")
        own = read_only(all_rows(parts) if queries is None else np.full(q, -1))
        embedded, lists = read_only(self._search.embed(values)), make_lists(q, k)
        for part in parts:
            part.nearest(self._search, self._everything, values, embedded, lists, own)
        sort_nearest_in_rows(lists.ids, lists.distances)
        return KNearest(lists.ids, lists.distances)

    def append(self, points: ArrayLike) -> None:
        """Add rows after the existing ones.

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

    def remove(self, rows: ArrayLike) -> None:
        """Remove rows; the others keep their numbers.

        Parameters
        ----------
        rows : (m,) integers, numbers of rows that are there, each once, in any order.

        Raises
        ------
        ArgumentError
            A row is not there, or comes twice; then nothing is removed.

        Notes
        -----
        Each tree that has one of the rows is grown anew without them, which costs as much as growing it:
        O(n log n) for rows of the largest one. So remove many rows at once; those that were appended last are
        the cheapest.

        Examples
        --------
        >>> index = Index([[0.0], [1.0], [5.0]])
        >>> index.remove([0])
        >>> index.append([[2.0]])
        >>> index.rows.tolist(), index.knn([[0.0]], k=2).neighbour.tolist()
        ([1, 2, 3], [[1, 3]])
        """
        removed = np.sort(int_column("rows", rows))
        twice = np.flatnonzero(removed[1:] == removed[:-1])
        if len(twice):
            raise ArgumentError(f"rows must have each row once, but {removed[twice[0]]} comes twice")
        with _CHANGING:
            missing = removed[~np.isin(removed, all_rows(self._parts), assume_unique=True)]
            if len(missing):
                raise ArgumentError(f"rows must be rows of the index, which {missing[0]} is not")
            self._parts = arrange(take_out(self._parts, removed), self._search)

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
        If the process is killed or the power fails at any moment, the folder has the old index or the new
        one: files are named by their content, and one small file, replaced last, says which of them make the
        index. Trees that have not changed since are not written again. One process at a time writes into a
        folder, for which others wait, but not on Windows and on network drives without locks; the last one's
        index stays. All may read meanwhile.
        """
        with _CHANGING:
            parts, end = self._parts, self._end
        scale = self._search.scale if isinstance(self._search, WeightedMetric) else None
        kept = [(part.piece, part.tree) for part in parts]
        store.write(Path(folder), store.Saved(self.metric, self._d, kept, scale, end))

    def _add(self, points: Floats) -> None:
        if not len(points):
            return
        with _CHANGING:
            self._parts = arrange([*self._parts, Piece(self._end, points.copy())], self._search)
            self._end += len(points)

    def _weights(self) -> Floats | None:
        return self._search.weights if isinstance(self._search, WeightedMetric) else None

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
        """The decision for this eps; the last one is kept, since a query rarely comes alone."""
        threshold = self._search.check_eps(eps)
        asked = self._within.get(threshold)
        if asked is None:
            reach = reach_of(self._search, threshold, self._d)
            asked = Within(plain(self._search.decision(threshold)), plain(reach))
            self._within = {threshold: asked}
        return asked


def _copy(batches: list[Pairs]) -> Pairs:
    if len(batches) == 1:
        left, right, distance = batches[0]
        return Pairs(left.copy(), right.copy(), distance.copy())  # without the room behind them
    return concatenate(batches)
