"""Run the steps once, one after the other, on a small, temporary data set of random points.

``bin/class-archive`` runs this, so that the JVM loads the classes that jobs need. It needs no data of the
project.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import numpy as np
import yaml

from epsjoin.paths import CONTRACTS
from epsjoin.spark.cluster import cluster
from epsjoin.spark.compare import compare
from epsjoin.spark.epsilon import fit_epsilon
from epsjoin.spark.ingest import ingest
from epsjoin.spark.job.job import Step, run_job
from epsjoin.spark.join import merge_join, replicate
from epsjoin.spark.neighbours import outliers

STEPS: dict[str, Step] = {
    "ingest": ingest.run,
    "fit_epsilon": fit_epsilon.run,
    "replicate": replicate.run,
    "merge_join": merge_join.run,
    "cluster": cluster.run,
    "outliers": outliers.run,
    "compare": compare.run,
}
"""The chain, in its order, by the names of the jobs."""

N_POINTS = 2000
"""Number of random points in the unit square."""

NAME = "rehearsal"


def rehearse() -> int:
    """Run every step of ``STEPS`` in this session, and return the first exit code that is not 0."""
    with tempfile.TemporaryDirectory(prefix="epsjoin-rehearsal-") as scratch:
        contracts = write_dataset(Path(scratch))
        arguments = ["--lake", Path(scratch, "lake").as_uri(), "--contracts", str(contracts)]
        arguments += ["--dataset", NAME, "--run", "2000-01-01"]
        codes = (run_job(name, step, arguments) for name, step in STEPS.items())
        return next((code for code in codes if code), 0)


def write_dataset(folder: Path) -> Path:
    """Write the points and their contract into a folder; return the folder of the contracts."""
    contracts = folder / "data_contracts"
    shutil.copytree(CONTRACTS / "tables", contracts / "tables")
    points = np.random.default_rng(0).random((N_POINTS, 2))
    lines = ["id,x,y", *(f"{number},{x},{y}" for number, (x, y) in enumerate(points))]
    (folder / "points.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    key = {"name": "id", "logicalType": "integer", "primaryKey": True, "required": True}
    role = [{"property": "role", "value": "coordinate"}]
    coordinate = {"logicalType": "number", "required": True, "customProperties": role}
    contract = {
        "apiVersion": "v3.1.0",
        "kind": "DataContract",
        "id": NAME,
        "version": "1.0.0",
        "status": "active",
        "servers": [{"server": "files", "type": "local", "path": "points.csv", "format": "csv"}],
        "schema": [
            {
                "name": NAME,
                "logicalType": "object",
                "properties": [key, {"name": "x"} | coordinate, {"name": "y"} | coordinate],
            }
        ],
    }
    (contracts / f"{NAME}.odcs.yaml").write_text(yaml.safe_dump(contract), encoding="utf-8")
    return contracts
