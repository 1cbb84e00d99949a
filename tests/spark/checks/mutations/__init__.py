"""Ways in which the tables of a run may be wrong, by table, and who must see each."""

from __future__ import annotations

from tests.spark.checks.mutations.clusters import CLUSTERS
from tests.spark.checks.mutations.outliers import OUTLIERS
from tests.spark.checks.mutations.pairs import PAIRS
from tests.spark.checks.mutations.tables import Change, Seen

MUTATIONS: dict[Change, Seen] = {**PAIRS, **CLUSTERS, **OUTLIERS}
