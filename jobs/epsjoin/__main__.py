"""``python -m epsjoin`` is the command ``epsjoin``."""

from __future__ import annotations

import sys

from epsjoin.garbage import look_for_garbage_rarely

look_for_garbage_rarely()
try:
    from epsjoin.commands.cli import main
except KeyboardInterrupt:  # the imports take a moment
    print("epsjoin: interrupted", file=sys.stderr)
    raise SystemExit(130) from None  # errors.INTERRUPTED, whose import may be what was interrupted

if __name__ == "__main__":
    raise SystemExit(main())
