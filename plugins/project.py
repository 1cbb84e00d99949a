"""What DAGs, report pages and commands share: folders of project and lake, our tag, names of data sets."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

REPOSITORY = Path(__file__).resolve().parents[1]

AIRFLOW = os.environ.get("EPSJOIN_AIRFLOW", "bin/airflow")
"""What stands before a command of this Airflow at a shell; whoever starts Airflow in another way says so."""

TAG = "epsjoin"
"""The tag that every DAG of a data set has; no other DAG should have it."""

POOL = "lake_writers"
"""The pool of which every job takes a slot; ``conf/pools.json`` makes it."""

DATA_SET = re.compile(r"[a-z][a-z0-9_]{0,244}")
"""Names of data sets, as contracts allow them (``epsjoin.contracts.names``)."""


def find_lake_uri(environment: Mapping[str, str] = os.environ) -> str:
    """Return where tables and reports lie: ``EPSJOIN_LAKE``, or else the folder ``lake/`` of the project.

    Raises
    ------
    ValueError
        The URI has a password, which Airflow's database and logs would keep: a page then does not load.
    """
    uri = environment.get("EPSJOIN_LAKE", (REPOSITORY / "lake").as_uri())
    if has_password(uri):
        raise ValueError(
            "EPSJOIN_LAKE holds a password, which logs would show; give the storage its credentials "
            "by its own environment variables or files"
        )
    return uri


def has_password(uri: str) -> bool:
    """Whether a URI seems to hold a password, as ``epsjoin.passwords`` says, which is not here."""
    scheme, _, rest = uri.partition(":")
    if "/" in scheme or not rest.startswith("/"):
        return False
    text = rest.removeprefix("//") if scheme == "file" else rest.lstrip("/")
    text = re.sub(r"^\[[^]/@]*\]", "", text)
    found = re.match("[^/:]*:([^/]*)", text)
    if found is None:
        return False
    return not found[1].isdecimal() or ("@" in text and not scheme.endswith("hdfs"))


def check_lake_uri(uri: str) -> None:
    """Check that tables and reports may lie at a URI.

    Raises
    ------
    ValueError
        It is none, or names no folder.
    """
    url = urlsplit(uri)
    if url.scheme == "file" and url.netloc not in ("", "localhost"):  # jobs refuse it, too
        raise ValueError(
            f"EPSJOIN_LAKE: a file URI has three slashes, file:///..., not {uri!r}; correct it where Airflow "
            "runs"
        )
    if "://" not in uri or not (url.netloc + url.path).strip("/"):
        raise ValueError(
            f"EPSJOIN_LAKE must be a URI such as file:///data/lake, not {uri!r}; "
            "correct it where Airflow runs, or unset it for the folder lake/ of the project"
        )
