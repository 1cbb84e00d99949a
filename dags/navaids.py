"""Radio navigation aids of the world, monthly: near-duplicates, clusters, outliers.

Run 2023-06-01 takes the last snapshot dated 2023-06-01 to 2023-06-30. A month without a snapshot is
**skipped**, and nothing is wrong; when it arrives late, clear `ingest` with its downstream.
Distances are kilometres on the sphere.
"""
# Airflow parses only files that hold the words "airflow" and "dag".

from __future__ import annotations

from datetime import UTC, datetime

from epsilon_join import epsilon_join

dag = epsilon_join(
    dataset="navaids",
    schedule="0 0 1 * *",
    start_date=datetime(2021, 11, 1, tzinfo=UTC),
    doc_md=__doc__,
    tags=["monthly"],
)
