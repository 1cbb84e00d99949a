"""A small data set of points in the plane, and what ``ingest`` makes of it."""

from __future__ import annotations

from typing import Any

from epsjoin.lake import slices
from epsjoin.lake.lake import Slice
from epsjoin.spark.job.job import Job
from tests.tiny import coordinate, key

XY = [key(), coordinate("x"), coordinate("y"), {"name": "name", "logicalType": "string"}]
GOOD = "id,x,y,name\n1,0.5,1.5,a\n2,2.5,3.5,b\n3,4.5,5.5,c\n"


def rows(job: Job, table: str) -> list[dict[str, Any]]:
    return slices.read_slice(job.lake, Slice(table, job.run)).to_pylist()
