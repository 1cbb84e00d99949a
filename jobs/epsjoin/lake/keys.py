"""Rules about keys, answered by NumPy: how often they occur in one table, whether they do in another.

An engine builds a hash table for such a question. Where keys are whole numbers, one sort or one table of
flags is a fraction of that work and of that memory, and large tables are read through batch by batch. Other
questions, and other spellings of these, are left to the engine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from threading import Lock
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from epsjoin.lake.parquet import File, stream_file
from epsjoin.lake.questions import Questions, UnansweredError

Key = NDArray[np.int64]


class KeyColumns(NamedTuple):
    """Columns of whole numbers of a table.

    Parameters
    ----------
    n_rows : number of rows.
    batches : reads the rows, in the same order each time: the columns of some rows, (m,) int64 each.
    """

    n_rows: int
    batches: Callable[[], Iterator[Sequence[Key]]]


FindKeys = Callable[[str, tuple[str, ...]], KeyColumns]
"""Finds columns of a table, by their names."""

_REPEATED = re.compile(
    r"SELECT COALESCE\(SUM\(n\), 0\) FROM"
    r" \(SELECT COUNT\(\*\) AS n FROM (\w+) GROUP BY (`\w+`(?:, `\w+`)*)\) AS t WHERE n > 1"
)
_UNMATCHED = re.compile(
    r"SELECT COUNT\(\*\) FROM (\w+) AS t LEFT ANTI JOIN (\w+) AS o ON t\.(\w+) = o\.(\w+)"
    r"(?: WHERE (\(SELECT MAX\(\w+\) FROM \w+\) <> '\w*'))?"
)
_NUMBERED = re.compile(
    r"SELECT COALESCE\(MAX\((\w+)\), 0\) - 2 \* COUNT\(DISTINCT \1\) \+ COUNT\(\*\) FROM (\w+)"
)
_COUNTED = re.compile(
    r"SELECT COUNT\(\*\) FROM (\w+) AS t LEFT JOIN \( SELECT (\w+), COUNT\(\*\) AS n FROM"
    r" \(SELECT (\w+) AS \2 FROM (\w+) UNION ALL SELECT (\w+) FROM \4\) GROUP BY \2 \) AS p"
    r" ON t\.\2 = p\.\2 WHERE t\.(\w+) <> COALESCE\(p\.n, 0\) \+ 1"
)
_BATCH_ROWS = 1 << 18
"""Maximum number of rows of a key that are read from a file at a time."""
_MAX_BYTES_PER_ROW = 8
"""Maximum number of bytes, for each row of both tables, of what is kept for all numbers from the smallest to
the largest key."""
_MAX_COMPARED = 1 << 24
"""Maximum number of keys that are compared themselves, as others have their hashes, in some 40 bytes each."""
_MAX_SORTED = 1 << 26
"""Maximum number of keys, far apart, that are sorted for others to be looked up in: 24 bytes each."""
_MAX_HELD = 1 << 22
"""Maximum number of numbers of a table that are kept once they are read; more are read each time."""


class KeyQuestions:
    """Answers questions about keys, several at a time.

    Parameters
    ----------
    find : finds columns of whole numbers; raises an :class:`UnansweredError` where one is none.
    engine : says whether a condition of a query holds.

    Notes
    -----
    A question takes 10 bytes for each row of which it asks whether another one has the same key. Where it
    looks up keys among others, it takes 1 or 8 for each number from the smallest to the largest of these, at
    most ``_MAX_BYTES_PER_ROW`` for each row of its tables; where they lie farther apart, 24 for each of them.
    All other rows are read through, and kept only where they are few.
    """

    def __init__(self, find: FindKeys, engine: Questions) -> None:
        self._find, self._engine = find, engine
        self._found: dict[tuple[str, tuple[str, ...]], KeyColumns] = {}
        self._finding = Lock()

    def number(self, query: str) -> float:
        """Return the number that a query about keys returns.

        Raises
        ------
        UnansweredError
            The query asks something else, or in another form. Or a key is missing or no whole number, or too
            many lie far apart.
        """
        if asked := _REPEATED.fullmatch(query):
            table, names = asked.groups()
            return count_repeated(self._read(table, *(name.strip("`") for name in names.split(", "))))
        if asked := _UNMATCHED.fullmatch(query):
            table, other, name, of_other, condition = asked.groups()
            if condition and not self._engine.number(f"SELECT CASE WHEN {condition} THEN 1 ELSE 0 END"):
                return 0
            return count_unmatched(self._read(table, name), self._read(other, of_other))
        if asked := _NUMBERED.fullmatch(query):
            name, table = asked.groups()
            return measure_numbering(self._read(table, name))
        if asked := _COUNTED.fullmatch(query):
            table, name, left, other, right, count = asked.groups()
            return count_miscounted(self._read(table, name, count), self._read(other, left, right))
        raise UnansweredError("not about keys")

    def _read(self, table: str, *names: str) -> KeyColumns:
        with self._finding:
            if (table, names) not in self._found:
                keys = self._find(table, names)
                if keys.n_rows * len(names) <= _MAX_HELD:
                    held = list(keys.batches())
                    keys = KeyColumns(keys.n_rows, lambda: iter(held))
                self._found[table, names] = keys
            return self._found[table, names]


def find_keys(location: str, files: Sequence[File], schema: pa.Schema, names: Sequence[str]) -> KeyColumns:
    """Find columns of whole numbers of a slice's files, whose rows are read in their order.

    Parameters
    ----------
    location : URI of the table's folder.
    files, schema : the files, and all columns of the table.
    names : names of the columns.

    Raises
    ------
    UnansweredError
        There is no such column, or it is not of whole numbers; while it is read: a value is missing.
    TableError
        While it is read: a file cannot be read.
    """
    for name in names:
        if name not in schema.names or not pa.types.is_signed_integer(schema.field(name).type):
            raise UnansweredError(f"{name} is no column of whole numbers")
    wanted = pa.schema([schema.field(name) for name in names])

    def batches() -> Iterator[Sequence[Key]]:
        for file in files:
            for batch in stream_file(location, file, wanted, _BATCH_ROWS, whole=schema):
                for name, column in zip(names, batch.columns, strict=True):
                    if column.null_count:
                        raise UnansweredError(f"{name} is missing in a row")
                yield [np.asarray(column.to_numpy(), np.int64) for column in batch.columns]

    return KeyColumns(sum(file.rows for file in files), batches)


def count_repeated(keys: KeyColumns) -> int:
    """Count the rows whose key another row has, too; a key is all columns of a row together.

    Notes
    -----
    O(n log n): one sort of n numbers. Each is the key itself, packed, where the ranges of the columns take 64
    bits together; else it is a hash of it, and the keys whose hashes come again are compared themselves.

    Raises
    ------
    UnansweredError
        Too many keys have a hash that another one has.
    """
    if not keys.n_rows:
        return 0
    ranges = _ranges_of(keys)
    widths = [(high - low).bit_length() for low, high in ranges]
    is_packed = sum(widths) <= 64

    def numbers_of(columns: Sequence[Key]) -> NDArray[np.uint64]:
        numbers = np.zeros(len(columns[0]), np.uint64)
        for column, (low, _), width in zip(columns, ranges, widths, strict=True):
            if not is_packed:
                numbers = _mix(numbers ^ column.view(np.uint64))
                continue
            if width < 64:  # by 64 nothing is shifted: all before is zero then
                numbers <<= np.uint64(width)
            numbers |= _above(low, column)
        return numbers

    numbers, end = np.empty(keys.n_rows, np.uint64), 0
    for columns in keys.batches():
        numbers[end : end + len(columns[0])] = numbers_of(columns)
        end += len(columns[0])
    numbers.sort()
    is_as_next = numbers[1:] == numbers[:-1]
    n_groups = np.count_nonzero(is_as_next[1:] > is_as_next[:-1]) + int(is_as_next[:1].any())
    n_repeated = int(np.count_nonzero(is_as_next)) + int(n_groups)
    if is_packed or not n_repeated:
        return n_repeated
    if n_repeated > _MAX_COMPARED:
        raise UnansweredError("too many keys have a hash that another one has")
    repeated = np.unique(numbers[1:][is_as_next])
    doubtful = [
        np.column_stack(columns)[np.isin(numbers_of(columns), repeated)] for columns in keys.batches()
    ]
    _, times = np.unique(np.concatenate(doubtful), axis=0, return_counts=True)
    return int(times[times > 1].sum())


def count_unmatched(keys: KeyColumns, others: KeyColumns) -> int:
    """Count the rows whose key is not among others; one column each, in any order.

    Raises
    ------
    UnansweredError
        There are too many others that lie far apart.

    Notes
    -----
    O(n + m); where others lie far apart O((n + m) log m).
    """
    if not keys.n_rows or not others.n_rows:
        return keys.n_rows
    places = _Places.among(others, keys.n_rows + others.n_rows, 1)
    is_there = _is_among(others, places)
    return sum(int(np.count_nonzero(~is_there[places.of(key)])) for (key,) in keys.batches())


def measure_numbering(numbers: KeyColumns) -> int:
    """Measure how far rows are from being numbered 1 to n.

    Parameters
    ----------
    numbers : one column, in any order.

    Returns
    -------
    The largest number, plus n, minus twice the number of distinct ones. With numbers from 1 on, neither the
    largest nor n is below the number of distinct ones, so the result is 0 only where they are 1 to n.

    Raises
    ------
    UnansweredError
        There are too many numbers that lie far apart.

    Notes
    -----
    O(n); where they lie far apart O(n log n).
    """
    if not numbers.n_rows:
        return 0
    places = _Places.among(numbers, numbers.n_rows, 1)
    return places.high - 2 * int(np.count_nonzero(_is_among(numbers, places))) + numbers.n_rows


def count_miscounted(keys: KeyColumns, others: KeyColumns) -> int:
    """Count the rows that do not say how often their key is among others, plus 1.

    Parameters
    ----------
    keys : of each row its key and what it says; keys may come twice.
    others : two columns, whose values are looked at together, in any order.

    Raises
    ------
    UnansweredError
        There are too many keys that lie far apart.

    Notes
    -----
    O(n + m); where keys lie far apart O((n + m) log n).
    """
    if not keys.n_rows:
        return 0
    places = _Places.among(keys, keys.n_rows + others.n_rows, 8)
    found = np.ones(places.n + 1, np.int64)
    for columns in others.batches():
        for column in columns:
            np.add.at(found, places.of(column), 1)
    return sum(int(np.count_nonzero(says != found[places.of(key)])) for key, says in keys.batches())


class _Places(NamedTuple):
    """A place for each of some numbers, from 0 on; all others have the place ``n``, behind the last.

    Parameters
    ----------
    n : number of places.
    low, high : the smallest and the largest number.
    distinct : the numbers, ascending, whose places are theirs among these; ``None``: all numbers from ``low``
        to ``high`` have a place.
    """

    n: int
    low: int
    high: int
    distinct: Key | None

    @classmethod
    def among(cls, keys: KeyColumns, n_rows: int, item_bytes: int) -> _Places:
        """Places for what is in the first column, of which there is a row at least.

        Parameters
        ----------
        n_rows : number of rows that a question is about.
        item_bytes : number of bytes that are kept for each place.
        """
        low, high = _ranges_of(keys)[0]
        if (high - low) * item_bytes < _MAX_BYTES_PER_ROW * n_rows:
            return cls(high - low + 1, low, high, None)
        if keys.n_rows > _MAX_SORTED:
            raise UnansweredError("there are too many keys that lie far apart")
        distinct = np.unique(np.concatenate([columns[0] for columns in keys.batches()]))
        return cls(len(distinct), low, high, distinct)

    def of(self, key: Key) -> NDArray[np.int64]:
        """The place of each number."""
        if self.distinct is None:
            return np.minimum(_above(self.low, key), np.uint64(self.n)).view(np.int64)
        order = np.argsort(key)  # of numbers that rise, each search begins where the one before it ended
        rising = key[order]
        found = np.searchsorted(self.distinct, rising)
        is_there = self.distinct[np.minimum(found, self.n - 1)] == rising
        places = np.empty_like(key)
        places[order] = np.where(is_there, found, self.n)
        return places


def _is_among(keys: KeyColumns, places: _Places) -> NDArray[np.bool_]:
    """For each place, whether its number is in a column; one more flag at the end is false."""
    flags = np.zeros(places.n + 1, np.bool_)
    for (key,) in keys.batches():
        flags[places.of(key)] = True
    return flags


def _ranges_of(keys: KeyColumns) -> list[tuple[int, int]]:
    """The smallest and the largest number of each column; there is a row at least."""
    found = [[(each.min(), each.max()) for each in columns] for columns in keys.batches() if len(columns[0])]
    ends = np.array(found)
    return list(zip(ends[:, :, 0].min(0).tolist(), ends[:, :, 1].max(0).tolist(), strict=True))


def _above(low: int, key: Key) -> NDArray[np.uint64]:
    """How far numbers are above ``low``, modulo 2**64: those below it are far above."""
    return key.view(np.uint64) - np.uint64(low % (1 << 64))


def _mix(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Another number for each, all of whose bits depend on all of its own; no two have the same."""
    numbers = (numbers ^ (numbers >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)
    numbers = (numbers ^ (numbers >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return numbers ^ (numbers >> np.uint64(32))
