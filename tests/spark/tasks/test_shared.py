"""Arrays that the driver shares with tasks by files: on one machine and on executors of their own."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyspark
import pytest
from pyspark import SparkFiles
from pyspark.sql import SparkSession

from epsjoin.errors import EpsjoinError
from epsjoin.spark.rows.rows import FrameRows
from epsjoin.spark.tasks.shared import Shared, give, has_one_machine, share, take
from epsjoin.spark.tasks.tasks import lazy_tasks, run_tasks

ARRAYS = {
    "ids": np.arange(5, dtype=np.int64) * 3,
    "near": np.array([[0.5, np.inf], [np.nan, -0.0]]),
    "is_core": np.array([True, False]),
    "nothing": np.empty(0, np.int32),
}


def files_of(shared: Shared) -> list[Path]:
    return [Path(SparkFiles.get(name)) for name in shared.files.values()]


def say(shared: Shared, names: list[str]) -> Iterator[pa.RecordBatch]:
    """What a task sees: each array in words."""
    for name in names:
        yield pa.record_batch({"said": [said_of(shared[name], shared[name].flags.writeable)]})


def said_of(array: np.ndarray, is_writeable: bool = False) -> str:
    return f"{type(array).__name__} {array.dtype} {array.shape} {array.tobytes().hex()} {is_writeable}"


def test_share__tasks_of_lists_and_of_queries_see_the_same_arrays(spark: SparkSession) -> None:
    shared = share(spark, **ARRAYS)
    wanted = [said_of(array) for array in ARRAYS.values()]
    by_list = run_tasks(spark, [[name] for name in ARRAYS], lambda names: say(shared, names))
    assert [batch["said"][0].as_py() for batch in by_list] == wanted
    by_query = lazy_tasks(spark, [list(ARRAYS)], lambda names: say(shared, names), "said string")
    assert by_query.toArrow()["said"].to_pylist() == wanted
    shared.remove()


def test_share__pickles_to_names_only(spark: SparkSession) -> None:
    shared = share(spark, ids=np.zeros(1 << 16))
    assert shared["ids"].size == 1 << 16
    assert len(pickle.dumps(shared)) < 1000
    assert pickle.loads(pickle.dumps(shared)) == shared
    shared.remove()


def test_share__lies_where_spark_cleans_up_and_goes_when_removed(spark: SparkSession) -> None:
    shared = share(spark, **ARRAYS)
    files = files_of(shared)
    [folder] = {file.parent for file in files}
    assert folder.name.startswith("userFiles-")
    assert all(
        file.stat().st_size == 128 + array.nbytes for file, array in zip(files, ARRAYS.values(), strict=True)
    )
    mapped = shared["ids"]
    shared.remove()
    shared.remove()
    assert not any(file.exists() for file in files)
    assert mapped.tolist() == ARRAYS["ids"].tolist(), "what is mapped stays readable"


def test_share__refuses_what_the_disk_has_no_room_for_before_it_writes(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = set(Path(SparkFiles.getRootDirectory()).iterdir())
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=79_999))
    with pytest.raises(EpsjoinError, match=r"need 80,000 bytes in .*, where 79,999 .* set SPARK_LOCAL_DIRS"):
        share(spark, ids=np.zeros(10_000))
    assert set(Path(SparkFiles.getRootDirectory()).iterdir()) == before


def test_share__leaves_no_file_where_one_cannot_be_written(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    save, before = np.save, set(Path(SparkFiles.getRootDirectory()).iterdir())

    def fail(file: Path, array: np.ndarray, **how: bool) -> None:
        save(file, array[:1], **how)
        if file.name.startswith("near"):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "save", fail)
    with pytest.raises(EpsjoinError, match=r"No space left on device.* set SPARK_LOCAL_DIRS"):
        share(spark, ids=ARRAYS["ids"], near=ARRAYS["near"])
    assert set(Path(SparkFiles.getRootDirectory()).iterdir()) == before


CLUSTER = "local-cluster[1,1,512]"
BEGIN = """
import os, signal
from pathlib import Path
import numpy as np
from pyspark import SparkFiles
from pyspark.sql import SparkSession
from epsjoin.spark.rows.rows import FrameRows
from epsjoin.spark.tasks.shared import has_one_machine, share
from epsjoin.spark.tasks.tasks import run_tasks
from tests.spark.tasks.test_shared import ARRAYS, said_of, say

