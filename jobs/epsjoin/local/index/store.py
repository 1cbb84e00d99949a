"""An index in a folder: arrays in files that are named by their content, and one file that names them.

A new index is written beside the old one. Only when all its arrays are safe on disk, the file ``index.json``
is replaced, which either happens or does not. Then the arrays that nobody names any more are removed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from epsjoin.errors import ArgumentError, TableError
from epsjoin.kernels.accelerate import DIGEST, read_only
from epsjoin.kernels.arrays import Floats
from epsjoin.kernels.neighbours.boxes import BoxTree
from epsjoin.local.metric import Metric, get_metric
from epsjoin.local.neighbours.tree import count_leaves

FORMAT = 1
"""Version of the folder's layout."""
_HEADER = "index.json"
_ARRAYS = ("points", "order", "places", "low", "high")
_OURS = re.compile(r"[0-9a-f]{32}\.npy|[0-9a-f]{32}\.npy\.new|index\.json\.new")
"""Files that are removed when the index does not name them."""

Kept = tuple[Floats, BoxTree]
"""Points of a part and their tree."""


class Saved(NamedTuple):
    """What a folder holds: parts without a tree are of other kernels."""

    metric: Metric
    n_columns: int
    parts: list[tuple[Floats, BoxTree | None]]


def write(folder: Path, metric: Metric, n_columns: int, parts: list[Kept]) -> None:
    """Write an index and remove what is left of the one before.

    Parameters
    ----------
    folder : made if it is not there.
    metric, n_columns, parts : see :class:`Saved`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    named = []
    for points, tree in parts:
        arrays = dict(zip(_ARRAYS, (points, *tree), strict=True))
        named.append({name: _write_array(folder, array) for name, array in arrays.items()})
    header = {
        "format": FORMAT,
        "kernels": DIGEST,
        "metric": metric.name,
        "p": metric.p,
        "columns": n_columns,
        "parts": named,
    }
    header["digest"] = _digest_header(header)
    _sync_folder(folder)
    with _replacing(folder / _HEADER) as file:
        file.write(json.dumps(header, indent=1).encode())
    _sync_folder(folder)
    files = {f"{digest}.npy" for arrays in named for digest in arrays.values()}
    for path in folder.iterdir():
        if _OURS.fullmatch(path.name) and path.name not in files:
            path.unlink()


def read(folder: Path, *, verify: bool) -> Saved:
    """Map the arrays of an index into memory.

    Parameters
    ----------
    folder : where :func:`write` wrote it.
    verify : whether to compare all content with its digests.

    Raises
    ------
    ArgumentError
        There is no index in the folder, or one of a later format.
    TableError
        A file is missing, or is not what the header says.
    """
    while True:
        header = _read_header(folder)
        try:
            return _map_parts(folder, header, verify)
        except FileNotFoundError as error:
            if _read_header(folder) == header:
                raise TableError(f"{folder}: the index names a file that is missing ({error})") from error
            # It was saved anew since its header was read.


def _map_parts(folder: Path, header: dict[str, Any], verify: bool) -> Saved:
    metric = get_metric(header["metric"], header["p"] or None)
    d, is_ours = header["columns"], header["kernels"] == DIGEST
    parts: list[tuple[Floats, BoxTree | None]] = []
    for named in header["parts"]:
        points = _map(folder, named["points"], np.float64, (None, d), verify)
        n = len(points)
        tree = None
        if is_ours:
            boxes = 2 * count_leaves(n) - 1, metric.dimensions(d)
            tree = BoxTree(
                _map(folder, named["order"], np.int64, (n,), verify),
                _map(folder, named["places"], np.float64, (n, d), verify),
                _map(folder, named["low"], np.float64, boxes, verify),
                _map(folder, named["high"], np.float64, boxes, verify),
            )
        parts.append((points, tree))
    return Saved(metric, d, parts)


def _read_header(folder: Path) -> dict[str, Any]:
    try:
        header = json.loads((folder / _HEADER).read_bytes())
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        raise ArgumentError(f"{folder} has no index: {_HEADER} is not there") from None
    except ValueError as error:
        raise TableError(f"{folder / _HEADER} is broken: {error}") from error
    if not isinstance(header, dict):
        raise TableError(f"{folder / _HEADER} is broken: it must be a JSON object")
    if header.get("format") != FORMAT:
        raise ArgumentError(
            f"{folder} has an index of format {header.get('format')}, this epsjoin reads {FORMAT}"
        )
    if header.get("digest") != _digest_header(header):
        raise TableError(f"{folder / _HEADER} is not what was written: its digest differs")
    return header


def _digest_header(header: dict[str, Any]) -> str:
    content = {key: value for key, value in header.items() if key != "digest"}
    return hashlib.blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=16).hexdigest()


def _digest(array: NDArray[Any]) -> str:
    digest = hashlib.blake2b(f"{array.dtype.str}{array.shape}".encode(), digest_size=16)
    digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _write_array(folder: Path, array: NDArray[Any]) -> str:
    """Write an array, unless it is there as it was written, and return its digest, which names its file."""
    digest = _digest(array)
    path = folder / f"{digest}.npy"
    if not (_is_mapped_from(array, path) or _holds(path, digest)):
        with _replacing(path) as file:
            np.save(file, array, allow_pickle=False)
    return digest


def _is_mapped_from(array: NDArray[Any], path: Path) -> bool:
    """Whether an array is what a file holds, so that its digest is that of the file."""
    base: Any = array
    while base is not None and not isinstance(base, np.memmap):
        base = getattr(base, "base", None)
    return base is not None and Path(str(base.filename)) == path.absolute() and path.exists()


def _holds(path: Path, digest: str) -> bool:
    """Whether a file has the content that its name says; one that was damaged is to be written again."""
    try:
        return _digest(np.asarray(np.load(path, mmap_mode="r"))) == digest
    except Exception:  # noqa: BLE001  # NumPy reads a header as Python, and raises what that raises
        return False


@contextmanager
def _replacing(path: Path) -> Iterator[IO[bytes]]:
    """Write a file beside this one, and put it in its place when it is safe on disk."""
    new = path.with_name(f"{path.name}.new")
    with new.open("wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


def _sync_folder(folder: Path) -> None:
    """Wait until the names of a folder's files are safe on disk; not every system can."""
    if hasattr(os, "O_DIRECTORY"):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _map(folder: Path, digest: str, dtype: type, shape: tuple[int | None, ...], verify: bool) -> NDArray[Any]:
    path = folder / f"{digest}.npy"
    try:
        mapped = np.lib.format.open_memmap(path, mode="r")
    except FileNotFoundError:
        raise
    except Exception as error:  # as _holds
        raise TableError(f"{path} is broken: {error}") from error
    n_bytes, expected_bytes = path.stat().st_size, mapped.offset + mapped.nbytes
    if n_bytes != expected_bytes:
        raise TableError(f"{path} is broken: it has {n_bytes:,} bytes, not {expected_bytes:,}")
    array = np.asarray(mapped)
    expected = tuple(have if want is None else want for want, have in zip(shape, array.shape, strict=False))
    if array.dtype != dtype or array.ndim != len(shape) or array.shape != expected:
        raise TableError(
            f"{path} is broken: {array.dtype} of shape {array.shape}, not {dtype.__name__} of {shape}"
        )
    if verify and _digest(array) != digest:
        raise TableError(f"{path} is not what was written: its digest differs")
    return read_only(array)
