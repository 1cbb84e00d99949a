"""What operator, DAGs and report pages share: folders of project and lake, our tag, the assets of tables."""

from __future__ import annotations

import os
from pathlib import Path

from airflow.sdk import Asset

REPOSITORY = Path(__file__).resolve().parents[1]

TAG = "epsjoin"
"""The tag that every DAG of a data set has; no other DAG should have it."""


def asset_of(dataset: str, table: str) -> Asset:
    """Return the asset of a table, which the task that writes it renews; a DAG may have it in its schedule.

    ``Asset.ref`` would start that DAG, too, but Airflow 3.3 gives its runs no events.
    """
    return Asset(name=f"{dataset}/{table}", uri=f"epsjoin://{dataset}/{table}", group=dataset)


def find_lake_uri() -> str:
    """Return where tables and reports lie: ``EPSJOIN_LAKE``, or else the folder ``lake/`` of the project."""
    return os.environ.get("EPSJOIN_LAKE", (REPOSITORY / "lake").as_uri())
