"""Ports for what a test starts."""

from __future__ import annotations

import os
import socket
from contextlib import ExitStack, suppress


def free_ports(n: int) -> int:
    """The first of ``n`` free ports, below those that the kernel gives to outgoing connections."""
    for first in range(20000 + os.getpid() % 4000 * 3, 32768, n):
        with ExitStack() as stack, suppress(OSError):
            for port in range(first, first + n):
                stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first
    raise AssertionError("no port is free")
