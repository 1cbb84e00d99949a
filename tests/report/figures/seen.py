"""What a figure shows, for tests."""

from __future__ import annotations

from matplotlib.figure import Figure


def texts(fig: Figure) -> str:
    """All that the figure says, one text a line."""
    found = fig.findobj(lambda artist: hasattr(artist, "get_text"))
    return "\n".join(artist.get_text() for artist in found)
