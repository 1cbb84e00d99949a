"""Progress of a long call: a bar on stderr, or calls of a function of the caller."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from epsjoin.errors import ArgumentError, needing_extra

ProgressArgument = bool | Callable[[float], object] | None
"""Type of the argument ``progress`` of all joins."""


def check_progress(progress: object) -> None:
    """Check the argument ``progress`` of a join.

    Raises
    ------
    ArgumentError
        It is neither True, False, None nor a function.
    """
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise ArgumentError(f"progress must be True, False or a function, not {progress!r}")


class Progress:
    """Shows the progress of a call as the caller wants it; closes the bar at the end, also after an error.

    Parameters
    ----------
    progress : True draws a bar on stderr. A function is called with the fraction of the work that is done,
        from 0 to 1; the numbers never fall, and the last one is 1. False and None show nothing.
    name : label of the bar.
    """

    def __init__(self, progress: ProgressArgument, name: str) -> None:
        self._call = self._bar = None
        self._fraction = 0.0
        if progress is None or progress is False:
            return
        check_progress(progress)
        if callable(progress):
            self._call = progress
        else:
            with needing_extra("progress=True"):
                from tqdm import tqdm  # only for those who want to see it
            self._bar = tqdm(
                total=100.0, desc=name, unit="%", bar_format="{desc} {percentage:3.0f}%|{bar}| {elapsed}"
            )

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.show(1.0)
        if self._bar is not None:
            self._bar.close()

    def show(self, fraction: float) -> None:
        """Show that this fraction of the work is done; a smaller one than before is ignored."""
        if self._call is None and self._bar is None:
            return
        fraction = min(float(fraction), 1.0)
        if not fraction > self._fraction:
            return
        if self._call is not None:
            self._call(fraction)
        if self._bar is not None:
            self._bar.update(100.0 * (fraction - self._fraction))
        self._fraction = fraction


def show_done(progress: ProgressArgument, name: str) -> None:
    """Show that a call is done which took too little time to show anything before; see :class:`Progress`."""
    if progress is None or progress is False:
        return
    with Progress(progress, name):
        pass
