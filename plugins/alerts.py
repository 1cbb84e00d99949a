"""Whom to tell that a run is late, where a data set's page names nobody: whoever reads the triggerer's log.

A page in ``dags/`` may give ``epsilon_join`` another function like this one, or one of Airflow's notifiers,
such as ``AsyncCallback("airflow.providers.slack.notifications.slack.SlackNotifier", {...})``. It must live
where Airflow's services can import it, for instance in ``plugins/``; in the page itself they do not find it.
"""

from __future__ import annotations

import logging
from typing import Any

log = logging.getLogger(__name__)


async def deadline_missed(context: dict[str, Any]) -> None:
    """Say in a warning which run is late; the run's page in Airflow shows it, too."""
    run = context["dag_run"]
    log.warning(
        "%s is late: run %s should have ended by %s and is %s",
        run["dag_id"],
        run["dag_run_id"],
        context["deadline"]["deadline_time"],
        run["state"],
    )
