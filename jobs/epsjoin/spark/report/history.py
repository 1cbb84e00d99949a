"""What the lake holds of the runs before: the difference of the points to the last of them, and trends.

A run before is one with an earlier date whose points are in the lake now. A run that is filled in later is
therefore missing from pages that were made before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F

from epsjoin.errors import TableError
from epsjoin.lake import slices
from epsjoin.spark import scan
from epsjoin.spark.job import Job

MOST_RUNS = 12
"""Runs of a trend, this one among them."""

EXAMPLES = 4
"""Rows shown of each kind of difference."""

Counters = dict[str, dict[str, float]]
"""Job to counter to value."""


def runs_before(job: Job) -> list[str]:
    """The runs of the data set with an earlier date and points in the lake, the latest last."""
    return [run for run in slices.rows_by_run(job.lake, "points") if run < job.run]


def counters_of(job: Job, run: str) -> Counters:
    """What the jobs of a run counted; without the report, which cannot know its own."""
    counters: Counters = {}
    with suppress(TableError):
        for row in slices.read_small(job.lake, "job_metrics", run).to_pylist():
            if row["job"] != "report":
                counters.setdefault(row["job"], {})[row["counter"]] = row["value"]
    return counters


def seconds_of(counters: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Wall-clock time of every job that took one."""
    return {job: of_job["seconds"] for job, of_job in counters.items() if "seconds" in of_job}


def errors_of(quality: Sequence[Mapping[str, Any]]) -> int | None:
    """Expectations of severity error that do not hold; ``None`` where nothing was looked at."""
    return sum(not row["success"] and row["severity"] == "error" for row in quality) if quality else None


def quality_of(job: Job, run: str) -> list[dict[str, Any]]:
    """What the gates found, by table and expectation; nothing where the run has not passed any."""
    with suppress(TableError):
        rows = slices.read_small(job.lake, "quality", run).drop_columns(["run"])
        return [
            dict(row)
            for row in rows.sort_by([("table", "ascending"), ("expectation", "ascending")]).to_pylist()
        ]
    return []


def trends_before(job: Job) -> list[dict[str, Any]]:
    """A row for each of the last runs before this one, oldest first, as ``report.findings`` has them.

    Notes
    -----
    From the logs of ``points`` and ``pairs``, and from ``job_metrics`` and ``quality``: no large table is
    read, however long the history is.
    """
    points, pairs = (slices.rows_by_run(job.lake, table) for table in ("points", "pairs"))
    rows = []
    for run in runs_before(job)[-(MOST_RUNS - 1) :]:
        counters = counters_of(job, run)
        clusters = counters.get("cluster", {})
        rows.append(
            {
                "run": run,
                "points": points[run],
                "pairs": pairs.get(run),
                "eps": counters.get("fit_epsilon", {}).get("eps"),
                "clusters": clusters.get("clusters"),
                "noise": clusters.get("noise"),
                "refused": counters.get("ingest", {}).get("rows_quarantined"),
                "errors": errors_of(quality_of(job, run)),
                "seconds": sum(seconds_of(counters).values()) or None,
            }
        )
    return rows


def difference(job: Job, label: str | None) -> dict[str, Any]:
    """How the run's points differ from those of the run before, as ``report.findings`` has it.

    Rows of one id are compared by a 64-bit digest of the source's columns. Where the source has no key, an id
    is a place in a file and says nothing: rows are then compared by the digest alone, equal ones counted.

    Parameters
    ----------
    label : the column that tells a point to a person.

    Returns
    -------
    Empty where there is no run before.
    """
    before = runs_before(job)[-1:]
    if not before:
        return {}
    is_keyed = bool(job.lake.source.key)
    earlier = scan.read(job.spark, job.lake, "points", before[0])
    now = scan.read(job.spark, job.lake, "points", job.run)
    counts = {"added": 0, "removed": 0, "changed": 0, "same": 0}
    found = (_by_key if is_keyed else _by_content)(_digested(job, now), _digested(job, earlier)).persist()
    counts |= {row[0]: row[1] for row in found.groupBy("what").agg(F.sum("n")).collect()}
    chosen = _first_of_each(found) if is_keyed else []
    found.unpersist()
    return {
        "run": before[0],
        "is_keyed": is_keyed,
        **counts,
        **({} if is_keyed else {"changed": None}),
        "examples": _examples(job, now, earlier, chosen, label),
    }


def _digested(job: Job, points: DataFrame) -> DataFrame:
    """(id, digest); a null counts, or two columns could swap theirs unnoticed."""
    columns = [F.col(column.name) for column in job.lake.source.columns]
    marked = [part for column in columns for part in (column.isNull(), column)]
    return points.select("id", F.xxhash64(*marked).alias("digest"))


def _by_key(now: DataFrame, before: DataFrame) -> DataFrame:
    """(id, what, n) of every row of either."""
    both = now.join(before.withColumnRenamed("digest", "earlier"), "id", how="full")
    return both.select("id", _kind(F.col("digest"), F.col("earlier")).alias("what"), F.lit(1).alias("n"))


def _kind(digest: Column, earlier: Column) -> Column:
    return (
        F.when(earlier.isNull(), "added")
        .when(digest.isNull(), "removed")
        .when(digest != earlier, "changed")
        .otherwise("same")
    )


def _by_content(now: DataFrame, before: DataFrame) -> DataFrame:
    """(what, n) of equal rows, counted."""
    counted = [
        rows.groupBy("digest").agg(F.count("*").alias(name))
        for rows, name in ((now, "now"), (before, "before"))
    ]
    both = counted[0].join(counted[1], "digest", how="full").fillna(0, ["now", "before"])
    kinds = {
        "added": F.greatest(F.col("now") - F.col("before"), F.lit(0)),
        "removed": F.greatest(F.col("before") - F.col("now"), F.lit(0)),
        "same": F.least("now", "before"),
    }
    return reduce(
        DataFrame.unionByName,
        [both.select(F.lit(what).alias("what"), n.alias("n")) for what, n in kinds.items()],
    )


def _first_of_each(found: DataFrame) -> list[tuple[str, int]]:
    """Kind and id of a few rows of every kind of difference, the smallest ids."""
    by_id = Window.partitionBy("what").orderBy("id")
    few = found.where(F.col("what") != "same").withColumn("place", F.row_number().over(by_id))
    rows = few.where(F.col("place") <= EXAMPLES).orderBy("what", "id").collect()
    return [(row["what"], row["id"]) for row in rows]


def _examples(
    job: Job, now: DataFrame, earlier: DataFrame, chosen: Sequence[tuple[str, int]], label: str | None
) -> list[dict[str, Any]]:
    if not chosen:
        return []
    names = [column.name for column in job.lake.source.columns]
    ids = [id_ for _, id_ in chosen]
    new, old = ({row["_id"]: row for row in _rows(points, ids, names)} for points in (now, earlier))
    return [
        {
            "what": what,
            "id": id_,
            "label": (new.get(id_) or old[id_])[label] if label else None,
            "columns": [
                (name, old[id_][name], new[id_][name])
                for name in (names if what == "changed" else ())
                if old[id_][name] != new[id_][name]
            ],
        }
        for what, id_ in chosen
    ]


def _rows(points: DataFrame, ids: Sequence[int], names: Sequence[str]) -> list[Row]:
    return points.where(F.col("id").isin(list(ids))).select(F.col("id").alias("_id"), *names).collect()
