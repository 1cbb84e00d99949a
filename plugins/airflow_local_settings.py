"""Settings that Airflow reads before it opens its database: on SQLite, a savepoint begins as a writer.

Airflow creates the runs of a backfill in savepoints that read before they write. SQLite refuses such a write
at once with "database is locked" when another process wrote in between
(https://github.com/apache/airflow/issues/66726): beside a scheduler that works, a backfill of twenty months
is not created. A transaction that begins as a writer waits for its turn instead, and all runs of a backfill
appear together.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event

__all__ = ["create_metadata_engine"]

WAIT_SECONDS = 30
"""How long SQLite waits for another writer; Python's default is 5."""


def create_metadata_engine(url: str, *, engine_args: dict[str, Any], connect_args: dict[str, Any]) -> Engine:
    """Create the engine of Airflow's database; only for SQLite does it differ from Airflow's own."""
    on_sqlite = url.startswith("sqlite")
    if on_sqlite:
        connect_args = {"timeout": WAIT_SECONDS, **connect_args}
    engine = create_engine(url, connect_args=connect_args, **engine_args, future=True)
    if on_sqlite:
        event.listen(engine, "savepoint", _begin_as_writer)
    return engine


def _begin_as_writer(connection: Connection, _name: str) -> None:
    if not connection.connection.driver_connection.in_transaction:  # type: ignore[union-attr]  # it is connected
        connection.exec_driver_sql("BEGIN IMMEDIATE")
