"""What all pages of a report share: templates, pictures as SVG, and what the gates say of each table."""

from __future__ import annotations

import importlib.resources
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TypeAlias
from unicodedata import category

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure

from epsjoin.console import counted
from epsjoin.findings import Row
from epsjoin.report import costs, words
from epsjoin.report.beside import lay_beside
from epsjoin.report.figures import figure
from epsjoin.report.figures.figure import FindingsT

Pictures: TypeAlias = Mapping[str, tuple[figure.Plot[FindingsT], str]]
"""A page's pictures by name: what draws them, and a text for people who cannot see them."""


def render_template(name: str, **values: object) -> str:
    """Fill a template of this package. Whatever comes from the data is escaped."""
    return _environment().get_template(name).render(**values)


def _visible(value: object) -> object:
    """Write out what HTML may not have, such as control characters in text from the data."""
    if not isinstance(value, str) or isinstance(value, Markup) or value.isprintable():
        return value
    hidden = {c for c in value if category(c) in _INVISIBLE} - {"\n", "\t"}
    return "".join(c.encode("unicode_escape").decode() if c in hidden else c for c in value)


_INVISIBLE = ("Cc", "Cs", "Cn", "Zl", "Zp")
"""Categories of Unicode: controls, halves of characters, what is no character, separators of lines."""


@cache
def _environment() -> Environment:
    """Make what all templates see; it keeps those that it has compiled."""
    environment = Environment(
        autoescape=True,
        finalize=_visible,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=FunctionLoader(_read),
    )
    environment.filters.update(
        count=words.count,
        measure=words.measure,
        exact=words.exact,
        factor=words.factor,
        like=words.like,
        percent=words.percent,
        size=words.size,
        duration=words.duration,
        cell=words.cell,
    )
    environment.globals.update(
        style=Markup(_read("run.css")),  # noqa: S704  # a file of this package
        change=words.change,
        counted=counted,
        differing=words.differing,
        beside=lay_beside,
        phases=costs.PHASES,
    )
    return environment


def _read(name: str) -> str:
    return (importlib.resources.files("epsjoin.report") / name).read_text(encoding="utf-8")


def draw(pictures: Pictures[FindingsT], findings: FindingsT) -> dict[str, Figure]:
    """Draw the pictures of a page, by name."""
    return {name: plot(findings) for name, (plot, _) in pictures.items()}


def to_svg(drawn: Mapping[str, Figure], pictures: Pictures[FindingsT]) -> dict[str, Markup]:
    """Write the figures of :func:`draw` as SVG, each with its text for people who cannot see it."""
    return {
        name: Markup(figure.to_svg(fig, name, pictures[name][1]))  # noqa: S704  # Matplotlib escaped the texts
        for name, fig in drawn.items()
    }


def count_by_table(quality: Sequence[Row]) -> list[tuple[str, int, int, int]]:
    """Count for every table its expectations, the broken warnings and the broken errors."""
    rows = []
    for name in dict.fromkeys(row["table"] for row in quality):
        of_table = [row for row in quality if row["table"] == name]
        broken = [row["severity"] for row in of_table if not row["success"]]
        rows.append((name, len(of_table), broken.count("warning"), broken.count("error")))
    return rows
