"""The sweep area on codes against figure 4.3, element by element."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.kernels.codes import code_order
from epsjoin.kernels.sweep.sweep_area import insert, new_area, query, remove_no_prefix
from oracles import examples, papers
from tests.kernels.helpers import make_code


@examples(300)
@given(
    st.lists(
        st.tuples(st.text("01", max_size=9), st.integers(0, 6), st.integers(0, 7)), min_size=1, max_size=25
    ),
    st.integers(0, 3),
)
def test_sweep_area__is_that_of_figure_4_3(elements, eps):
    codes = np.array([make_code(text, 4) for text, _, _ in elements])
    order = code_order(codes)
    codes, elements = codes[order], [elements[i] for i in order]

    def joins(u, current):
        (_, x, of_x), (_, y, of_y) = elements[u[1]], elements[current[1]]
        return abs(x - y) <= eps and not of_x & of_y

    classic = papers.SweepArea(joins, papers.is_no_prefix)
    area = new_area(np.empty(len(elements), np.int64))
    for row, (text, value, groups) in enumerate(elements):
        current = (tuple(text), row, False)
        classic.reorganise(current)
        height = remove_no_prefix(area, codes, row)
        assert area.rows[:height].tolist() == [u[1] for u in classic.elements]
        found, place, compared = [], 0, 0
        while True:
            place, passed = query(area, place, float(value), np.uint8(groups), float(eps))
            compared += passed
            if place == height:
                break
            found.append(int(area.rows[place]))
            place, compared = place + 1, compared + 1
        assert found == [u[1] for u in classic.query(current)]
        assert compared == sum(not elements[u[1]][2] & groups for u in classic.elements)
        classic.insert(current)
        insert(area, row, float(value), np.uint8(groups))
        assert area.height[0] == height + 1
