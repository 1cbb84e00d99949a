"""What operator, DAGs and report pages share: where project and lake lie, how a DAG of ours is known."""

from __future__ import annotations

import os
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]

TAG = "epsjoin"
"""The tag that every DAG of a data set bears, and no other should."""


def lake_uri() -> str:
    """Say where tables and reports lie: ``EPSJOIN_LAKE``, or else the folder ``lake/`` of the project."""
    return os.environ.get("EPSJOIN_LAKE", (REPOSITORY / "lake").as_uri())
