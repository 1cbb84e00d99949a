"""What commands that tell of many runs share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from epsjoin.console import say
from epsjoin.errors import TableError, UnfitTableError
from epsjoin.lake import slices
from epsjoin.lake.lake import Lake

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
