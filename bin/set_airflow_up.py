"""``bin/airflow setup``: two of Airflow's commands in one process, whose start takes longer than either."""

from __future__ import annotations

import sys
from pathlib import Path

from airflow.__main__ import main

POOLS = Path(__file__).resolve().parents[1] / "conf" / "pools.json"

if __name__ == "__main__":
    for command in (["db", "migrate"], ["pools", "import", str(POOLS)]):
        sys.argv = ["airflow", *command]
        main()  # type: ignore[no-untyped-call]  # of Airflow; it raises what has gone wrong
