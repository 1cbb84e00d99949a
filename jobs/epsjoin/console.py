"""Text for people: on a terminal and in a log."""

from __future__ import annotations


def say(text: str) -> None:
    """Tell a person how the job is getting on; shown at once."""
    print(printable(text), flush=True)


def printable(text: str) -> str:
    r"""Text that came from data, so that a terminal and a log show it and do nothing else.

    A name may hold line ends, which would forge a line of a log, or a terminal's control sequences; what
    cannot be printed becomes ``\n``, ``\x1b`` and the like.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
