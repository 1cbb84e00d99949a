"""The names of clusters in the lake: how many began and ended with a run."""

from __future__ import annotations

from epsjoin.errors import MissingSliceError
from epsjoin.lake import slices
from epsjoin.lake.lake import Lake, Slice


def count_names(lake: Lake, run: str) -> tuple[int | None, int | None]:
    """Count the names that began and ended since the run before; ``None`` where nothing was compared.

    They are as the job ``compare`` has found them; whether a run has been replaced since is not asked.
    """
    try:
        rows = slices.read_slice(lake, Slice("cluster_events", run), ["event", "name", "ends"]).to_pylist()
        flows = slices.read_slice(lake, Slice("cluster_flows", run), ["against"])
    except MissingSliceError:
        return None, None
    if flows["against"].null_count == flows.num_rows:
        return None, None
    born = {row["name"] for row in rows if row["event"] in ("born", "split_off")}
    return len(born), len({row["name"] for row in rows if row["ends"]})
