"""Quality gates: validate the tables of a run against their contracts with Great Expectations."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd
from pyspark.sql import DataFrame

from epsjoin.console import counted, say
from epsjoin.contracts.odcs import Rule, TableContract
from epsjoin.contracts.row_rules import range_words, value_words
from epsjoin.errors import DataRefusedError
from epsjoin.lake import slices
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.lake import Slice
from epsjoin.pipeline import STAGES
from epsjoin.spark import scan
from epsjoin.spark.job import Job

if TYPE_CHECKING:
    from great_expectations.core import ExpectationValidationResult
    from great_expectations.expectations.expectation import Expectation

SPARK_TYPES = {
    "string": "StringType",
    "long": "LongType",
    "int": "IntegerType",
    "double": "DoubleType",
    "boolean": "BooleanType",
    "binary": "BinaryType",
    "date": "DateType",
    "timestamp": "TimestampType",
}
"""Names of Spark's types, as Great Expectations compares them, by the types of contracts."""
MAX_EXAMPLES = 3
"""Maximum number of values that are shown as examples of what breaks an expectation."""
_SLICE = "epsjoin_slice"
"""Name of the view of the slice that a rule's query reads."""


class Outcome(NamedTuple):
    """The result of one expectation: a row of the table ``quality`` (without run and table)."""

    expectation: str
    severity: str
    success: bool
    observed: str


def check_quality(job: Job, stage: str) -> dict[str, float]:
    """Validate the tables of a stage, and replace their slices of ``quality``.

    Raises
    ------
    DataRefusedError
        An expectation of severity error does not hold; the message has the first one. All results are in
        ``quality`` by then.
    TableError
        A table of the stage has no slice of this run, or its slice does not belong to the others.

    Notes
    -----
    Rules are SQL on views of the run's slices; each table is scanned several times.
    """
    known = [name for tables_ in STAGES.values() for name in tables_]
    seen = known[: known.index(STAGES[stage][-1]) + 1]
    lake, run = job.lake, job.run
    inputs = Fingerprints(lake, run)
    found = {name: inputs.slice(name) for name in seen}
    frames = {name: scan.read(job.spark, lake, where) for name, where in found.items()}
    for name, frame in frames.items():
        frame.createOrReplaceTempView(name)
    counters = {"expectations": 0.0, "warnings": 0.0, "errors": 0.0}
    first = ""
    for name in STAGES[stage]:
        outcomes = validate(frames[name], job.lake.contract(name))
        rows = slices.table_of(job.lake, "quality", [{"table": name, **o._asdict()} for o in outcomes])
        slices.write_slice(job.lake, Slice("quality", job.run, also=(("table", name),)), rows)
        for outcome in outcomes:
            counters["expectations"] += 1
            if not outcome.success:
                counters[f"{outcome.severity}s"] += 1
                sentence = f"{name}: {outcome.expectation} does not hold ({outcome.observed})"
                say(f"quality: {outcome.severity}: {sentence}")
                first = first or (sentence if outcome.severity == "error" else "")
    for name in seen:
        job.spark.catalog.dropTempView(name)
    if first:
        more = counters["errors"] - 1
        raise DataRefusedError(f"{first}{f'; and {more:.0f} more' if more else ''}; quality has them all")
    total, warnings = counters["expectations"], counted(counters["warnings"], "warning")
    say(f"quality: {counted(total - counters['warnings'], 'expectation')} of {total:,.0f} hold, {warnings}")
    return counters


def validate(frame: DataFrame, contract: TableContract) -> list[Outcome]:
    """Validate a table against its contract; returns the results in the contract's order.

    Parameters
    ----------
    frame : a slice of the table.
    contract : the table's contract. The queries of its rules may read views of the session.
    """
    of_columns = validate_columns(frame, contract)
    if {(field.name, field.dataType.typeName()) for field in frame.schema} == {
        (column.name, SPARK_TYPES[column.type].removesuffix("Type").lower()) for column in contract.columns
    }:
        return of_columns + validate_rules(frame, contract)
    reason = "not asked: the columns are not those of the contract"
    return of_columns + [Outcome(r.name, r.severity, False, reason) for r in rules_of(contract)]


def validate_columns(frame: DataFrame, contract: TableContract) -> list[Outcome]:
    """Validate the columns: their names and types, required values, ranges and sets of values."""
    return _run_checkpoint("add_spark", frame, list(column_expectations(contract)))


def validate_rules(frame: DataFrame, contract: TableContract) -> list[Outcome]:
    """Validate the key and the rules of the contract; one query computes the numbers of all of them."""
    rules = rules_of(contract)
    return (
        _run_checkpoint(
            "add_pandas", _evaluate_rules(frame, rules), [rule_expectation(rule) for rule in rules]
        )
        if rules
        else []
    )


