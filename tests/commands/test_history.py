"""The command that tells since when records hold."""

from __future__ import annotations

import hashlib
import struct
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from epsjoin.commands import cli
from epsjoin.commands.history import find_id
from epsjoin.contracts.odcs import Column
from epsjoin.contracts.sources import SourceContract
from epsjoin.errors import ArgumentError
from epsjoin.lake import slices
from epsjoin.lake.lake import Lake, Slice
from oracles import versions as oracle
from tests.histories import (
    RUNS,
    State,
    as_oracle,
    draw_states,
    states_of,
    write_retyped,
    write_states,
)
from tests.tiny import key, list_of_coordinates, new_lake

DAY = date(2023, 6, 1)


def key_of(*values: Any) -> int:
    """As ``key_id`` says it."""
    digest = hashlib.blake2b(digest_size=8)
    for value in values:
        text = str(value)
        digest.update(f"{type(value).__name__}:{len(text)}:{text}".encode())
    return int.from_bytes(digest.digest(), "little", signed=True)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """The command only reads it."""
    return write_states(tmp_path_factory.mktemp("history"), draw_states(3), RUNS)


def ask(lake: Lake, *more: str) -> int:
    given = ("--lake", lake.uri, "--dataset", "tiny", "--contracts", str(lake.contracts))
    return cli.main(["history", *given, *more])


@pytest.mark.parametrize("table", ["points", "pairs", "clusters"])
def test_history__writes_all_ranges_and_replaces_them(
    lake: Lake, tmp_path: Path, capsys: pytest.CaptureFixture[str], table: str
) -> None:
    expected = oracle.ranges(states_of(draw_states(3), table))
    holding = sum(end is None for *_, end in expected)
    for _ in range(2):
        assert ask(lake, "--table", table, "--to", str(tmp_path / "out")) == 0
        rows = DeltaTable(tmp_path / "out").to_pyarrow_table().to_pylist()
        assert set(as_oracle(table, rows)) == expected
        assert len(rows) == len(expected)
    out = capsys.readouterr().out
    assert f"tiny, {table}, 12 runs, 2022-01-01 to 2022-12-01" in out
    assert f"{len(expected)} ranges, {holding} of which still hold; written to file://{tmp_path}/out" in out


