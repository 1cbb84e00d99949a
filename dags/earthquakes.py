"""Earthquakes of the US Geological Survey, yearly: which event of the ISC-GEM catalogue each one is.

Run 1965-01-01 takes the events of 1965 from both catalogues, and matches those until a minute before the end
of the year; the others follow with the next run. A match is within 30 s, 100 km and one magnitude, and no
other event is nearer in all three. ISC-GEM ends in 2012: the run of a later year is **skipped**.
"""
# Airflow parses only files that hold the words "airflow" and "dag".

from __future__ import annotations

from datetime import UTC, datetime

from epsilon_join import epsilon_join

dag = epsilon_join(
    dataset="earthquakes",
    match_with="iscgem",
    schedule="0 0 1 1 *",
    start_date=datetime(1965, 1, 1, tzinfo=UTC),
    doc_md=__doc__,
    tags=["yearly"],
)
