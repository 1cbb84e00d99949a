"""The answers as Markdown, in the marked part of the page."""

from __future__ import annotations

import os
import platform
import re
import statistics
import textwrap
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path

BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"
LIBRARIES = ("numpy", "numba", "scipy", "scikit-learn")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]


def count(number: int) -> str:
    return f"{number:,}"


def seconds(value: float) -> str:
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


def megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f}"


def spread(values: Sequence[float]) -> str:
    """The median, and the least and the greatest behind it."""
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{_short(middle)} ({_short(low)} – {_short(high)})" if len(values) > 1 else _short(middle)


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 20 else f"{value:.1f}" if value >= 2 else f"{value:.2f}"


def machine() -> str:
    versions = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    return f"{_cpu()}, {os.cpu_count()} cores; Python {platform.python_version()}, {versions}"


def _cpu() -> str:
    try:
        found = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    except OSError:
        found = None
    return found[1].strip() if found else platform.machine()


def put(file: Path, text: str, markers: tuple[str, str] = (BEGIN, END)) -> None:
    """Replace what stands between the markers of the file."""
    old = file.read_text(encoding="utf-8")
    head, begin, rest = old.partition(markers[0])
    _, end, tail = rest.partition(markers[1])
    if not (begin and end):
        raise ValueError(f"{file} has no {markers[0]} … {markers[1]}")
    lines = "\n".join(map(_wrapped, text.strip().split("\n")))
    file.write_text(f"{head}{begin}\n{lines}\n{end}{tail}", encoding="utf-8")


def _wrapped(line: str) -> str:
    """The line in lines that fit a screen, unless it is one of a table, or a picture."""
    if line.startswith(("|", "!")):
        return line
    indent = "  " if line.startswith("- ") else ""
    return textwrap.fill(line, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
