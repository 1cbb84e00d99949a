"""What commands about runs share: the runs one after the other, and answers as lines below a title."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from epsjoin.console import printable, say
from epsjoin.errors import TableError, UnfitTableError
from epsjoin.lake import slices
from epsjoin.lake.lake import Lake, Slice

MAX_NAMES = 3
"""Maximum number of columns of text that are printed with an outlier."""

T = TypeVar("T")


def read_each_run(lake: Lake, table: str, read: Callable[[Lake, str], T], command: str) -> Iterator[T]:
    """Read something of every run, the oldest first.

    A run whose tables do not belong together is left out, and its name and the reason are printed.

    Parameters
    ----------
    lake : the data set's tables.
    table : name of the table that a run must have.
    read : reads what is wanted of a run; it raises :class:`epsjoin.errors.TableError` to leave it out.
    command : name of the command, for what is printed.

    Raises
    ------
    UnfitTableError
        The data set is matched with another one, and has no clusters.

    Yields
    ------
    What ``read`` returned.
    """
    if lake.source.match is not None:
        raise UnfitTableError(
            f"{lake.source.name} is matched with {lake.source.match.partner}, so it has no clusters; "
            "epsjoin show prints the matches of a run"
        )
    for run in slices.list_runs(lake, table):
        try:
            found = read(lake, run)
        except TableError as error:
            say(f"{command}: run {run} is left out: {error}")
        else:
            yield found


def print_answer(lake: Lake, of_what: str, lines: Iterable[str]) -> None:
    """Print an answer below the title of the data set; if the lines cannot be made, the error alone."""
    told = [f"  {printable(line)}".rstrip() for line in lines]
    print(f"\n{printable(lake.source.title)}, {of_what}\n", *told, "", sep="\n")


def aligned(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Lines of (name, text), the texts one below the other."""
    told = list(rows)
    width = max(len(name) for name, _ in told)
    return (f"{name:<{width}}  {text}" for name, text in told)


def count_values(lake: Lake, where: Slice, column: str) -> Counter[Any]:
    """Count the values of a column of a slice, which has few, in the order of their first rows."""
    found = Counter[Any]()
    for batch in slices.stream_slice(lake, where, [column]):
        for row in pc.value_counts(batch[column]).to_pylist():
            found[row["values"]] += row["counts"]
    return found


def first_rows(
    lake: Lake, where: Slice, order: Sequence[tuple[str, str]], limit: int, columns: Sequence[str]
) -> list[dict[str, Any]]:
    """Read the first rows of a slice, sorted by columns in which no two rows are equal.

    Parameters
    ----------
    order : name of each column by which rows are sorted, and ``ascending`` or ``descending``.
    columns : names of the columns to return, those of ``order`` among them.
    """
    first = lake.schema(where.table).empty_table().select(columns)
    for batch in slices.stream_slice(lake, where, columns):
        rows = pa.concat_tables([first.cast(batch.schema), pa.Table.from_batches([batch])])
        first = rows.take(pc.select_k_unstable(rows, limit, list(order)))
    return list(first.sort_by(list(order)).to_pylist())


def texts_of(lake: Lake, of_points: Slice, ids: Sequence[int]) -> dict[int, str]:
    """What the key and columns of text say of points, which tells a person more than an id; may be empty.

    A key of one integer is the id, which is not said twice.
    """
    types = {column.name: column.type for column in lake.source.columns}
    texts = [name for name, type_ in types.items() if type_ == "string"][:MAX_NAMES]
    keys = [] if [types[name] for name in lake.source.key] == ["integer"] else lake.source.key
    names = [*dict.fromkeys([*keys, *texts])]
    if not names:
        return dict.fromkeys(ids, "")
    wanted = np.unique(np.array(ids, np.int64))
    rows = slices.take_from_slice(
        lake, of_points, ["id"], lambda batch: np.isin(batch["id"].to_numpy(), wanted), ["id", *names]
    ).to_pylist()
    return {
        row["id"]: " ".join(str(row[name]) for name in names if row[name] not in (None, "")) for row in rows
    }
