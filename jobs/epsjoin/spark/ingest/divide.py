"""Large files of a snapshot in sections, so that several tasks read one file."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import SparkSession

from epsjoin.contracts.sources import SourceContract
from epsjoin.source.sections import Survey, can_be_divided, cut, merge_columns, survey
from epsjoin.spark.ingest.facts import Fact, FileFacts
from epsjoin.spark.ingest.read import SourceFile, open_source, state_of
from epsjoin.spark.tasks import tasks

MIN_SECTION_BYTES = 32 << 20
"""Minimum number of bytes of a range; a smaller one is read in less time than a task takes to start."""

_RANGES_PER_CORE = 2


def divide(
    spark: SparkSession, source: SourceContract, files: Sequence[SourceFile], whole: Iterable[str] = ()
) -> list[SourceFile]:
    """Divide the large ones of these files into sections, and number all anew.

    Parameters
    ----------
    whole : names of files that are to be read by one task.
    """
    n_cores = spark.sparkContext.defaultParallelism
    n_ranges = _RANGES_PER_CORE * n_cores
    wanted = [file for file in files if can_be_divided(source, file.name) and file.name not in set(whole)]
    if n_cores == 1 or len(files) >= n_ranges:
        wanted = []
    states = {file.index: state_of(file) for file in wanted}
    total = sum(state.size for state in states.values())
    ranges = {
        index: [state.size * i // n for i in range(n + 1)]
        for index, state in states.items()
        if (n := min(state.size // MIN_SECTION_BYTES, state.size * n_ranges // max(1, total))) > 1
    }
    delimiter = source.delimiter if source.format == "csv" else None
    items = [
        (files[index].name, files[index].uri, begin, end, delimiter)
        for index, bounds in ranges.items()
        for begin, end in itertools.pairwise(bounds)
    ]
    found = iter(tasks.run_tasks(spark, items, _survey) if items else [])
    divided: list[SourceFile] = []
    for file in files:
        bounds = ranges.get(file.index, [])
        surveys = [_from_json(next(found)["survey"][0].as_py()) for _ in bounds[1:]]
        sections = cut(surveys, bounds[-1]) if surveys else []
        if not sections:
            divided.append(replace(file, index=len(divided)))
        for section in sections:
            divided.append(replace(file, index=len(divided), section=section, state=states[file.index]))
    return divided


def _survey(item: tuple[str, str, int, int, str | None]) -> Iterator[pa.RecordBatch]:
    name, uri, begin, end, delimiter = item
    with open_source(name, uri) as (handle,):
        found = survey(lambda n, place: bytes(handle.read_at(n, place)), begin, end, delimiter)
    yield pa.record_batch({"survey": pa.array([json.dumps(found)])})


def _from_json(text: str) -> Survey:
    n_quotes, n_lines, is_plain, firsts = json.loads(text)
    first, other = (tuple(each) if each else None for each in firsts)
    return Survey(n_quotes, n_lines, tuple(is_plain), (first, other))


def merge_sections(source: SourceContract, facts: Iterable[Fact]) -> tuple[list[Fact], set[str]]:
    """The facts with those of a file's sections as one, and the names of files that one task must read."""
    merged: list[Fact] = []
    by_name: dict[str, list[FileFacts]] = {}
    for fact in facts:
        if isinstance(fact, FileFacts) and fact.section is not None:
            by_name.setdefault(fact.source, []).append(fact)
        else:
            merged.append(fact)
    unfit = set()
    for name, sections in by_name.items():
        sections.sort(key=lambda fact: fact.section or 0)
        columns = merge_columns(name, source, [fact.columns for fact in sections])
        rows_read = sum(fact.rows_read for fact in sections)
        left_out = sum(fact.rows_left_out for fact in sections)
        if columns is None or not rows_read or any(fact.refused for fact in sections):
            unfit.add(name)
            continue
        merged.append(
            replace(sections[0], rows_read=rows_read, rows_left_out=left_out, columns=columns, section=None)
        )
    return merged, unfit
