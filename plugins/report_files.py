"""Find and read the files that the report job writes into the lake.

Names come from a URL. They are matched against strict patterns before they become part of a path, only the
names of a report's files are accepted, and a link inside the lake is not followed.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from project import DATA_SET, check_lake_uri, find_lake_uri

RUN = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

PAGE, SUMMARY, REFUSAL = "report.html", "run.json", "refused.txt"

MEDIA_TYPES = {
    PAGE: "text/html; charset=utf-8",
    SUMMARY: "application/json",
    REFUSAL: "text/plain; charset=utf-8",
    "clusters.png": "image/png",
    "pair_count.png": "image/png",
    "cost.png": "image/png",
    "matches.png": "image/png",
    "distances.png": "image/png",
}
"""The files of a report, as ``make_report`` and ``make_matches`` in ``epsjoin.report`` and
``epsjoin.lake.refusals`` name them."""

_PROVIDERS = {
    "s3": "apache-airflow-providers-amazon[s3fs]",
    "s3a": "apache-airflow-providers-amazon[s3fs]",
    "gs": "apache-airflow-providers-google",
    "abfs": "apache-airflow-providers-microsoft-azure",
    "abfss": "apache-airflow-providers-microsoft-azure",
}


class LakeError(Exception):
    """The lake cannot be read from here; the message says what to do about it."""


def list_runs(dataset: str) -> list[str]:
    """List the runs of a data set that have a folder among its reports, newest first.

    Raises
    ------
    LakeError
        The lake cannot be read.
    """
    folder = _find(dataset)
    if folder is None:
        return []
    try:
        names = [entry.name for entry in folder.iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise _explain(error) from error
    found = (name.removeprefix("run=") for name in names if name.startswith("run="))
    return sorted((run for run in found if RUN.fullmatch(run)), reverse=True)


def read_file(dataset: str, run: str, name: str) -> bytes | None:
    """Read a file of a run's report; return ``None`` where there is none, or the name is not allowed.

    Raises
    ------
    LakeError
        The lake cannot be read.
    """
    if not RUN.fullmatch(run) or name not in MEDIA_TYPES:
        return None
    file = _find(dataset, f"run={run}", name)
    try:
        content: bytes | None = file.read_bytes() if file is not None and file.is_file() else None
    except OSError as error:
        raise _explain(error) from error
    return content


def read_summary(dataset: str, run: str) -> dict[str, Any]:
    """Read the summary of a run; return an empty one where none was written or it is damaged.

    Raises
    ------
    LakeError
        The lake cannot be read.
    """
    try:
        found = json.loads(read_file(dataset, run, SUMMARY) or b"{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def read_refusal(dataset: str, run: str) -> str:
    """Read why the last snapshot of a run was refused; empty if it was not.

    Raises
    ------
    LakeError
        The lake cannot be read.
    """
    return (read_file(dataset, run, REFUSAL) or b"").decode(errors="replace")


def _find(dataset: str, *names: str) -> Any:
    """Find a file or folder of a data set's reports; return ``None`` where the path leads over a link.

    Returns
    -------
    A ``Path`` in a local lake, else an ``ObjectStoragePath``, which has the same methods.
    """
    if not DATA_SET.fullmatch(dataset):
        return None
    try:
        check_lake_uri(uri := find_lake_uri())
    except ValueError as error:
        raise LakeError(f"{error}.") from None
    url = urlsplit(uri)
    if url.scheme in ("file", "local"):
        # The lake itself may be a link. Below it no path may be one: jobs write no links.
        place = Path(unquote(url.path)).resolve().joinpath(dataset, "reports", *names)
        return place if _is_itself(place) else None
    return _open_object_storage(uri, url.scheme).joinpath(dataset, "reports", *names)


def _is_itself(path: Path) -> bool:
    try:
        return path.resolve() == path
    except RuntimeError:  # a link to itself
        return False


def _open_object_storage(uri: str, scheme: str) -> Any:
    # these are hundreds of modules, which a local lake does not need
    from airflow.sdk import ObjectStoragePath
    from airflow.sdk.io import has_fs

    if not has_fs(scheme):
        provider = _PROVIDERS.get(scheme, "the Airflow provider whose file system has this scheme")
        raise LakeError(
            f"The lake lies in {scheme}://, which Airflow cannot read here; install {provider} where its API "
            "server runs, and give that server the credentials that the jobs have."
        )
    return ObjectStoragePath(uri)


def _explain(error: OSError) -> LakeError:
    return LakeError(
        f"The lake cannot be read: {error.strerror or type(error).__name__}. Look at EPSJOIN_LAKE and at the "
        "rights of the user that Airflow's API server runs as."
    )
