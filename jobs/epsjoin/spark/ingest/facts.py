"""Facts about files and rows that the tasks of ingest report to the driver, besides the files they wrote."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from epsjoin.spark.tasks.reports import TaskReport


@dataclass(frozen=True)
class FileFacts:
    """One source file, or a section of it, by the task that read it.

    Parameters
    ----------
    source : the file's name.
    n_bytes, sha256 : the file's size and its SHA-256 in hex, as it is stored; only the first section has
        them.
    rows_read : records that were read, good and bad.
    rows_left_out : those of them that the contract's condition leaves out.
    columns : names of the columns found in it.
    refused : why the whole file is refused; ``None`` if it is not. For a section: why it was not read.
    section : the section's number; ``None``: the whole file.
    """

    source: str
    n_bytes: int
    sha256: str
    rows_read: int
    rows_left_out: int
    columns: list[str]
    refused: str | None
    section: int | None = None


@dataclass(frozen=True)
class RowCounts:
    """Records of one source file that one writing task kept and put into quarantine."""

    source: str
    kept: int
    quarantined: int


@dataclass(frozen=True)
class KindCount:
    """Records that one writing task put into quarantine for one kind of reason."""

    kind: str
    rows: int


@dataclass(frozen=True)
class ManyDoubles:
    """A source file or section, by its number, all of whose records are to be compared by their keys."""

    file: int


Fact: TypeAlias = FileFacts | RowCounts | KindCount | ManyDoubles
_CLASSES = {kind.__name__: kind for kind in (FileFacts, RowCounts, KindCount, ManyDoubles)}


def to_dict(fact: Fact) -> dict[str, Any]:
    """The fact as a JSON object; its field ``fact`` names the class."""
    return {"fact": type(fact).__name__, **asdict(fact)}


def from_dict(body: dict[str, Any]) -> Fact:
    """The fact that :func:`to_dict` wrote."""
    fields = dict(body)
    fact: Fact = _CLASSES[fields.pop("fact")](**fields)
    return fact


def facts_of(reports: Iterable[TaskReport]) -> list[Fact]:
    """The facts of all reports, in their order."""
    return [from_dict(body) for report in reports for body in report.facts]
