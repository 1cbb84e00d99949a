"""``python -m epsjoin`` is the command ``epsjoin``."""

from __future__ import annotations

from epsjoin.commands.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
