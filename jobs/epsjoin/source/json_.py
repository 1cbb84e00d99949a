"""Records of a file of JSON lines: one object per line."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import IO, Any

from epsjoin.contracts.sources import SourceContract
from epsjoin.errors import DataRefusedError
from epsjoin.source.bounds import BYTE_ORDER_MARK, open_lines
from epsjoin.source.lists import Splitter
from epsjoin.source.reasons import NOT_UTF_8, place_of, refusal
from epsjoin.source.untyped import OTHER_ENCODING, FoundColumns, UntypedRecord
from epsjoin.source.values import Underflow, is_underflow

_OTHER_ENCODINGS = (b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff", b"{\0", b"\0{", b"\0\0\0{")
"""How objects in UTF-16 or UTF-32 begin, with a byte-order mark or without."""


def read_json(
    stream: IO[bytes], name: str, source: SourceContract, columns: FoundColumns
) -> Iterator[UntypedRecord]:
    """Yield the records of a file of JSON lines; their fields are Python values, ``None`` if absent.

    Parameters
    ----------
    stream, name : the file's bytes and its name; gzip if the name ends in .gz.
    source : the contract.
    columns : takes the names of all objects, in the order in which they are met.

    Raises
    ------
    DataRefusedError
        While it is read: it exceeds a bound, or ends within a record. At its end: no record has a column
        that is required, or that the contract's condition names.
    """
    objects = Objects(name, source, columns)
    yield from objects.read(_without_mark(enumerate(open_lines(stream, name), 1)))
    require_keys(source, columns)


Line = tuple[int, bytes]
"""The number of a line in its file, and the line with its end."""


class Objects:
    """The objects of one file of JSON lines.

    Parameters
    ----------
    name, source, columns : see :func:`read_json`.
    is_start : whether the file's first record is among them.

    Attributes
    ----------
    keys : the keys that have been met.
    n_records : number of the records that have been read.
    """

    def __init__(
        self, name: str, source: SourceContract, columns: FoundColumns, *, is_start: bool = True
    ) -> None:
        self.keys: set[str] = set()
        self.n_records = 0
        self._name = name
        self._source = source
        self._columns = columns
        self._is_start = is_start
        self._splitter = Splitter(source)

    def read(self, lines: Iterable[Line]) -> Iterator[UntypedRecord]:
        """Yield the records in the next lines, without a byte-order mark.

        Raises
        ------
        DataRefusedError
            See :func:`read_json`.
        """
        for number, line in lines:
            if not line.strip():
                continue
            if self._is_start and not self.n_records:
                self._check_begin(number, line)
            self.n_records += 1
            yield self._read_one(number, line)

    def _check_begin(self, number: int, line: bytes) -> None:
        if line.startswith(_OTHER_ENCODINGS):
            raise DataRefusedError(f"{self._name}: line {number}: {OTHER_ENCODING}")
        if line.lstrip(b" \t").startswith(b"["):
            raise DataRefusedError(
                f"{self._name}: line {number}: an array begins here; each line must be one object, as "
                "'jq -c .[]' writes them"
            )

    def _read_one(self, number: int, line: bytes) -> UntypedRecord:
        raw = line.decode("utf-8", "backslashreplace").rstrip("\r\n")
        body, problem = _parse_object(line)
        if body is None:
            if _is_cut_off(line):
                raise DataRefusedError(
                    f"{self._name}: line {number}: the file ends within this record ({problem}); it seems to "
                    "be cut off"
                )
            return UntypedRecord(number, raw, None, problem)
        if new := [key for key in body if key not in self.keys]:
            self._columns.add(key.encode("utf-8", "backslashreplace").decode() for key in new)
            self.keys.update(new)
        return UntypedRecord(number, raw, *self._splitter.split(body))


def require_keys(source: SourceContract, columns: FoundColumns) -> None:
    """Refuse a file of which no record has a column that is needed.

    Raises
    ------
    DataRefusedError
        See :func:`read_json`.
    """
    if columns.names:  # a record may leave out what is not required, and so may all of them
        named = source.filter.columns if source.filter else ()
        columns.require([c.in_file for c in source.columns if c.required or c.name in named])


def _without_mark(lines: Iterable[Line]) -> Iterator[Line]:
    return ((n, line.removeprefix(BYTE_ORDER_MARK) if n == 1 else line) for n, line in lines)


class _DoubleKeyError(Exception):
    """An object of JSON has a key twice; the text is the key."""


def _to_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        counts = Counter(key for key, _ in pairs)
        raise _DoubleKeyError(next(key for key, n in counts.items() if n > 1))
    return found


def _to_float(text: str) -> float:
    value = float(text)
    return Underflow(text) if is_underflow(value, text) else value


def _is_cut_off(line: bytes) -> bool:
    """Whether a line that is not JSON begins an object that goes on where the file ends.

    It may end with a brace, of an object or a text within it.
    """
    text = line.strip().decode(errors="replace")
    if line.endswith((b"\n", b"\r")) or not text.startswith("{"):
        return False
    if not text.endswith("}"):
        return True
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return error.pos == len(text) or error.msg.startswith("Unterminated string")
    except (RecursionError, ValueError):
        pass  # as the reason says
    return False


def _parse_object(line: bytes) -> tuple[dict[str, Any] | None, str | None]:
    try:
        body = json.loads(line.decode().rstrip("\r\n"), parse_float=_to_float, object_pairs_hook=_to_object)
    except UnicodeDecodeError:
        return None, refusal(NOT_UTF_8)
    except json.JSONDecodeError as error:
        return None, refusal("not JSON", place_of(error))
    except _DoubleKeyError as error:
        return None, refusal("an object has a key twice", error)
    except RecursionError:
        return None, refusal("not JSON", "nested too deep")
    except ValueError:  # int() refuses thousands of digits
        return None, refusal("not JSON", "a number has too many digits")
    if not isinstance(body, dict):
        return None, refusal("not a JSON object", type(body).__name__)
    return body, None