def test_history__refuses_a_relative_folder_before_it_prints_anything(
    lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(lake, "--table", "points", "--to", "out") == 2
    told = capsys.readouterr()
    assert (told.out, "--to" in told.err) == ("", True)


def test_history__counts_ranges_without_a_folder(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(lake, "--table", "points") == 0
    n = len(oracle.ranges(states_of(draw_states(3), "points")))
    assert f"{n} ranges, " in capsys.readouterr().out


def test_history__of_an_id_tells_its_life(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def state(**points: tuple[float, str | None]) -> State:
        rows = {int(name[1:]): (x, 0.5, None, text, b"") for name, (x, text) in points.items()}
        return State(rows, {}, {})

    states = {
        "2022-01-01": state(i1=(1.0, "one")),
        "2022-02-01": state(i1=(1.0, "two")),
        "2022-03-01": state(i1=(1.0, "two"), i2=(7.0, None)),
        "2022-04-01": state(i2=(7.0, None)),
        "2022-05-01": state(i1=(2.0, "two")),
    }
    lake = write_states(tmp_path, states, list(states))
    assert ask(lake, "--table", "points", "--id", "1") == 0
    assert capsys.readouterr().out.splitlines()[3:-1] == [
        "  id 1",
        "    2022-01-01  2022-02-01  x 1, y 0.5, a-value –, text one",
        "    2022-02-01  2022-04-01  text: one → two",
        "    2022-05-01  still so    x 2, y 0.5, a-value –, text two",
    ]


def test_history__shows_the_first_columns_of_a_vector(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = new_lake(tmp_path, [key(), list_of_coordinates("v", 30)], format="json")
    for run, value in ((RUNS[0], 1.0), (RUNS[1], 2.0)):
        row = {
            "id": 7,
            **{f"v_{n + 1}": value for n in range(30)},
            "point": struct.pack("<30d", *[value] * 30),
        }
        slices.write_slice(lake, Slice("points", run), slices.table_of(lake, "points", [row]))
    assert ask(lake, "--table", "points", "--id", "7") == 0
    first, then = capsys.readouterr().out.splitlines()[4:6]
    assert first.endswith("v_19 1, v_20 1, and 10 more")
    assert then.endswith("v_19: 1 → 2, v_20: 1 → 2, and 10 more")


@pytest.mark.parametrize(
    ("id_", "ranges"),
    [
        (0, ["2022-01-01  still so    x 0.5, n 1"]),
        (1, ["2022-01-01  2022-02-01  x 0.5, n –", "2022-02-01  still so    n: – → 2"]),
        (2, ["2022-01-01  2022-02-01  x 0.5, n 3", "2022-02-01  still so    n: 3 → 4"]),
    ],
)
def test_history__reads_runs_between_which_a_type_changed_as_today(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], id_: int, ranges: list[str]
) -> None:
    lake = write_retyped(tmp_path, ["1", "two", "3"], [1, 2, 4])
    assert ask(lake, "--table", "points", "--id", str(id_)) == 0
    assert [line.strip() for line in capsys.readouterr().out.splitlines()[4:-1]] == ranges


@pytest.mark.parametrize("table", ["points", "clusters"])
def test_history__of_an_id_that_no_run_has_says_so_and_fails(
    lake: Lake, capsys: pytest.CaptureFixture[str], table: str
) -> None:
    assert ask(lake, "--table", table, "--id", "987654") == 2
    told = capsys.readouterr()
    assert told.err == "epsjoin history: no run has the id 987654; ids are those of the table points\n"
    assert not told.out


def test_history__of_an_id_without_pairs_is_an_answer(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(lake, "--table", "pairs", "--id", "987654") == 0
    assert "no run has a pair of this id" in capsys.readouterr().out


def test_history__does_not_leave_out_silently_one_of_two_wishes(
    lake: Lake, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        ask(lake, "--table", "points", "--id", "1", "--to", str(tmp_path / "out"))
    assert "--to: not allowed with argument --id" in capsys.readouterr().err


def test_history__does_not_replace_another_table(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    """Not even one of the lake itself."""
    place = f"{lake.location('points')}"
    assert ask(lake, "--table", "points", "--to", place) == 3, "another try ends in the same way"
    assert "is a table of other columns" in capsys.readouterr().err
    assert ask(lake, "--table", "points") == 0


def test_history__says_once_that_it_is_the_history_which_cannot_be_written(
    lake: Lake, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    place = tmp_path / "file" / "out"
    assert ask(lake, "--table", "points", "--to", str(place)) == 1
    told = capsys.readouterr().err
    assert told.startswith(f"epsjoin history: file://{place}")
    assert "cannot be written" in told


@pytest.mark.parametrize(
    ("columns", "key", "found"),
    [
        ((("k", "integer"),), ["7"], 7),
        ((("k", "string"),), ["us7000abcd"], key_of("us7000abcd")),
        ((("x", "number"), ("k", "string"), ("day", "date")), ["1.50", "2023-06-01"], key_of(1.5, DAY)),
        ((("k", "string"),), [], r"once for each column of the key \(k\), not 0 times"),
        ((("k", "string"),), ["a", "b"], "not 2 times"),
        ((("k", "integer"),), ["x"], "--key: k: not a 64-bit integer: 'x'"),
        ((("k", "integer"),), ["-1"], "--key: k: -1 is kept for noise"),
        ((("k", "string"),), [""], "--key: k: missing key"),
    ],
)
def test_find_id__is_that_of_ingest(
    columns: tuple[tuple[str, str], ...], key: list[str], found: int | str
) -> None:
    names = [name for name, _ in columns if name != "k" or len(columns) == 1]
    typed = tuple(Column(name, kind) for name, kind in columns)
    source = SourceContract("tiny", "", "", typed, key=tuple(names), coordinates=())
    if isinstance(found, int):
        assert find_id(source, key) == found
    else:
        with pytest.raises(ArgumentError, match=found):
            find_id(source, key)


def test_history__of_a_key_tells_the_life_of_its_id(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    told = []
    for option in ("--id", "--key"):
        assert ask(lake, "--table", "points", option, "3") == 0
        told.append(capsys.readouterr().out)
    assert told[0] == told[1]
    assert ask(lake, "--table", "points", "--key", "987654") == 2
    assert capsys.readouterr().err == "epsjoin history: no run has a record of this key\n"
    assert "id 3" in told[0]
