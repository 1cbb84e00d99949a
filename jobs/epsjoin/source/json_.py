"""Records of a file of JSON lines: one object per line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import IO, Any

from epsjoin.contracts.sources import SourceContract
from epsjoin.errors import DataRefusedError
from epsjoin.source.bounds import open_lines
from epsjoin.source.untyped import FoundColumns, UntypedRecord
from epsjoin.source.values import is_underflow, refusal


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
    wanted = [column.name for column in source.columns]
    seen: set[str] = set()
    n_records = 0
    for number, line in enumerate(open_lines(stream, name), 1):
        if not line.strip():
            continue
        encoding = "utf-8-sig" if number == 1 else "utf-8"
        raw = line.decode(encoding, "backslashreplace").rstrip("\r\n")
        if not seen and not n_records and line.lstrip(b"\xef\xbb\xbf \t").startswith(b"["):
            raise DataRefusedError(
                f"{name}: line {number}: an array begins here; each line must be one object, as "
                "'jq -c .[]' writes them"
            )
        n_records += 1
        body, problem = _parse_object(line, encoding)
        if body is None:
            begins, ends = line.lstrip().startswith(b"{"), line.endswith((b"}", b" ", b"\n", b"\r"))
            if begins and not ends:
                raise DataRefusedError(
                    f"{name}: line {number}: the file ends within this record ({problem}); it seems to be "
                    "cut off"
                )
            yield UntypedRecord(number, raw, None, problem)
            continue
        if new := [column for column in body if column not in seen]:
            columns.add(column.encode("utf-8", "backslashreplace").decode() for column in new)
            seen.update(new)
        yield UntypedRecord(number, raw, [body.get(column) for column in wanted])
    if seen:  # a record may leave out what is not required, and so may all of them
        named = source.filter.columns if source.filter else ()
        columns.require([c.name for c in source.columns if c.required or c.name in named])


class _DoubleKeyError(Exception):
    """An object of JSON has a key twice; the text is the key."""


def _to_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        raise _DoubleKeyError(next(key for key in keys if keys.count(key) > 1))
    return found


def _to_float(text: str) -> float | str:
    """The number, or its text, which is of no type of a contract, where the number would become 0."""
    value = float(text)
    return text if is_underflow(value, text) else value


def _parse_object(line: bytes, encoding: str) -> tuple[dict[str, Any] | None, str | None]:
    try:
        body = json.loads(
            line.decode(encoding).rstrip("\r\n"), parse_float=_to_float, object_pairs_hook=_to_object
        )
    except UnicodeDecodeError:
        return None, refusal("not UTF-8")
    except json.JSONDecodeError as error:
        return None, refusal("not JSON", f"{error.msg} at column {error.colno}")
    except _DoubleKeyError as error:
        return None, refusal("an object has a key twice", error)
    except RecursionError:
        return None, refusal("not JSON", "nested too deep")
    except ValueError:  # int() refuses thousands of digits
        return None, refusal("not JSON", "a number has too many digits")
    if not isinstance(body, dict):
        return None, refusal("not a JSON object", type(body).__name__)
    return body, None
