"""Passwords, which must stand in no message, log or table."""

from __future__ import annotations

import re


def has_password(uri: str) -> bool:
    """Whether a URI seems to hold a password: something behind a colon that is not a port.

    Looked for in the text itself, since a secret may have characters that end a URI's host for its parsers.
    """
    _, _, text = uri.partition("://")
    text = re.sub(r"^\[[^]/@]*\]", "", text)  # an address has colons of its own
    found = re.match("[^/:]*:([^/]*)", text)
    return found is not None and (not found[1].isdecimal() or "@" in text)
