"""Progress of a long call: a bar on stderr, or a function of the caller's."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from epsjoin.errors import ArgumentError

ProgressArgument = bool | Callable[[float], object] | None


def check_progress(wish: object) -> None:
    """Check that a wish is one.

    Raises
    ------
    ArgumentError
        It is neither True, False, None nor a function.
    """
    if not (wish is None or isinstance(wish, bool) or callable(wish)):
        raise ArgumentError(f"progress must be True, False or a function, not {wish!r}")


class Progress:
    """What the caller wants to see; closes its bar at the end, also after an error.

    Parameters
    ----------
    wish : True draws a bar on stderr; a function is called with the share done, from 0 to 1, never falling,
        with 1 at the end; False or None does nothing.
    what : name of the bar.
    """

    def __init__(self, wish: ProgressArgument, what: str) -> None:
        check_progress(wish)
        self._call = wish if callable(wish) else None
        self._bar = None
        self._share = 0.0
        if wish is True:
            from tqdm import tqdm  # only for those who want to see it

            self._bar = tqdm(
                total=100.0, desc=what, unit="%", bar_format="{desc} {percentage:3.0f}%|{bar}| {elapsed}"
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

    def show(self, share: float) -> None:
        """Tell that this share is done; less than before is not told."""
        share = min(float(share), 1.0)
        if not share > self._share:
            return
        if self._call is not None:
            self._call(share)
        if self._bar is not None:
            self._bar.update(100.0 * (share - self._share))
        self._share = share
