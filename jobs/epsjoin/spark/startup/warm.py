"""Compile the kernels into numba's cache by calling them as the tasks do, with arrays from Arrow batches.

``bin/ship.py`` runs ``python -m epsjoin.spark.startup.warm PACKAGE`` before it packs that copy of the package
for a cluster. This needs no session, because the work of a task is a function of Arrow batches.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from epsjoin.contracts.sources import METRICS
from epsjoin.contracts.trees import METRIC
from epsjoin.digests import UNKEYED, digest_table
from epsjoin.garbage import look_for_garbage_rarely
from epsjoin.kernels import accelerate
from epsjoin.kernels.arrays import Ints
from epsjoin.kernels.projection import SQUARES
from epsjoin.kernels.sweep.window import window_rows
from epsjoin.lake import parquet, schemas
from epsjoin.lake.arrow import pair_columns, to_binary
from epsjoin.lake.parquet import File
from epsjoin.lake.targets import Target
from epsjoin.local.cluster.components import Meeting, contract, settle
from epsjoin.local.cluster.from_pairs import connect, number_points, partial_degrees
from epsjoin.local.metric import Metric, get_metric
from epsjoin.local.neighbours.from_pairs import nearest_within
from epsjoin.local.neighbours.knn import search_rows
from epsjoin.local.neighbours.tree import make_lists
from epsjoin.local.plan.block_planner import choose_products, plan_products
from epsjoin.local.plan.cuts import Cuts
from epsjoin.local.plan.planner import plan_join
from epsjoin.local.plan.product import MANY_DIMENSIONS
from epsjoin.local.plan.projection import choose_projection, simple_projection
from epsjoin.params import CUTS, RunParams
from epsjoin.spark.join.blocks import join_task, mark_block, rows_of_blocks
from epsjoin.spark.join.pairs import PAIRS
from epsjoin.spark.join.parts import Part, make_joiner
from epsjoin.spark.join.replicas import REPLICAS, replicas_read_by
from epsjoin.spark.join.replicate import make_encoder
from epsjoin.spark.neighbours.nearest import scan_task
from epsjoin.spark.points.reading import Reading

N_POINTS, EPS = 2000, 0.02
"""Number of random points in the unit square, and the eps of their join."""


def warm(folder: Path) -> int:
    """Run every kind of task on a few points, for every metric and kind of cuts, with files in ``folder``.

    Returns
    -------
    The number of pairs found in all joins.
    """
    points = np.random.default_rng(0).random((N_POINTS, 2))
    ids = np.arange(N_POINTS)
    found = 0
    of_points = [metric for metric in METRICS if metric != METRIC]
    for metric, kind in product(of_points, CUTS):
        eps = EPS * (100 if metric == "haversine" else 1)  # km for a degree
        plan = plan_join(points, ids, N_POINTS, eps, get_metric(metric), Cuts(kind, n_parts=3, msl=1))
        location = (folder / metric / kind).as_uri()
        of_replicas, of_pairs = schemas.parse_ddl(REPLICAS), schemas.parse_ddl(PAIRS)
        replicas = Target("replicas", f"{location}/replicas", of_replicas, ("part",), {"run": "warm"})
        reading = Reading(("x", "y"), 2, is_checked=True)
        encode = make_encoder(plan.to_json(), replicas_read_by(reading), replicas)
        # two files in a part, as two tasks leave them
        halves = [ids[: N_POINTS // 2], ids[N_POINTS // 2 :]]
        files = [
            file
            for half in halves
            for file in _files(encode([pa.record_batch({"id": half, "point": to_binary(points[half])})]))
        ]
        batch = pa.record_batch({"id": ids, "point": to_binary(points)})
        digest_table(batch, UNKEYED)
        list(scan_task(ids[:3], points[:3], reading, get_metric(metric), 2)([batch]))
        for rows in (ids, ids[:3]):  # by the tree, and by a scan
            search_rows(points, rows, make_lists(N_POINTS, 2), get_metric(metric))
        pairs = Target("pairs", f"{location}/pairs", of_pairs, (), {"run": "warm"})
        join = make_joiner(plan.to_json(), replicas.location, pairs, N_POINTS**2)
        for number in sorted({file.partition["part"] for file in files}):
            mine = [file for file in files if file.partition["part"] == number]
            for part in (mine, mine[:1]):
                for file in _files(join(Part(int(number), part))):
                    found += file.rows
                    _after_join(pairs.location, file)
    _lay_out_dense_rows()
    _choose_of_many_rows()
    for name in ("euclidean", "cosine"):
        _multiply_blocks(get_metric(name))
    return found


def _lay_out_dense_rows() -> None:
    """Lay out rows for a sweep as for a part with dense rows, which takes kernels of its own."""
    points, mask = np.random.default_rng(0).random((N_POINTS, 3)), np.zeros(N_POINTS, np.int64)
    window_rows(points, points, np.arange(N_POINTS), mask, 0.3, simple_projection(points, SQUARES, 2))


def _choose_of_many_rows() -> None:
    """Choose coordinates as for a part with many rows, by trying axes and, with euclidean, principal axes."""
    choose_projection(np.random.default_rng(0).random((N_POINTS, 3)), 1 << 20, 0.3, SQUARES)


def _multiply_blocks(metric: Metric) -> None:
    """Join blocks of vectors as tasks do, and read them again, in kernels of their own."""
    vectors = np.random.default_rng(0).standard_normal((N_POINTS, MANY_DIMENSIONS))
    eps = {"euclidean": 5.0, "cosine": 0.5}[metric.name]  # within which there are some pairs
    chosen = choose_products([vectors], [N_POINTS], eps, metric)
    if chosen is None:
        raise ValueError(f"no products are chosen for {N_POINTS} vectors")
    plan = plan_products(chosen, eps, metric, 8, RunParams().worker_memory_mb << 20, 1.0)
    ids = np.arange(N_POINTS)
    by_block = rows_of_blocks(Reading(("v",), MANY_DIMENSIONS, is_checked=True))
    batch = pa.record_batch({"id": ids, "point": to_binary(vectors)})
    blocks = {block: rows.to_batches() for block, rows in by_block(batch, plan, {"points": 0, "rows": 0})}
    for task, pair in enumerate(plan.tasks.tolist()):
        rows = [each for block in {*pair} for each in mark_block(blocks.get(block, []), block)]
        for _ in join_task(rows, task, plan, N_POINTS**2, {}):
            pass


def _files(reports: Any) -> list[File]:
    rows = [json.loads(batch.column(0)[0].as_py()) for batch in reports]
    return [File(**file) for row in rows for file in row["files"]]


def _after_join(location: str, file: File) -> None:
    for batch in parquet.stream_file(location, file, schemas.parse_ddl(PAIRS), 1 << 20):
        left, right, distance = pair_columns(batch)
        degrees = partial_degrees(left, right)
        part = number_points(left, right)
        trees = connect(part, distance, degrees.counts > 1).trees
        _join_forests(part.ids[trees.node], part.ids[trees.root])
        nearest_within(left, right, distance, 5)


def _join_forests(node: Ints, root: Ints) -> None:
    for trees in contract([(node, root)], max(1, len(node))):
        order = np.lexsort((trees.root, trees.node))
        met = Meeting().of(trees.node[order], trees.root[order])
        settle(met.node, met.root, met.kind)


def copy_compiled(kept: Path, package: Path) -> int:
    """Copy compiled kernels of this Python beside their sources in a copy of the package.

    There ``NUMBA_CACHE_LOCATOR_CLASSES=InTreeCacheLocator`` makes numba look for them, wherever that lies.

    Returns
    -------
    The number of files.
    """
    python = f"py{sys.version_info.major}{sys.version_info.minor}"
    # files that an index names are copied before it: another process may compile meanwhile
    files = [file for kind in ("nbi", "*.nbc") for file in sorted(kept.rglob(f"*.{python}.{kind}"))]
    for file in files:
        place = package / "kernels" / file.parent.relative_to(kept) / "__pycache__"
        place.mkdir(exist_ok=True)
        shutil.copyfile(file, place / file.name)
    return len(files)


if __name__ == "__main__":
    look_for_garbage_rarely()
    with tempfile.TemporaryDirectory() as scratch:
        print(f"kernels compiled; {warm(Path(scratch)):,} pairs")
    if accelerate._FOLDER is None:
        raise SystemExit("warm: compiled kernels are kept nowhere; unset NUMBA_DISABLE_JIT")
    copy_compiled(accelerate._FOLDER, Path(sys.argv[1]))
