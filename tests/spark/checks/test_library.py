"""Great Expectations is imported in part where that was tried, and whole where it was not."""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path
from unittest.mock import patch

import pytest

from epsjoin.spark.checks import library


def test_library__of_the_lock_file_is_a_version_that_was_tried() -> None:
    """A new one is imported whole: ``TRIED`` is raised if the tests of the gates pass with it, too."""
    assert version("great-expectations").startswith(library.TRIED)


@pytest.mark.parametrize("found", [f"{library.TRIED}9", "1.99.0"])
def test_library__of_another_version_is_imported_whole(
    found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = tmp_path / "great_expectations" / "render" / "view.py"
    pages.parent.mkdir(parents=True)
    pages.write_text("class Page: pass")
    (tmp_path / "great_expectations" / "__init__.py").write_text("from .render.view import Page")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(library, "version", lambda _: found)
    finders = list(sys.meta_path)
    others = {name: each for name, each in sys.modules.items() if "great_expectations" not in name}
    with patch.dict(sys.modules, others, clear=True):
        library.import_library()
        page = sys.modules["great_expectations"].Page
        is_whole = not found.startswith(library.TRIED)
        assert ("great_expectations.render.view" in sys.modules) == is_whole
    assert sys.meta_path == finders
    if is_whole:
        page()
    else:
        with pytest.raises(ImportError, match=r"great_expectations\.render\.view\.Page is left out"):
            page()
