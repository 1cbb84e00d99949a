"""Transactions: of two commits to one slice the first wins; a table of other columns is not replaced."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from unittest import mock
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Field, Schema, write_deltalake

from epsjoin.errors import TableError, UnfitTableError
from epsjoin.lake import delta_log, slices, targets, transactions
from epsjoin.lake.lake import Lake, Slice
from epsjoin.lake.targets import Target
from tests.lake.rows import pairs, read
from tests.tiny import RUN


@pytest.mark.parametrize("before", [None, ((5, 6, 0.5),), ()])
def test_commit__of_two_jobs_on_one_slice_the_first_wins(
    lake: Lake, before: tuple[tuple[int, int, float], ...] | None
) -> None:
    if before is not None:
        slices.write_slice(lake, Slice("pairs", RUN), pairs(*before))
    first, second = delta_log.pin_versions(lake, "merge_join"), delta_log.pin_versions(lake, "merge_join")
    slices.write_slice(first, Slice("pairs", RUN), pairs((1, 2, 0.5)))
    with pytest.raises(
        TableError, match="another job changed pairs of run 2023-06-01 while .* run merge_join again when"
    ):
        slices.write_slice(second, Slice("pairs", RUN), pairs((3, 4, 0.5)))
    assert read(lake) == [{"left_id": 1, "right_id": 2, "distance": 0.5}]
    slices.write_slice(delta_log.pin_versions(lake, "merge_join"), Slice("pairs", RUN), pairs((3, 4, 0.5)))
    assert read(lake) == [{"left_id": 3, "right_id": 4, "distance": 0.5}]


def test_commit__of_two_gates_on_one_slice_the_first_wins(lake: Lake) -> None:
    """A slow gate must not put what it saw of older tables over what a later one saw."""
    row = {"expectation": "one row", "severity": "error", "success": True, "observed": ""}
    names = ("clusters", "outliers", "pairs")
    rows = {name: slices.table_of(lake, "quality", [{"table": name, **row}]) for name in names}
    for name in names:
        slices.write_slice(lake, Slice("quality", RUN, also=(("table", name),)), rows[name])
    slow, fast = (delta_log.pin_versions(lake, "quality_results") for _ in range(2))
    for name in ("pairs", "outliers"):  # the second commit meets what the first removed
        slices.write_slice(fast, Slice("quality", RUN, also=(("table", name),)), rows[name])
    with pytest.raises(TableError, match="another job changed quality of run 2023-06-01 while"):
        slices.write_slice(slow, Slice("quality", RUN, also=(("table", "pairs"),)), rows["pairs"])
    slices.write_slice(slow, Slice("quality", RUN, also=(("table", "clusters"),)), rows["clusters"])
    assert sorted(found["table"] for found in read(lake, table="quality")) == list(names)


@pytest.mark.parametrize("again", [False, True])
def test_commit__of_jobs_on_different_slices_all_succeed(lake: Lake, again: bool) -> None:
    runs = (RUN, "2023-05-01", "2023-04-01")
    for run in runs if again else ():  # Delta refuses whom another's removal of files might concern
        slices.write_slice(lake, Slice("pairs", run), pairs((7, 8, 0.5)))
    jobs = {run: delta_log.pin_versions(lake, "merge_join") for run in runs}
    for number, (run, of_job) in enumerate(jobs.items()):
        slices.write_slice(of_job, Slice("pairs", run), pairs((number, 9, 0.5)))
    assert [read(lake, run)[0]["left_id"] for run in jobs] == [0, 1, 2]
    jobs = {job: delta_log.pin_versions(lake, job) for job in ("cluster", "outliers")}
    for job, of_job in jobs.items():
        slices.write_counters(of_job, RUN, job, {"n": 1.0})
    assert {row["job"] for row in read(lake, table="job_metrics")} == set(jobs)


def test_commit__that_others_forestall_again_and_again_does_not_say_that_its_slice_has_changed(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    for run in (RUN, "2023-05-01"):
        slices.write_slice(lake, Slice("pairs", run), pairs((1, 2, 0.5)))
    slow = delta_log.pin_versions(lake, "merge_join")
    slices.write_slice(lake, Slice("pairs", "2023-05-01"), pairs((7, 8, 0.5)))
    monkeypatch.setattr(transactions, "MAX_TRIES", 1)
    with pytest.raises(
        TableError, match="^other jobs committed to .*/pairs 1 times while .*; run merge_join"
    ):
        slices.write_slice(slow, Slice("pairs", RUN), pairs((1, 3, 0.5)))


def test_messages__about_pairs_of_documents_name_the_job_that_writes_them(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = replace(lake, source=replace(lake.source, tree="doc"))
    where, again = Slice("pairs", RUN), "run refine again"
    slow = delta_log.pin_versions(lake, "refine")
    for run in (RUN, "2023-05-01"):
        slices.write_slice(lake, Slice("pairs", run), pairs((1, 2, 0.5)))
    with pytest.raises(TableError, match=f"another job changed pairs .* {again} when"):
        slices.write_slice(slow, where, pairs((1, 3, 0.5)))
    with monkeypatch.context() as forestalled:
        slow = delta_log.pin_versions(lake, "refine")
        slices.write_slice(lake, Slice("pairs", "2023-05-01"), pairs((7, 8, 0.5)))
        forestalled.setattr(transactions, "MAX_TRIES", 1)
        with pytest.raises(TableError, match=f"other jobs committed to .*; {again}$"):
            slices.write_slice(slow, where, pairs((1, 3, 0.5)))
    with monkeypatch.context() as full:
        full.setattr(pq, "write_table", mock.Mock(side_effect=OSError(28, "No space left on device")))
        full.setattr(pq.ParquetWriter, "write_table", pq.write_table)
        for rows in (pairs(), pairs((1, 3, 0.5))):
            with pytest.raises(TableError, match=f"No space left .* {again}$"):
                slices.write_slice(lake, where, rows)
    monkeypatch.setattr(Lake, "checks", lambda *_: {"far__0123abcd": "distance >= 1"})
    delta_log.pin_versions(lake, "refine")
    assert capsys.readouterr().out.endswith("when refine has made them again\n")
    DeltaTable(lake.location("pairs")).alter.set_table_properties({"delta.appendOnly": "true"})
    with pytest.raises(UnfitTableError, match=f"set it to false, then {again}$"):
        delta_log.pin_versions(lake, "refine")


def test_replace_table__refuses_a_table_of_other_columns_that_was_made_meanwhile(tmp_path: Path) -> None:
    location = tmp_path.as_uri()
    others = Target("others", location, pa.schema([("id", pa.int64())]), (), {})
    transactions.replace_table(others, [])
    into = Target("pairs", location, pa.schema([("left_id", pa.int64())]), (), {})
    with pytest.raises(UnfitTableError, match=r"columns \(id int64; in this order must be left_id int64\)"):
        transactions.replace_table(into, [])
    assert DeltaTable(location).version() == 1


def test_replace_table__refuses_a_partitioned_table(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2], "x": [1, 1]})
    write_deltalake(tmp_path, rows, partition_by=["x"])
    into = Target("pairs", tmp_path.as_uri(), rows.schema, (), {})
    for look in (transactions.check_replaceable, lambda into: transactions.replace_table(into, [])):
        with pytest.raises(UnfitTableError, match="is partitioned by x; take another folder"):
            look(into)
    assert DeltaTable(tmp_path).version() == 0


def make_table(folder: Path, **extra: object) -> DeltaTable:
    """A table of one column without rows, then a commit by hand that changes its metadata or its protocol."""
    table = DeltaTable.create(folder, Schema.from_arrow(pa.schema([("id", pa.int64())])))
    log = folder / "_delta_log"
    commit = [json.loads(line) for line in (log / f"{0:020d}.json").read_text().splitlines()]
    (meta,) = (action["metaData"] for action in commit if "metaData" in action)
    action = {name: value for name, value in extra.items() if name == "protocol"}
    if "column" in extra:
        fields = [{"name": "id", "type": "long", "nullable": True, "metadata": {}} | extra["column"]]
        meta["schemaString"] = json.dumps({"type": "struct", "fields": fields})
        action["metaData"] = meta
    if "property" in extra:
        action["metaData"] = {**meta, "configuration": extra["property"]}
    (log / f"{1:020d}.json").write_text("\n".join(json.dumps({name: each}) for name, each in action.items()))
    table.update_incremental()
    return table


@pytest.mark.parametrize(
    ("extra", "says"),
    [
        ({"property": {"delta.constraints.c": "id > 5"}}, r"CHECK \(id > 5\)"),
        ({"property": {"delta.appendOnly": "true"}}, "appendOnly"),
        ({"column": {"nullable": False}}, "NOT NULL of id"),
        (
            {"column": {"metadata": {"delta.generationExpression": "1"}}},
            "delta.generationExpression of id",
        ),
        ({"column": {"metadata": {"CURRENT_DEFAULT": "1"}}}, "CURRENT_DEFAULT of id"),
        ({"column": {"metadata": {"delta.invariants": "id > 5"}}}, "delta.invariants of id"),
        ({"column": {"metadata": {"delta.identity.start": 1}}}, "delta.identity.start of id"),
        (
            {
                "protocol": {
                    "minReaderVersion": 1,
                    "minWriterVersion": 7,
                    "writerFeatures": ["appendOnly", "rowTracking", "domainMetadata"],
                }
            },
            "domainMetadata, rowTracking",
        ),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_check_replaceable__refuses_a_table_whose_rules_the_new_rows_might_break(
    tmp_path: Path, extra: dict[str, object], says: str
) -> None:
    make_table(tmp_path, **extra)
    into = Target("pairs", tmp_path.as_uri(), pa.schema([("id", pa.int64())]), (), {})
    for look in (transactions.check_replaceable, lambda into: transactions.replace_table(into, [])):
        with pytest.raises(
            UnfitTableError, match=rf"which new rows would not keep \({says}\); take another folder$"
        ):
            look(into)
    assert DeltaTable(tmp_path).version() == 1


def test_check_replaceable__allows_rules_that_no_column_uses(tmp_path: Path) -> None:
    features = ["appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns"]
    make_table(tmp_path, protocol={"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": features})
    into = Target("pairs", tmp_path.as_uri(), pa.schema([("id", pa.int64())]), (), {})
    transactions.check_replaceable(into)
    transactions.replace_table(into, [])


def test_check_replaceable__refuses_a_folder_with_files_of_others_but_not_what_a_killed_job_has_left(
    tmp_path: Path,
) -> None:
    into = Target("pairs", (tmp_path / "to").as_uri(), pa.schema([("id", pa.int64())]), (), {})
    transactions.check_replaceable(into)
    into.write([pa.record_batch({"id": [1]})])
    with targets.scratch_folder(into, into.schema):
        (tmp_path / "to" / ".hidden").touch()
        transactions.check_replaceable(into)
    (tmp_path / "to" / "mine.parquet").touch()
    with pytest.raises(UnfitTableError, match="to is no table, but a folder that has mine.parquet; give the"):
        transactions.check_replaceable(into)
    transactions.replace_table(replace(into, location=(tmp_path / "a table").as_uri()), [])
    (tmp_path / "a table" / "mine.parquet").touch()
    transactions.check_replaceable(replace(into, location=(tmp_path / "a table").as_uri()))


def test_check_replaceable__of_a_log_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "_delta_log" / f"{0:020d}.json").write_text("no log")
    into = Target("pairs", tmp_path.as_uri(), pa.schema([("id", pa.int64())]), (), {})
    with pytest.raises(
        TableError,
        match=r"the Delta log of .* cannot be read \(Kernel error: Json error[^<]*\); where [^<]*$",
    ):
        transactions.check_replaceable(into)


def test_open_log__with_a_broken_newest_commit_names_the_remedy_that_keeps_the_table(lake: Lake) -> None:
    """As docs/survival.md has it; any older commit cannot be left out."""
    slices.write_slice(lake, Slice("pairs", "2023-05-01"), pairs((1, 2, 0.5)))
    slices.write_slice(lake, Slice("pairs", RUN), pairs((1, 3, 0.5)))
    location = lake.location("pairs")
    older, newest = sorted(Path(unquote(urlsplit(location).path), "_delta_log").glob("*.json"))[-2:]
    kept, content = older.read_bytes(), newest.read_bytes()
    older.write_bytes(kept[:-20])
    with pytest.raises(TableError, match=r"; where nobody can mend it, delete this folder, then run "):
        delta_log.open_log(location)
    older.write_bytes(kept)
    for broken in (content[:-20], b"\0" * len(content)):
        newest.write_bytes(broken)
        with pytest.raises(TableError, match=f"as by a loss of power: move {newest} away and run the last"):
            delta_log.open_log(location)
    newest.rename(newest.with_suffix(".away"))
    assert read(lake, "2023-05-01") == [{"left_id": 1, "right_id": 2, "distance": 0.5}]
    slices.write_slice(lake, Slice("pairs", RUN), pairs((1, 3, 0.5)))
    assert read(lake) == [{"left_id": 1, "right_id": 3, "distance": 0.5}]


def test_commit__leaves_a_foreign_column_out_of_the_whole_table(lake: Lake) -> None:
    """As docs/contracts.md says: readers ignore it, the next commit drops it."""
    slices.write_slice(lake, Slice("pairs", "2023-05-01"), pairs((1, 2, 0.5)))
    DeltaTable(lake.location("pairs")).alter.add_columns([Field("note", "string")])
    assert read(lake, "2023-05-01") == [{"left_id": 1, "right_id": 2, "distance": 0.5}]
    slices.write_slice(lake, Slice("pairs", RUN), pairs())
    assert "note" not in DeltaTable(lake.location("pairs")).schema().to_arrow().names
