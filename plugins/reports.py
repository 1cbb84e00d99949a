"""The runs' reports inside Airflow: an entry "Reports" in its navigation, a tab "Report" on every run."""

from __future__ import annotations

from typing import Any

from airflow.sdk.plugins_manager import AirflowPlugin

PREFIX = "/epsjoin"
"""Where Airflow's API server mounts the pages."""


class PagesWhenAsked:
    """The pages as an ASGI application that is imported at the first request.

    Every task and every command of Airflow loads the plugins. FastAPI and Airflow's models would cost each
    more than a second of CPU, for pages that the API server alone shows.
    """

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        from report_pages import app

        await app(scope, receive, send)


class ReportsPlugin(AirflowPlugin):
    """What Airflow looks for in this folder; hrefs are relative, Airflow may live below a path."""

    name = "epsjoin_reports"
    fastapi_apps = [{"app": PagesWhenAsked(), "url_prefix": PREFIX, "name": "Reports of the runs"}]  # noqa: RUF012 - the base's form
    external_views = [  # noqa: RUF012 - as above
        {
            "name": "Reports",
            "href": f"{PREFIX[1:]}/",
            "destination": "nav",
            "nav_top_level": True,
            "url_route": "epsjoin-reports",
        },
        {
            "name": "Report",
            "href": f"{PREFIX[1:]}/runs/{{DAG_ID}}/{{RUN_ID}}",
            "destination": "dag_run",
            "url_route": "epsjoin-report",
        },
    ]
