"""Pages that the paper on MatWin reads and writes, by hand."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.matwin import grid_cost, sorting_cost
from oracles import examples


def test_sorting_cost__reads_and_writes_all_and_writes_the_runs() -> None:
    assert [sorting_cost(0, 0), sorting_cost(10, 0), sorting_cost(10, 3), sorting_cost(0, 3)] == [
        0,
        20,
        29,
        9,
    ]


@examples(200)
@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=8),
    st.integers(1, 7),
)
def test_grid_cost__is_counted_row_by_row(cells: list[tuple[int, int]], page_rows: int) -> None:
    cost = 0
    for stored, added in cells:
        touched = {row // page_rows for row in range(stored, stored + added)}
        old = {page for page in touched if page * page_rows < stored}
        cost += 2 * len(old) + len(touched - old)
    stored, added = np.array(cells).T
    assert grid_cost(stored, added, page_rows) == cost
