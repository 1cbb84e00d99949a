"""The names of clusters in the lake: how many began and ended with a run."""

from __future__ import annotations

from epsjoin.errors import MissingSliceError
from epsjoin.lake import slices
from epsjoin.lake.fingerprints import Fingerprints


def count_names(of_run: Fingerprints) -> tuple[int | None, int | None]:
    """Count the names that began and ended since the run before; ``None`` where nothing was compared.

    Raises
    ------
    UnfitTableError
        The run, or the one before, was replaced or deleted since they were compared.
    """
    lake = of_run.lake
    try:
        rows = slices.read_slice(lake, of_run.slice("cluster_events"), ["event", "name", "ends"]).to_pylist()
        flows = slices.read_slice(lake, of_run.slice("cluster_flows"), ["against"])
    except MissingSliceError:
        return None, None
    if flows["against"].null_count == flows.num_rows:
        return None, None
    born = {row["name"] for row in rows if row["event"] in ("born", "split_off")}
    return len(born), len({row["name"] for row in rows if row["ends"]})
