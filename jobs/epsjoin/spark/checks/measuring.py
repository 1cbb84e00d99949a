"""Measure the tables of a gate: small ones on the driver, large ones in Spark's tasks and queries."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame

from epsjoin.contracts.expected import rules_of
from epsjoin.contracts.portable import rows_held, to_datafusion
from epsjoin.contracts.row_rules import rule_conditions
from epsjoin.contracts.tables import TableContract
from epsjoin.lake import parquet, slices
from epsjoin.lake.keys import FindKeys, KeyColumns, KeyQuestions, find_keys
from epsjoin.lake.lake import Lake, Slice
from epsjoin.lake.measure import Measured, add_measured, measure_rows, measure_schema
from epsjoin.lake.parquet import File
from epsjoin.lake.questions import Questions, Stored, UnansweredError
from epsjoin.spark.job.job import Job
from epsjoin.spark.rows import scan
from epsjoin.spark.rows.rows import frame_of
from epsjoin.spark.rows.stored import MAX_THREADS, scan_files
from epsjoin.spark.tasks.reports import TaskReport

MAX_ROWS = 1 << 27
"""Maximum number of rows of all tables together up to which the driver answers questions about keys."""

MAX_HELD_ROWS = 1 << 24
"""Maximum number of rows that the driver's engine has to remember for a question: 60 bytes a row."""

_MAX_KEPT_ROWS = 1 << 23
"""Maximum number of rows of a table whose columns are kept for several questions: 8 to 16 bytes a number."""

_MAX_QUESTIONS_AT_ONCE = 2
"""Maximum number of questions that the driver works on at a time, each in memory of its own."""

Numbers = dict[str, Measured]
"""What was measured of a table, by the names of the expectations."""


@dataclass(frozen=True)
class Table:
    """A table of a gate.

    Parameters
    ----------
    contract : what is expected of it.
    where : its slice of the run.
    stored : the same slice in one version of the table, and the earlier runs that rules find beside it.
    files : the files of the slice.
    """

    contract: TableContract
    where: Slice
    stored: Stored
    files: Sequence[File]

    @classmethod
    def of(cls, lake: Lake, where: Slice) -> Table:
        """The slice as it is now.

        Raises
        ------
        TableError
            See :func:`epsjoin.lake.slices.files_of`.
        """
        log, files = slices.log_and_files(lake, where)
        stored = Stored(log, where.partition, n_rows=sum(file.rows for file in files))
        return cls(lake.contract(where.table), where, stored, files)

    def with_before(self, lake: Lake, before: Sequence[str]) -> Table:
        """The same, with earlier runs, which rules find under the table's name followed by ``_before``."""
        by_run = slices.count_rows_by_run(lake, self.where.table)
        n_rows = sum(by_run.get(run, 0) for run in before)
        return replace(self, stored=self.stored._replace(before=before, n_rows_before=n_rows))

    def check_footers(self, lake: Lake) -> None:
        """Check the footers of the files, for tables whose pages :func:`measure_columns` does not read.

        Raises
        ------
        TableError
            A file cannot be read.
        """
        columns = [
            each for each in lake.schema(self.where.table) if each.name not in self.contract.partitioned
        ]
        parquet.check_footers(lake.location(self.where.table), self.files, pa.schema(columns))


