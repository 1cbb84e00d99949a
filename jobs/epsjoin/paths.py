"""Folders of the project."""

from __future__ import annotations

from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
"""Folder of the project, to which the paths in a contract are relative."""
