"""Two catalogues of earthquakes as two data sets of a test: contracts, lake, jobs."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from pyspark.sql import SparkSession

from epsjoin.contracts.load_source import load_source
from epsjoin.lake.lake import Lake
from epsjoin.params import RunParams
from epsjoin.paths import CONTRACTS
from epsjoin.spark.job.job import Job

REPO = Path(__file__).resolve().parents[3]
LEFT, RIGHT = "earthquakes", "iscgem"


def copy_contracts(folder: Path, custom: Mapping[str, Mapping[str, Any]], paths: Mapping[str, str]) -> Path:
    """The contracts of the project, with other customProperties and paths of the two data sets."""
    contracts = folder / "data_contracts"
    shutil.copytree(CONTRACTS, contracts)
    for name in (LEFT, RIGHT):
        file = contracts / f"{name}.odcs.yaml"
        body = yaml.safe_load(file.read_text())
        server = body["servers"][0]
        server["path"] = paths.get(name, str(REPO / server["path"]))
        properties = {each["property"]: each["value"] for each in body["customProperties"]}
        properties |= custom.get(name, {})
        body["customProperties"] = [{"property": key, "value": value} for key, value in properties.items()]
        file.write_text(yaml.safe_dump(body))
    return contracts


def match_of(**changed: Any) -> dict[str, Any]:
    """The section of the contract, changed; what is None is left out."""
    body = yaml.safe_load((CONTRACTS / f"{LEFT}.odcs.yaml").read_text())
    (match,) = (each["value"] for each in body["customProperties"] if each["property"] == "match")
    return {key: value for key, value in {**match, **changed}.items() if value is not None}


def job_of(spark: SparkSession, contracts: Path, lake: str, name: str, run: str) -> Job:
    source = load_source(contracts, name).of_run(run)
    params = RunParams(**source.defaults)
    return Job(lambda: spark, Lake(lake, contracts, source), run, params, contracts.parent)


def moved(job: Job, lake: str) -> Job:
    """The same job on another lake."""
    return replace(job, lake=replace(job.lake, uri=lake))
