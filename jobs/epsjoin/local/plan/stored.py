"""Plans as text: what the table ``join_plan`` holds of a join in parts, or of one by pairs of blocks."""

from __future__ import annotations

import json

from epsjoin.errors import ArgumentError
from epsjoin.local.plan.blocks import BLOCKS, BlockPlan
from epsjoin.local.plan.join_plan import JoinPlan


def read_plan(text: str) -> JoinPlan | BlockPlan:
    """Read the plan that ``to_json`` of either kind wrote.

    Raises
    ------
    ArgumentError
        The text is no such plan.
    """
    try:
        is_of_blocks = json.loads(text)["kind"] == BLOCKS
    except (KeyError, TypeError, ValueError) as error:
        raise ArgumentError(f"this is no join plan: {error}") from error
    return BlockPlan.from_json(text) if is_of_blocks else JoinPlan.from_json(text)
