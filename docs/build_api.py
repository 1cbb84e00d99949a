"""Writes ``docs/api.md`` from the docstrings of the library's public names; ``make docs`` runs it."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import itertools
import json
import re
import textwrap
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import docstrings
from api_chapters import CHAPTERS
from epsjoin.kernels import arrays

PAGE = Path(__file__).with_name("api.md")

WIDTH = 120
"""Most columns of a line of prose; those of code are as wide as the sources."""
COMMAND = "make docs"

_HEAD = f"""# The library

<!-- Built from the docstrings by `{COMMAND}`; do not edit. -->

What `import epsjoin` offers to people with arrays, without Spark and Airflow, and `import epsjoin.spark` to
those with DataFrames. A name is imported when it is first used. The examples are tested; they take for
granted

```python
import numpy as np
from epsjoin import *
```
"""


# A number has no docstring of its own.
_CONSTANTS = {
    "NO_ROW": "Stands for the missing partner in a left, right or outer join.",
    "NOISE": "Label of points that belong to no cluster.",
}
_LISTS = ("Parameters", "Attributes", "Returns", "Yields", "Raises")
_SEE_ALSO = "See Also"
_STRESSED = r"(?<![\w*\\])\*(?![\s*])[^*<]+(?<!\s)\*(?![\w*])"
"""Words between stars, but no product."""
_TABLE = re.compile(
    r"^(?P<rule>=+(?: +=+)+)\n(?P<head>.*)\n(?P=rule)\n(?P<rows>.*?)\n(?P=rule)$", re.MULTILINE | re.DOTALL
)


def find(path: str) -> Any:
    """Give what a name of ``epsjoin``, or a dotted path below it, stands for.

    Raises
    ------
    ImportError, AttributeError
        There is no such thing.
    """
    module, _, name = f"epsjoin.{path}".rpartition(".")
    return getattr(importlib.import_module(module), name)


def names_on_page() -> list[str]:
    """Give all names that the page describes, in their order."""
    return [name for chapter in CHAPTERS for name in chapter.names]


def build() -> str:
    """Give the page as Markdown."""
    anchors = _anchors()
    parts = [_HEAD]
    for chapter in CHAPTERS:
        links = " · ".join(f"[{_shown(name)}](#{anchors[_shown(name)]})" for name in chapter.names)
        parts.append(f"- [{chapter.title}](#{_slug(chapter.title)}): {links}")
    parts.append("")
    for chapter in CHAPTERS:
        parts += [f"## {chapter.title}", "", chapter.text, ""]
        for name in chapter.names:
            parts += [*_described(name), ""]
    page = re.sub(r"\n{3,}", "\n\n", "\n".join(parts)).strip() + "\n"
    page = re.sub(r":(?:func|meth|class|mod|attr):`~?([^`]+)`", lambda role: _link(role, anchors), page)
    return "".join(map(_fold, page.splitlines(keepends=True)))


def _fold(line: str) -> str:
    """The line, in several where links have made it longer than documents are wide."""
    if len(line) <= WIDTH or line.startswith("|"):
        return line
    indent = re.match(r" *(?:- )?", line)
    deeper = " " * len(indent[0] if indent else "")
    whole = re.sub(r"\[[^]]+\]\([^)]+\)", lambda link: link[0].replace(" ", "\0"), line)
    folded = textwrap.wrap(
        whole, WIDTH, subsequent_indent=deeper, break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(folded).replace("\0", " ") + "\n"


def _shown(path: str) -> str:
    """What the page calls it: by its own name, and those of Spark by their package's, too."""
    name = path.rpartition(".")[2]
    return f"spark.{name}" if path.startswith("spark.") else name


def _slug(heading: str) -> str:
    """The anchor that GitHub gives a heading, but for the number of a repeated one."""
    return re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-")


