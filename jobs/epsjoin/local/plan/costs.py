"""The one table of costs, by which cuts, coordinates and trees are chosen, and what follows from it.

Costs are nanoseconds on one core; only their ratios matter. The command ``PYTHONPATH=jobs:tests
.venv/bin/python -m benchmarks.parts --fit`` measures those of ``WINDOW_*`` on parts that it joins,
``benchmarks.embedding_blocks`` those of ``BLOCK_*``, and ``benchmarks.filters`` what ``FILTER_*`` has for a
visit, a block and a survivor; no other command of the repository prints the others.
"""

from __future__ import annotations

STACK_NS_PER_ROW = 250.0
"""Nanoseconds of the stack sweep under regular cuts for a row."""
STACK_NS_PER_COMPARISON = 2.5
"""Nanoseconds of the stack sweep under regular cuts for a comparison with a row on the stack."""

# Between what fits to small and what fits to large parts; the command above prints one fit to all of them.
WINDOW_NS_PER_ROW = 100.0
"""Nanoseconds of joining a part under planned cuts for a row, whatever its coordinates."""
WINDOW_NS_PER_COORDINATE = 27.0
"""Nanoseconds of joining a part under planned cuts for an embedded coordinate of a row."""
WINDOW_NS_PER_CANDIDATE = 1.5
"""Nanoseconds of joining a part under planned cuts for a candidate."""
WINDOW_NS_PER_DECISION = 25.0
"""Nanoseconds of joining a part under planned cuts for a pair that passes the filter and is decided."""

FILTER_NS_PER_COORDINATE = 2.5
"""Nanoseconds for sorting or copying a coordinate of a row for the filter of a window sweep."""
FILTER_NS_PER_VISIT = 6.5
"""Nanoseconds of a window sweep for visiting a row in a pass."""
FILTER_NS_PER_BLOCK = {2: 6.0, 4: 6.5, 8: 8.5}
"""Nanoseconds of a window sweep for filtering a block of candidates, by the number of filter coordinates."""
FILTER_NS_PER_SURVIVOR = 15.0
"""Nanoseconds of a window sweep for a candidate that passes the filter: 5 where a cache holds the points, 16
and 22 in 16 dimensions where none does."""

SWEEP_NS_PER_TERM = 0.8
"""Nanoseconds of a window sweep for a coordinate of a pair that is decided, in many dimensions."""
PRODUCT_NS_PER_PAIR = 0.5
"""Nanoseconds of a join by products for a pair, whatever its coordinates: its product is looked at."""
PRODUCT_NS_PER_TERM = 0.015
"""Nanoseconds of a join by products for a coordinate of a pair of filter rows."""
PRODUCT_NS_PER_SURVIVOR = 20.0
"""Nanoseconds of a join by products for a pair that is let through, whatever its coordinates."""
PRODUCT_NS_PER_SURVIVOR_TERM = 0.5
"""Nanoseconds of a join by products for a coordinate of a pair that is let through."""
PRODUCT_NS_PER_COORDINATE = 6.0
"""Nanoseconds of a join by products for a coordinate of a row from which a filter row is made."""
BLOCK_NS_PER_BYTE = 5.5
"""Nanoseconds for a byte of a row that one task sends and another gets, in a join by pairs of blocks."""
BLOCK_NS_PER_TASK = 2e7
"""Nanoseconds of a task of a join by pairs of blocks, whatever its rows."""

BOX_NS_PER_ROW = 250.0
"""Nanoseconds of the join of boxes for a row of a leaf."""
BOX_NS_PER_CANDIDATE = 3.0
"""Nanoseconds of the join of boxes for a candidate."""

NS_PER_TERM = 0.5
"""Nanoseconds for a product of a coordinate of a row and one of a direction."""
NS_PER_MOVED_ROW = 1000.0
"""Nanoseconds for a row that one task writes and another reads. Not measured, but rows are worth saving."""

BUDGET_FRACTION = 0.9
"""Fraction of the rows that a budget adds which the sample may use, since all rows may need a few more."""


def stack_nanoseconds(rows: float, comparisons: float) -> float:
    """Nanoseconds of stack sweeps over these rows, on one core."""
    return STACK_NS_PER_ROW * rows + STACK_NS_PER_COMPARISON * comparisons


def window_seconds(rows: float, dimensions: int, candidates: float, pairs: float) -> float:
    """Seconds of window sweeps over rows of ``dimensions`` embedded coordinates, on one core."""
    per_row = WINDOW_NS_PER_ROW + WINDOW_NS_PER_COORDINATE * dimensions
    return (per_row * rows + WINDOW_NS_PER_CANDIDATE * candidates + WINDOW_NS_PER_DECISION * pairs) / 1e9


def max_sample_rows(m: int, replication_budget: float) -> float:
    """Maximum number of rows that a sample of m rows may become, so that all rows stay within the budget."""
    return m + (replication_budget - 1.0) * BUDGET_FRACTION * m if m else 0.0
