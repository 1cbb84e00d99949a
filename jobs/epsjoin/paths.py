"""Folders of the project, and of the package where it is installed without the project."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_INSTALLED = _PACKAGE / "data_contracts"  # only the wheel has it there

PROJECT = None if _INSTALLED.is_dir() else _PACKAGE.parents[1]
"""Folder of the project, to which the paths in its contracts are relative; None where there is none."""

CONTRACTS = _INSTALLED if PROJECT is None else PROJECT / "data_contracts"
"""Folder of the project's contracts."""
