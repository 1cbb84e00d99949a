"""A drafted contract is taken by ``ingest``, whatever the file holds."""

from __future__ import annotations

import csv
import json
import re
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from epsjoin.contracts.load_source import load_source
from epsjoin.errors import DataRefusedError
from epsjoin.source.draft.contract import draft
from epsjoin.source.records import open_records
from tests.oracles import examples

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=5)

CELLS: dict[str, st.SearchStrategy[Any]] = {
    "integer": st.integers(-(2**70), 2**70),
    "small": st.integers(-5, 5),
    "number": st.floats(),
    "boolean": st.booleans(),
    "text": TEXTS,
    "marker": st.sampled_from(
        ["NA", "N/A", "NULL", "nan", "-", "0x10", "1_0", " 7 ", "  ", "inf", "1e-400", "1e999"]
    ),
    "date": st.dates().map(str),
    "time": st.datetimes().map(str),
    "odd": st.sampled_from(
        ["2020-13-01", "TRUE", "false", "1,5", '"', "a\nb", "٣", "+1", ".5", "1.", "2020"]
    ),
}

NAMES = st.sampled_from(
    ["id", "key", "lat", "lon", "x", "Y", "y", "run", "a b", "9", "name", "start_lat", "startLon", ""]
)


@st.composite
def tables(draw: st.DrawFn) -> dict[str, list[Any]]:
    """Columns of one to three kinds of values each, some of them missing; the first always holds numbers."""
    n = draw(st.integers(1, 8))
    found: dict[str, list[Any]] = {
        "v": draw(st.lists(st.none() | st.floats(-99, 99), min_size=n, max_size=n))
    }
    for name in draw(st.lists(NAMES, unique=True, max_size=5)):
        kinds = draw(st.lists(st.sampled_from(sorted(CELLS)), min_size=1, max_size=3))
        cells = st.one_of(st.none(), *(CELLS[kind] for kind in kinds))
        found[name] = draw(st.lists(cells, min_size=n, max_size=n))
    return found


@pytest.mark.parametrize("format_", ["csv", "jsonl", "parquet"])
@examples(100)
@given(table=tables(), delimiter=st.sampled_from([",", ";", "\t", "|"]))
def test_draft__is_taken_by_ingest_row_for_row_as_it_says(
    format_: str, table: dict[str, list[Any]], delimiter: str
) -> None:
    """Whatever the file holds: what the draft says of its rows is what becomes of them."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, f"t.{format_}")
        rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
        if format_ == "csv":
            with file.open("w", newline="", encoding="utf-8") as handle:
                writer = csv.writer(handle, delimiter=delimiter)
                writer.writerows(
                    [list(table), *([str(v) if v is not None else "" for v in row.values()] for row in rows)]
                )
        elif format_ == "jsonl":
            file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        else:
            try:
                pq.write_table(pa.table({name: pa.array(column) for name, column in table.items()}), file)
            except (pa.ArrowException, OverflowError):
                assume(False)
        try:
            text = draft(file, "mine")
        except DataRefusedError as error:
            assume(False)
            raise AssertionError from error
        Path(folder, "mine.odcs.yaml").write_text(text)
        source = load_source(Path(folder), "mine")
        with file.open("rb") as stream:
            found = list(open_records(stream, file.name, source))
        bad, left_out = sum(r.reason is not None for r in found), sum(r.is_left_out for r in found)
        said = re.search(r"left out: (\d+), bad: (\d+)", text)
        assert (left_out, bad) == ((int(said[1]), int(said[2])) if said else (0, 0))
        if "of no" not in text:  # no value that was shown as odd
            assert [record.reason for record in found if record.reason] == []
