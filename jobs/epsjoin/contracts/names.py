"""How names in contracts are written."""

from __future__ import annotations

import re

SNAKE_CASE = re.compile(r"[a-z][a-z0-9_]*")
"""Names of criteria of a match and of quality rules."""

DATA_SET = re.compile(r"[a-z][a-z0-9_]{0,244}")
"""Names of data sets: with ``.odcs.yaml`` the 255 characters that the name of a file may have."""

COLUMN_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
"""Names of columns that Delta, Spark and pyarrow understand alike: without dots, blanks and quotes."""