def _run_checkpoint(
    engine: str, data: DataFrame | pd.DataFrame, expected: Sequence[Expected]
) -> list[Outcome]:
    """Run a checkpoint of Great Expectations on a frame.

    Examples of values that break an expectation take a Spark job each. So the checkpoint first runs without
    them, and again with examples only if an expectation does not hold.
    """
    os.environ["GX_ANALYTICS_ENABLED"] = "false"  # read by the import below: send no usage statistics
    import great_expectations as gx
    from great_expectations.data_context.types.base import ProgressBarsConfig

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    # by default it persists every table that it validates, in memory or on disk, to the end of the job
    options = {"persist": False} if engine == "add_spark" else {}
    batch = getattr(context.data_sources, engine)(engine, **options).add_dataframe_asset("slice")
    batch = batch.add_batch_definition_whole_dataframe("whole")
    suite = gx.ExpectationSuite(name="contract", expectations=[each.expectation for each in expected])
    definition = gx.ValidationDefinition(name="slice", data=batch, suite=context.suites.add(suite))
    context.validation_definitions.add(definition)
    found: list[ExpectationValidationResult] = []
    for name, result_format in (
        ("first", {"result_format": "BOOLEAN_ONLY"}),
        ("second", {"result_format": "BASIC", "partial_unexpected_count": MAX_EXAMPLES}),
    ):
        checkpoint = gx.Checkpoint(
            name=name, validation_definitions=[definition], result_format=result_format
        )
        result = context.checkpoints.add(checkpoint).run(batch_parameters={"dataframe": data})
        (of_definition,) = result.run_results.values()
        found = list(of_definition.results)
        if result.success:
            break
    by_name = {_meta(each)["name"]: each for each in found}
    return [
        Outcome(each.name, each.severity, bool(by_name[each.name].success), _observed(by_name[each.name]))
        for each in expected
    ]


def _evaluate_rules(frame: DataFrame, rules: Sequence[Rule]) -> pd.DataFrame:
    """Evaluate the queries of all rules: one row with a number for each, infinity where it is null."""
    frame.createOrReplaceTempView(_SLICE)
    queries = ", ".join(f"({rule.query.replace('${object}', _SLICE)}) AS `{rule.name}`" for rule in rules)
    row = frame.sparkSession.sql(f"SELECT {queries}").first()
    frame.sparkSession.catalog.dropTempView(_SLICE)
    numbers = {} if row is None else row.asDict()
    return pd.DataFrame([{name: math.inf if n is None else float(n) for name, n in numbers.items()}])


def _meta(result: ExpectationValidationResult) -> dict[str, Any]:
    return (result.expectation_config and result.expectation_config.meta) or {}


class Expected(NamedTuple):
    """An expectation of a contract, in our words and as an object of Great Expectations."""

    name: str
    severity: str
    expectation: Expectation


def rules_of(contract: TableContract) -> list[Rule]:
    """The rules of a contract, after a rule that no two rows have the same key."""
    key = [name for name in contract.key if name not in contract.partitioned]
    if not key:
        return list(contract.rules)
    names = ", ".join(f"`{name}`" for name in key)
    counted = f"SELECT COUNT(*) OVER (PARTITION BY {names}) AS n FROM ${{object}}"  # noqa: S608 - names of a contract
    # a window sorts the rows; GROUP BY would hold every key in memory
    duplicates = f"SELECT COUNT(*) FROM ({counted}) WHERE n > 1"  # noqa: S608 - as above
    unique = Rule(f"rows differ in {', '.join(key)}", duplicates, 0.0, "error")
    return [unique, *contract.rules]


def rule_expectation(rule: Rule) -> Expected:
    """Expect that the number which a rule's query returns is the one that the rule demands."""
    return _expected(
        rule.name,
        "ColumnValuesToBeBetween",
        rule.severity,
        column=rule.name,
        min_value=rule.must_be,
        max_value=rule.must_be,
    )


def column_expectations(contract: TableContract) -> Iterator[Expected]:
    """List what a contract expects of its columns: names, types, required values, ranges, sets of values."""
    columns = contract.columns
    names = [column.name for column in columns]
    yield _expected(
        "columns are those of the contract", "TableColumnsToMatchSet", column_set=names, exact_match=True
    )
    for column in columns:
        yield _expected(
            f"{column.name} is of type {column.type}",
            "ColumnValuesToBeOfType",
            column=column.name,
            type_=SPARK_TYPES[column.type],
        )
    for column in columns:
        if column.required:
            yield _expected(f"{column.name} is never missing", "ColumnValuesToNotBeNull", column=column.name)
        if column.minimum is not None or column.maximum is not None:
            # Spark sorts NaN above every number, so NaN would lie in a range without an upper end
            above = math.inf if column.type == "double" else None
            yield _expected(
                range_words(column),
                "ColumnValuesToBeBetween",
                column=column.name,
                min_value=column.minimum,
                max_value=above if column.maximum is None else column.maximum,
            )
        if column.values:
            yield _expected(
                value_words(column),
                "ColumnValuesToBeInSet",
                column=column.name,
                value_set=list(column.values),
            )


def _expected(name: str, kind: str, severity: str = "error", **arguments: Any) -> Expected:
    import great_expectations.expectations as library

    expectation = getattr(library, f"Expect{kind}")(
        **arguments, meta={"name": name}, severity="critical" if severity == "error" else "warning"
    )
    return Expected(name, severity, expectation)


def _observed(found: Any) -> str:
    """What was found where an expectation does not hold, in a few words; empty where it holds."""
    if found.success:
        return ""
    error = found.exception_info or {}
    messages = [error.get("exception_message")] + [
        each.get("exception_message") for each in error.values() if isinstance(each, dict)
    ]
    for message in messages:
        if message:
            return " ".join(str(message).split())[:300]
    result = found.result
    if result.get("unexpected_count"):
        examples = [str(value) for value in result.get("partial_unexpected_list", [])[:MAX_EXAMPLES]]
        if result.get("element_count") == 1 and examples:  # a rule's number
            return examples[0].removesuffix(".0")
        shown = f", such as {', '.join(examples)}" if any(example != "None" for example in examples) else ""
        return f"{result['unexpected_count']:,} rows{shown}"
    return str(result.get("observed_value", ""))[:300]
