"""What work costs: the one table that cuts are chosen by."""

from __future__ import annotations

# Work, measured on one core; only the ratios matter. Of the stack sweep under regular cuts:
NS_PER_ROW, NS_PER_COMPARISON = 250.0, 2.5
# and of the window sweep under planned cuts, between what fits to small and to large parts give
# (`python -m benchmarks.parts --fit` prints one to all):
NS_PER_ROW_AT_ALL, NS_PER_COORDINATE, NS_PER_CANDIDATE, NS_PER_DECISION = 100.0, 27.0, 1.5, 25.0
NS_PER_TERM = 0.5  # of a product of a row and a direction
NS_PER_MOVE = 1000.0  # a row is written by one task and read by another: not measured, rows are worth saving
BUDGET_SHARE = 0.9  # of the rows that a budget adds, for the sample: all rows may need a few more


def window_seconds(rows: float, dimensions: int, candidates: float, pairs: float) -> float:
    """Of window sweeps over rows of so many embedded coordinates, on one core."""
    of_row = NS_PER_ROW_AT_ALL + NS_PER_COORDINATE * dimensions
    return (of_row * rows + NS_PER_CANDIDATE * candidates + NS_PER_DECISION * pairs) / 1e9


def most_rows(m: int, replication_budget: float) -> float:
    """Rows that a sample of m may become, so that all rows stay within the budget."""
    return m + (replication_budget - 1.0) * BUDGET_SHARE * m if m else 0.0
