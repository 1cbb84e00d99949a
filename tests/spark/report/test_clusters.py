"""Sums of the clusters' centres, and the axes of the map."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from epsjoin.lake.lake import Slice
from epsjoin.spark.ingest import ingest
from epsjoin.spark.report import clusters
from epsjoin.spark.report.clusters import add_exactly
from epsjoin.spark.stored import StoredSlice
from tests.oracles import examples
from tests.spark.conftest import JobMaker
from tests.tiny import coordinate, key


@given(st.lists(st.lists(st.floats(-1e15, 1e15)), min_size=1))
@examples(100)
def test_add_exactly__has_the_same_sum_in_every_grouping(groups: list[list[float]]) -> None:
    terms = [term for group in groups for term in add_exactly(group)]
    exact = sum((Fraction(value) for group in groups for value in group), Fraction(0))
    assert math.fsum(terms) == float(exact)
    assert sum(map(Fraction, add_exactly(terms)), Fraction(0)) == exact


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
        assert clusters._choose_axes(points) == expected
