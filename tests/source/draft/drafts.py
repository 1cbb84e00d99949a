"""Drafts of contracts, and what becomes of the records by them."""

from __future__ import annotations

from pathlib import Path

from epsjoin.contracts.load_source import load_source
from epsjoin.contracts.sources import SourceContract
from epsjoin.source.draft.contract import draft
from epsjoin.source.records import open_records

DATA = Path(__file__).parents[2] / "data"


def drafted(file: Path, tmp_path: Path) -> tuple[SourceContract, str]:
    text = draft(file, "mine")
    (tmp_path / "mine.odcs.yaml").write_text(text)
    return load_source(tmp_path, "mine"), text


def reasons(file: Path, source: SourceContract) -> list[str]:
    with file.open("rb") as stream:
        return [record.reason for record in open_records(stream, file.name, source) if record.reason]
