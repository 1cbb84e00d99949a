"""An index in a folder: arrays in files that are named by their content, and one file that names them.

A new index is written beside the old one. Only when all its arrays are safe on disk, the file ``index.json``
is replaced, which either happens or does not. Then the arrays that it no longer names are removed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from epsjoin.errors import ArgumentError, TableError
from epsjoin.kernels.accelerate import DIGEST, read_only
from epsjoin.kernels.neighbours.boxes import BoxTree
from epsjoin.local.folder_lock import FolderLock
from epsjoin.local.index.parts import Piece
from epsjoin.local.metric import Metric, get_metric
from epsjoin.local.neighbours.tree import count_leaves
from epsjoin.local.scale import Scale

FORMAT, _PLAIN_FORMAT = 2, 1
"""Version of the folder's layout; that of an index without weights and without removed rows, which older
versions of epsjoin read, too."""
_HEADER, _LOCK = "index.json", "index.lock"
_ARRAYS = ("points", "order", "places", "low", "high")
_OURS = re.compile(r"[0-9a-f]{32}\.npy|[0-9a-f]{32}\.npy\.new|index\.json\.new")
"""Files that are removed when the index does not name them."""


class Saved(NamedTuple):
    """What a folder holds.

    Parameters
    ----------
    metric : without weights.
    n_columns : number of columns.
    parts : points with their rows, and their tree; None instead of a tree that other kernels wrote.
    scale : of the weights; None without.
    end : the number that the next row gets.
    """

    metric: Metric
    n_columns: int
    parts: Sequence[tuple[Piece, BoxTree | None]]
    scale: Scale | None
    end: int


def write(folder: Path, saved: Saved) -> None:
    """Write an index, whose parts all have a tree, and remove what is left of the one before.

    Waits while somebody else writes into the folder.

    Parameters
    ----------
    folder : made if it is not there.
    saved : the index.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with FolderLock(folder / _LOCK, None):  # or each would remove files that the other one's header names
        _write_alone(folder, saved)


def _write_alone(folder: Path, saved: Saved) -> None:
    named: list[dict[str, Any]] = []
    for piece, tree in saved.parts:
        arrays = dict(zip(_ARRAYS, (piece.points, *(tree or ())), strict=True))
        if piece.rows is not None:
            arrays["rows"] = piece.rows
        named.append({name: _write_array(folder, array) for name, array in arrays.items()})
    header: dict[str, Any] = {
        "format": _PLAIN_FORMAT,
        "kernels": DIGEST,
        "metric": saved.metric.name,
        "p": saved.metric.p,
        "columns": saved.n_columns,
        "parts": named,
    }
    if saved.scale is not None or saved.end > sum(len(piece.points) for piece, _ in saved.parts):
        header |= {
            "format": FORMAT,
            "scale": None if saved.scale is None else saved.scale._asdict(),
            "firsts": [piece.first for piece, _ in saved.parts],
            "end": saved.end,
        }
    header["digest"] = _digest_header(header)
    _sync_folder(folder)
    with _replacing(folder / _HEADER) as file:
        file.write(json.dumps(header, indent=1).encode())
    _sync_folder(folder)
    files = {f"{digest}.npy" for each in named for digest in each.values()}
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
    parts: list[tuple[Piece, BoxTree | None]] = []
    end = 0
    for number, named in enumerate(header["parts"]):
        points = _map(folder, named["points"], np.float64, (None, d), verify)
        n = len(points)
        rows = _map(folder, named["rows"], np.int64, (n,), verify) if "rows" in named else None
        piece = Piece(header["firsts"][number] if "firsts" in header else end, points, rows)
        end = piece.end()
        tree = None
        if is_ours:
            boxes = 2 * count_leaves(n) - 1, metric.dimensions(d)
            tree = BoxTree(
                _map(folder, named["order"], np.int64, (n,), verify),
                _map(folder, named["places"], np.float64, (n, d), verify),
                _map(folder, named["low"], np.float64, boxes, verify),
                _map(folder, named["high"], np.float64, boxes, verify),
            )
        parts.append((piece, tree))
    scale = header.get("scale")
    return Saved(metric, d, parts, None if scale is None else _to_scale(**scale), header.get("end", end))


def _to_scale(divisors: list[float], weights: list[float], centre: list[float], reach: float) -> Scale:
    return Scale(tuple(divisors), tuple(weights), tuple(centre), reach)


def _read_header(folder: Path) -> dict[str, Any]:
    try:
        header = json.loads((folder / _HEADER).read_bytes())
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        raise ArgumentError(f"{folder} has no index: {_HEADER} is not there") from None
    except ValueError as error:
        raise TableError(f"{folder / _HEADER} is broken: {error}") from error
    if not isinstance(header, dict):
        raise TableError(f"{folder / _HEADER} is broken: it must be a JSON object")
    if header.get("format") not in (_PLAIN_FORMAT, FORMAT):
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
    """Whether a file has the content that its name says; a damaged file is to be written again."""
    try:
        return _digest(np.asarray(np.load(path, mmap_mode="r"))) == digest
    except Exception:  # noqa: BLE001  # NumPy reads a header as Python, and raises what that raises
        return False


@contextmanager
def _replacing(path: Path) -> Iterator[IO[bytes]]:
    """Write a new file beside this one, and put it in its place when it is safe on disk."""
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
