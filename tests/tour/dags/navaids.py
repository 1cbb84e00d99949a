"""The data set of the tour: ``dags/navaids.py``, but a person is asked about eps."""
# Airflow parses only files that hold the words "airflow" and "dag".

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from epsilon_join import epsilon_join

dag = epsilon_join(
    dataset="navaids",
    schedule="0 0 1 * *",
    start_date=datetime(2021, 11, 1, tzinfo=UTC),
    doc_md="Radio navigation aids of the world, monthly; the tour asks a person about eps.\n",
    tags=["monthly"],
    approve_within=timedelta(hours=1),
)
