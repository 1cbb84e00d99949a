"""The assets of a data set: one for each table, and one for its source."""

from __future__ import annotations

from airflow.sdk import Asset


def asset_of(dataset: str, table: str) -> Asset:
    """Return the asset of a table, which the task that writes it renews; a DAG may have it in its schedule.

    ``Asset.ref`` would start that DAG, too, but Airflow 3.3 gives its runs no events.
    """
    return Asset(name=f"{dataset}/{table}", uri=f"epsjoin://{dataset}/{table}", group=dataset)
