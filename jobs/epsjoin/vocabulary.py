"""Values of the tables that more than one floor writes or reads."""

from __future__ import annotations

NOISE = -1
"""Label of the points that belong to no cluster; no point has it as its id."""

ROLES = ("core", "border", "noise")
"""Roles of a point, in the order of their numbers."""

CHANGES = ("inserted", "updated", "deleted")
"""Kinds of changes of a record since the run before, in the order in which they are told."""

EVENTS = ("born", "split", "split_off", "merged", "dissolved", "gone", "grown", "shrunk")
"""What may happen to a cluster from one run to the next, in the order in which it is listed."""
