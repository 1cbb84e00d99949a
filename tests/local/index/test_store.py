"""An index in a folder: the old one or the new one, wherever a save ends; what is broken is refused."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import threading
from pathlib import Path

import numpy as np
import pytest

from epsjoin import Index
from epsjoin.errors import ArgumentError, TableError
from epsjoin.local.index import store

OLD, NEW = np.random.default_rng(0).random((2, 200, 2))


class Killed(BaseException):
    """Nothing in the code catches it, as nothing catches SIGKILL."""


def rows_of(folder):
    return np.concatenate([part.points for part in Index.read(folder, verify=True)._parts]).tolist()


def test_save__ends_anywhere_with_the_old_index_or_the_new_one(tmp_path, monkeypatch):
    seen, step = set(), 0
    steps = [(os, "fsync"), (Path, "replace"), (Path, "unlink"), (np, "save")]
    whole = {(home, name): getattr(home, name) for home, name in steps}
    while "done" not in seen:
        folder = tmp_path / str(step)
        Index(OLD).save(folder)
        left = [step]

        def dying(call, left=left):
            def called(*given, **more):
                if left[0] == 0:
                    raise Killed
                left[0] -= 1
                return call(*given, **more)

            return called

        with monkeypatch.context() as patch:
            for (home, name), call in whole.items():
                patch.setattr(home, name, dying(call))
            try:
                Index(NEW).save(folder)
                seen.add("done")
            except Killed:
                pass
        rows = rows_of(folder)
        assert rows in (OLD.tolist(), NEW.tolist())
        seen.add("old" if rows == OLD.tolist() else "new")
        Index(NEW).save(folder)
        assert rows_of(folder) == NEW.tolist()
        assert len(list(folder.iterdir())) == 7  # five arrays, the header and the lock: nothing is left over
        step += 1
    assert seen == {"old", "new", "done"}
    assert step > 20


def test_save__writes_no_tree_again_that_has_not_changed(tmp_path):
    index = Index(OLD)
    index.save(tmp_path)
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("*.npy")}
    index.append(NEW[:50])
    index.save(tmp_path)
    after = {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("*.npy")}
    assert len(after) == 10
    assert before.items() <= after.items()


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-800] + b"\0" * 800,
        lambda content: content[:99],
        lambda old: old.replace(b"}", b" ", 1),
    ],
)
def test_save__writes_a_file_again_that_was_damaged(tmp_path, damage):
    index = Index(OLD)
    index.save(tmp_path)
    for path in tmp_path.glob("*.npy"):
        path.write_bytes(damage(path.read_bytes()))
    index.save(tmp_path)
    assert rows_of(tmp_path) == OLD.tolist()


def test_save__of_what_is_mapped_writes_nothing(tmp_path, monkeypatch):
    Index(OLD).save(tmp_path)
    index = Index.read(tmp_path)
    monkeypatch.setattr(store, "_holds", None)  # nor reads it once more
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("*.npy")}
    index.save(tmp_path)
    assert {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("*.npy")} == before


def test_save__leaves_other_files(tmp_path):
    (tmp_path / "notes.npy").write_text("mine")
    Index(OLD).save(tmp_path)
    assert (tmp_path / "notes.npy").read_text() == "mine"


def test_save__of_two_at_once_leaves_the_index_of_the_last(tmp_path, monkeypatch):
    """Each would remove the files of the other, which no header names yet."""
    asks, sync, lock = threading.Event(), store._sync_folder, fcntl.flock
    other = threading.Thread(target=lambda: Index(NEW).save(tmp_path))

    def locking(*given):
        if threading.current_thread() is other:
            asks.set()
        lock(*given)

    def syncing(folder):
        if not (other.ident or asks.is_set()):  # the arrays are written, the header is not
            other.start()
            while other.is_alive() and not asks.is_set():
                other.join(0.01)
        sync(folder)

    monkeypatch.setattr(fcntl, "flock", locking)
    monkeypatch.setattr(store, "_sync_folder", syncing)
    Index(OLD).save(tmp_path)
    other.join()
    assert rows_of(tmp_path) == NEW.tolist()


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EIO])
def test_save__needs_no_locks_of_a_drive_that_has_none(tmp_path, monkeypatch, number):
    def locking(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", locking)
    if number == errno.EIO:
        with pytest.raises(OSError, match="Input/output error"):
            Index(OLD).save(tmp_path)
    else:
        Index(OLD).save(tmp_path)
        assert rows_of(tmp_path) == OLD.tolist()


def test_save__into_a_folder_that_users_share_needs_no_lock_of_ones_own(tmp_path, monkeypatch):
    opened = Path.open

    def opening(path, mode="r", *given, **more):
        if path.name == "index.lock" and mode == "wb":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return opened(path, mode, *given, **more)

    monkeypatch.setattr(Path, "open", opening)
    with pytest.raises(PermissionError, match=r"index\.lock"):
        Index(OLD).save(tmp_path)
    (tmp_path / "index.lock").touch()
    Index(OLD).save(tmp_path)
    assert rows_of(tmp_path) == OLD.tolist()


def test_read__maps_the_arrays_and_can_be_saved_over(tmp_path):
    Index(OLD).save(tmp_path)
    index = Index.read(tmp_path)
    assert isinstance(index._parts[0].points.base.base, np.memmap)
    Index(NEW).save(tmp_path)
    assert index.join(OLD[:1], 0.1).right.tolist() == Index(OLD).join(OLD[:1], 0.1).right.tolist()


def test_read__grows_the_trees_of_another_version_anew(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(store, "DIGEST", "of other kernels")
        Index(OLD).save(tmp_path)
    for path in tmp_path.glob("*.npy"):  # their trees are not looked at
        if np.load(path).shape != OLD.shape or np.load(path).tolist() != OLD.tolist():
            path.unlink()
    assert (
        Index.read(tmp_path).join(OLD[:9], 0.1).right.tolist() == Index(OLD).join(OLD[:9], 0.1).right.tolist()
    )


def test_read__begins_again_where_the_index_was_saved_meanwhile(tmp_path, monkeypatch):
    Index(OLD).save(tmp_path)
    old = store._read_header(tmp_path)
    Index(NEW).save(tmp_path)
    headers = [old]
    read = store._read_header
    monkeypatch.setattr(store, "_read_header", lambda folder: headers.pop() if headers else read(folder))
    assert rows_of(tmp_path) == NEW.tolist()


def test_save__is_of_the_first_format_unless_rows_were_removed_or_have_weights(tmp_path):
    """What has neither can be read by versions of epsjoin that know neither."""
    plain, removed, weighted = Index(OLD), Index(OLD), Index(OLD, weights=[1, 2])
    removed.remove([199])
    for name, index in (("plain", plain), ("removed", removed), ("weighted", weighted)):
        index.save(tmp_path / name)
    formats = {path.parent.name: json.loads(path.read_text())["format"] for path in tmp_path.glob("*/*.json")}
    assert formats == {"plain": 1, "removed": 2, "weighted": 2}


def test_save__writes_no_tree_again_of_which_no_row_was_removed(tmp_path):
    index = Index(OLD)
    index.append(NEW[:50])
    index.save(tmp_path)
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("*.npy")}
    index.remove([203, 249])
    index.save(tmp_path)
    after = {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("*.npy")}
    assert len(after) == 11  # with the numbers of the rows
    assert len(before.items() & after.items()) == 5
    index.remove([0])
    index.save(tmp_path)
    assert Index.read(tmp_path, verify=True).rows.tolist() == [*range(1, 203), *range(204, 249)]


def test_read__grows_the_trees_of_another_version_anew_by_the_same_weights(tmp_path, monkeypatch):
    index = Index(OLD, weights=[0.3, 7])
    index.remove([5])
    with monkeypatch.context() as patch:
        patch.setattr(store, "DIGEST", "of other kernels")
        index.save(tmp_path)
    found = Index.read(tmp_path)
    for one, other in zip(found.join(OLD[:9], 0.1), index.join(OLD[:9], 0.1), strict=True):
        assert one.tolist() == other.tolist() != []


def test_read__refuses_what_is_broken(tmp_path):
    with pytest.raises(ArgumentError, match=r"has no index: index\.json is not there"):
        Index.read(tmp_path)
    Index(OLD).save(tmp_path)
    header = tmp_path / "index.json"
    with pytest.raises(ArgumentError, match=r"has no index: index\.json is not there"):
        Index.read(header)
    named = json.loads(header.read_text())
    points = tmp_path / f"{named['parts'][0]['points']}.npy"
    content = points.read_bytes()
    points.write_bytes(content[:-8] + b"\0" * 8)
    assert len(Index.read(tmp_path)) == 200  # only its size was looked at
    with pytest.raises(TableError, match="is not what was written: its digest differs"):
        Index.read(tmp_path, verify=True)
    for other in (content[:-8], b"", content + b"\0"):
        points.write_bytes(other)
        with pytest.raises(TableError, match=rf"{points.name} is broken"):
            Index.read(tmp_path)
    for at, byte in ((100, b"("), (60, b"\xff"), (75, b"'"), (12, b"[")):  # NumPy reads a header as Python
        points.write_bytes(content[:at] + byte + content[at + 1 :])
        with pytest.raises(TableError, match=rf"{points.name} is broken"):
            Index.read(tmp_path)
    np.save(points, OLD[:7])
    with pytest.raises(TableError, match=r"is broken: int64 of shape \(200,\)"):
        Index.read(tmp_path)
    points.unlink()
    with pytest.raises(TableError, match="names a file that is missing"):
        Index.read(tmp_path)
    header.write_text(json.dumps({**named, "p": 2.0}))
    with pytest.raises(TableError, match="its digest differs"):
        Index.read(tmp_path)
    for text in ("{", "[]"):
        header.write_text(text)
        with pytest.raises(TableError, match=r"index\.json is broken"):
            Index.read(tmp_path)
    header.write_text(json.dumps({**named, "format": 3}))
    with pytest.raises(ArgumentError, match="an index of format 3, this epsjoin reads 2"):
        Index.read(tmp_path)
