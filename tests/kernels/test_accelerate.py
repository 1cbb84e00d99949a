"""The folder of compiled kernels is that of exactly these sources."""

from __future__ import annotations

import pytest

from epsjoin.kernels.accelerate import cache_folder


@pytest.mark.parametrize("changed", ["top.py", "join/sweep.py", "join/deeper/loop.py"])
def test_cache_folder__is_another_when_a_file_of_any_folder_changes(tmp_path, changed):
    kernels = tmp_path / "kernels"
    for name in ("top.py", "join/sweep.py", "join/deeper/loop.py"):
        (kernels / name).parent.mkdir(parents=True, exist_ok=True)
        (kernels / name).write_text("x = 1\n")
    before = cache_folder(kernels, tmp_path / "cache")
    assert cache_folder(kernels, tmp_path / "cache") == before
    (kernels / changed).write_text("x = 2\n")
    after = cache_folder(kernels, tmp_path / "cache")
    assert before is not None
    assert after not in (None, before)
    assert after.parent == tmp_path / "cache"


def test_cache_folder__is_another_when_a_file_moves(tmp_path):
    (tmp_path / "join").mkdir()
    (tmp_path / "loop.py").write_text("x = 1\n")
    before = cache_folder(tmp_path, tmp_path / "cache")
    (tmp_path / "loop.py").rename(tmp_path / "join" / "loop.py")
    assert cache_folder(tmp_path, tmp_path / "cache") != before
