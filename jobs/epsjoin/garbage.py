"""How often Python looks for garbage in a process of ours."""

from __future__ import annotations

import gc


def look_for_garbage_rarely() -> None:
    """Look for it every 50,000 new objects, not every 700 as by default.

    For programs that begin with large imports: numba, Arrow, PySpark and their like leave a hundred thousand
    objects, none of which is garbage, and looking through them again and again is a twelfth of the CPU of a
    job that reads little. Arrays do not wait for it, they go with their last reference. A library leaves this
    to its callers.
    """
    gc.set_threshold(50_000, 20, 20)
