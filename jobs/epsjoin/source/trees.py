"""Documents in records: a text of JSON that :meth:`epsjoin.Trees.from_json` reads, or a reason."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from epsjoin.contracts.odcs import Column
from epsjoin.source.reasons import place_of, refusal


def read_document(column: Column, field: Any) -> tuple[str | None, str | None]:
    """Read a document that is not missing.

    Parameters
    ----------
    column : a column of the role ``tree``; an ``object`` is a value of a record of JSON, in which no object
        has a key twice, a ``string`` the text of one.
    field : the value, or the text.

    Returns
    -------
    The document as a text of JSON, and ``None``; or ``None`` and the reason why it is refused.

    Notes
    -----
    Refused are what is not JSON, an object with a key twice, one of whose values would be lost, NaN and
    Infinity, which are not JSON, half of a surrogate pair, which no file can hold, and a document with more
    nodes than the column says.
    """
    try:
        value = field if column.type == "object" else _parse(field)
        if column.type == "object" and not isinstance(value, (dict, list)):
            raise ValueError("not an object or array")
        text = field if column.type == "string" else json.dumps(value, ensure_ascii=False, allow_nan=False)
        text.encode()
    except UnicodeError:
        return None, refusal(f"{column.in_file}: half a surrogate pair")
    except RecursionError:
        return None, refusal(f"{column.in_file}: nested too deep")
    except json.JSONDecodeError as error:
        return None, refusal(f"{column.in_file}: not JSON", place_of(error))
    except ValueError as error:
        kind = "NaN or Infinity" if str(error).startswith("Out of range float") else str(error)
        return None, refusal(f"{column.in_file}: {kind}", field)
    (n_nodes, _), most = count_nodes(value), column.max_nodes or 0
    if n_nodes > most:
        return None, refusal(f"{column.in_file}: more than {most} nodes", f"{n_nodes} nodes")
    return text, None


def _parse(text: object) -> Any:
    if not isinstance(text, str):
        raise ValueError("not of type string")
    value = json.loads(
        text, object_pairs_hook=_to_object, parse_constant=_refuse_constant, parse_int=_to_integer
    )
    again = json.dumps(value, ensure_ascii=False, allow_nan=False)  # 1e999 is read as infinite
    again.encode()  # an escape may be half a surrogate pair
    return value


def _to_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object has a key twice")
    return found


def _to_integer(digits: str) -> int:
    try:
        return int(digits)
    except ValueError:  # Python's own text has the number of digits
        raise ValueError("a number has too many digits") from None


def _refuse_constant(_: str) -> NoReturn:
    raise ValueError("NaN or Infinity")


def count_nodes(value: Any) -> tuple[int, int]:
    """Count the nodes of a document's tree, and the leaves among them.

    An object, an array, a key, a text, a number and a word are a node each.
    """
    n_nodes, n_leaves, left = 0, 0, [value]
    while left:
        each = left.pop()
        n_nodes += 1
        if isinstance(each, dict):
            n_nodes += len(each)
            left += each.values()
        elif isinstance(each, list):
            left += each
        n_leaves += not (isinstance(each, (dict, list)) and each)
    return n_nodes, n_leaves
