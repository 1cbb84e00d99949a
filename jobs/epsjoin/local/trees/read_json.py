"""JSON documents as trees, without recursion: the depth of a document is bounded by memory alone."""

from __future__ import annotations

import json
import math
import re
from json.decoder import scanstring  # type: ignore[attr-defined]  # typeshed lacks it

from epsjoin.errors import ArgumentError
from epsjoin.local.trees.builder import Builder

_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_WORDS = ("true", "false", "null")
_OBJECT, _ARRAY = "{}", "[]"


def read(builder: Builder, text: object, number: int) -> None:
    """Add the tree of one JSON text; see :meth:`epsjoin.Trees.from_json`.

    Parameters
    ----------
    builder : to which it is added.
    text : the JSON text.
    number : of the text, for the message.

    Raises
    ------
    ArgumentError
        The text is not JSON.
    """
    if not isinstance(text, str):
        raise ArgumentError(f"JSON texts must be str; number {number} is {type(text).__name__}")
    try:
        _read(builder, text)
    except ValueError as error:
        raise ArgumentError(f"text number {number} is not JSON: {error}") from error
    builder.end_tree()


def _read(builder: Builder, text: str) -> None:
    open_nodes: list[tuple[str, int]] = []  # labels and where they begin: objects, arrays, and keys within
    at = _skip(text, 0)
    while True:
        # a value is expected
        opening = text[at : at + 1]
        is_whole = True
        if opening == "{":
            open_nodes.append((_OBJECT, builder.n_nodes))
            at = _skip(text, at + 1)
            if text[at : at + 1] != "}":
                at = _open_key(builder, text, at, open_nodes)
                is_whole = False
        elif opening == "[":
            open_nodes.append((_ARRAY, builder.n_nodes))
            at = _skip(text, at + 1)
            is_whole = text[at : at + 1] == "]"
        else:
            label, at = _scalar(text, at)
            builder.end_node(label, builder.n_nodes)
        if not is_whole:
            continue
        # what a value can be followed by
        while open_nodes:
            at = _skip(text, at)
            label, begin = open_nodes[-1]
            following = text[at : at + 1]
            if label.startswith("."):
                builder.end_node(label, begin)
                open_nodes.pop()
                label, begin = open_nodes[-1]
            if following == ",":
                at = _skip(text, at + 1)
                if label == _OBJECT:
                    at = _open_key(builder, text, at, open_nodes)
                break
            if following != label[1]:
                raise ValueError(f"expected , or {label[1]} at character {at}")
            builder.end_node(label, begin, is_list=label == _ARRAY)
            open_nodes.pop()
            at += 1
        else:
            break
    at = _skip(text, at)
    if at != len(text):
        raise ValueError(f"it goes on after its end, at character {at}")


def _skip(text: str, at: int) -> int:
    """Where the white space ends."""
    found = _SPACE.match(text, at)
    assert found is not None  # noqa: S101  # it matches nothing, too
    return found.end()


def _open_key(builder: Builder, text: str, at: int, open_nodes: list[tuple[str, int]]) -> int:
    """Read a key and its colon; return where its value begins."""
    if text[at : at + 1] != '"':
        raise ValueError(f"expected a key in double quotes at character {at}")
    key, at = scanstring(text, at + 1, True)
    at = _skip(text, at)
    if text[at : at + 1] != ":":
        raise ValueError(f"expected : at character {at}")
    open_nodes.append((f".{key}", builder.n_nodes))
    return _skip(text, at + 1)


def _scalar(text: str, at: int) -> tuple[str, int]:
    """Read a text, a number or a word; return its JSON text, as Python writes it, and where it ends."""
    if text[at : at + 1] == '"':
        value, end = scanstring(text, at + 1, True)
        return json.dumps(value, ensure_ascii=False), end
    for word in _WORDS:
        if text.startswith(word, at):
            return word, at + len(word)
    found = _NUMBER.match(text, at)
    if found is None:
        raise ValueError(f"expected a value at character {at}")
    digits = found[0]
    if found[1] is None and found[2] is None:
        return ("0" if digits == "-0" else digits), found.end()
    value = float(digits)
    return (digits if math.isinf(value) else repr(value)), found.end()