def _anchors() -> dict[str, str]:
    """Anchor of each name on the page; GitHub numbers those that differ in case only: dbscan, Dbscan."""
    anchors: dict[str, str] = {}
    met: dict[str, int] = {}
    for name in map(_shown, names_on_page()):
        slug = _slug(name)
        anchors[name] = f"{slug}-{met[slug]}" if slug in met else slug
        met[slug] = met.get(slug, 0) + 1
    return anchors


def _link(role: re.Match[str], anchors: dict[str, str]) -> str:
    """A reference of a docstring: to its place on this page, or a name in code."""
    name = _shown(role[1].removeprefix("epsjoin."))
    if name in anchors:
        return f"[`{name}`](#{anchors[name]})"
    return f"`{role[1].removeprefix('epsjoin.')}`"


def _described(path: str) -> list[str]:
    """Heading, signature and docstring of one name."""
    described, name = find(path), _shown(path)
    if name in _CONSTANTS:
        return [f"### {name}", "", f"`{name} = {described!r}`", "", _CONSTANTS[name]]
    parts = [f"### {name}", ""]
    if path != name:
        parts += [f"In `epsjoin.{path.rpartition('.')[0]}`.", ""]
    if inspect.isclass(described) and issubclass(described, Exception):
        bases = ", ".join(base.__name__ for base in described.__bases__)
        parts += ["```python", f"class {name}({bases})", "```", ""]
    elif getattr(described, "_is_protocol", False):  # nobody makes one
        parts += ["```python", f"class {name}(Protocol)", "```", ""]
    elif inspect.isclass(described):
        parts += ["```python", _signature(described, f"class {name}"), "```", ""]
    else:
        parts += ["```python", _signature(described, name), "```", ""]
    parts += markdown(docstrings.read(described))
    if inspect.isclass(described):
        for member, value in _members(described):
            is_property = not callable(value)
            function = getattr(value, "fget", None) or getattr(value, "func", None) or value
            shown = f"{name}.{member}" if is_property else _signature(function, f"{name}.{member}", skip=1)
            parts += ["", f"#### {name}.{member}", "", "```python", shown, "```", ""]
            parts += markdown(docstrings.read(function))
    return parts


def _members(described: type) -> list[tuple[str, Any]]:
    """Public methods and properties that the class itself defines, in the order of its source."""
    fields = {*getattr(described, "_fields", ())}
    if dataclasses.is_dataclass(described):
        fields |= {field.name for field in dataclasses.fields(described)}
    return [
        (name, value)
        for name, value in vars(described).items()
        if not name.startswith("_")
        and name not in fields
        and (inspect.isfunction(value) or isinstance(value, property) or hasattr(value, "func"))
    ]


def _signature(described: Any, shown: str, skip: int = 0) -> str:
    """The signature, one parameter per line where it is long."""
    given = inspect.signature(described)
    module = inspect.getmodule(described)
    result = "" if inspect.isclass(described) else f" -> {_annotation(given.return_annotation, module)}"
    parameters = []
    is_keyword = False
    for each in list(given.parameters.values())[skip:]:
        if each.kind is each.KEYWORD_ONLY and not is_keyword:
            parameters.append("*")
            is_keyword = True
        default = "" if each.default is each.empty else f" = {_default(each.default)}"
        annotation = "" if each.annotation is each.empty else f": {_annotation(each.annotation, module)}"
        parameters.append(f"{each.name}{annotation}{default}")
    line = f"{shown}({', '.join(parameters)}){result}"
    if len(line) <= 100:
        return line
    return "\n".join([f"{shown}(", *(f"    {each}," for each in parameters), f"){result}"])


def _default(default: object) -> str:
    """A default as the sources write it: strings in double quotes."""
    return json.dumps(default) if isinstance(default, str) else repr(default)


