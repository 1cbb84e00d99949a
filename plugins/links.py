"""The link from the task ``report`` to the page that it wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from airflow.sdk import BaseOperatorLink
from airflow.sdk.configuration import conf

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey


class ReportLink(BaseOperatorLink):
    """A button of the task that opens the run's tab *Report*."""

    name = "Report"

    # the parameters are those with which Airflow calls it
    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:  # noqa: ARG002  # Airflow's
        """Return the tab's path on Airflow's server, which may lie below a path itself."""
        below = urlsplit(conf.get("api", "base_url", fallback="")).path.rstrip("/")
        return f"{below}/dags/{quote(ti_key.dag_id)}/runs/{quote(ti_key.run_id)}/plugin/epsjoin-report"
