"""What the map of a run shows."""

from __future__ import annotations

from pathlib import Path

from epsjoin.lake.lake import Slice
from epsjoin.spark.ingest import ingest
from epsjoin.spark.report.map_sample import choose_axes
from epsjoin.spark.rows.stored import StoredSlice
from tests.spark.conftest import JobMaker
from tests.tiny import coordinate, key


def test_choose_axes__keeps_the_order_of_the_contract_whichever_is_wider(
    make_job: JobMaker, tmp_path: Path
) -> None:
    """Else a point more would swap the axes of the map."""
    for widths, expected in (((1, 2, 3), ("b", "c")), ((1, 3, 2), ("b", "c")), ((3, 1, 2), ("a", "c"))):
        rows = [f"{i},{','.join(str(i * width) for width in widths)}" for i in range(5)]
        (tmp_path / "snapshot.csv").write_text("\n".join(["id,a,b,c", *rows]))
        job = make_job([key(), *map(coordinate, "abc")])
        ingest.run(job)
        points = StoredSlice.of(job, Slice("points", job.run))
        assert choose_axes(points) == expected
