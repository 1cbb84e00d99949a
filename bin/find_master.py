"""Look for a Spark master, as ``spark://host:port`` or with several hosts; exit code 1 if none answers."""

from __future__ import annotations

import socket
import sys

WAIT_SECONDS = 10
"""How long a host may take to answer."""


def answers(master: str) -> bool:
    """Whether a program listens at one of the addresses of ``master``."""
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), WAIT_SECONDS).close()
        except (OSError, OverflowError, ValueError):
            continue
        return True
    return False


if __name__ == "__main__":
    raise SystemExit(0 if answers(sys.argv[1]) else 1)
