"""Draws the picture of ``docs/library.md`` by the lines of code that stand there; ``make docs`` calls it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGE = ROOT / "docs" / "library.md"
PICTURE = ROOT / "docs" / "pictures" / "landmarks.png"
_STYLE: dict[Any, Any] = {
    "figure.figsize": (9, 4.6),
    "figure.dpi": 120,
    "figure.constrained_layout.use": True,
}


def blocks(page: Path = PAGE) -> list[str]:
    """Return the page's blocks of Python code."""
    return re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def run_first_block() -> tuple[dict[str, Any], Figure]:
    """Run the page's first block from the repository's root; return its names and the figure it drew."""
    mpl.use("agg")
    names: dict[str, Any] = {}
    with mpl.rc_context(_STYLE):
        plt.close("all")
        exec(blocks()[0], names)  # noqa: S102  # the page's code
        return names, plt.gcf()


if __name__ == "__main__":
    os.chdir(ROOT)
    run_first_block()[1].savefig(PICTURE, metadata={"Software": None})
