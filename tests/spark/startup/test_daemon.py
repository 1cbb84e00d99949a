"""The parent of the Python workers: a worker whose connection Spark has closed ends without a traceback."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import weakref

from epsjoin.spark.startup.daemon import freeze_after_first_task

PROGRAM = """
import socket, sys
import pyspark.daemon, pyspark.worker
from epsjoin.spark.startup.daemon import until_spark_hangs_up

ours, theirs = socket.socketpair()

def write_to_nobody(infile, outfile):
    theirs.close()
    outfile.write(b"rows")

pyspark.worker.main = write_to_nobody
sys.argv = ["daemon"]
sys.exit(until_spark_hangs_up(pyspark.daemon.worker)(ours, True))
"""


def test_worker__whose_rows_nobody_takes_ends_in_silence() -> None:
    environment = {**os.environ, "PYTHON_DAEMON_KILL_WORKER_ON_FLUSH_FAILURE": "true"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")


LOADING = """
import sys
import numpy as np
import pyarrow as pa
from epsjoin.kernels.distances import chebyshev
from epsjoin.spark.startup.daemon import load_packages

load_packages()
before = set(sys.modules)
pa.record_batch({"id": np.arange(3)}).to_pydict()
chebyshev(np.zeros((1, 2)), 0, np.zeros((1, 2)), 0)
print(sorted({name.split(".")[0] for name in set(sys.modules) - before}))
print([name for name in ("pandas", "pyspark.ml") if name in sys.modules])
"""


def test_daemon__has_loaded_what_each_worker_would_load_again() -> None:
    done = subprocess.run([sys.executable, "-c", LOADING], capture_output=True, text=True, check=True)
    new, unneeded = done.stdout.splitlines()
    assert new == "[]"
    assert unneeded == "[]", "no step needs them"


class _Loop:
    """Garbage that only a collection finds."""

    def __init__(self) -> None:
        self.itself = self


def test_worker__collects_no_more_what_its_first_task_has_loaded() -> None:
    loaded: list[list[object]] = []
    garbage: list[weakref.ref[_Loop]] = []

    def run_task() -> int:
        loaded.extend([] for _ in range(10_000))
        garbage.append(weakref.ref(_Loop()))
        return 0

    worker, before = freeze_after_first_task(run_task), gc.get_freeze_count()
    gc.disable()
    try:
        assert worker() == 0
        first = gc.get_freeze_count()
        assert first - before >= 10_000
        assert garbage[0]() is None, "garbage is not kept"
        assert worker() == 0
        assert gc.get_freeze_count() <= first, "later tasks may leave garbage in what they have loaded"
    finally:
        gc.enable()
