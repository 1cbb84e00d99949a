"""Quality gates: validate the tables of a run against their contracts with Great Expectations."""

from __future__ import annotations

from epsjoin.console import counted, say
from epsjoin.errors import DataRefusedError
from epsjoin.lake import refusals, slices
from epsjoin.lake.fingerprints import Fingerprints
from epsjoin.lake.lake import Slice
from epsjoin.lake.windows import runs_of_window
from epsjoin.pipeline import tables_at, tables_up_to
from epsjoin.spark.bestmatch.sides import records_asked_for
from epsjoin.spark.checks.judge import judge
from epsjoin.spark.checks.measuring import Table, measure_columns, measure_rules
from epsjoin.spark.job.job import Job


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
    The pages of a table are read once for all expectations about its columns, and once more by each rule that
    needs them. Rules are SQL on the run's slices.
    """
    lake, chain = slices.as_now(job.lake), job.lake.source.chain
    names = tables_at(stage, chain)
    inputs = Fingerprints(lake, job.run, is_made_now=True)
    found = inputs.slices(tables_up_to(stage, chain))
    tables = {name: Table.of(lake, where) for name, where in found.items()}
    before = runs_of_window(lake, job.run)[:-1]
    tables["value_counts"] = tables["value_counts"].with_before(lake, before)
    for name in tables.keys() - names:
        tables[name].check_footers(lake)
    measured = {name: measure_columns(job, tables[name]) for name in names}
    views = records_asked_for(lake, job.run) if "matches" in names else {}
    for name, numbers in measure_rules(job, tables, names, views).items():
        measured[name] |= numbers
    outcomes = judge([tables[name].contract for name in names], measured)
    counters = {"expectations": 0.0, "warnings": 0.0, "errors": 0.0}
    first = ""
    written = {}
    for name, of_table in outcomes.items():
        rows = slices.table_of(lake, "quality", [{"table": name, **each._asdict()} for each in of_table])
        written[Slice("quality", job.run, also=(("table", name),))] = rows
        for outcome in of_table:
            counters["expectations"] += 1
            if not outcome.success:
                counters[f"{outcome.severity}s"] += 1
                sentence = f"{name}: {outcome.expectation} does not hold ({outcome.observed})"
                say(f"quality: {outcome.severity}: {sentence}")
                first = first or (sentence if outcome.severity == "error" else "")
    slices.write_slices(lake, written)
    if first:
        more = counters["errors"] - 1
        raise DataRefusedError(f"{first}{f'; and {more:.0f} more' if more else ''}; quality has them all")
    why = refusals.read(lake, job.run)
    if why:
        say(f"quality: run {job.run} was made again and refused; these are its tables of before: {why}")
    total, warnings = counters["expectations"], counted(counters["warnings"], "warning")
    say(f"quality: {counted(total - counters['warnings'], 'expectation')} of {total:,.0f} hold, {warnings}")
    return counters
