"""Records that a contract leaves out: they are neither values nor bad, and nothing else is asked of them."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from epsjoin.contracts.odcs import Column
from epsjoin.errors import DataRefusedError
from epsjoin.source import records as records_module
from epsjoin.source.records import Record, open_records
from epsjoin.source.sampling import sample_files
from tests.source.test_parquet import stored
from tests.source.tiny_source import SOURCE, read

KIND = replace(SOURCE, columns=(*SOURCE.columns, Column("kind", "string")), where="kind = 'well'")
"""x from -1 to 1 is required."""


def said(records: list[Record]) -> list[str]:
    """Of each record: its reason, ``left out``, or ``taken``."""
    return [each.reason or ("left out" if each.is_left_out else "taken") for each in records]


def test_records__of_one_that_is_left_out_nothing_else_is_asked() -> None:
    found = said(read("id,x,kind\n1,0,well\n2,7,well\n3,7,dry\n,abc,dry\n5,0,\n6,,well\n", KIND))
    assert found == ["taken", "x: above 1: '7'", "left out", "left out", "left out", "x: missing"]


def test_records__what_the_condition_names_must_be_of_its_type_and_may_be_missing_or_out_of_range() -> None:
    source = replace(SOURCE, where="x >= 0")
    found = said(read("id,x\n1,0.5\n2,-7\n3,\n4,abc\n5,nan\n6,7\n7,1,1\n", source))
    assert found == [
        "taken",
        "left out",
        "left out",
        "x: not a number: 'abc'",
        "x: not finite: 'nan'",
        "x: above 1: '7'",
        "not as many fields as the header has: '3, not 2'",
    ]


@pytest.mark.parametrize("batch_rows", [1, 2, 3, 100])
def test_records__are_the_same_whatever_a_batch_holds(
    batch_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = replace(SOURCE, optional=("x",))
    text = "id,x\n" + "".join(f"{i},{'' if i % 3 else 0.5}\n" for i in range(20))
    whole = read(text, source)
    monkeypatch.setattr(records_module, "BATCH_ROWS", batch_rows)
    assert read(text, source) == whole
    assert said(whole).count("left out") == 13


def test_records__before_a_fault_in_the_file_are_passed_on() -> None:
    records = iter(open_records(io.BytesIO(b'id,x,kind\n1,0,well\n2,0,dry\n3,0,"w'), "tiny.csv", KIND))
    assert said([next(records), next(records)]) == ["taken", "left out"]
    with pytest.raises(DataRefusedError, match="line 4: a quoted field begins here and does not end"):
        next(records)


def test_records__a_json_file_must_have_what_the_condition_names() -> None:
    source = replace(KIND, format="json")
    found = read('{"id": 1, "x": 0, "kind": "well"}\n{"id": 2}\n{"id": 3, "x": 0, "kind": null}\n', source)
    assert said(found) == ["taken", "left out", "left out"]
    with pytest.raises(DataRefusedError, match="column 'kind' is missing"):
        read('{"id": 1, "x": 0, "knid": "well"}\n', source)


CELLS = ("0.5", "-1", "", "  ", "nan", "abc", "1e999", '""')


def test_sample__and_records_agree_on_what_is_left_out_and_what_is_bad(tmp_path: Path) -> None:
    columns = (Column("x", "number", required=True), Column("y", "number", required=True))
    source = replace(SOURCE, columns=columns, key=(), coordinates=("x", "y"), optional=("x", "y"))
    text = "x,y\n" + "".join(f"{x},{y}\n" for x in CELLS for y in CELLS) + "1\n1,2,3\n"
    found = said(read(text, source))
    (tmp_path / "a.csv").write_text(text)
    sampled = sample_files([tmp_path / "a.csv"], ["x", "y"], 100)
    n_bad = len(found) - found.count("taken") - found.count("left out")
    assert (sampled.n_rows, sampled.n_left_out, sampled.n_bad) == (
        found.count("taken"),
        found.count("left out"),
        n_bad,
    )
    assert min(sampled[:3]) > 0


def test_sample__and_records_agree_on_parquet(tmp_path: Path) -> None:
    cells = [0.5, None, float("nan"), float("inf")]
    table = pa.table({"x": [x for x in cells for _ in cells], "y": cells * len(cells)})
    columns = (Column("x", "number", required=True), Column("y", "number", required=True))
    source = replace(SOURCE, columns=columns, key=(), coordinates=("x", "y"), optional=("x", "y"))
    pq.write_table(table, tmp_path / "a.parquet")
    found = said(read(stored(table), replace(source, format="parquet"), "a.parquet"))
    sampled = sample_files([tmp_path / "a.parquet"], ["x", "y"], 100)
    assert (sampled.n_rows, sampled.n_left_out) == (found.count("taken"), found.count("left out")) == (1, 3)
