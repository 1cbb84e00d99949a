"""Rules about keys that NumPy answers: the numbers that their queries return, by counting each key."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from epsjoin.contracts.expected import rules_of
from epsjoin.contracts.load_source import load_source
from epsjoin.contracts.tables import load_table
from epsjoin.lake import slices, targets, transactions
from epsjoin.lake.keys import KeyColumns, KeyQuestions, find_keys
from epsjoin.lake.lake import Lake, Slice
from epsjoin.lake.questions import UnansweredError
from epsjoin.paths import CONTRACTS
from tests.lake.rows import pairs
from tests.tiny import RUN

SOURCE = load_source(CONTRACTS, "navaids")
LEAST, MOST = -(2**63), 2**63 - 1
IDS = st.integers(-3, 3) | st.sampled_from([LEAST, LEAST + 1, MOST - 1, MOST])
UNIQUE = "SELECT COALESCE(SUM(n), 0) FROM (SELECT COUNT(*) AS n FROM a GROUP BY {}) AS t WHERE n > 1"
COUNTED = (
    "SELECT COUNT(*) FROM a AS t LEFT JOIN ( SELECT x, COUNT(*) AS n FROM"
    " (SELECT l AS x FROM b UNION ALL SELECT r FROM b) GROUP BY x ) AS p"
    " ON t.x = p.x WHERE t.y <> COALESCE(p.n, 0) + 1"
)
NUMBERED = "SELECT COALESCE(MAX(x), 0) - 2 * COUNT(DISTINCT x) + COUNT(*) FROM a"
ANTI = "SELECT COUNT(*) FROM a AS t LEFT ANTI JOIN b AS o ON t.x = o.z"
IF = " WHERE (SELECT MAX(w) FROM c) <> 'this'"


class Tables:
    """Tables in memory, whose rows come two at a time; columns are looked for once."""

    def __init__(self, **tables: dict[str, list[int]]) -> None:
        self.tables = tables
        self.texts: dict[str, dict[str, str | None]] = {"c": {"w": "other"}, "join_plan": {"kind": "planned"}}
        self.found: set[tuple[str, tuple[str, ...]]] = set()
        self.times_read: Counter[str] = Counter()

    def find(self, table: str, names: tuple[str, ...]) -> KeyColumns:
        assert (table, names) not in self.found
        self.found.add((table, names))
        columns = [np.array(self.tables[table][name], np.int64) for name in names]

        def batches() -> Iterator[list[NDArray[np.int64]]]:
            self.times_read[table] += 1
            for i in range(0, len(columns[0]) + 1, 2):  # the last batch may have no row
                yield [column[i : i + 2] for column in columns]

        return KeyColumns(len(columns[0]), batches)

    def number(self, query: str) -> float | None:
        """Whether a condition holds, asked by one query for a text."""
        found = re.fullmatch(
            r"SELECT CASE WHEN \(SELECT MAX\((\w+)\) FROM (\w+)\) <> '(\w+)' THEN 1 ELSE 0 END", query
        )
        assert found is not None
        column, table, text = found.groups()
        return float(self.texts[table][column] not in (text, None))


def keys_of(**tables: dict[str, list[int]]) -> KeyQuestions:
    held = Tables(**tables)
    return KeyQuestions(held.find, held)


@given(st.lists(st.tuples(IDS, IDS), max_size=12))
def test_keys__count_the_rows_whose_key_another_row_has(rows: list[tuple[int, int]]) -> None:
    keys = keys_of(a={"x": [x for x, _ in rows], "y": [y for _, y in rows]})
    for names, of in (("`x`", [(x,) for x, _ in rows]), ("`x`, `y`", rows)):
        assert keys.number(UNIQUE.format(names)) == sum(n for n in Counter(of).values() if n > 1)


def test_keys__that_have_the_same_hash_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ranges of both columns together take more than 64 bits; all rows have one hash."""
    monkeypatch.setattr("epsjoin.lake.keys._mix", np.zeros_like)
    rows = [(LEAST, 1), (MOST, 2), (LEAST, 2), (MOST, 2), (0, MOST), (LEAST, 1), (LEAST, 1)]
    keys = keys_of(a={"x": [x for x, _ in rows], "y": [y for _, y in rows]})
    assert keys.number(UNIQUE.format("`x`, `y`")) == 5


