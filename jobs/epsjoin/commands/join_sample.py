"""The sample of files or of a lake's points from which ``epsjoin estimate`` predicts."""

from __future__ import annotations

import argparse
import json
import re
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from epsjoin.console import counted
from epsjoin.errors import ArgumentError, DataRefusedError
from epsjoin.lake import slices
from epsjoin.lake.arguments import open_stored, parse_run
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.lake import Slice
from epsjoin.lake.sample import sample_stored
from epsjoin.local.epsilon.epsilon_fit import EpsilonFit
from epsjoin.local.epsilon.limits import Expectation
from epsjoin.local.metric import Metric, get_metric
from epsjoin.params import RunParams
from epsjoin.source.delimiters import parse_delimiter
from epsjoin.source.draft.degrees import role_of
from epsjoin.source.sampling import sample_files

_NAME = re.compile(r"""\s*(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<bare>[^,]*?))\s*,""")
"""A name of ``--columns`` and the comma behind it: in quotes as it is, else without the blanks around it."""
_LIST = re.compile(r"(?P<name>.+)\[(?P<n>[1-9]\d{0,4})\]")
"""Matches a column of lists, with their length."""


@dataclass(frozen=True)
class Sample:
    """A sample of a point set.

    Parameters
    ----------
    ids, points : (n,) int64 and (n, d) float64, the sample.
    n_rows, n_left_out, n_bad : number of points of the whole set; of rows without a coordinate; of bad rows.
    first_bad : what is wrong with the first bad row; empty if there is none.
    metric, unit : the metric and the unit of its distances, "" if there is none.
    metric_name : what people call the metric: for documents their own, as their points have another one.
    params : parameters of the join; those that no argument sets have their defaults.
    run : the run whose points these are; ``None``: they are those of files.
    right : (m, d) float64, the sample of the right table of a join of two; ``None``: one table with itself.
    n_right : points of the whole right table.
    """

    ids: NDArray[np.int64]
    points: NDArray[np.float64]
    n_rows: int
    n_left_out: int
    n_bad: int
    metric: Metric
    unit: str
    params: RunParams
    run: Fingerprints | None = None
    right: NDArray[np.float64] | None = None
    n_right: int = 0
    first_bad: str = ""
    metric_name: str = ""

    def expectation(self, fit: EpsilonFit | None) -> Expectation:
        """What the jobs expect of these points, too."""
        params, right = self.params, (self.right, self.n_right)
        return Expectation(
            self.points, self.n_rows, self.metric, params.seed, params.sample_rows, fit, *right
        )


def read_sample(arguments: argparse.Namespace) -> Sample:
    """Draw the sample that the arguments of the command ask for.

    Raises
    ------
    ArgumentError
        Arguments exclude one another, or one is wrong.
    DataRefusedError
        There are no points, or the metric is not defined for one.
    """
    for_lake = [name for name in ("lake", "dataset", "run") if getattr(arguments, name) is not None]
    for_files = [name for name in ("files", "columns", "right", "delimiter") if getattr(arguments, name)]
    if for_files[:2] == ["files", "columns"] and not for_lake:
        sample = _sample_files(arguments)
    elif len(for_lake) == 3 and not for_files and arguments.metric is None:
        sample = _sample_lake(arguments)
    else:
        raise ArgumentError(
            "give either files and --columns (and --right, --metric, --delimiter), or --lake, --dataset and "
            f"--run; not {', '.join(for_files + for_lake) or 'nothing'}"
        )
    if sample.n_rows == 0:
        raise DataRefusedError(
            f"there are no points; a coordinate is missing in {counted(sample.n_left_out, 'row')}, "
            f"{counted(sample.n_bad, 'row')} bad" + (f": {sample.first_bad}" if sample.n_bad else "")
        )
    try:
        sample.metric.check(sample.points)
        if sample.right is not None:
            sample.metric.check(sample.right)
    except ArgumentError as error:
        raise DataRefusedError(
            f"the metric is not defined for a point (row of the sample): {error}"
        ) from None
    return sample


def _sample_files(arguments: argparse.Namespace) -> Sample:
    columns, lists = _parse_columns(arguments)
    params = RunParams(eps=arguments.eps, seed=arguments.seed)
    metric = get_metric(arguments.metric or "euclidean")
    metric.dimensions(len(columns))
    if metric.full_turn and [role_of(name) for name in columns] == ["longitude", "latitude"]:
        raise ArgumentError(f"haversine takes the latitude first: --columns {columns[1]},{columns[0]}")
    on_sphere = [metric.full_turn / 4.0, metric.full_turn] if metric.full_turn else None  # as ingest sees it
    draw = partial(
        sample_files,
        columns=columns,
        n_sample=params.sample_rows,
        largest=on_sphere,
        lists=lists,
        has_direction=metric.name == "cosine",
        delimiter=parse_delimiter(arguments.delimiter),
    )
    found = draw(arguments.files, seed=params.seed)
    ids = np.arange(len(found.points), dtype=np.int64)
    sample = Sample(ids, found.points, *found[:3], metric, metric.unit, params, first_bad=found.first_bad)
    if not arguments.right:
        return sample
    # by another seed: with the same one, rows of the same numbers would be drawn of both tables
    others = draw(arguments.right, seed=params.seed + 1)
    if not others.n_rows:
        raise DataRefusedError("there are no points in the files of --right")
    return replace(
        sample,
        n_left_out=sample.n_left_out + others.n_left_out,
        n_bad=sample.n_bad + others.n_bad,
        first_bad=sample.first_bad or others.first_bad,
        right=others.points,
        n_right=others.n_rows,
    )


def _parse_columns(arguments: argparse.Namespace) -> tuple[list[str], dict[str, int]]:
    """The names of the coordinates in the files, a list's once for each number; the lengths of the lists."""
    given = [found[found.lastgroup or "bare"] for found in _NAME.finditer(f"{arguments.columns},")]
    if "" in given or len({*given}) < len(given):
        raise ArgumentError(
            f"--columns must be different names with commas between, not {arguments.columns!r}"
        )
    files = [*arguments.files, *(arguments.right or [])]
    names = {_LIST.sub(r"\g<name>", text) for text in given}
    # x[1] and x[2] are names, as those of columns in CSV are
    may_be_lists = len(names) == len(given) and not any(".csv" in file.name.lower() for file in files)
    columns: list[str] = []
    lists: dict[str, int] = {}
    for text in given:
        found = _LIST.fullmatch(text) if may_be_lists else None
        if found is not None:
            lists[found["name"]] = int(found["n"])
        columns += [text] if found is None else [found["name"]] * int(found["n"])
    return columns, lists


def _sample_lake(arguments: argparse.Namespace) -> Sample:
    run = parse_run(arguments.run)
    lake = open_stored(arguments)
    source = lake.source
    own = {"seed": arguments.seed} | ({} if arguments.eps is None else {"eps": arguments.eps})
    params = RunParams.from_json(json.dumps(own), source.defaults)
    ids, points = sample_stored(lake, run, params.sample_rows, params.seed)
    n_rows = slices.count_rows(lake, Slice("points", run))
    metric, tables = get_metric(source.point_metric), Fingerprints(lake, run)
    return Sample(ids, points, n_rows, 0, 0, metric, source.unit, params, tables, metric_name=source.metric)
