"""What is compiled before kernels are shipped is all that the tasks of a join call."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest

PROGRAM = """
import importlib, pkgutil, sys
from pathlib import Path

import numpy as np

from epsjoin import kernels
from epsjoin.kernels.accelerate import read_only
from epsjoin.local.join.parts import join_part
from epsjoin.local.metric import get_metric
from epsjoin.local.plan.block_planner import choose_products, plan_products
from epsjoin.local.plan.cuts import Cuts
from epsjoin.local.plan.planner import plan_join
from epsjoin.local.product.sweep import NamedRows, sweep_products
from epsjoin.local.sweep.sweeping import SweepOptions
from epsjoin.spark.startup.warm import warm

names = [module.name for module in pkgutil.walk_packages(kernels.__path__, f"{kernels.__name__}.")]
modules = [importlib.import_module(name) for name in names]


def compiled():
    functions = [item for module in modules for item in vars(module).items()]
    return {(name, str(one)) for name, each in functions for one in getattr(each, "signatures", ())}


warm(Path(sys.argv[1]))
points = np.random.default_rng(0).random((20_000, 3))
ids, mask = np.arange(20_000), np.zeros(20_000, np.int64)
plan = plan_join(points[:500], ids[:500], 500, 0.05, get_metric("euclidean"), Cuts(n_parts=1), 100.0)
before = compiled()
n_pairs = sum(len(pairs.left) for pairs in join_part(read_only(points), ids, mask, 0, plan))
vectors = np.random.default_rng(0).standard_normal((3000, 64))
chosen = choose_products([vectors], [3000], 1.2, get_metric("cosine"))
blocks = plan_products(chosen, 1.2, get_metric("cosine"), 8, 1 << 30, 100.0)
sides = NamedRows(vectors[:1500], ids[:1500]), NamedRows(vectors[1500:], ids[1500:3000])
sweep = sweep_products(*sides, blocks.space, blocks.metric, 1.2, SweepOptions(1 << 16, {}), is_ordered=True)
n_products = sum(len(pairs.left) for pairs in sweep)
print(n_pairs > 10_000, n_products > 10_000, "separating_axes" in dict(compiled()))
print(sorted(compiled() - before))
"""
"""It does what is done before kernels are shipped, then what a task does with a part of many rows."""


@pytest.mark.long
@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_warm__leaves_nothing_to_compile_for_a_part_of_many_rows(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, tmp_path], env=os.environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-2:] == ["True True True", "[]"]
