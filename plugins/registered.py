"""What Airflow looks up by its name, as timetables of DAGs in its database, or puts before its API server."""

from __future__ import annotations

import re
from typing import Any

from airflow.sdk.plugins_manager import AirflowPlugin

from intervals import IntervalTimetable

_ASKS_FOR_RUNS = re.compile("/api/v2/(dags/[^/]+/dagRuns|backfills(/dry_run)?)$")


class RunRequestsCheck:
    """Middleware of the API server that looks at requests for runs.

    What it does is imported at the first of them, as the pages of reports are, and for the same reason.
    """

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request, or let Airflow answer it."""
        if (
            scope["type"] == "http"
            and scope["method"] == "POST"
            and _ASKS_FOR_RUNS.search(scope["path"]) is not None
        ):
            from run_requests import answer

            await answer(self._app, scope, receive, send)
        else:
            await self._app(scope, receive, send)


class RegisteredPlugin(AirflowPlugin):
    """The class that Airflow looks for."""

    name = "epsjoin"
    timetables = [IntervalTimetable]  # noqa: RUF012  # the base's form
    fastapi_root_middlewares = [{"middleware": RunRequestsCheck, "name": "Check of requests for runs"}]  # noqa: RUF012  # as above
