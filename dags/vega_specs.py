"""Example specifications of Vega-Lite, yearly: documents within a few edits of each other, as trees.

Run 2025-01-01 takes the last snapshot dated in 2025, and is due when the year is over. Distances are edits of
the JSON documents: a node gets another label, or a node is inserted or deleted. `merge_join` writes
candidates, by histograms of the trees; `refine` compares them and writes the pairs. Specifications of more
than 300 nodes are refused.
"""
# Airflow parses only files that hold the words "airflow" and "dag".

from __future__ import annotations

from datetime import UTC, datetime

from epsilon_join import epsilon_join

dag = epsilon_join(
    dataset="vega_specs",
    compares_trees=True,
    schedule="0 0 1 1 *",
    start_date=datetime(2019, 1, 1, tzinfo=UTC),
    doc_md=__doc__,
    tags=["yearly"],
)
