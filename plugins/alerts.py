"""The alert for late runs of data sets that name no other: a warning in the log of the triggerer.

A page in ``dags/`` may give ``epsilon_join`` another function like this one, or one of Airflow's notifiers,
such as ``AsyncCallback("airflow.providers.slack.notifications.slack.SlackNotifier", {...})``. Airflow's
services must be able to import the function: it may stand in ``plugins/``, but not in the page itself.
"""

from __future__ import annotations

import logging
from typing import Any

log = logging.getLogger(__name__)


async def deadline_missed(context: dict[str, Any]) -> None:
    """Log a warning that says which run is late; the run's page in Airflow shows it, too."""
    run = context["dag_run"]
    log.warning(
        "%s is late: run %s should have ended by %s and is %s",
        run["dag_id"],
        run["dag_run_id"],
        context["deadline"]["deadline_time"],
        run["state"],
    )
