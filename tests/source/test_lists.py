"""Lists in files: both ways of reading split them alike, and refuse the same ones for the same reason."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsjoin.contracts.odcs import Column
from epsjoin.contracts.sources import SourceContract
from epsjoin.source import batches, blocks, json_columns, parquet
from epsjoin.source.values import kind_of
from oracles import examples
from tests.source.both_ways import by_batches, by_definition, compare, count_asked
from tests.source.test_json_batches import VALUES
from tests.source.test_parquet import stored
from tests.source.tiny_source import SOURCE, read

_ITEMS = tuple(
    Column(f"v_{item + 1}", "number", required=True, physical_name="v", item=item) for item in range(2)
)
PLAIN = replace(
    SOURCE,
    columns=(SOURCE.columns[0], *_ITEMS, Column("name", "string")),
    coordinates=("v_1", "v_2"),
    missing=("NA", "nan"),
)
SOURCES = {
    "plain": PLAIN,
    "left out": replace(PLAIN, optional=("v_1", "v_2"), where="v_2 < 1e300"),
    "directions": replace(PLAIN, metric="cosine", missing=()),
    "rounded": replace(
        PLAIN,
        columns=(
            PLAIN.columns[0],
            *(replace(each, minimum=-5.0, maximum=7.0, decimals=1) for each in _ITEMS),
            PLAIN.columns[3],
        ),
    ),
    "integers": replace(
        PLAIN,
        columns=(PLAIN.columns[0], *(replace(e, type="integer") for e in _ITEMS), PLAIN.columns[3]),
    ),
}


def _as_it_is(number: float) -> float:
    return number


_IN_KIND: dict[str, Any] = {
    "string": str,
    "bool": bool,
    "int64": int,
    str(pa.list_(pa.float64())): lambda number: [number],
}
"""How an item of a list becomes one of a rarer kind."""


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize(
    "kind",
    [
        *(pa.list_(pa.float64()), pa.list_(pa.float32()), pa.large_list(pa.float64())),
        *(pa.list_(pa.float64(), 2), pa.list_(pa.float64(), 3), pa.list_(pa.int64()), pa.list_(pa.float16())),
        *(pa.list_(pa.bool_()), pa.list_(pa.string()), pa.list_(pa.list_(pa.float64())), pa.float64()),
        *(pa.string(), pa.null()),
    ],
    ids=str,
)
def test_lists_of_parquet__are_split_as_the_definition_says(name: str, kind: pa.DataType) -> None:
    n_items = kind.list_size if pa.types.is_fixed_size_list(kind) else 2
    lists: list[Any] = [[1.0] * n_items, None, [1.0, None, 2.0][:n_items], [0.0] * n_items, [8.0] * n_items]
    if not pa.types.is_integer(getattr(kind, "value_type", pa.null())):
        lists += [[float("nan")] * n_items, [-0.0, 1e-320, 2.0][:n_items], [float("-inf")] * n_items]
    if not pa.types.is_fixed_size_list(kind):
        lists += [[], [1.0], [1.0, 2.0, 3.0], [None, None]]
    if not pa.types.is_nested(kind):
        values = pa.array([None, None]) if pa.types.is_null(kind) else pa.array([1.0, None]).cast(kind)
    else:
        inner = kind.value_type
        as_inner = _IN_KIND.get(str(inner), _as_it_is)
        held = [v if v is None else [e if e is None else as_inner(e) for e in v] for v in lists]
        values = pa.array(held, kind)
    n = len(values)
    table = pa.table({"id": range(n), "v": values, "name": ["a"] * n, "more": [1] * n})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "BATCH_ROWS", 5)
        for aside in ((), (0, 3)):
            compare(stored(table), replace(SOURCES[name], format="parquet"), "a.parquet", aside)


@st.composite
def _lists_as_json(draw: st.DrawFn) -> str:
    good = ["0.5", "-1.25", "3e2", "7", "0", "-0.0"]
    values = draw(st.lists(st.sampled_from(good), min_size=2, max_size=2))
    how = draw(st.sampled_from(["good"] * 4 + ["odd item", "length", "no list"]))
    if how == "odd item":
        values[draw(st.integers(0, 1))] = draw(st.sampled_from(VALUES))
    if how == "length":
        values = draw(st.lists(st.sampled_from(good), max_size=4))
    return draw(st.sampled_from(VALUES)) if how == "no list" else f"[{', '.join(values)}]"


@examples(160, least=80)
@given(
    st.lists(_lists_as_json(), max_size=12),
    st.sampled_from([16, 300, 4 << 20]),
    st.sampled_from([0, 64]),
    st.sets(st.integers(0, 12), max_size=2),
)
def test_lists_of_json__are_split_as_the_definition_says(
    lists: list[str], block: int, faults: int, aside: set[int]
) -> None:
    lines = [f'{{"id": {id_}, "v": {text}, "name": "a"}}' for id_, text in enumerate(lists)]
    data = "\n".join([*lines, '{"id": 99}', '{"id": 100, "v": null}']).encode("utf-8", "surrogatepass")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK", block)
        patch.setattr(json_columns, "MAX_FAULTS", faults)
        for source in SOURCES.values():
            compare(data, replace(source, format="json"), "a.jsonl", tuple(sorted(aside)))


def _reason(value: Any, source: SourceContract = PLAIN) -> str | None:
    line = json.dumps({"id": 1, "v": value})
    return read(line, replace(source, format="json"), "a.jsonl")[0].reason


def test_reason__says_what_is_wrong_with_a_list() -> None:
    assert _reason([1, 2.5]) is None
    assert _reason([1]) == "v: not a list of 2 numbers: 'it has 1'"
    assert _reason([1, None]) == "v: not a list of 2 numbers: 'null in place 2'"
    assert _reason(3) == "v: not a list of 2 numbers: '3'"
    assert _reason({"a": 1}) == "v: not a list of 2 numbers: \"{'a': 1}\""
    assert _reason("[1, 2]") == "v: not a list of 2 numbers: '[1, 2]'"
    assert _reason(None) == _reason("") == _reason("NA") == "v: missing"


def test_reason__says_which_number_of_a_list_is_wrong() -> None:
    assert _reason([1, "x"]) == "v: not of type number: 'x' in place 2"
    assert _reason([True, 1]) == "v: not of type number: 'True' in place 1"
    assert _reason([1, math.inf]) == "v: not finite: 'inf' in place 2"
    assert _reason([1, "NA"]) == "v: missing: 'NA' in place 2"
    assert _reason([0, 9], SOURCES["rounded"]) == "v: above 7: '9' in place 2"
    assert _reason([2**60, 9], SOURCES["integers"]).endswith(": '1152921504606846976' in place 1")
    assert {kind_of(_reason(each)) for each in ([1, "x"], ["y", 2])} == {"v: not of type number"}


def test_a_missing_list__leaves_a_record_out_where_its_coordinates_are_optional() -> None:
    source = replace(SOURCES["left out"], format="json")
    lines = ['{"id": 1, "v": null}', '{"id": 2, "v": [1, null]}', '{"id": 3, "v": [1, 2]}', '{"id": 4}']
    records = read("\n".join(lines), source, "a.jsonl")
    assert [record.is_left_out for record in records] == [True, False, False, True]
    assert records[1].reason == "v: not a list of 2 numbers: 'null in place 2'"
    assert records[2].values == (3, 1.0, 2.0, None)


def test_good_lists__are_read_by_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"id": [1, 2], "v": pa.array([[0.5, 1], [2, 3]], pa.list_(pa.float32()))})
    source = replace(PLAIN, columns=PLAIN.columns[:3])
    of_parquet, of_json = replace(source, format="parquet"), replace(source, format="json")
    data = stored(table)
    expected = by_definition(data, of_parquet, "a.parquet")
    lines = b'{"id": 1, "v": [0.5, 1]}\n{"id": 2, "v": [2, 3]}\n{"v": [2, 4], "id": 3}\n'
    asked = count_asked(monkeypatch)
    assert by_batches(lines, of_json, "a.jsonl").n_records == 3
    assert asked == [1]  # of JSON the first tells the keys
    monkeypatch.setattr(batches, "to_records", None)
    assert by_batches(data, of_parquet, "a.parquet") == expected
    assert [row for _, _, row in expected.taken] == ["[1, 0.5, 1.0]", "[2, 2.0, 3.0]"]
