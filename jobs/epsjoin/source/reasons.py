"""Why a record is refused, as a text."""

from __future__ import annotations

from json import JSONDecodeError

NOT_UTF_8 = "not UTF-8"
"""Reason of a record that has as many fields as it should, and other bytes than those of UTF-8."""


def refusal(kind: str, value: object = None, item: int | None = None) -> str:
    """The reason why a record is refused: its kind, then the value in quotes, and its place in a list.

    Kinds are fixed sentences about the columns of a contract, so there are few of them, however many
    records are bad; whatever differs from record to record belongs in the value. No column's name and no
    sentence has a quote after a colon, so :func:`epsjoin.source.values.kind_of` can find the kind.

    Parameters
    ----------
    item : the place of the value in its list, 0 is the first; ``None``: it is in none.
    """
    if value is None:
        return kind
    return f"{kind}: {str(value)[:80]!r}" + ("" if item is None else f" in place {item + 1}")


def place_of(error: JSONDecodeError) -> str:
    """What is wrong with a text that is not JSON, and where."""
    return f"{error.msg.removesuffix(' at')} at column {error.colno}"  # some messages end with that word


def remedy_of(reason: str) -> str:
    """What to do about records that are refused for this reason, where it is always the same."""
    if reason != NOT_UTF_8:
        return ""
    return "; convert the file from its encoding, such as by iconv -f ISO-8859-1 -t UTF-8 OLD > NEW"
