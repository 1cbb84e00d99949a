"""Arrays that the driver gives to all tasks as files, which the tasks map: the JVM's heap never holds them.

Large results of tasks come back in the same way if the tasks run on the driver's machine.

A broadcast goes through the heap of the driver's JVM, and each Python worker then has a copy of its own. A
file is written once and mapped: the workers of a machine share its pages, and read only those they touch.
"""

from __future__ import annotations

import itertools
import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark import SparkFiles
from pyspark.sql import SparkSession

from epsjoin.errors import EpsjoinError
from epsjoin.spark.tasks.arrow import batches_to_ipc, from_ipc

Array = NDArray[Any]


@dataclass(frozen=True)
class Shared:
    """Arrays in files, by name; a small value that is pickled to every task.

    Parameters
    ----------
    files : name of each array and of its file.
    is_shipped : whether Spark ships the files to executors, which then ask the driver for them.
    """

    files: Mapping[str, str]
    is_shipped: bool
    _mapped: dict[str, Array] = field(default_factory=dict, repr=False, compare=False)

    def __getitem__(self, name: str) -> Array:
        """The array of this name, read-only; in a task, or on the driver."""
        if name not in self._mapped:
            file = SparkFiles.get(self.files[name])
            self._mapped[name] = np.asarray(np.load(file, mmap_mode="r"))
        return self._mapped[name]

    def __reduce__(self) -> tuple[type[Shared], tuple[Mapping[str, str], bool]]:
        """Leave the mapped arrays out, since a pickle would hold them whole."""
        return Shared, (self.files, self.is_shipped)

    def remove(self) -> None:
        """Delete the files of arrays that no task will ask for again; what is mapped stays readable.

        Files that were shipped stay until the session ends, since every new executor asks for all of them.
        """
        if not self.is_shipped:
            for file in self.files.values():
                Path(SparkFiles.get(file)).unlink(missing_ok=True)


def share(spark: SparkSession, **arrays: Array) -> Shared:
    """Write arrays to files which every task can map.

    The files lie in the folder that Spark gives to the files of a session, below ``spark.local.dir``. Spark
    deletes it when the session ends or the driver is told to stop (SIGTERM); after a SIGKILL it stays, like
    all folders of Spark's (docs/survival.md). On one machine tasks map the driver's files. On a cluster
    Spark's file server sends them to each executor once, as a stream.

    Parameters
    ----------
    arrays : of any shape and of numbers or booleans; each file has the bytes of its array and 128 more.

    Raises
    ------
    EpsjoinError
        The disk has too little room, which is checked before anything is written; or a file cannot be
        written.
    """
    folder = check_files(sum(array.nbytes for array in arrays.values()))
    shared = Shared({name: f"{name}-{uuid.uuid4().hex}.npy" for name in arrays}, not has_one_machine(spark))
    try:
        for name, array in arrays.items():
            file = folder / shared.files[name]
            np.save(file, array, allow_pickle=False)
            if shared.is_shipped:
                spark.sparkContext.addFile(str(file))
    except OSError as error:
        with suppress(OSError):
            shared.remove()
        raise EpsjoinError(f"{folder} cannot be written ({error}); {_REMEDY}") from error
    return shared


_REMEDY = "make room there, or set SPARK_LOCAL_DIRS (spark.local.dir) to a folder on another disk"


def check_files(n_bytes: int) -> Path:
    """Refuse files of more bytes than are free in the folder of the session's files, before any is written.

    Returns
    -------
    The folder of the session's files.

    Raises
    ------
    EpsjoinError
        There is too little room; the message says how much is needed and what to do.
    """
    folder = Path(SparkFiles.getRootDirectory())
    free = shutil.disk_usage(folder).free
    if n_bytes > free:
        raise EpsjoinError(
            f"files that tasks share need {n_bytes:,} bytes in {folder}, where {free:,} are free; {_REMEDY}"
        )
    return folder


def has_one_machine(spark: SparkSession) -> bool:
    """Whether tasks run on the driver's machine, in processes that see its files."""
    master = spark.sparkContext.master or ""
    return master == "local" or master.startswith("local[")


MIN_FILE_BYTES = 1 << 20
"""Minimum number of bytes of a task's first batch with which it returns its batches in a file."""
_BY_FILE = b"file:"
"""Beginning of the message of a task that returns its batches in a file; streams begin differently."""


@contextmanager
def given_files(spark: SparkSession) -> Iterator[str | None]:
    """Yield the beginning of the names of the files in which tasks :func:`give` rows; delete what is left.

    Files are left by tasks that succeeded while another one failed, and by tasks that were tried again.
    ``None``: the driver is on another machine, so tasks do not use files.
    """
    if not has_one_machine(spark):
        yield None
        return
    begin = f"given-{uuid.uuid4().hex[:16]}-"
    try:
        yield begin
    finally:
        for file in Path(SparkFiles.getRootDirectory()).glob(f"{begin}*"):
            file.unlink(missing_ok=True)


def give(batches: Iterable[pa.RecordBatch], by_file: str | None) -> Iterator[bytes]:
    """Give the driver all batches of a task, of one schema, as a compressed stream or as the name of a file.

    Parameters
    ----------
    by_file : beginning of the file's name, from :func:`given_files`; ``None``: no file is used.
    """
    following = iter(batches)
    for first in following:
        whole = itertools.chain([first], following)
        if by_file is None or first.nbytes < MIN_FILE_BYTES:
            yield from batches_to_ipc(whole)
            return
        file = Path(SparkFiles.getRootDirectory(), f"{by_file}{uuid.uuid4().hex[:16]}.arrow")
        try:
            with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_stream(sink, first.schema) as stream:
                for batch in whole:
                    stream.write_batch(batch)
        except BaseException:
            file.unlink(missing_ok=True)
            raise
        yield _BY_FILE + str(file).encode()


def take(given: bytes) -> list[pa.RecordBatch]:
    """The batches that a task gave; those in a file are mapped, and the file's name is removed."""
    if not given.startswith(_BY_FILE):
        return list(from_ipc(given))
    file = Path(given.removeprefix(_BY_FILE).decode())
    with pa.memory_map(str(file)) as source:
        batches = list(pa.ipc.open_stream(source))
    file.unlink()
    return batches
