"""Plans for points that are all known."""

import numpy as np

from epsjoin.local.metric import get_metric
from epsjoin.local.plan.cuts import Cuts
from epsjoin.local.plan.planner import plan_join

EUCLIDEAN = get_metric("euclidean")


def plan_for(points, eps, **options):
    ids = np.arange(len(points), dtype=np.int64)
    metric = options.pop("metric", EUCLIDEAN)
    return plan_join(points, ids, len(points), eps, metric, Cuts(options.pop("cuts", "planned"), **options))
