"""URIs of lakes and files, in the form that each library needs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal
from unicodedata import category
from urllib.parse import quote, unquote, urlsplit

import pyarrow as pa
import pyarrow.fs as pafs

from epsjoin.errors import ArgumentError, EpsjoinError, to_one_line
from epsjoin.passwords import has_password

Library = Literal["spark", "pyarrow", "deltalake"]

_CONTROLS = ("Cc", "Cs", "Zl", "Zp")
"""Categories of Unicode: controls, halves of characters, ends of lines and paragraphs."""

_OF_URIS = "%:/[]@!$&'()*+,;=~"
"""Characters that stand in a URI as they are, besides letters of English, digits and ``-._``."""


def parse_lake_uri(text: str, argument: str = "--lake") -> str:
    """Make a URI of what a person typed as ``argument``: a URI, or an absolute path.

    Raises
    ------
    ArgumentError
        A relative path: its meaning would depend on the folder that a job was started in. A file URI with
        a host, which is what ``file://lake`` means. A backslash, or a percent sign and two hexadecimal digits
        in the name itself: deltalake would look for another folder. A control character, or bytes that are
        not UTF-8; or a ``?`` or ``#`` in a URI, behind which no folder's name stands. A password, which is
        not repeated.
    """
    if isinstance(text, str) and not has_password(text):  # which no message may repeat
        _refuse_controls(text, text, argument)
    uri = _parse(text, argument)
    try:
        path = unquote(urlsplit(uri).path, errors="strict")
    except UnicodeDecodeError:
        raise ArgumentError(
            f"{argument}: {text!r} has bytes in its name that are not UTF-8; take another folder"
        ) from None
    _refuse_controls(path, text, argument)
    found = re.search(r"\\|%[0-9A-Fa-f]{2}", path)
    if found:
        raise ArgumentError(
            f"{argument}: {path} has {found[0]} in its name, which Delta's library takes for another "
            "character; take another folder"
        )
    return uri


def _refuse_controls(path: str, text: str, argument: str) -> None:
    if any(category(each) in _CONTROLS for each in path):
        raise ArgumentError(f"{argument}: {text!r} has a control character; take another folder")


def parse_table_uri(text: str, argument: str) -> str:
    """Make a URI, without a slash at its end, of the folder of one table outside of a lake.

    Raises
    ------
    ArgumentError
        See :func:`parse_lake_uri`; or the folder has no name, so that the table would lie in the root.
    """
    uri = parse_lake_uri(text, argument).rstrip("/")
    if not urlsplit(uri).path.strip("/"):
        raise ArgumentError(f"{argument}: {text!r} names no folder; give the table one of its own")
    return uri


def _parse(text: str, argument: str) -> str:
    if not isinstance(text, str):
        raise ArgumentError(f"{argument} must be a text, a URI or an absolute path, not {text!r}")
    if "://" in text or has_password(text):
        _check_host(text, argument)
        parts = urlsplit(text)
        if parts.scheme == "file" and (parts.netloc not in ("", "localhost") or not parts.path):
            raise ArgumentError(f"{argument}: a file URI has three slashes, file:///..., not {text!r}")
        found = re.search("[?#]", text)
        if found:  # credentials may stand behind it
            raise ArgumentError(
                f"{argument}: a URI ends where its folder does, so that no {found[0]} follows on "
                f"{text[: found.start()]!r}; in a folder's name it is written {quote(found[0])}"
            )
        return quote(text, safe=_OF_URIS)
    if not text.startswith("/"):
        raise ArgumentError(
            f"{argument} must be a URI (file:///..., s3a://...) or an absolute path, not {text!r}"
        )
    return Path(text).as_uri()


def _check_host(uri: str, argument: str) -> None:
    """Refuse a URI with a password, which logs and tables' paths would keep, or with a host that is none.

    No message repeats either.
    """
    if has_password(uri):
        raise ArgumentError(
            f"{argument} has more than a port behind a colon, as if it held a password, for logs to show; "
            "give the storage its credentials by its own environment variables or files (docs/clusters.md)"
        )
    try:
        urlsplit(uri)
    except ValueError:  # whose text may have a part of it
        raise ArgumentError(
            f"{argument} has a character that no host may have, such as a [, between :// and the next /; "
            "correct it"
        ) from None


def uri_for(library: Library, uri: str) -> str:
    """Return a URI in the form that a library needs.

    Only S3 has two names: Hadoop's file system is s3a, pyarrow and deltalake know s3. And only Hadoop does
    not decode a path: to Spark, the ``%20`` of a URI are three letters.
    """
    parts = urlsplit(uri)
    if library == "spark":
        scheme = "s3a" if parts.scheme == "s3" else parts.scheme
        host = "" if scheme == "file" else parts.netloc
        return f"{scheme}://{host}{unquote(parts.path)}"
    return uri.replace("s3a://", "s3://", 1) if parts.scheme == "s3a" else uri


def filesystem_of(uri: str) -> tuple[pafs.FileSystem, str]:
    """Return the file system of a URI and the path in it.

    Raises
    ------
    ArgumentError
        No file system is known for such a URI, or a part of it is missing; or it holds a password.
    EpsjoinError
        The file system cannot be reached.
    """
    _check_host(uri, "the URI of a lake, a table or snapshots")
    if urlsplit(uri).scheme == "file":
        return pafs.LocalFileSystem(), unquote(urlsplit(uri).path)
    try:
        filesystem, path = pafs.FileSystem.from_uri(uri_for("pyarrow", uri))
    except pa.ArrowInvalid as error:
        reason = str(error).partition(": ")[0]  # behind it the URI stands again
        raise ArgumentError(
            f"{uri}: {reason}; a lake is file:///folder, s3a://bucket/folder or another of docs/clusters.md"
        ) from None
    except OSError as error:  # a library of Hadoop's is missing, or its server does not answer
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise EpsjoinError(f"{uri}: {reason}; docs/clusters.md has what this storage needs") from error
    return filesystem, path


@contextmanager
def writing(place: str) -> Iterator[None]:
    """Name what cannot be written, where the file system says only why; for what is no table.

    Raises
    ------
    EpsjoinError
        The disk is full, the lake may not be changed, or whatever the system says.
    """
    try:
        yield
    except OSError as error:
        raise EpsjoinError(
            f"{place} cannot be written ({to_one_line(error)}); make room or mend what is wrong, and "
            "try again"
        ) from error
