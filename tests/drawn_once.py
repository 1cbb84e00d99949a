"""Pictures of pages that are drawn once: pages of tests differ in words, and in a picture or two."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup
from matplotlib.figure import Figure

from epsjoin.findings import Findings
from epsjoin.report.figures.figure import Plot


class Watched:
    """Findings that note which of their values are read."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self.read: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        return self.read.setdefault(name, getattr(self._findings, name))


class DrawnOnce:
    """Plots that give a figure again for findings in which all that it was drawn of is the same object."""

    def __init__(self) -> None:
        self._figures: dict[Plot[Any], list[tuple[Mapping[str, Any], Figure]]] = {}
        self._svgs: dict[Figure, Markup] = {}

    def forget(self) -> None:
        """Draw everything anew from now on."""
        self._figures.clear()
        self._svgs.clear()

    def of(self, plot: Plot[Any]) -> Plot[Any]:
        """The plot, which remembers."""

        def draw(findings: Findings) -> Figure:
            known = self._figures.setdefault(plot, [])
            for read, fig in known:
                if all(getattr(findings, name) is value for name, value in read.items()):
                    return fig
            watched = Watched(findings)
            fig = plot(watched)
            known.append((watched.read, fig))
            return fig

        return draw

    def to_svg(self, write: Any, drawn: Mapping[str, Figure], pictures: Any) -> dict[str, Markup]:
        """What ``html.to_svg``, which is given, writes of figures; of each once."""
        new = {name: fig for name, fig in drawn.items() if fig not in self._svgs}
        self._svgs |= {drawn[name]: svg for name, svg in write(new, pictures).items()}
        return {name: self._svgs[fig] for name, fig in drawn.items()}
