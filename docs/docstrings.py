"""Reads numpydoc docstrings, for the page of the API and for the tests of the docstrings."""

from __future__ import annotations

import inspect
import re
import textwrap
from typing import Any, NamedTuple

_UNDERLINE = re.compile(r"-{3,}$")
_TERM = re.compile(r"^(?P<names>\*{0,2}[\w.]+(, \*{0,2}[\w.]+)*) :( (?P<text>.*))?$")


class Entry(NamedTuple):
    """One item of a list such as Parameters.

    Parameters
    ----------
    names : what is described: parameters that share a text, or types; empty for plain text.
    text : its description, without indentation; lines as in the source.
    """

    names: tuple[str, ...]
    text: str


class Docstring(NamedTuple):
    """A docstring in its parts.

    Parameters
    ----------
    summary : its first paragraph.
    text : what follows before the first section.
    sections : text of each section by name, in their order.
    """

    summary: str
    text: str
    sections: dict[str, str]

    @property
    def parameters(self) -> list[Entry]:
        """Entries of the section Parameters."""
        return parameter_entries(self.sections.get("Parameters", ""))


def read(described: Any) -> Docstring:
    """Read the docstring of a function, class or property.

    A NamedTuple or dataclass without a docstring of its own has a generated one: that counts as none.
    """
    text = described.__doc__ or ""
    if inspect.isclass(described) and text.startswith(f"{described.__name__}("):
        text = ""
    lines = inspect.cleandoc(text).splitlines()
    starts = [i for i in range(len(lines) - 1) if _UNDERLINE.match(lines[i + 1]) and lines[i].strip()]
    head = "\n".join(lines[: starts[0]] if starts else lines).strip()
    summary, _, rest = head.partition("\n\n")
    sections = {}
    for start, end in zip(starts, [*starts, len(lines)][1:], strict=True):
        sections[lines[start].strip()] = "\n".join(lines[start + 2 : end]).strip("\n")
    return Docstring(summary, rest.strip(), sections)


def parameter_entries(section: str) -> list[Entry]:
    """Entries of the form ``name, name : text``, the text going on in indented lines."""
    return [_named(first, rest) for first, rest in _items(section)]


def type_entries(section: str) -> list[Entry]:
    """Entries of Returns, Yields, Raises: ``name : text``, or a type alone with its text indented below it.

    What has neither form, such as ``(n,) float64, in the order of the points``, is plain text.
    """
    found = []
    for first, rest in _items(section):
        if _TERM.match(first):
            found.append(_named(first, rest))
        elif re.fullmatch(r"\w+", first) or (re.fullmatch(r"\w+(, \w+)*|[\w.]+\[.*\]", first) and rest):
            names = tuple(first.split(", ")) if "[" not in first else (first,)
            found.append(Entry(names, rest))
        else:
            found.append(Entry((), f"{first}\n{rest}".strip()))
    return found


def _items(section: str) -> list[tuple[str, str]]:
    """First line and indented rest of each item; unindented lines after plain text belong to it."""
    items: list[tuple[str, list[str]]] = []
    is_plain = False
    for line in section.splitlines():
        if items and (not line.strip() or line[0] == " " or (is_plain and not _TERM.match(line))):
            items[-1][1].append(line)
        elif line.strip():
            items.append((line, []))
            is_plain = not _TERM.match(line) and not re.fullmatch(r"\w+(, \w+)*|[\w.]+\[.*\]", line)
    return [(first, textwrap.dedent("\n".join(rest)).strip()) for first, rest in items]


def _named(first: str, rest: str) -> Entry:
    term = _TERM.match(first)
    if term is None:
        return Entry((), f"{first}\n{rest}".strip())
    return Entry(tuple(term["names"].split(", ")), f"{term['text'] or ''}\n{rest}".strip())
