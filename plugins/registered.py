"""What Airflow looks up by its name when it reads a DAG from its database."""

from __future__ import annotations

from airflow.sdk.plugins_manager import AirflowPlugin

from intervals import IntervalTimetable


class RegisteredPlugin(AirflowPlugin):
    """The class that Airflow looks for."""

    name = "epsjoin"
    timetables = [IntervalTimetable]  # noqa: RUF012  # the base's form
