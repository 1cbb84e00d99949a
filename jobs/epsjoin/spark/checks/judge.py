"""Great Expectations judges what was measured of tables, by suites that are made from their contracts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import pandas as pd

from epsjoin.contracts.expected import Expected, expected_of
from epsjoin.contracts.tables import TableContract
from epsjoin.lake.measure import Measured
from epsjoin.spark.checks.library import import_library


class Outcome(NamedTuple):
    """The result of one expectation: a row of the table ``quality`` (without run and table)."""

    expectation: str
    severity: str
    success: bool
    observed: str


def judge(
    contracts: Iterable[TableContract], measured: Mapping[str, Mapping[str, Measured]]
) -> dict[str, list[Outcome]]:
    """Judge the numbers of several tables; returns the results in the contracts' order.

    Parameters
    ----------
    contracts : the contracts of the tables; each becomes a suite.
    measured : the number of every expectation, by table and name.

    Notes
    -----
    The numbers are one row of a pandas frame, with a column for each expectation. Great Expectations needs
    most of a second to be imported, and half a millisecond for an expectation.
    """
    import_library()
    import great_expectations as gx
    from great_expectations.data_context.types.base import ProgressBarsConfig
    from great_expectations.expectations.metadata_types import FailureSeverity

    from epsjoin.spark.checks.number_is import NumberIs

    suites = {contract.name: expected_of(contract) for contract in contracts}
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    asset = context.data_sources.add_pandas("measured").add_dataframe_asset("numbers")
    one_row = asset.add_batch_definition_whole_dataframe("one row")
    holds: dict[Any, bool] = {}
    for table, suite in suites.items():
        row = {_column(table, each): measured[table][each.name].number for each in suite}
        batch = one_row.get_batch({"dataframe": pd.DataFrame([row], dtype="float64")})
        expectations = [
            NumberIs(
                column=_column(table, each),
                min_value=each.must_be,
                max_value=each.must_be,
                severity=FailureSeverity.CRITICAL if each.severity == "error" else FailureSeverity.WARNING,
            )
            for each in suite
        ]
        found = batch.validate(gx.ExpectationSuite(name=table, expectations=expectations))
        for result in found.results:
            if result.expectation_config is not None:
                holds[result.expectation_config.kwargs["column"]] = bool(result.success)
    return {
        table: [_outcome(each, measured[table][each.name], holds[_column(table, each)]) for each in suite]
        for table, suite in suites.items()
    }


def _column(table: str, expected: Expected) -> str:
    return f"{table}: {expected.name}"


def _outcome(expected: Expected, found: Measured, holds: bool) -> Outcome:
    return Outcome(expected.name, expected.severity, holds, "" if holds else str(found)[:300])