@given(st.lists(IDS, max_size=12), st.lists(IDS, max_size=12))
def test_keys__count_the_rows_whose_key_is_in_no_other_row(x: list[int], z: list[int]) -> None:
    keys = keys_of(a={"x": x}, b={"z": z})
    assert keys.number(ANTI) == sum(each not in z for each in x)


@pytest.mark.parametrize("query", [ANTI, NUMBERED, COUNTED])
def test_keys__leave_many_that_lie_far_apart_to_the_engine(
    query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("epsjoin.lake.keys._MAX_SORTED", 1)
    far = {"x": [LEAST, MOST], "y": [1, 1], "z": [LEAST, MOST], "l": [LEAST, 3], "r": [MOST, 4]}
    with pytest.raises(UnansweredError, match="far apart"):
        keys_of(a=far, b=far).number(query)


def test_keys__of_degrees_take_no_more_memory_than_the_rows_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two points and three pairs: 8 bytes for each id from 1 to 5, but not for those from 1 to 6."""
    asked: list[int] = []
    monkeypatch.setattr("epsjoin.lake.keys._MAX_SORTED", 1)
    for last, is_answered in ((5, True), (6, False)):
        pairs = {"l": [1, 1, 1], "r": [last] * 3}
        keys = keys_of(a={"x": [1, last], "y": [4, 4]}, b=pairs)
        if is_answered:
            asked.append(int(keys.number(COUNTED)))
        else:
            with pytest.raises(UnansweredError, match="far apart"):
                keys.number(COUNTED)
    assert asked == [0]


def test_keys__of_which_too_many_have_one_hash_are_the_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("epsjoin.lake.keys._MAX_COMPARED", 3)
    rows = [(LEAST, 1), (MOST, MOST), (LEAST, 1), (MOST, MOST)]
    keys = keys_of(a={"x": [x for x, _ in rows], "y": [y for _, y in rows]})
    with pytest.raises(UnansweredError, match="too many keys have a hash"):
        keys.number(UNIQUE.format("`x`, `y`"))


@pytest.mark.parametrize(("text", "number"), [("other", 2), ("this", 0), (None, 0)])
def test_keys__count_such_rows_only_where_another_table_says_so(text: str | None, number: int) -> None:
    tables = Tables(a={"x": [1, 2, 3]}, b={"z": [2]})
    tables.texts["c"]["w"] = text
    assert KeyQuestions(tables.find, tables).number(ANTI + IF) == number


def test_keys__are_kept_where_they_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three numbers of one table may be kept, four of the other are read by each question."""
    monkeypatch.setattr("epsjoin.lake.keys._MAX_HELD", 3)
    tables = Tables(a={"x": [1, 2, 3, 3]}, b={"z": [1, 2, 7]})
    asked = KeyQuestions(tables.find, tables)
    before = 0
    for _ in range(2):
        assert [asked.number(query) for query in (ANTI, UNIQUE.format("`x`"))] == [2, 2]
        assert tables.times_read["b"] == 1
        assert tables.times_read["a"] > before
        before = tables.times_read["a"]


@given(st.lists(st.integers(1, 5), max_size=5) | st.lists(IDS, max_size=5) | st.permutations(range(1, 6)))
def test_keys__measure_how_far_rows_are_from_being_numbered(x: list[int]) -> None:
    keys = keys_of(a={"x": x})
    found = keys.number(NUMBERED)
    assert found == max(x, default=0) - 2 * len(set(x)) + len(x)
    if min(x, default=1) >= 1:
        assert (found == 0) == (sorted(x) == list(range(1, len(x) + 1)))


@given(
    st.lists(st.tuples(IDS, st.integers(-1, 4) | IDS), max_size=12),
    st.lists(st.tuples(IDS, IDS), max_size=12),
)
def test_keys__count_the_rows_that_say_a_wrong_number_of_others(
    rows: list[tuple[int, int]], pairs: list[tuple[int, int]]
) -> None:
    (x, y), (left, right) = (tuple(zip(*each, strict=True)) or ((), ()) for each in (rows, pairs))
    keys = keys_of(a={"x": x, "y": y}, b={"l": left, "r": right})
    among = Counter(left + right)
    assert keys.number(COUNTED) == sum(says != among[each] + 1 for each, says in rows)


@pytest.mark.parametrize(
    "query",
    [
        COUNTED.replace("+ 1", "+ 2"),
        COUNTED.replace("r FROM b", "r FROM c"),
        COUNTED.replace("GROUP BY x", "GROUP BY y"),
        UNIQUE.format("x"),
        UNIQUE.format("`x`").replace("n > 1", "n > 2"),
        NUMBERED.replace("MAX(x)", "MAX(y)"),
        f"{NUMBERED} WHERE x > 0",
        f"{ANTI} WHERE t.x > 0",
        f"{ANTI}{IF.replace('<>', '=')}",
        f"{ANTI}{IF} AND t.x > 0",
        ANTI.replace("ANTI", "SEMI"),
        ANTI.replace("COUNT(*)", "COUNT(t.x)"),
    ],
)
def test_keys__leave_other_questions_to_the_engine(query: str) -> None:
    with pytest.raises(UnansweredError, match="not about keys"):
        keys_of(a={"x": [1]}, b={"z": [1]}).number(query)


@pytest.mark.parametrize(
    ("table", "answered"),
    [
        ("points", {"rows differ in id"}),
        ("pairs", {"rows differ in left_id, right_id", "left_is_a_point", "right_is_a_point"}),
        (
            "clusters",
            {
                *("rows differ in id", "every_point_has_a_label", "every_label_is_of_a_point"),
                "degree_is_the_number_of_pairs",
            },
        ),
        ("replicas", {"every_point_has_a_row", "every_row_is_a_point"}),
        (
            "outliers",
            {
                *("rows differ in id", "every_point_has_a_score", "every_score_is_of_a_point"),
                "ranks_are_one_to_n",
            },
        ),
    ],
)
def test_keys__answer_these_rules_of_the_contracts(table: str, answered: set[str]) -> None:
    ids = [3, 1, 2]
    names = ("points", "pairs", "clusters", "replicas", "outliers")
    keys = keys_of(**dict.fromkeys(names, columns_of(ids)))
    found = {}
    for rule in rules_of(load_table(CONTRACTS, table, SOURCE)):
        try:
            found[rule.name] = keys.number(rule.query.replace("${object}", table))
        except UnansweredError:
            continue
    assert found == dict.fromkeys(answered, 0)


def test_find_keys__reads_columns_of_all_files_in_their_order_and_refuses_others(lake: Lake) -> None:
    where, schema, location = Slice("pairs", RUN), lake.schema("pairs"), lake.location("pairs")
    into = targets.target_of(lake, where)
    written = [
        into.write([pairs(*rows)], task=task)
        for task, rows in enumerate(([(9, 10, 0.5)], [(5, 6, 0.5), (3, 8, 0.0)]))
    ]
    transactions.commit(lake, {where: [file for file in written if file]})
    files = slices.files_of(lake, where)
    keys = find_keys(location, files, schema, ["right_id", "left_id"])
    for _ in range(2):
        read = [[column.tolist() for column in columns] for columns in keys.batches()]
        assert (keys.n_rows, read) == (3, [[[10], [9]], [[6, 8], [5, 3]]])
    for column in ("distance", "run", "no_column"):
        with pytest.raises(UnansweredError, match=column):
            find_keys(location, files, schema, ["left_id", column])
    newer = schema.append(pa.field("weight", pa.int64()))  # a column that came into the contract later
    with pytest.raises(UnansweredError, match="weight is missing in a row"):
        list(find_keys(location, files, newer, ["weight"]).batches())
    by_others = Path(urlsplit(location).path) / files[0].path
    columns = {"left_id": pa.array([None], pa.int64()), "right_id": [10], "distance": [0.5]}
    pq.write_table(pa.table(columns), by_others)
    here = replace(files[0], size=by_others.stat().st_size)
    with pytest.raises(UnansweredError, match="left_id is missing in a row"):
        list(find_keys(location, [here], schema, ["right_id", "left_id"]).batches())


def columns_of(ids: list[int]) -> dict[str, list[int]]:
    return {"id": ids, "left_id": ids, "right_id": ids[::-1], "degree": [3] * len(ids), "rank": ids}
