"""Files of a table: what is written keeps the contract, and nothing is in a table before a commit."""

from __future__ import annotations

import pytest

from epsjoin.errors import TableError
from epsjoin.lake import slices, targets
from epsjoin.lake.lake import Lake, Slice
from tests.lake.rows import pairs, read
from tests.tiny import RUN


def test_write__refuses_a_partition_that_breaks_its_contract(lake: Lake) -> None:
    rows = slices.table_of(lake, "replicas", [{"id": 1, "mask": 0, "point": b""}]).drop_columns(["part"])
    with pytest.raises(TableError, match=r"replicas: part is at least 0 .* \(part '-1'\)"):
        targets.target_of(lake, Slice("replicas", RUN)).write([rows], part=-1)
    assert targets.target_of(lake, Slice("replicas", RUN)).write([rows], part=0)


def test_write__files_that_were_never_committed_are_in_no_table(lake: Lake) -> None:
    targets.target_of(lake, Slice("pairs", RUN)).write([pairs((5, 6, 0.5))])
    slices.write_slice(lake, Slice("pairs", RUN), pairs((1, 2, 0.5)))
    assert len(read(lake)) == 1
