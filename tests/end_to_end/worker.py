"""spark-submit worker.py: what a worker sees."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

import pyarrow as pa

from epsjoin.spark.session import get_session


def look(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Run in a worker: its folder, its path, where epsjoin came from."""
    import os
    import sys

    import epsjoin

    list(batches)
    # not all of it: the cluster's secret is in there, too
    settings = {name: text for name, text in os.environ.items() if name.startswith(("NUMBA_", "OMP_"))}
    folder = os.getcwd()  # noqa: PTH109 - as the worker has it
    seen = {"folder": folder, "path": sys.path, "package": epsjoin.__file__, "settings": settings}
    yield pa.record_batch({"seen": [json.dumps(seen)]})


if __name__ == "__main__":
    row = get_session("worker").range(0, 1, 1, 1).mapInArrow(look, "seen string").first()
    print(f"seen: {row['seen'] if row else None}")
