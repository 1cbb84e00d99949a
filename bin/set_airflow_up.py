"""``bin/airflow setup``: make or upgrade Airflow's database, and its pools.

Two of Airflow's commands in one process, whose start takes longer than either.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from airflow.__main__ import main
from airflow.utils.db import check_migrations
from airflow.utils.session import create_session
from alembic.migration import MigrationContext
from sqlalchemy import text

from dag_checks import Refusal

POOLS = Path(__file__).resolve().parents[1] / "conf" / "pools.json"


def check_owner() -> None:
    """Refuse a database that another Airflow has made, which could not open it any more once it is upgraded.

    Raises
    ------
    Refusal
        It is that of another version, and has none of the pools of this project.
    """
    with create_session() as session:
        engine = session.get_bind().engine
        if MigrationContext.configure(session.connection()).get_current_revision() is None:
            return  # a new one, or one whose making was interrupted
        known = set(session.scalars(text("SELECT pool FROM slot_pool")))
    if known & json.loads(POOLS.read_text()).keys():
        return
    try:
        check_migrations(0)  # type: ignore[no-untyped-call]  # of Airflow
    except TimeoutError:
        raise Refusal(
            f"{engine.url.render_as_string(hide_password=True)} is the database of another Airflow, which "
            "this one would upgrade; unset AIRFLOW_HOME and AIRFLOW__DATABASE__SQL_ALCHEMY_CONN or, if it is "
            f"to be upgraded, run bin/airflow db migrate and bin/airflow pools import {POOLS} first"
        ) from None


if __name__ == "__main__":
    try:
        check_owner()
    except Refusal as refusal:
        print(f"airflow: {refusal}", file=sys.stderr)
        raise SystemExit(2) from None
    for command in (["db", "migrate"], ["pools", "import", str(POOLS)]):
        sys.argv = ["airflow", *command]
        main()  # type: ignore[no-untyped-call]  # of Airflow; it raises what has gone wrong
