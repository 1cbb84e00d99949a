"""Rules about keys, answered by NumPy: how often they come in one table, and whether they do in another.

An engine builds a hash table for such a question. Where keys are whole numbers, one sort or one table of
flags is a fraction of that work. Other questions, and other spellings of these, are the engine's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from threading import Lock

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from epsjoin.lake.parquet import File, stream_file
from epsjoin.lake.questions import Questions, UnansweredError

Key = NDArray[np.int64]
ReadKey = Callable[[str, str], Key]
"""Reads a column of a table, by their names."""

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
_MAX_FLAGS_PER_ROW = 8
"""Maximum number of whole numbers between the smallest and the largest key, for each row of both tables."""


class Keys:
    """Answers questions about keys, several at a time; holds each column that it has read.

    Parameters
    ----------
    read : reads a column of whole numbers, its rows in the same order as those of others of the table; raises
        an :class:`UnansweredError` where it is none.
    engine : says whether a condition of a query holds.

    Notes
    -----
    8 bytes for each value of a column; a question takes as much again for each row that it is about, or for
    each number between the smallest and the largest key, of which there are at most ``_MAX_FLAGS_PER_ROW``
    for each row of its tables.
    """

    def __init__(self, read: ReadKey, engine: Questions) -> None:
        self._read_key, self._engine = read, engine
        self._columns: dict[tuple[str, str], Key] = {}
        self._reading = Lock()

    def number(self, query: str) -> float:
        """Return the number that a query about keys returns.

        Raises
        ------
        UnansweredError
            The query asks something else, or in another form. Or a key is missing or no whole number, or keys
            lie too far apart.
        """
        if asked := _REPEATED.fullmatch(query):
            table, names = asked.groups()
            return count_repeated([self._read(table, name.strip("`")) for name in names.split(", ")])
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
            ends = [self._read(other, end) for end in (left, right)]
            return count_miscounted(self._read(table, name), self._read(table, count), ends)
        raise UnansweredError("not about keys")

    def _read(self, table: str, name: str) -> Key:
        with self._reading:
            if (table, name) not in self._columns:
                self._columns[table, name] = self._read_key(table, name)
            return self._columns[table, name]


def read_key(location: str, files: Sequence[File], schema: pa.Schema, name: str) -> Key:
    """Read a column of whole numbers of a slice's files, in their order.

    Parameters
    ----------
    location : URI of the table's folder.
    files, schema : the files, and all columns of the table.
    name : name of the column.

    Raises
    ------
    UnansweredError
        There is no such column, or it is not of whole numbers, or a value is missing.
    TableError
        A file cannot be read.
    """
    if name not in schema.names or not pa.types.is_signed_integer(schema.field(name).type):
        raise UnansweredError(f"{name} is no column of whole numbers")
    wanted = pa.schema([schema.field(name)])
    values = pa.chunked_array(
        [
            batch.column(0)
            for file in files
            for batch in stream_file(location, file, wanted, _BATCH_ROWS, whole=schema)
        ],
        wanted[0].type,
    )
    if values.null_count:
        raise UnansweredError(f"{name} is missing in a row")
    return np.asarray(values.to_numpy(), np.int64)


def count_repeated(key: list[Key]) -> int:
    """Count the rows whose key another row has, too.

    Parameters
    ----------
    key : the columns of the key, (n,) int64 each.

    Raises
    ------
    UnansweredError
        The ranges of the columns take more than 64 bits together.

    Notes
    -----
    O(n log n): one sort of n numbers, in which each row's key is packed.
    """
    if not len(key[0]):
        return 0
    packed, bits = np.zeros(len(key[0]), np.uint64), 0
    for column in key:
        low, high = int(column.min()), int(column.max())
        width = (high - low).bit_length()
        bits += width
        if bits > 64:
            raise UnansweredError("the key is too wide")
        if width < 64:  # by 64 nothing is shifted: all before is zero then
            packed <<= np.uint64(width)
        packed |= column.view(np.uint64) - np.uint64(low % (1 << 64))
    packed.sort()
    is_as_next = packed[1:] == packed[:-1]
    n_groups = np.count_nonzero(is_as_next[1:] > is_as_next[:-1]) + int(is_as_next[:1].any())
    return int(np.count_nonzero(is_as_next)) + int(n_groups)


def count_unmatched(key: Key, others: Key) -> int:
    """Count the rows whose key is not among others; (n,) and (m,) int64, in any order.

    Raises
    ------
    UnansweredError
        The others lie too far apart for a table with a flag for each number between them.

    Notes
    -----
    O(n + m).
    """
    if not len(key) or not len(others):
        return len(key)
    if int(others.max()) - int(others.min()) >= _MAX_FLAGS_PER_ROW * (len(key) + len(others)):
        raise UnansweredError("the keys lie too far apart")
    return len(key) - int(np.count_nonzero(np.isin(key, others, kind="table")))


def measure_numbering(numbers: Key) -> int:
    """Measure how far rows are from being numbered 1 to n.

    Parameters
    ----------
    numbers : (n,) int64, in any order.

    Returns
    -------
    The largest, plus n, minus twice how many different numbers there are: of numbers from 1 on, neither the
        largest nor n is below that, so it is 0 only where they are 1 to n.

    Raises
    ------
    UnansweredError
        The numbers lie too far apart for a table with a flag for each number between them.

    Notes
    -----
    O(n).
    """
    n = len(numbers)
    if not n:
        return 0
    low, high = int(numbers.min()), int(numbers.max())
    if high - low >= _MAX_FLAGS_PER_ROW * n:
        raise UnansweredError("the numbers lie too far apart")
    is_there = np.zeros(high - low + 1, np.bool_)
    is_there[numbers - low] = True
    return high - 2 * int(np.count_nonzero(is_there)) + n


def count_miscounted(key: Key, counted: Key, others: list[Key]) -> int:
    """Count the rows that do not say how often their key is among others, plus 1.

    Parameters
    ----------
    key, counted : (n,) int64, of each row its key and what it says; keys may come twice.
    others : columns of (m,) int64, whose values are looked at together, in any order.

    Raises
    ------
    UnansweredError
        The keys lie too far apart for a table with a number for each number between them.

    Notes
    -----
    O(n + m).
    """
    if not len(key):
        return 0
    low, high = int(key.min()), int(key.max())
    if high - low >= _MAX_FLAGS_PER_ROW * (len(key) + sum(map(len, others))):
        raise UnansweredError("the keys lie too far apart")
    found = np.ones(high - low + 1, np.int64)
    for column in others:
        known = column[(column >= low) & (column <= high)]
        found += np.bincount(known - low, minlength=len(found))
    return int(np.count_nonzero(counted != found[key - low]))
