"""The folder of sorted runs: a file for each, and a manifest of those that are complete."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import Any

from epsjoin.errors import ArgumentError, EpsjoinError
from epsjoin.local.folder_lock import FolderLock
from epsjoin.local.progressive.rows import SweepRows
from epsjoin.local.progressive.sorted_runs import Layout, Page, SortedRun, cut_into_pages

MANIFEST, LOCK = "manifest.json", "lock"
SUFFIX = ".run"
"""End of the names of the files of runs."""
_RUN = re.compile(rf"\d{{6,}}{re.escape(SUFFIX)}")
"""Names of the files of runs; others are the caller's own."""


class Spill:
    """A folder for sorted runs, which counts what is read and written.

    Parameters
    ----------
    folder : kept when the process dies, and continued from when it is given again; None: a temporary one.
    counters : ``bytes_written`` and ``bytes_read`` are added to them.

    Raises
    ------
    ArgumentError
        What is given is not a path, or the folder holds other files than those of a join.
    """

    def __init__(self, folder: str | Path | None, counters: dict[str, Any]) -> None:
        if not isinstance(folder, str | os.PathLike | None):
            raise ArgumentError(f"spill must be a folder's path, not {folder!r}")
        self._given = None if folder is None else Path(folder)
        self._folder: Path | None = None
        self._made = False
        self._counters = counters
        self._open: dict[str, BufferedReader] = {}
        self._lock: FolderLock | None = None
        self._n_files = 0
        self.layout: Layout | None = None
        if self._given is not None and self._given.exists():
            if not self._given.is_dir():
                raise ArgumentError(f"spill must be a folder, and {folder} is none")
            strange = [path.name for path in self._given.iterdir() if not _is_ours(path)]
            if strange:
                raise ArgumentError(
                    "spill must be an empty folder, or one of a join that was stopped; "
                    f"{folder} holds {strange[0]}"
                )

    @property
    def is_kept(self) -> bool:
        """Whether the folder is to be found again when the process dies."""
        return self._given is not None

    @property
    def folder(self) -> Path:
        """The folder; made when first asked for.

        Raises
        ------
        ArgumentError
            Another join works in it.
        """
        if self._folder is None:
            if self._given is None:
                self._folder = Path(tempfile.mkdtemp(prefix="epsjoin-runs-"))
                self._made = True
            else:
                self._made = not self._given.exists()
                self._given.mkdir(parents=True, exist_ok=True)
                self._lock = FolderLock(
                    self._given / LOCK,
                    f"another join that has not been closed works in {self._given}; close it, or give "
                    "another folder as spill",
                )
                self._folder = self._given
        return self._folder

    def read_manifest(self) -> dict[str, Any] | None:
        """What :meth:`write_manifest` wrote last, if the folder has it."""
        if self._given is None or not (self.folder / MANIFEST).exists():
            return None
        found: dict[str, Any] = json.loads((self.folder / MANIFEST).read_text(encoding="utf-8"))
        found["runs"] = [
            SortedRun(**{**run, "rows": tuple(run["rows"]), "pages": [Page(*page) for page in run["pages"]]})
            for run in found["runs"]
        ]
        return found

    def take_over(self, manifest: dict[str, Any]) -> None:
        """Continue from a manifest; files that it does not name are deleted."""
        self.layout = None if manifest["layout"] is None else Layout(*manifest["layout"])
        self._n_files = manifest["n_files"]
        self.keep_only(manifest["runs"])

    def write_manifest(self, runs: list[SortedRun], **more: Any) -> None:
        """Name the runs that are complete; not in a temporary folder, which nobody finds again."""
        if self._given is None:
            return
        named = {"runs": [run._asdict() for run in runs], "layout": self.layout, "n_files": self._n_files}
        self._replace_manifest({**more, **named})

    def write_lowest(self, made_for: str, lowest: float, **more: Any) -> None:
        """Note in the manifest how far eps was lowered; nothing once the folder has been left or closed.

        Parameters
        ----------
        made_for : of the join, for a manifest that names no run yet.
        more : what else is to replace what the manifest says.
        """
        if self._given is None or self._folder is None:
            return
        path = self._folder / MANIFEST
        found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"runs": []}
        self._replace_manifest({**found, **more, "made_for": made_for, "lowest": lowest})

    def _replace_manifest(self, manifest: dict[str, Any]) -> None:
        text = json.dumps(manifest)
        partial = self.folder / f"{MANIFEST}.tmp"
        with self.writing():
            with partial.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(self.folder / MANIFEST)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Say where files cannot be written, as on a full disk, and what to do.

        Raises
        ------
        EpsjoinError
            They cannot.
        """
        try:
            yield
        except FileNotFoundError as error:
            raise self._missing(self.folder) from error
        except OSError as error:
            remedy = (
                "make room there, and the same join goes on from the runs that are complete"
                if self.is_kept
                else "make room there, or give a folder on another disk as spill"
            )
            raise EpsjoinError(
                f"sorted runs cannot be written to {self.folder} ({error.strerror}); {remedy}"
            ) from error

    def new_run(self, level: int) -> RunWriter:
        """Begin a run."""
        self._n_files += 1
        return RunWriter(self, f"{self._n_files:06d}{SUFFIX}", level)

    def count_written(self, n_bytes: int) -> None:
        """Count bytes that were written."""
        self._counters["bytes_written"] += n_bytes

    def read(self, run: SortedRun, page: Page) -> SweepRows:
        """Read a page.

        Raises
        ------
        EpsjoinError
            The file was changed since it was written, or removed, or cannot be read.
        """
        if self.layout is None:
            raise EpsjoinError("there is no page to read before one is written")
        n_bytes = page.rows * self.layout.row_bytes
        found = bytearray(n_bytes)
        try:
            if run.name not in self._open:
                self._open[run.name] = (self.folder / run.name).open("rb")
            file = self._open[run.name]
            file.seek(page.begin)
            n_read = file.readinto(found)
        except FileNotFoundError as error:
            raise self._missing(self.folder / run.name) from error
        except OSError as error:
            raise EpsjoinError(
                f"{self.folder / run.name}, a sorted run of this join, cannot be read ({error.strerror}); "
                "see that it can be read, and join again"
            ) from error
        if n_read != n_bytes or zlib.crc32(found) != page.crc:
            raise EpsjoinError(
                f"{self.folder / run.name} is not as it was written; remove the folder and join again"
            )
        self._counters["bytes_read"] += n_bytes
        return self.layout.read(found, page.rows)

    def _missing(self, path: Path) -> EpsjoinError:
        """The error about files that were removed while the join, or one that continues it, needs them."""
        is_folder = path == self._folder
        what = "the folder of this join's sorted runs" if is_folder else "a sorted run of this join"
        remedy = "join again" if is_folder else "remove the folder and join again"
        if not self.is_kept:
            remedy = "join again, and give a folder that nothing else clears as spill"
        return EpsjoinError(f"{path}, {what}, has been removed; {remedy}")

    def keep_only(self, runs: list[SortedRun]) -> None:
        """Delete the files of all other runs.

        Raises
        ------
        EpsjoinError
            The folder has been removed.
        """
        names = {run.name for run in runs}
        for name in set(self._open) - names:
            self._open.pop(name).close()
        if self._folder is None:
            return
        try:
            found = list(self.folder.iterdir())
        except FileNotFoundError as error:
            raise self._missing(self.folder) from error
        for path in found:
            if _RUN.fullmatch(path.name) and path.name not in names:
                path.unlink(missing_ok=True)

    def leave(self) -> None:
        """After an error: keep a folder that was given, to continue from, and delete a temporary one."""
        if self._given is not None:
            self._close_files()
            self._folder = None  # so that close() finds nothing to delete
            self._unlock()
        self.close()

    def close(self) -> None:
        """Delete everything that was written, and the folder if it was made here and is empty."""
        self._close_files()
        if self._folder is None:
            return
        if self._given is None:
            shutil.rmtree(self._folder, ignore_errors=True)
        else:
            for path in self._folder.glob("*"):
                if _is_ours(path):
                    path.unlink(missing_ok=True)
            if self._made:
                with suppress(OSError):  # files of others stay, and the folder with them
                    self._folder.rmdir()
        self._folder = None
        self._unlock()

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _close_files(self) -> None:
        for file in self._open.values():
            file.close()
        self._open.clear()


class RunWriter:
    """Writes one sorted run, page by page."""

    def __init__(self, spill: Spill, name: str, level: int) -> None:
        self._spill, self.name, self.level = spill, name, level
        self._pages: list[Page] = []
        with spill.writing():
            self._file = (spill.folder / name).open("wb")

    def write(self, rows: SweepRows, has_numbers: bool, page_rows: int, by_key: bool) -> None:
        """Write rows behind those before.

        Parameters
        ----------
        rows : by ascending key.
        has_numbers : see :class:`~epsjoin.local.progressive.sorted_runs.Layout`.
        page_rows : maximum number of rows of a page.
        by_key : whether each key has pages of its own.
        """
        if not rows.n:
            return
        if self._spill.layout is None:
            self._spill.layout = Layout.of(rows, has_numbers)
        for begin, end, key in cut_into_pages(rows, page_rows, by_key):
            data = self._spill.layout.write(rows.take(slice(begin, end)))
            self._pages.append(Page(self._file.tell(), end - begin, zlib.crc32(data), key))
            with self._spill.writing():
                self._file.write(data)
            self._spill.count_written(len(data))

    def finish(self, rows: tuple[int, int], pairs: int, at_key: list[float]) -> SortedRun:
        """Close the file, and say what the run holds."""
        with self._spill.writing():
            self._file.flush()
            if self._spill.is_kept:
                os.fsync(self._file.fileno())
            self._file.close()
        return SortedRun(self.name, self.level, rows, pairs, at_key, self._pages)

    def abandon(self) -> None:
        """Close the file of a run that is not complete."""
        with self._spill.writing():  # of what is not written yet
            self._file.close()


def _is_ours(path: Path) -> bool:
    return bool(_RUN.fullmatch(path.name)) or path.name in (MANIFEST, f"{MANIFEST}.tmp", LOCK)
