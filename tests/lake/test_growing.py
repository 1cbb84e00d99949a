"""A table that grows: complete only with all rows, wherever its writer dies, and each row in one version."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from epsjoin.errors import TableError
from epsjoin.lake import transactions
from epsjoin.lake.completeness import COMPLETE, is_incomplete, mark_incomplete
from epsjoin.lake.growing import GrowingTable
from epsjoin.lake.parquet import File, read_file
from epsjoin.lake.targets import Target

SCHEMA = pa.schema([("n", pa.int64())])


def target(folder: Path) -> Target:
    return Target("similarity_join", folder.as_uri(), SCHEMA, (), {})


def write(into: Target, *values: int) -> File:
    file = into.write([pa.record_batch({"n": pa.array(values, pa.int64())})])
    assert file is not None
    return file


def rows_at(folder: Path, version: int | None = None) -> list[int]:
    log = DeltaTable(folder.as_uri(), version=version)
    found = pa.table(log.get_add_actions(flatten=True)).to_pylist()
    files = [File("t", each["path"], 0, each["num_records"], {}) for each in found]
    return sorted(n for file in files for n in read_file(folder.as_uri(), file, SCHEMA)["n"].to_pylist())


def is_complete(folder: Path) -> str | None:
    return DeltaTable(folder.as_uri()).metadata().configuration.get(COMPLETE)


def grow(into: Target) -> None:
    """Three commits of files, the last by the end."""
    table = GrowingTable(into)
    files = [write(into, 1, 2)]
    table.add(files)
    files += [write(into, 3), write(into, 4)]
    table.add(table.left_of(files))
    files.append(write(into, 5, 6))
    assert table.complete(files) == files


def test_mark_incomplete__of_two_jobs_at_once_is_done_by_one_and_seen_by_the_other(tmp_path: Path) -> None:
    into = target(tmp_path / "pairs")
    grow(into)
    logs = [DeltaTable(into.location) for _ in range(2)]
    before = logs[0].version()
    marked = [mark_incomplete(log) for log in logs]
    assert [is_incomplete(log) for log in marked] == [True, True]
    assert marked[0].version() == marked[1].version() == before + 1


def test_growing_table__has_each_row_in_one_version_and_is_complete_at_the_end(tmp_path: Path) -> None:
    folder, before = tmp_path / "pairs", tmp_path / "before"
    grow(target(folder))
    assert rows_at(folder) == [1, 2, 3, 4, 5, 6]
    versions = [rows_at(folder, version) for version in range(DeltaTable(folder.as_uri()).version() + 1)]
    assert versions == [[], [1, 2], [1, 2, 3, 4], [1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6]]
    assert is_complete(folder) == "true"
    transactions.replace_table(target(before), [write(target(before), 9)])
    assert is_complete(before) is None
    grow(target(before))
    assert rows_at(before) == rows_at(folder)
    assert is_complete(before) == "true"


class Killed(BaseException):
    """As SIGKILL: nothing handles it."""


@pytest.mark.parametrize("holds_others", [False, True])
def test_growing_table__whose_writer_dies_anywhere_is_not_complete_and_can_be_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, holds_others: bool
) -> None:
    """Before and after each of its commits; then it is made again, by commits or by one."""
    commits = [
        (DeltaTable, "create"),
        (DeltaTable, "create_write_transaction"),
        (type(DeltaTable.__new__(DeltaTable).alter), "set_table_properties"),
    ]
    kills = 0
    for number in range(100):
        folder, left = tmp_path / str(number), [number // 2]
        if holds_others:
            transactions.replace_table(target(folder), [write(target(folder), 9)])
        with monkeypatch.context() as dying:
            for owner, name in commits:
                dying.setattr(owner, name, dying_at(getattr(owner, name), left, after=bool(number % 2)))
            try:
                grow(target(folder))
            except Killed:
                kills += 1
            else:
                break
        if (folder / "_delta_log").exists():
            state = is_complete(folder)
            assert (
                state == "false"
                or (state == "true" and rows_at(folder) == [1, 2, 3, 4, 5, 6])
                or (state is None and rows_at(folder) == ([9] if holds_others else []))
            )
        if number % 3:
            grow(target(folder))
        else:
            again = target(folder)
            transactions.replace_table(again, [write(again, *range(1, 7))])
        assert rows_at(folder) == [1, 2, 3, 4, 5, 6]
        assert is_complete(folder) in ("true", None)
    assert kills == 10


def dying_at(commit: Callable[..., Any], left: list[int], *, after: bool) -> Callable[..., Any]:
    def dying(*given: Any, **options: Any) -> Any:
        left[0] -= 1
        if left[0] < 0 and not after:
            raise Killed
        done = commit(*given, **options)
        if left[0] < 0:
            raise Killed
        return done

    return dying


def test_growing_table__notices_another_job(tmp_path: Path) -> None:
    into = target(tmp_path)
    table, files = GrowingTable(into), [write(into, 1)]
    table.add(files)
    transactions.replace_table(into, [write(into, 7, 8)])
    with pytest.raises(TableError, match="another job changed .* while this one wrote to it"):
        table.add([write(into, 2)])
    with pytest.raises(TableError, match="another job changed"):
        table.complete(files)
    assert rows_at(tmp_path) == [7, 8]
    mine = GrowingTable(into)
    mine.add([write(into, 3)])
    with pytest.raises(TableError, match="1 files were added that no task says to have written"):
        mine.complete([write(into, 3)])
    assert is_complete(tmp_path) == "false"


def test_growing_table__of_two_jobs_that_begin_together_the_second_to_add_is_refused(tmp_path: Path) -> None:
    into = target(tmp_path)
    first, second = GrowingTable(into), GrowingTable(into)
    files = [write(into, 1)]
    first.add(files)
    with pytest.raises(TableError, match=r"another job changed .* so nothing was written to it"):
        second.add([write(into, 2)])
    first.complete(files)
    assert (rows_at(tmp_path), is_complete(tmp_path)) == ([1], "true")


def test_growing_table__is_not_mixed_with_another_of_as_many_rows(tmp_path: Path) -> None:
    into = target(tmp_path)
    first = GrowingTable(into)
    files = [write(into, 1, 2)]
    first.add(files)
    second = GrowingTable(into)
    others = [write(into, 8, 9)]
    second.add(others)
    with pytest.raises(TableError, match="another job changed"):
        first.add([write(into, 3)])
    with pytest.raises(TableError, match="another job changed"):
        first.complete(files)
    assert is_complete(tmp_path) == "false"
    second.complete(others)
    assert (rows_at(tmp_path), is_complete(tmp_path)) == ([8, 9], "true")


@pytest.mark.parametrize("grows", [True, False])
def test_growing_table__is_not_called_complete_by_a_job_whose_files_another_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, grows: bool
) -> None:
    """The other one adds its first files between the last look of this one and its commit."""
    into = target(tmp_path)
    files = [write(into, 1)]
    first = GrowingTable(into)
    first.add(files)
    others = [write(into, 8)]
    alterer = type(DeltaTable.__new__(DeltaTable).alter)
    says = alterer.set_table_properties

    def late(*given: Any, **options: Any) -> Any:
        monkeypatch.undo()
        GrowingTable(into).add(others)
        return says(*given, **options)

    monkeypatch.setattr(alterer, "set_table_properties", late)
    with pytest.raises(TableError, match="another job changed .*its files are others"):
        first.complete(files) if grows else transactions.replace_table(into, [write(into, 5)])
    assert (rows_at(tmp_path), is_complete(tmp_path)) == ([8], "false")


def test_growing_table__goes_on_while_another_job_only_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    into = target(tmp_path)
    first = GrowingTable(into)
    files = [write(into, 1), write(into, 2)]
    first.add(files[:1])
    add = DeltaTable.create_write_transaction

    def late(*given: Any, **options: Any) -> Any:
        monkeypatch.undo()
        DeltaTable(tmp_path.as_uri()).alter.set_table_properties(
            {COMPLETE: "false"}, raise_if_not_exists=False
        )
        return add(*given, **options)

    monkeypatch.setattr(DeltaTable, "create_write_transaction", late)
    first.add(files[1:])
    first.complete(files)
    assert (rows_at(tmp_path), is_complete(tmp_path)) == ([1, 2], "true")


def test_growing_table__without_rows_is_empty_and_complete(tmp_path: Path) -> None:
    (file,) = GrowingTable(target(tmp_path)).complete([])
    assert file.rows == 0
    assert rows_at(tmp_path) == []
    assert is_complete(tmp_path) == "true"


def test_growing_table__adds_nothing_after_an_error_and_keeps_what_it_may_have_added(tmp_path: Path) -> None:
    """As if a thread that watches the tasks went on when the call that waits for them was interrupted."""
    into = target(tmp_path)
    table = GrowingTable(into)
    files = [write(into, 1, 2), write(into, 3)]

    def work() -> None:
        with table.deleted_on_error():
            table.add(files[:1])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    with pytest.raises(TableError, match="it was to end, as there was an error"):
        table.add(table.left_of(files))
    assert rows_at(tmp_path) == [1, 2]
    assert [path.name for path in tmp_path.rglob("*.parquet")] == [files[0].path]