spark = SparkSession.builder.getOrCreate()
shared = share(spark, **ARRAYS)
assert len(list(Path(os.environ["SPARK_LOCAL_DIRS"]).rglob("*.npy"))) == len(ARRAYS)
"""
ON_EXECUTORS = """
assert shared.is_shipped and not has_one_machine(spark)
shared.remove()
found = run_tasks(spark, [[name] for name in ARRAYS], lambda names: say(shared, names))
assert [batch["said"][0].as_py() for batch in found] == [said_of(array) for array in ARRAYS.values()]
later = share(spark, ids=np.arange(3))
[batch] = run_tasks(spark, [["ids"]], lambda names: say(later, names))
assert batch["said"][0].as_py() == said_of(np.arange(3)), "executors that are there get what is new"
"""
UNTIL_STOPPED = """
print("shared")
spark.stop()
"""
UNTIL_KILLED = """
print("shared", flush=True)
os.kill(spark.sparkContext._gateway.proc.pid, signal.SIGTERM)
spark.sparkContext._gateway.proc.wait()
os._exit(0)
"""


@pytest.mark.parametrize(
    ("master", "then"),
    [
        pytest.param(
            CLUSTER, ON_EXECUTORS + UNTIL_KILLED, id="executors get the files; the driver is told to stop"
        ),
        pytest.param(CLUSTER, ON_EXECUTORS + UNTIL_STOPPED, id="the session stops", marks=pytest.mark.long),
        pytest.param("local[1]", UNTIL_KILLED, id="on one machine", marks=pytest.mark.long),
    ],
)
def test_share__spark_deletes_the_files_when_the_session_ends(master: str, then: str, tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[3]
    given = f"--master {master} --conf spark.executor.memory=512m --properties-file {root}/conf/small.conf"
    environment = {
        "PYSPARK_SUBMIT_ARGS": f"{given} --load-spark-defaults pyspark-shell",
        "SPARK_CONF_DIR": str(root / "conf"),
        "SPARK_HOME": str(Path(pyspark.__file__).parent),  # its own spark-submit, which ships nothing of ours
        "PYTHONPATH": f"{root / 'jobs'}:{root}:{root / 'tests'}",
        "SPARK_LOCAL_DIRS": str(tmp_path / "local"),
        "SPARK_WORKER_DIR": str(tmp_path / "work"),
    }
    ran = subprocess.run(
        [sys.executable, "-c", BEGIN + then],
        env=os.environ | environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (ran.returncode, ran.stdout.strip()) == (0, "shared"), ran.stderr[-3000:]
    assert list((tmp_path / "local").rglob("*.npy")) == []


def test_has_one_machine__is_of_masters_whose_tasks_run_beside_the_driver(spark: SparkSession) -> None:
    assert has_one_machine(spark)


@pytest.mark.parametrize(("by_file", "rows"), [(True, 1 << 18), (True, 10), (False, 1 << 18)])
def test_give__large_rows_go_by_a_file_that_is_gone_when_they_are_taken(
    spark: SparkSession, by_file: bool, rows: int
) -> None:
    batches = [pa.record_batch({"x": np.random.default_rng(i).random(rows)}) for i in range(3)]
    before = set(Path(SparkFiles.getRootDirectory()).iterdir())
    [given] = give(batches, "given-" if by_file else None)
    assert (len(given) < 400) == (by_file and rows > 10), "a name of a file, or all rows"
    assert [batch.to_pydict() for batch in take(given)] == [batch.to_pydict() for batch in batches]
    assert set(Path(SparkFiles.getRootDirectory()).iterdir()) == before


def test_give__of_rows_that_end_in_an_error_leaves_no_file(spark: SparkSession) -> None:
    def fails() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"x": np.zeros(1 << 18)})
        raise InterruptedError

    before = set(Path(SparkFiles.getRootDirectory()).iterdir())
    with pytest.raises(InterruptedError):
        list(give(fails(), "given-"))
    assert set(Path(SparkFiles.getRootDirectory()).iterdir()) == before


def test_give__of_nothing_is_nothing() -> None:
    assert list(give([], "given-")) == []


@pytest.mark.parametrize("is_query", [True, False])
def test_give__leaves_no_file_of_tasks_that_did_well_where_another_failed(
    spark: SparkSession, is_query: bool
) -> None:
    def work(item: int) -> Iterator[pa.RecordBatch]:
        if item == 3:
            time.sleep(2)  # until others have given
            raise ValueError("the last one fails")
        yield pa.record_batch({"x": np.zeros(1 << 18)})

    def of_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from work(batch["id"][0].as_py())

    before = set(Path(SparkFiles.getRootDirectory()).iterdir())
    with pytest.raises(Exception, match="the last one fails"):
        FrameRows(spark.range(0, 4, 1, 4)).run(of_rows) if is_query else run_tasks(spark, range(4), work)
    assert set(Path(SparkFiles.getRootDirectory()).iterdir()) == before