def measure_columns(job: Job, table: Table) -> Numbers:
    """Read a slice once, every page of it, and count what breaks the expectations about columns and rows.

    Raises
    ------
    TableError
        A file cannot be read.
    """
    contract, schema = table.contract, job.lake.schema(table.where.table)

    def measure(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tables = (pa.Table.from_batches([batch]) for batch in batches)
        found = add_measured(measure_rows(rows, contract) for rows in tables)
        yield TaskReport(facts=[{name: each} for name, each in found.items()]).to_batch()

    location = job.lake.location(table.where.table)
    reports = scan_files(
        lambda: job.spark, location, table.files, schema, measure, schema, threads=MAX_THREADS
    )
    found = [
        {name: Measured(number, tuple(examples), words)}
        for report in TaskReport.of_batches(reports)
        for fact in report.facts
        for name, (number, examples, words) in fact.items()
    ]
    no_rows = measure_rows(schema.empty_table(), contract)
    return {**measure_schema(schema, contract), **add_measured([no_rows, *found])}


def measure_rules(
    job: Job, tables: Mapping[str, Table], asked: Iterable[str], views: Mapping[str, pa.Table] | None = None
) -> dict[str, Numbers]:
    """Run the queries of those rules of some tables that :func:`measure_columns` does not count.

    A rule whose query returns null measures infinity.

    The driver answers queries about keys that are few enough to be counted in its memory. It also answers
    queries that mean the same to its engine as to Spark (:mod:`epsjoin.contracts.portable`) and take little
    memory. Spark answers the rest.

    Parameters
    ----------
    tables : all tables that rules may name.
    asked : names of the tables whose rules are measured.
    views : rows that are in no table of the lake, by the names that rules have for them; Spark answers those.

    Raises
    ------
    TableError
        A file cannot be read.
    """
    queries = {
        (name, rule.name): rule.query.replace("${object}", name)
        for name in asked
        for rule in rules_of(tables[name].contract)
        if rule.name not in rule_conditions(tables[name].contract)
    }
    answers: Answers = {}
    if sum(table.stored.n_rows for table in tables.values()) <= MAX_ROWS:
        types = {
            each: {c.name: c.type for c in table.contract.columns}
            for name, table in tables.items()
            for each in (name, f"{name}_before")
        }
        stored = {name: table.stored for name, table in tables.items()}

        def find(name: str, columns: Sequence[str]) -> KeyColumns:
            if name not in tables:
                raise UnansweredError(f"{name} is not among the tables")
            return find_keys(job.lake.location(name), tables[name].files, job.lake.schema(name), columns)

        answers = ask_driver(stored, types, queries, find)
    if rest := {key: query for key, query in queries.items() if key not in answers}:
        frames = {name: scan.read(job.spark, job.lake, table.where) for name, table in tables.items()}
        frames |= {name: frame_of(job.spark, rows) for name, rows in (views or {}).items()}
        for name, table in tables.items():
            if table.stored.before is not None:
                rows = slices.read_runs(job.lake, name, table.stored.before, job.lake.schema(name).names)
                frames[f"{name}_before"] = frame_of(job.spark, rows)
        answers |= ask_spark(frames, rest)
    measured: dict[str, Numbers] = {name: {} for name in asked}
    for (name, rule), answer in answers.items():
        number = math.inf if answer is None else answer
        measured[name][rule] = Measured(number, words=str(number).removesuffix(".0"))
    return measured


Query = tuple[str, str]
"""A table and a rule of its contract."""
Answers = dict[Query, float | None]
"""The numbers that queries return."""


def ask_driver(
    tables: Mapping[str, Stored],
    types: Mapping[str, Mapping[str, str]],
    queries: Mapping[Query, str],
    find: FindKeys,
) -> Answers:
    """Answer queries on the driver: about keys by NumPy, all others by the engine.

    The result lacks the queries that neither can answer, and those for which the engine would have to
    remember too many rows. Columns of tables with few rows that several queries name are read once.

    Parameters
    ----------
    tables : the slices that queries may name.
    types : physical types of contracts by table and column.
    queries : Spark's SQL, by the query that it is for.
    find : finds keys.
    """
    answers: Answers = {}
    rows = {name: stored.n_rows for name, stored in tables.items()}
    rows |= {f"{name}_before": stored.n_rows_before for name, stored in tables.items()}
    with suppress(UnansweredError):
        engine = Questions(tables)
        answers |= _answers_of(KeyQuestions(find, engine).number, queries)
        rest = {
            key: translated
            for key, query in queries.items()
            if key not in answers
            and rows_held(query, rows) <= MAX_HELD_ROWS
            and (translated := to_datafusion(query, types)) is not None
        }
        engine.hold(rest.values(), {name: types[name] for name in types if rows[name] <= _MAX_KEPT_ROWS})
        answers |= _answers_of(engine.number, rest)
    return answers


def _answers_of(ask: Callable[[str], float | None], queries: Mapping[Query, str]) -> Answers:
    """The answers to those queries that can be answered."""

    def answer(query: str) -> Iterable[float | None]:
        with suppress(UnansweredError):
            return (ask(query),)
        return ()

    with ThreadPoolExecutor(_MAX_QUESTIONS_AT_ONCE) as pool:
        found = pool.map(answer, queries.values())
        return {key: number for key, numbers in zip(queries, found, strict=True) for number in numbers}


def ask_spark(tables: Mapping[str, DataFrame], queries: Mapping[Query, str]) -> Answers:
    """Ask Spark, by one query for the rules of each table; as long as it takes, tables are views.

    Spark computes the parts of one query at the same time, so one for all tables would need memory for all.
    """
    (session,) = {frame.sparkSession for frame in tables.values()}
    for name, frame in tables.items():
        frame.createOrReplaceTempView(name)
    answers: Answers = {}
    try:
        for asked in dict.fromkeys(name for name, _ in queries):
            mine = {key: query for key, query in queries.items() if key[0] == asked}
            columns = ", ".join(f"({query}) AS `{number}`" for number, query in enumerate(mine.values()))
            (row,) = session.sql(f"SELECT {columns}").collect()
            answers |= {key: None if n is None else float(n) for key, n in zip(mine, row, strict=True)}
    finally:
        for name in tables:
            session.catalog.dropTempView(name)
    return answers
