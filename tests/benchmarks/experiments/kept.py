"""Counts that another machine must find as well: those of counts.json, and what differs from them.

The numbers are whole and of seeded or stored points, so neither the number of threads, nor the width of the
processor's vectors, nor BLAS may change one. Those of few rows are compared by the tests, those of all rows
by ``make experiments``; ``--keep`` writes the ones that were found.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from .claims import Counts

FILE = Path(__file__).with_name("counts.json")
ALL, FEW = "all rows", "few rows"
MAX_TOLD = 10
"""Differences of an experiment that are told one by one."""
REMEDY = "if they are meant: python -m benchmarks.experiments --keep, and once more with --few"
"""What to do about differences, such as those of a planner with other costs, which makes other parts."""


def differences(name: str, rows: str, found: Counts, file: Path = FILE) -> list[str]:
    """What an experiment has counted otherwise than it is kept; a sentence each.

    Parameters
    ----------
    name : of the experiment.
    rows : ``ALL`` or ``FEW``.
    found : its counts.
    file : where they are kept.
    """
    kept = _read(file).get(rows, {}).get(name, {})
    told = [
        f"{name}, {rows}: {what}: {_said(found.get(what))}, but {_said(kept.get(what))} in {file.name}"
        for what in {**kept, **found}
        if list(found.get(what, [])) != kept.get(what, [])
    ]
    more = [f"{name}, {rows}: {len(told) - MAX_TOLD} more differences"] if len(told) > MAX_TOLD else []
    return [*told[:MAX_TOLD], *more, *([REMEDY] if told else [])]


def keep(rows: str, found: Mapping[str, Counts], file: Path = FILE) -> None:
    """Write the counts of these experiments in place of theirs; those of others stay."""
    kept = _read(file)
    kept[rows] = kept.get(rows, {}) | {name: dict(counts) for name, counts in found.items() if counts}
    file.write_text(_written(kept), encoding="utf-8")


def _read(file: Path) -> dict[str, dict[str, dict[str, list[int]]]]:
    return dict(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else {}


def _written(kept: Mapping[str, Mapping[str, Counts]]) -> str:
    """JSON with a line for each thing that is counted, so that a change of one is a line of a diff."""
    sizes = []
    for rows, by_name in kept.items():
        experiments = []
        for name, counts in by_name.items():
            lines = [
                f"   {json.dumps(what, ensure_ascii=False)}: {list(each)}" for what, each in counts.items()
            ]
            experiments.append(f'  "{name}": {{\n' + ",\n".join(lines) + "\n  }")
        sizes.append(f' "{rows}": {{\n' + ",\n".join(experiments) + "\n }")
    return "{\n" + ",\n".join(sizes) + "\n}\n"


def _said(numbers: Sequence[int] | None) -> str:
    return "nothing" if numbers is None else str(list(numbers))
