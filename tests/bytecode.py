"""Where a new process with an environment of its own puts bytecode."""

from __future__ import annotations

import os

BYTECODE = {name: value for name, value in os.environ.items() if name == "PYTHONPYCACHEPREFIX"}
"""As this process has it: elsewhere the new one would compile once more all that it imports."""
