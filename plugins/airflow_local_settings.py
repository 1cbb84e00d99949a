"""What Airflow takes from here before it opens its database: on SQLite, a savepoint begins as a writer.

Airflow makes the runs of a backfill in savepoints that read before they write. SQLite refuses such a write at
once, "database is locked", when anybody else wrote in between (https://github.com/apache/airflow/issues/66726):
beside a scheduler that works, a backfill of twenty months does not come into being. As a writer from its
beginning the transaction waits for its turn instead, and all runs of a backfill appear together.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event

__all__ = ["create_metadata_engine"]

WAIT_SECONDS = 30
"""How long SQLite waits for another writer, instead of Python's 5."""


def create_metadata_engine(url: str, *, engine_args: dict[str, Any], connect_args: dict[str, Any]) -> Engine:
    """Make the engine of Airflow's database, as Airflow would but for SQLite."""
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
