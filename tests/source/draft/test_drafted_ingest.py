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
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from epsjoin.contracts.load_source import load_source
from epsjoin.errors import DataRefusedError
from epsjoin.source.delimiters import describe
from epsjoin.source.draft.contract import draft
from epsjoin.source.guess_delimiter import choose_delimiter
from epsjoin.source.records import open_records
from oracles import examples

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
@given(table=tables())
def test_draft__is_taken_by_ingest_row_for_row_as_it_says(format_: str, table: dict[str, list[Any]]) -> None:
    """Whatever the file holds: what the draft says of its rows is what becomes of them."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, f"t.{format_}")
        rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
        if format_ == "csv":
            with file.open("w", newline="", encoding="utf-8") as handle:
                writer = csv.writer(handle)
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


@examples(200, least=100)
@given(table=tables(), delimiter=st.sampled_from([";", "\t", "|"]))
def test_draft__of_csv_by_another_delimiter_is_that_by_commas(
    table: dict[str, list[Any]], delimiter: str
) -> None:
    """A file by commas is read by nothing else; one by another delimiter is, unless it could have two."""
    rows = [list(table), *zip(*table.values(), strict=True)]
    texts = [["" if cell is None else str(cell) for cell in row] for row in rows]
    signs = {sign for row in texts for cell in row for sign in cell}
    said = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "t.csv")
        for each in (",", delimiter):
            with file.open("w", newline="", encoding="utf-8") as handle:
                csv.writer(handle, delimiter=each).writerows(texts)
            found = choose_delimiter(file, "csv")
            assert found in (each, ",")
            if len(table) > 1 and not signs & {*",;\t|"} - {each}:
                assert found == each
            given, guessed = (drafted_or_refused(file, which) for which in (each, None))
            assert given == guessed or found != each
            said.append(given)
    assert said[0] == said[1].replace(f"# - delimiter: {describe(delimiter)}\n", "").replace(
        yaml.safe_dump([{"property": "delimiter", "value": delimiter}]), ""
    )


def drafted_or_refused(file: Path, delimiter: str | None) -> str:
    try:
        return draft(file, "mine", delimiter)
    except DataRefusedError as error:
        return str(error)
