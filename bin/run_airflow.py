"""Run a command of Airflow, or one of ours that imports it: ``run_airflow.py FILE ARGUMENTS``.

Airflow's imports leave 300,000 objects, none of which is garbage. To look for it every 700 new ones,
as Python does, would be an eighth of the CPU of most commands.
"""

from __future__ import annotations

import gc
import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    gc.set_threshold(50_000, 20, 20)
    del sys.argv[0]
    sys.path[0] = str(Path(sys.argv[0]).parent)
    runpy.run_path(sys.argv[0], run_name="__main__")