def _annotation(annotation: Any, module: ModuleType | None) -> str:
    """As it stands in the source, without the names of modules; a private name as the literals it means."""
    text = getattr(annotation, "__forward_arg__", annotation)  # a NamedTuple wraps it
    text = text if isinstance(text, str) else getattr(text, "__name__", repr(text))
    text = re.sub(r"\b(?:Floats|Ints|Bytes|Bools)(?:32|8)?\b", _array, text)
    text = re.sub(r"\b(?:np|npt|typing|collections\.abc)\.", "", text)
    return re.sub(r"\b_[A-Z]\w+", lambda name: _literals(vars(module)[name[0]]) if module else name[0], text)


def _array(alias: re.Match[str]) -> str:
    """The type of an array by the name that NumPy has for it."""
    dtype = get_args(getattr(arrays, alias[0]))[1]
    return f"NDArray[{get_args(dtype)[0].__name__}]"


def _literals(alias: Any) -> str:
    return " | ".join(map(json.dumps, get_args(alias)))


def markdown(docstring: docstrings.Docstring) -> list[str]:
    """A docstring as Markdown."""
    parts = [_inline(docstring.summary), "", _inline(docstring.text), ""]
    for title, section in docstring.sections.items():
        parts += [f"**{title}**", ""]
        if title == "Examples":
            parts += _examples(section)
        elif title in _LISTS:
            is_parameters = title in ("Parameters", "Attributes")
            read = docstrings.parameter_entries if is_parameters else docstrings.type_entries
            parts += [*map(_item, read(section)), ""]
        elif title == _SEE_ALSO:
            parts += [*map(_sibling, docstrings.parameter_entries(section)), ""]
        else:
            parts += [_inline(section), ""]
    return parts


def _examples(section: str) -> list[str]:
    """Lines of Python and what they print as code, the sentences between them as prose."""
    parts: list[str] = []
    for is_code, paragraphs in itertools.groupby(
        section.split("\n\n"), lambda paragraph: paragraph.lstrip().startswith(">>>")
    ):
        text = "\n\n".join(paragraphs)
        parts += ["```pycon", text, "```", ""] if is_code else [_inline(text), ""]
    return parts


def _item(entry: docstrings.Entry) -> str:
    names = ", ".join(f"`{name}`" for name in entry.names)
    text = _inline(entry.text)
    bullet = f"- {names}: {text}" if names and text else f"- {names}{text}"
    return textwrap.indent(bullet, "  ").removeprefix("  ")


def _sibling(entry: docstrings.Entry) -> str:
    """An item of See Also, its names as references."""
    return f"- {', '.join(f':func:`{name}`' for name in entry.names)}: {_inline(entry.text)}"


def _table(table: re.Match[str]) -> str:
    """A simple table of reStructuredText as one of Markdown."""
    starts = [column.start() for column in re.finditer("=+", table["rule"])]
    rows: list[list[str]] = []
    for line in (table["head"], *table["rows"].splitlines()):
        cells = [line[start:end].strip() for start, end in itertools.pairwise([*starts, None])]
        if cells[0]:
            rows.append(cells)
        else:  # the row above goes on
            rows[-1] = [f"{above} {cell}".strip() for above, cell in zip(rows[-1], cells, strict=True)]
    rows.insert(1, ["---"] * len(starts))
    shown = ([cell.replace("|", "\\|") for cell in row] for row in rows)
    return "\n".join(f"| {' | '.join(row)} |" for row in shown)


def _inline(text: str) -> str:
    """Double backticks become single ones; stars and comparisons outside of code stay what they are.

    Stars around words are those of Markdown, too.
    """
    pieces = re.split(r"(``.+?``)", _TABLE.sub(_table, text), flags=re.DOTALL)
    for i, piece in enumerate(pieces):
        if i % 2:
            pieces[i] = f"`{' '.join(piece[2:-2].split())}`"
        else:
            pieces[i] = re.sub(rf"({_STRESSED})|(?<!\\)([*<])", _escape, piece)
    return "".join(pieces)


def _escape(star: re.Match[str]) -> str:
    return star[1] or f"\\{star[2]}"


if __name__ == "__main__":
    PAGE.write_text(build(), encoding="utf-8")
