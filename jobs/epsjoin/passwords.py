"""Passwords, which must stand in no message, log or table."""

from __future__ import annotations

import re


def has_password(uri: str) -> bool:
    """Whether a URI seems to hold a password: something behind a colon that is not a port.

    Looked for in the text itself, since a secret may have characters that end a URI's host for its parsers.
    """
    scheme, _, rest = uri.partition(":")
    if "/" in scheme or not rest.startswith("/"):
        return False  # a path
    # files have no host; of others, people write any number of slashes before it
    text = rest.removeprefix("//") if scheme == "file" else rest.lstrip("/")
    text = re.sub(r"^\[[^]/@]*\]", "", text)  # an address has colons of its own
    found = re.match("[^/:]*:([^/]*)", text)
    if found is None:
        return False
    # where hosts have ports, an @ may be part of a folder's name
    return not found[1].isdecimal() or ("@" in text and not scheme.endswith("hdfs"))
