"""The progressive merge join, as it is called: it opens inputs, divides memory, and deletes its files."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from epsjoin.errors import ArgumentError, needing_extra
from epsjoin.local.arguments import as_number, check_choice, check_count, list_names
from epsjoin.local.join.arrays import HOW
from epsjoin.local.progressive.driver import Driver
from epsjoin.local.progressive.kinds.kind import JoinCondition
from epsjoin.local.progressive.options import TRAVERSALS, Options, Traversal
from epsjoin.local.progressive.results import Found, How
from epsjoin.local.progressive.running import RunningEstimate
from epsjoin.local.progressive.sizes import Sizes, parse_bytes
from epsjoin.local.progressive.spill import Spill
from epsjoin.local.sweep.sweeping import check_counters
from epsjoin.progressive.inputs import has_columns, is_csv, open_input

OF_ONE_TABLE = ("inner", "semi", "anti")
"""What a join of one table with itself may be."""
REPLICA_BYTES = 8 + 8 + 8 + 4 + 1
"""Bytes of a row on disk without its values, at most for kinds with numbers as keys."""


class ProgressiveJoin:
    """A join that is running; made by :func:`progressive_join`.

    It is an iterator of :class:`Found` and a context manager.

    Parameters
    ----------
    driver : joins.
    spill : has the files.
    counters : the work so far, see :func:`progressive_join`.

    Examples
    --------
    >>> from epsjoin import Similarity, progressive_join
    >>> with progressive_join([[0.0], [1.0], [2.0]], on=Similarity(1.0)) as found:
    ...     pairs, phase, estimate = next(found)
    >>> pairs.left.tolist(), pairs.right.tolist(), phase
    ([0, 1], [1, 2], 'runs')
    """

    def __init__(self, driver: Driver, spill: Spill, counters: dict[str, Any]) -> None:
        self._driver, self._spill, self.counters = driver, spill, counters
        self._batches = driver.run()
        self._has_begun = False

    @property
    def estimate(self) -> RunningEstimate:
        """The latest estimate of the number of pairs."""
        return self._driver.estimate

    def __iter__(self) -> Iterator[Found]:
        return self

    def __next__(self) -> Found:
        self._has_begun = True
        try:
            return next(self._batches)
        except StopIteration:
            self.close()
            raise
        except BaseException:
            self._spill.leave()
            raise

    def drain(
        self,
        to: Callable[[Found], object] | str | Path,
        kind: Literal["delta", "parquet"] = "delta",
        *,
        seconds: float = 30.0,
    ) -> int:
        """Pass on all batches that are still to come, as they come.

        Parameters
        ----------
        to : a function, which is called with each batch. Or the folder of a table, as an absolute path or a
            URI: it gets the columns ``left_id``, ``right_id`` and ``distance``, of a semi or an anti join
            ``id``; a row without a partner has null in the others.
        kind : "delta" (the default) for a Delta table, whose content is replaced: its property
            ``epsjoin.complete`` is "false" until all pairs are in it. "parquet" for a folder of Parquet
            files, which must be empty: each file is whole as soon as it is there, ``_SUCCESS`` comes last.
        seconds : new pairs can be read at the latest after about so many; above 0.

        Returns
        -------
        int
            Number of pairs or rows.

        Raises
        ------
        ArgumentError
            An argument is wrong; the folder is not empty; the join has begun, so that a table would not have
            all pairs; or it has a folder ``spill``: when it goes on from there, pairs come again that the
            table has.
        TableError
            The table cannot be written, has other columns, or another job has changed it.

        Notes
        -----
        A thread writes while the join goes on. It is at most four batches behind, then the join waits.

        Examples
        --------
        >>> from epsjoin import Similarity, progressive_join
        >>> with progressive_join([[0.0], [1.0], [2.0]], on=Similarity(1.0)) as found:
        ...     found.drain(lambda batch: print(batch.pairs.left, batch.pairs.right))
        [0 1] [1 2]
        2
        """
        if callable(to):
            return sum(_passed_on(found, to) for found in self)
        check_choice("kind", kind, ("delta", "parquet"))
        if not 0.0 < as_number(seconds) < math.inf:
            raise ArgumentError(f"seconds must be a number above 0, not {seconds!r}")
        if self._has_begun:
            raise ArgumentError(
                "the join has begun or ended, so that a table of the rest would not have all pairs; drain it "
                "to a table first, or pass a function"
            )
        if self._spill.is_kept:
            raise ArgumentError(
                "a join with a folder spill cannot be drained to a table: when it goes on from there, pairs "
                "come again that the table has; leave spill out, or take the batches yourself"
            )
        with needing_extra("a table of pairs"):
            from epsjoin.progressive.sinks import KINDS, Writer
        n = 0
        folder = str(to.absolute() if isinstance(to, Path) else to)
        with KINDS[kind](folder, self._driver.gives_rows) as sink, Writer(sink, seconds) as writer:
            for found in self:
                writer.put(found.pairs, self._driver.lonely_side)
                n += len(found.pairs.left)
        return n

    def lower_eps(self, eps: float) -> None:
        """Lower eps for all pairs that are still to come; filter earlier pairs by their distances.

        Parameters
        ----------
        eps : the new threshold, not above the one before.

        Raises
        ------
        ArgumentError
            eps is above the one before, or the kind of join has none.
        """
        self._driver.lower_eps(eps)

    def close(self) -> None:
        """Stop, and delete all files; the counters stay."""
        self._has_begun = True
        self._batches.close()
        self._spill.close()

    def __enter__(self) -> ProgressiveJoin:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:  # whoever could not take a batch goes on from there, too
            self._batches.close()
            self._spill.leave()

    def __del__(self) -> None:
        if hasattr(self, "_batches"):
            self.close()


def _passed_on(found: Found, to: Callable[[Found], object]) -> int:
    to(found)
    return len(found.pairs.left)


def progressive_join(
    left: Any,
    right: Any = None,
    on: JoinCondition | None = None,
    how: How = "inner",
    memory: int | str = "256MB",
    first_memory: int | str | None = None,
    traversal: Traversal = "last",
    spill: str | Path | None = None,
    shuffle: int | None = None,
    counters: dict[str, Any] | None = None,
    *,
    first_pairs: int | None = None,
    columns: Sequence[str] | None = None,
    right_columns: Sequence[str] | None = None,
    id: str | None = None,
    delimiter: str | None = None,
) -> ProgressiveJoin:
    """Join tables that may be larger than memory; the first pairs come at once.

    Parameters
    ----------
    left, right : tables: an array of rows; a tuple (ids, rows) of arrays; an iterator of such arrays or
        tuples, or of Arrow batches, in which None means that nothing has come yet; a frame of pandas or
        polars, or an Arrow table; the path of a Parquet or a CSV file. Without ``right``, ``left`` is joined
        with itself.
    on : the kind of join: :class:`Similarity`, :class:`Equi`, :class:`Band`, :class:`Temporal`,
        :class:`Spatial`, or a :class:`JoinKind` of your own.
    how : "inner", "left", "right", "outer", "semi" or "anti"; of one table "inner", "semi" (rows that have a
        partner) or "anti". The batches of a semi or an anti join are :class:`Rows`. A left row of a semi join
        comes with its first partner and is not kept.
    memory : bytes for rows, buffers and sweeps, such as "256MB"; the interpreter, compiled code and the batch
        that is given come on top, some 60 MB.
    first_memory : bytes of the rows that are joined first; by default a 64th of a run.
    first_pairs : instead of it, how many pairs you wish to see first, such as a thousand to judge eps by: as
        many rows are joined first as a sample says they need, a run at most. Where no sample can be drawn
        (iterators), or it has no pairs, it is a 64th of a run.
    traversal : when runs are merged. "last" (the default): at the end, which writes the least. "eager": as
        soon as a merge is full. "idle": while an input has nothing.
    spill : folder for sorted runs. A join whose process has died, or that an error has ended, also one within
        ``with``, goes on from there when it is called again with the same arguments and the same rows, or is
        refused: pairs of runs and merges that were finished do not come again, and a lower eps holds on. One
        join at a time works in a folder. By default a temporary one.
    shuffle : seed; rows of arrays, and row groups of Parquet files with their rows, are read in random order,
        so that the estimate holds from the beginning.
    counters : dictionary that receives the work: ``rows``, ``replicas`` (rows that were written first),
        ``runs``, ``replans``, ``merges``, ``passes``, ``bytes_written``, ``bytes_read`` (of sorted runs),
        ``candidates``, ``distance_computations``, ``pairs_in_runs``, ``pairs_in_merges``, ``largest_area``
        (rows), ``first_pair_seconds``, ``first_pair_rows`` (rows read before), ``seconds_reading``,
        ``_sorting``, ``_joining``, ``_merging``, ``estimate_at_10``, ``_50``, ``_90`` (percent of the last
        merge).
    columns, right_columns : names of the columns that a row consists of, in files and Arrow batches; by
        default all, but for ``id``. A frame for which none are named is an array of all its columns.
    id : name of the column of whole numbers that pairs consist of; the row numbers by default.
    delimiter : what separates the fields of CSV files, such as ``";"``. By default each is split at
        semicolons, tabs or ``|`` where its first records allow nothing else, otherwise at commas.

    Returns
    -------
    ProgressiveJoin
        An iterator of :class:`Found`: pairs, the phase, and an estimate of their number. As a set the pairs
        are those of any other join, each comes once, in no order. Close it, or use it in ``with``, to stop at
        any time; no file stays. The first estimates are those of a sample; for arrays they have an interval.

    Raises
    ------
    ArgumentError
        An argument is wrong; the rows' own errors, and those of a folder in which another join works or
        whose join had other arguments or rows, come with the batch that reads them.
    DataRefusedError
        A file cannot be read, or has a value that is no finite number.

    See Also
    --------
    self_join, join : the whole result in order, in memory.

    Notes
    -----
    Each run is joined as it is read, sorted and written; then the runs are merged, and pairs of different
    runs come. With r runs, 1/r of the pairs come while rows are read in random order. Bytes are written, and
    read again, once for each row and replica in a pass: there is one pass up to ``memory / 1 MB`` runs. A
    part that is larger than a run is swept in blocks, which are read more than once. Where the rows turn out
    so unlike those on which parts were planned that this is the larger cost, the runs are written once more,
    by another plan, before the first merge (``replans``). In semi and anti joins by ``Similarity`` with
    planned cuts, a row looks for partners until it has found the first: few pairs are met, and what is
    counted as pairs are rows that have found one. Those of other kinds meet all pairs, as inner ones do; but
    one of several equal rows of a run stands for all, if they are joined by ``Equi`` or ``Similarity``. With
    ``Band``, ``Temporal``, ``Spatial`` and your own kinds, the rows that hold one key must fit into memory at
    once.

    References
    ----------
    Dittrich, Seeger, Taylor, Widmayer, VLDB 2002, pp. 299-310: progressive merge join. Dittrich's
    dissertation, chapter 4.

    Examples
    --------
    >>> from epsjoin import Similarity, progressive_join
    >>> import numpy as np
    >>> points = np.random.default_rng(0).random((20_000, 2))
    >>> with progressive_join(points, on=Similarity(0.01), memory="2MB") as found:
    ...     first = next(found)  # after 254 rows
    ...     rest = list(found)
    >>> len(first.pairs.left) + sum(len(pairs.left) for pairs, *_ in rest)
    62694
    >>> found.counters["runs"], rest[-1].phase
    (5, 'merges')
    """
    if not isinstance(on, JoinCondition):
        raise ArgumentError(f"on must be a kind of join, such as epsjoin.Similarity(eps), not {on!r}")
    check_choice("how", how, HOW)
    if right is None and how not in OF_ONE_TABLE:
        raise ArgumentError(
            f"of one table with itself, how must be one of {', '.join(OF_ONE_TABLE)}, not {how!r}"
        )
    check_choice("traversal", traversal, TRAVERSALS)
    if right is None and right_columns is not None:
        raise ArgumentError("right_columns are those of right, which is not given")
    chosen, of_right = (
        None if given is None else list_names(name, given)
        for name, given in (("columns", columns), ("right_columns", right_columns))
    )
    if (chosen or of_right or id) and not any(map(has_columns, (left, right))):
        raise ArgumentError("columns and id are of files, frames and Arrow batches, not of arrays")
    if delimiter is not None:
        if not any(map(is_csv, (left, right))):
            raise ArgumentError("delimiter is for CSV files, and no table is one")
        with needing_extra("a progressive join of a CSV file"):
            from epsjoin.source.delimiters import check_delimiter
        check_delimiter(delimiter)
    if first_pairs is not None and first_memory is not None:
        raise ArgumentError("give first_memory or first_pairs, not both: either says what is joined first")
    asked = None if first_pairs is None else check_count("first_pairs", first_pairs)
    bytes_of_first = None if first_memory is None else parse_bytes("first_memory", first_memory)
    counted: dict[str, Any] = check_counters(counters)
    sources = [open_input("left" if right is not None else "points", left, chosen, id, shuffle, delimiter)]
    if right is not None:
        of_right = chosen if of_right is None else of_right
        sources.append(open_input("right", right, of_right, id, shuffle, delimiter))
    width = max(source.columns for source in sources)
    sizes = Sizes.of(parse_bytes("memory", memory), bytes_of_first, width, 8 * width + REPLICA_BYTES)
    has_numbers = any(source.has_ids for source in sources)
    options = Options(how, traversal, sizes, has_numbers, asked)
    kept = Spill(spill, counted)
    return ProgressiveJoin(Driver(sources, on, options, kept, counted), kept, counted)
