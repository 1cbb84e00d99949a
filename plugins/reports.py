"""Reports inside Airflow: an entry "Reports" in its navigation, and a tab on every DAG and on every run."""

from __future__ import annotations

from typing import Any

from airflow.sdk.plugins_manager import AirflowPlugin

PREFIX = "/epsjoin"
"""The path at which Airflow's API server mounts the pages."""


def _draw_icon(ink: str, paper: str) -> str:
    """Draw a page with bars, as wide as Airflow's own icons; a view without an icon would show a plug.

    Airflow does not colour the icon. The page is filled, so that one can also see it on the dark background
    of the entry that is open.
    """
    return (
        "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 24 24' "
        "stroke-width='2' stroke-linecap='round' stroke-linejoin='round' "
        f"fill='%23{paper}' stroke='%23{ink}'%3E"
        "%3Cpath d='M4 3h16v18H4zM8 17v-4M12 17V8M16 17v-6'/%3E%3C/svg%3E"
    )


ICONS = {"icon": _draw_icon("3f5878", "ffffff"), "icon_dark_mode": _draw_icon("e4e9f0", "15181c")}


class PagesWhenAsked:
    """The pages as an ASGI application that is imported at the first request.

    Every task and every command of Airflow loads the plugins. FastAPI and Airflow's models would cost each of
    them more than a second of CPU, for pages that only the API server shows.
    """

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        from report_pages import app

        await app(scope, receive, send)


class ReportsPlugin(AirflowPlugin):
    """The class that Airflow looks for; its hrefs are relative, because Airflow may lie below a path."""

    name = "epsjoin_reports"
    fastapi_apps = [{"app": PagesWhenAsked(), "url_prefix": PREFIX, "name": "Reports of the runs"}]  # noqa: RUF012  # the base's form
    external_views = [  # noqa: RUF012  # as above
        {
            "name": "Reports",
            "href": f"{PREFIX[1:]}/",
            "destination": "nav",
            **ICONS,
            "nav_top_level": True,
            "url_route": "epsjoin-reports",
        },
        {
            "name": "Report list",
            "href": f"{PREFIX[1:]}/dags/{{DAG_ID}}",
            "destination": "dag",
            **ICONS,
            "url_route": "epsjoin-reports-of-dag",
        },
        {
            "name": "Report",
            "href": f"{PREFIX[1:]}/runs/{{DAG_ID}}/{{RUN_ID}}",
            "destination": "dag_run",
            **ICONS,
            "url_route": "epsjoin-report",
        },
    ]
