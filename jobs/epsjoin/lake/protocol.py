"""What a Delta table asks of its readers and writers, and the refusal of what the jobs do not honour.

Tasks read the Parquet files that a log names, and nothing else: of a table with deletion vectors they would
read rows that somebody has deleted.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from deltalake import DeltaTable

from epsjoin.errors import UnfitTableError
from epsjoin.pipeline import TABLES, run_again

HONOURED = frozenset({"timestampNtz", "vacuumProtocolCheck"})
"""Reader features that change nothing for readers of whole files: a type of columns, and a duty of VACUUM."""


HONOURED_BY_WRITERS = frozenset(
    {"appendOnly", "changeDataFeed", "checkConstraints", "generatedColumns", "invariants"}
)
"""Writer features of tables outside of a lake that ask for nothing where no column or property uses them. A
writer that replaces all files needs no files of changes."""

CHECK = "delta.constraints."
"""Prefix of the table properties that hold CHECK constraints."""

_APPEND_ONLY = "delta.appendOnly"

_RULE = re.compile("delta[.](invariants|generationExpression|identity)|CURRENT_DEFAULT")
"""Matches the names of rules in the metadata of a column."""


def refuse_unhonoured(log: DeltaTable, location: str) -> None:
    """Refuse a table that asks for more than the jobs honour.

    Raises
    ------
    UnfitTableError
        The table's protocol names a reader feature that is not in :data:`HONOURED`.
    """
    asked = ", ".join(sorted(_features(log) - HONOURED))
    if asked:
        raise UnfitTableError(
            f"{table_at(location)}: {location} asks its readers for {asked}, which the jobs do not honour: "
            f"they would read rows that were deleted, or other columns; {advice(location)}"
        )


def refuse_rules(log: DeltaTable, location: str, required: Collection[str]) -> None:
    """Refuse to replace a table outside of a lake that has rules of its own: its new rows are not checked.

    Parameters
    ----------
    log, location : of the table.
    required : names of the columns that no new row lacks.

    Raises
    ------
    UnfitTableError
        The table has constraints, columns that are required, generated or have a default, or a writer feature
        that is not in :data:`HONOURED_BY_WRITERS`.
    """
    settings, columns = log.metadata().configuration, log.schema().fields
    rules = [f"CHECK ({check})" for name, check in settings.items() if name.startswith(CHECK)]
    must = [column.name for column in columns if not column.nullable]
    rules += [f"NOT NULL of {name}" for name in must if name not in required]
    rules += [
        f"{rule} of {column.name}" for column in columns for rule in column.metadata if _RULE.match(rule)
    ]
    rules += ["appendOnly"] if settings.get(_APPEND_ONLY, "false").lower() == "true" else []
    rules += sorted(set(log.protocol().writer_features or ()) - HONOURED - HONOURED_BY_WRITERS)
    if rules:
        raise UnfitTableError(
            f"{location} is a table with rules or features of its own, which new rows would not keep "
            f"({', '.join(rules)}); take another folder"
        )


def _features(log: DeltaTable) -> set[str]:
    """Return the reader features of a table; the versions before 3 have no list of them."""
    protocol = log.protocol()
    if protocol.min_reader_version < 3:
        return {"columnMapping"} if protocol.min_reader_version == 2 else set()
    later = {f"reader version {protocol.min_reader_version}"} if protocol.min_reader_version > 3 else set()
    return later.union(protocol.reader_features or ())


def refuse_append_only(log: DeltaTable, table: str, chain: str) -> None:
    """Refuse to write a table whose rows nobody may remove.

    Parameters
    ----------
    chain : that of the data set, which decides which job writes the table.

    Raises
    ------
    UnfitTableError
        Its property ``delta.appendOnly`` is true.
    """
    if log.metadata().configuration.get(_APPEND_ONLY, "false").lower() == "true":
        raise UnfitTableError(
            f"{table}: its property delta.appendOnly lets nobody replace a slice; "
            f"set it to false, then {run_again(table, chain)}"
        )


def table_at(location: str) -> str:
    """Return the name of the table that lies at a location."""
    return location.rstrip("/").rpartition("/")[2]


def advice(location: str) -> str:
    """Return what helps where the log of a table cannot be used: the jobs can make every table again."""
    table = table_at(location)
    if table not in TABLES:
        return "take another folder"
    return f"delete this folder, then {run_again(table)} for every run"
