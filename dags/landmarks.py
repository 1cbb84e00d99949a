"""Area landmarks of the United States, yearly: where parks, schools, airports and cemeteries are dense.

The source is one release without a date, so every run takes the same files; run 2023-01-01 is the year
2023. Distances are degrees, as the map shows them. Not one bad row is allowed: **exit code 3** means that
the release was changed.
"""
# Airflow parses only files that hold the words "airflow" and "dag".

from __future__ import annotations

from datetime import UTC, datetime

from epsilon_join import epsilon_join

dag = epsilon_join(
    dataset="landmarks",
    schedule="0 0 1 1 *",
    start_date=datetime(2023, 1, 1, tzinfo=UTC),
    doc_md=__doc__,
    tags=["yearly"],
)
