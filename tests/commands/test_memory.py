"""Commands about large runs hold what they show, not the tables that they look at."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from epsjoin.commands import cli
from epsjoin.lake import parquet, slices, targets
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.lake import Lake, Slice
from tests.stored_runs import new_lake, row, write

RUN = "2022-03-01"

N, HELD_BYTES = 60_000, 3 << 20
"""Number of points, and of clusters; the bytes that a command may hold, half of the least table's."""


def write_many(lake: Lake, table: str, **columns: object) -> None:
    """Store N rows of a table; each of these columns has its values, others have one value."""
    schema = lake.schema(table)
    one = row(lake, table, run=RUN, since_run=RUN, first_run=RUN)
    of = {
        field.name: pa.array(columns[field.name], field.type)
        if field.name in columns
        else pa.repeat(pa.scalar(one[field.name], field.type), N)
        for field in schema
    }
    where = Slice(table, RUN) if table == "points" else Fingerprints(lake, RUN).slice(table)
    slices.write_slice(lake, where, pa.table(of))


NOTHING = dict.fromkeys(["stayed", "from_clusters", "from_noise"], np.zeros(N, np.int64))


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """A run of many points with long names, each a cluster of its own in which something happened."""
    patch = pytest.MonkeyPatch()
    patch.setattr(targets, "ROW_GROUP_BYTES", 1 << 18)
    patch.setattr(parquet, "MAX_AT_ONCE_BYTES", 1 << 18)
    patch.setattr(slices, "_BATCH_ROWS", 1 << 11)
    lake, ids = new_lake(tmp_path_factory.mktemp("large")), np.arange(N)
    source = row(lake, "snapshots", rows_quarantined=0, rows_left_out=0, run=RUN, taken_where=None)
    slices.write_slice(lake, Slice("snapshots", RUN), slices.table_of(lake, "snapshots", [source]))
    write_many(lake, "points", id=ids, name=["a name of much length" * 5] * N, point=[bytes(16)] * N)
    write(lake, "epsilon", RUN, [row(lake, "epsilon", eps=1.0, method="given", run=RUN)])
    plan = row(lake, "join_plan", eps=1.0, kind="planned", plan="{}", run=RUN, base=None)
    plan |= {"placed_ids": bytes(HELD_BYTES), "gone_ids": bytes(HELD_BYTES)}
    write(lake, "join_plan", RUN, [plan])
    write(lake, "pairs", RUN, [])
    write_many(lake, "clusters", id=ids, cluster_id=ids, role=["core"] * N)
    write_many(lake, "outliers", id=ids, rank=ids[::-1] + 1)
    write(lake, "changes", RUN, [])
    write(lake, "cluster_flows", RUN, [])
    sizes = ids[::-1] + 1
    write_many(lake, "cluster_names", cluster_id=ids, name=ids, size=sizes, inserted=sizes, **NOTHING)
    write_many(lake, "cluster_events", name=ids, event=["born"] * N, other=[None] * N)
    slices.write_counters(lake, RUN, "outliers", {"sample_rows": 1000, "seed": 0})
    yield lake
    patch.undo()


@pytest.mark.parametrize(
    "arguments",
    [["show", "--run", RUN], ["clusters"], ["clusters", "--name", "7"], ["trend"]],
    ids=["show", "clusters", "life", "trend"],
)
def test_memory__of_a_command_is_that_of_what_it_shows(
    lake: Lake, arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = ["--picture", str(tmp_path / "trend.png")] if arguments[0] == "trend" else []
    before, counting = pa.default_memory_pool(), pa.proxy_memory_pool(pa.default_memory_pool())
    pa.set_memory_pool(counting)
    try:
        assert cli.main([*arguments, *picture, "--lake", lake.uri, "--dataset", "navaids"]) == 0
    finally:
        pa.set_memory_pool(before)
    assert f"{N:,}" in capsys.readouterr().out or "--name" in arguments
    assert 0 < counting.max_memory() < HELD_BYTES
