"""What a table asks of its readers and writers: what the jobs do not honour is refused by name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from deltalake import DeltaTable

from epsjoin.errors import TableError, UnfitTableError
from epsjoin.lake import delta_log, slices, transactions, uris
from epsjoin.lake.lake import Lake, Slice
from epsjoin.lake.targets import Target
from epsjoin.pipeline import TABLES, writer_of
from tests.lake.rows import pairs, read
from tests.tiny import RUN


def demand(location: str, version: int, features: Sequence[str]) -> None:
    """Add to a table's log, by hand, a commit that asks its readers for features."""
    log = Path(uris.filesystem_of(location)[1]) / "_delta_log"
    protocol = {"minReaderVersion": version, "minWriterVersion": 7, "writerFeatures": features}
    if version > 2:
        protocol["readerFeatures"] = features
    file = log / f"{DeltaTable(location).version() + 1:020d}.json"
    file.write_text(json.dumps({"protocol": protocol}), encoding="utf-8")


@pytest.mark.parametrize(
    ("version", "features", "named"),
    [
        (3, ["deletionVectors"], "deletionVectors"),
        (3, ["timestampNtz", "v2Checkpoint", "typeWidening"], "typeWidening, v2Checkpoint"),
        (2, ["columnMapping"], "columnMapping"),
    ],
)
def test_open_log__refuses_by_name_what_the_jobs_do_not_honour(
    lake: Lake, version: int, features: Sequence[str], named: str
) -> None:
    slices.write_slice(lake, Slice("pairs", RUN), pairs((1, 2, 0.5)))
    location = lake.location("pairs")
    demand(location, version, features)
    sentence = (
        rf"^pairs: {location} asks its readers for {named}, which the jobs do not honour: .*; "
        r"delete this folder, then run merge_join again for every run$"
    )
    for use in (
        lambda: read(lake),
        lambda: slices.count_rows_by_run(lake, "pairs"),
        lambda: slices.list_runs(lake, "pairs"),
        lambda: delta_log.pin_versions(lake, "merge_join"),
        lambda: slices.write_slice(lake, Slice("pairs", RUN), pairs()),
    ):
        with pytest.raises(UnfitTableError, match=sentence):
            use()


def test_open_log__honours_what_changes_nothing_for_readers_of_whole_files(lake: Lake) -> None:
    slices.write_slice(lake, Slice("pairs", RUN), pairs((1, 2, 0.5)))
    demand(lake.location("pairs"), 3, ["timestampNtz", "vacuumProtocolCheck"])
    assert read(lake) == [{"left_id": 1, "right_id": 2, "distance": 0.5}]


@pytest.mark.parametrize("table", TABLES)
def test_open_log__names_the_job_that_writes_the_table(lake: Lake, table: str) -> None:
    delta_log.open_or_create(lake, table)
    demand(lake.location(table), 3, ["deletionVectors"])
    with pytest.raises(UnfitTableError, match=f"^{table}: .* run {writer_of(table)} again for every run$"):
        delta_log.open_log(lake.location(table))


def test_open_log__of_a_table_that_no_job_writes_advises_another_folder(tmp_path: Path) -> None:
    into = Target("pairs", (tmp_path / "others").as_uri(), pairs().schema, (), {})
    transactions.replace_table(into, [])
    demand(into.location, 3, ["deletionVectors"])
    with pytest.raises(UnfitTableError, match="^others: .*; take another folder$"):
        transactions.check_replaceable(into)


def test_pin_versions__refuses_a_table_whose_rows_nobody_may_remove(lake: Lake) -> None:
    """Airflow would try three times what no try can do; and no other job has changed anything."""
    slices.write_slice(lake, Slice("pairs", RUN), pairs((1, 2, 0.5)))
    DeltaTable(lake.location("pairs")).alter.set_table_properties({"delta.appendOnly": "true"})
    with pytest.raises(
        UnfitTableError, match=r"^pairs: its property delta\.appendOnly .* false, then run merge_join again$"
    ):
        delta_log.pin_versions(lake, "merge_join")
    with pytest.raises(UnfitTableError, match="^the Delta log of .* takes no new slice .*append"):
        slices.write_slice(lake, Slice("pairs", RUN), pairs())
    assert read(lake) == [{"left_id": 1, "right_id": 2, "distance": 0.5}]


def test_files_of__a_checkpoint_without_statistics_is_named_with_its_property(lake: Lake) -> None:
    slices.write_slice(lake, Slice("pairs", RUN), pairs((1, 2, 0.5)))
    log = DeltaTable(lake.location("pairs"))
    log.alter.set_table_properties({"delta.checkpoint.writeStatsAsJson": "false"})
    log.create_checkpoint()
    folder = Path(uris.filesystem_of(lake.location("pairs"))[1]) / "_delta_log"
    for file in folder.glob("*.json"):
        file.unlink()
    for use in (lambda: read(lake), lambda: slices.count_rows_by_run(lake, "pairs")):
        with pytest.raises(
            UnfitTableError,
            match="^pairs: its Delta log does not say how many rows run=.* run merge_join again$",
        ):
            use()


def test_open_log__that_cannot_be_read_says_what_helps(lake: Lake) -> None:
    delta_log.open_or_create(lake, "pairs")
    folder = Path(uris.filesystem_of(lake.location("pairs"))[1]) / "_delta_log"
    min(folder.glob("*.json")).write_text("{", encoding="utf-8")
    with pytest.raises(
        TableError, match=r"cannot be read \(.*\); where nobody .* run merge_join again for ev"
    ):
        delta_log.open_log(lake.location("pairs"))


def test_open_log__of_another_user_does_not_advise_to_delete_it(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(_: str) -> None:
        raise OSError(
            "Kernel error\n ↳ Unable to open file /x/_delta_log\n ↳ Permission denied (os error 13)"
        )

    monkeypatch.setattr(delta_log, "DeltaTable", forbidden)
    with pytest.raises(TableError, match=r"cannot be read \(.*Permission denied.*\); let this user read it$"):
        delta_log.open_log(lake.location("pairs"))
