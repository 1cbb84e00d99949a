"""What operator, DAGs and report pages share: folders of project and lake, our tag."""

from __future__ import annotations

import os
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]

TAG = "epsjoin"
"""The tag that every DAG of a data set has; no other DAG should have it."""


def find_lake_uri() -> str:
    """Return where tables and reports lie: ``EPSJOIN_LAKE``, or else the folder ``lake/`` of the project."""
    return os.environ.get("EPSJOIN_LAKE", (REPOSITORY / "lake").as_uri())
