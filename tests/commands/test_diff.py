"""What ``epsjoin diff`` says of two files, and the exit codes."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from epsjoin.commands import cli
from tests.histories import RUNS, State, write_retyped, write_states


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    old, new = tmp_path / "old.csv", tmp_path / "new.csv"
    old.write_text("id,name,x,gone\n1,a,0.5,\n2,b,1.5,\n3,c,2,\n4,d,7,\n5,e\x1b,0,\n")
    new.write_text("id,name,x,more\n2,b,1.50,\n3,C,2,\n14,d,7,\n6,f,9.25,\n7,g,9.5,\n5,e\x1b,1,\n")
    return [str(old), str(new)]


def test_diff__says_in_words_what_differs(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["diff", *files, "--key", "id", "--limit", "1"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "2 inserted, 2 updated, 1 deleted, 1 rekeyed; 1 row the same",
        "1 row of these written otherwise, with the same values",
        "updated columns: name 1, x 1",
        "not compared, for only the old snapshot has them: gone",
        "not compared, for only the new snapshot has them: more",
        "the order differs: distance 0.17 (1 is reversed), at most 1 row waited for a partner",
        "an update was missed with probability 9e-39",
        "",
        "inserted:",
        "  + id 6, name f, x 9.25",
        "  and 1 more; --limit 2 shows all",
        "",
        "deleted:",
        "  - id 1, name a, x 0.5",
        "",
        "updated:",
        "  * id 3: name c → C",
        "  and 1 more; --limit 2 shows all",
        "",
        "rekeyed:",
        "  > id 4 → id 14, with equal content",
    ]


def test_diff__near_matches_by_distance(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["diff", *files, "--key", "id", "--near", "9", "--near-columns", "x"]) == 0
    assert "  > id 1 → id 6, 8.75 apart" in capsys.readouterr().out.splitlines()


def test_diff__near_takes_criteria(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["diff", *files, "--key", "id", "--near", "x=9", "name=1"]) == 0
    assert any(line.startswith("  > id 1 → id 6, 1.97") for line in capsys.readouterr().out.splitlines())
    for wrong in (["x=far"], ["x"], ["9", "8"]):
        assert cli.main(["diff", *files, "--key", "id", "--near", *wrong]) == 2
        assert (
            f"must be EPS, or COLUMN=EPS of each criterion, not {' '.join(wrong)}" in capsys.readouterr().err
        )
    assert cli.main(["diff", *files, "--key", "id", "--near", "x,name=9"]) == 2
    assert "x and name are no place" in capsys.readouterr().err


def test_diff__within_a_tolerance_is_no_update(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["diff", *files, "--key", "id", "--tolerance", "x=1"]) == 0
    assert capsys.readouterr().out.splitlines()[:3] == [
        "2 inserted, 1 updated, 1 deleted, 1 rekeyed; 2 rows the same",
        "1 row of these written otherwise, with the same values",
        "1 row of these with other numbers, within the tolerance",
    ]
    assert cli.main(["diff", *files, "--key", "id", "--tolerance", "x=1", "--tolerance", "name=1"]) == 0
    assert "1 row of these with other numbers, within the tolerance" in capsys.readouterr().out
    assert cli.main(["diff", *files, "--key", "id", "--tolerance", "x=1", "x=2"]) == 2
    assert "--tolerance has two numbers for the column x" in capsys.readouterr().err
    for wrong in ("x", "x=wide", "=1"):
        assert cli.main(["diff", *files, "--key", "id", "--tolerance", wrong]) == 2
        assert f"must be COLUMN=NUMBER, of each column, not {wrong}" in capsys.readouterr().err


def test_diff__of_equal_files_says_so(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["diff", files[0], files[0]]) == 0
    assert capsys.readouterr().out == "no difference; 5 rows the same\n"


def test_diff__prints_json_for_programs(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["diff", *files, "--key", "id", "--json", "--limit", "1"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [found[f"n_{kind}"] for kind in ("inserted", "updated", "deleted", "rekeyed", "same")] == [
        2,
        2,
        1,
        1,
        1,
    ]
    assert {type(found[name]) for name in found if name.startswith("n_") and name != "n_by_column"} == {int}
    assert (found["n_reformatted"], found["n_by_column"]) == (1, {"name": 1, "x": 1})
    assert found["updated"][0]["columns"] == ["name"]
    assert len(found["inserted"]) == 1


def test_diff__prints_json_that_any_program_can_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """JSON has neither NaN nor infinities."""
    for name, x in (("old", math.nan), ("new", -math.inf)):
        rows = pa.table({"id": [1], "x": [x], "list": [[x, 1.0]]})
        pq.write_table(rows, tmp_path / f"{name}.parquet")
    files = [str(tmp_path / f"{name}.parquet") for name in ("old", "new")]
    assert cli.main(["diff", *files, "--key", "id", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)["updated"]
    assert row["before"] == {"id": 1, "x": "nan", "list": ["nan", 1.0]}
    assert row["now"] == {"id": 1, "x": "-inf", "list": ["-inf", 1.0]}


def test_diff__of_two_runs_compares_their_points_by_the_contract(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What lies between the runs does not matter, nor the order in which they are named."""
    kept, before, now = ((x, 0.5, 1.5, text, b"") for x, text in ((0.0, "a"), (1.0, "b"), (2.0, "b")))
    states = {
        RUNS[0]: State({1: kept, 2: before, 3: (7.0, 7.0, None, "gone", b"")}, {}, {}),
        RUNS[1]: State({}, {}, {}),
        RUNS[2]: State({1: kept, 2: now, 4: (8.0, 8.0, None, None, b"")}, {}, {}),
    }
    lake = write_states(tmp_path, states, list(states))
    given = ["diff", "--lake", lake.uri, "--dataset", "tiny", "--contracts", str(lake.contracts)]
    assert cli.main([*given, "--from", RUNS[0], "--to", RUNS[2]]) == 0
    there = [line for line in capsys.readouterr().out.splitlines() if line.startswith(("1 ", "  "))]
    assert there == [
        "1 inserted, 1 updated, 1 deleted; 1 row the same",
        "  + id 4, x 8, y 8",
        "  - id 3, x 7, y 7, text gone",
        "  * id 2: x 1 → 2",
    ]
    assert cli.main([*given, "--from", RUNS[2], "--to", RUNS[0]]) == 0
    assert "  * id 2: x 2 → 1" in capsys.readouterr().out
    assert cli.main([*given, "--from", RUNS[0], "--to", "2024-13-01"]) == 2
    assert "--to must be a date like 2023-06-01, not '2024-13-01'" in capsys.readouterr().err
    assert cli.main([*given, "--from", RUNS[0], "--to", "2024-01-01"]) == 3
    assert "points has no slice of run 2024-01-01; run ingest for it first" in capsys.readouterr().err


def test_diff__of_runs_between_which_a_type_changed_compares_values_of_today(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = write_retyped(tmp_path, ["1", "two", "3"], [1, 2, 4])
    given = ["diff", "--lake", lake.uri, "--dataset", "tiny", "--contracts", str(lake.contracts)]
    assert cli.main([*given, "--from", RUNS[0], "--to", RUNS[1]]) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line for line in said if line.startswith("  *")] == [
        "  * id 1: n – → 2",
        "  * id 2: n 3 → 4",
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["nowhere.csv", "nowhere.csv"], 2, "epsjoin diff: nowhere.csv is no file"),
        (["{old}", "{new}", "--key", "name", "--key", "nix"], 2, "has no column 'nix'"),
        (["{old}"], 2, "(and --key, --delimiter), or --lake, --dataset, --from and --to; not one file"),
        (["{old}", "{new}", "--to", "2023-01-01"], 2, "not two files, --to"),
        (["--lake", "/lake", "--key", "id"], 2, "not --key, --lake"),
        (
            ["--lake", "/lake", "--dataset", "a", "--from", "b", "--to", "c", "--delimiter", ";"],
            2,
            "give either two files (and --key, --delimiter), or --lake, --dataset, --from and --to; "
            "not --delimiter, --lake, --dataset",
        ),
        (["{old}", "{new}", "--delimiter", "x"], 2, "--delimiter must be one of ',', ';', '|', tab, '^'"),
        (["{old}", "{broken}", "--key", "id"], 3, "records 1 and 3 have one key, id '1'"),
    ],
)
def test_diff__ends_with_the_code_of_its_error(
    files: list[str], arguments: list[str], code: int, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = Path(files[0]).with_name("broken.csv")
    broken.write_text("id\n1\n2\n1\n")
    named = {"old": files[0], "new": files[1], "broken": str(broken)}
    assert cli.main(["diff", *(argument.format(**named) for argument in arguments)]) == code
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    ("delimiter", "said"), [(";", []), ("^", ["^"]), ("\t", ["tab"]), (";", [";"]), ("\t", [])]
)
def test_diff__of_files_by_any_delimiter_is_that_by_commas(
    tmp_path: Path, delimiter: str, said: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    files = [tmp_path / "old.csv", tmp_path / "new.csv"]
    for file, x in zip(files, ("0.5", "0.75"), strict=True):
        file.write_text(f'id@x@y\n1@{x}@a\n2@1.5@"b,c"\n'.replace("@", delimiter))
    given = [word for sign in said for word in ("--delimiter", sign)]
    assert cli.main(["diff", *map(str, files), "--key", "id", *given]) == 0
    assert "1 updated; 1 row the same" in capsys.readouterr().out


@pytest.mark.parametrize("is_json", [False, True])
def test_diff__shows_times_that_python_has_no_object_for(
    tmp_path: Path, is_json: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, year_9999 in (("old", 253_402_300_799), ("new", 253_402_300_800)):
        times = pa.array([year_9999, 0], pa.timestamp("s"))
        lasts = pa.array([10**15, 1], pa.duration("s"))
        pq.write_table(pa.table({"id": [1, 2], "until": times, "lasts": lasts}), tmp_path / f"{name}.parquet")
    files = [str(tmp_path / f"{name}.parquet") for name in ("old", "new")]
    assert cli.main(["diff", *files, "--key", "id", *["--json"] * is_json]) == 0
    said = capsys.readouterr().out
    if is_json:
        assert json.loads(said)["updated"][0]["now"]["until"] == "10000-01-01 00:00:00.000"
    else:
        assert "  * id 1: until 9999-12-31 23:59:59.000 → 10000-01-01 00:00:00.000" in said.splitlines()


def test_diff__writes_truth_values_as_the_report_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, open_ in (("old", True), ("new", False)):
        pq.write_table(pa.table({"id": [1], "open": [open_]}), tmp_path / f"{name}.parquet")
    files = [str(tmp_path / f"{name}.parquet") for name in ("old", "new")]
    assert cli.main(["diff", *files, "--key", "id"]) == 0
    assert "  * id 1: open yes → no" in capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("before", "now", "change"),
    [
        (f"{'x' * 50}1", f"{'x' * 50}2", f"{'x' * 50}1 → {'x' * 50}2"),
        ("a ", "a", "'a ' → 'a'"),
        (0.1234567890123, 0.1234567890124, "0.1234567890123 → 0.1234567890124"),
        (None, "", "– → ''"),
    ],
)
def test_diff__shows_in_what_values_differ(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], before: object, now: object, change: str
) -> None:
    files = [str(tmp_path / f"{name}.parquet") for name in ("old", "new")]
    for file, value in zip(files, (before, now), strict=True):
        column = pa.array([value], pa.float64() if isinstance(now, float) else pa.string())
        pq.write_table(pa.table({"id": [1], "v": column}), file)
    assert cli.main(["diff", *files, "--key", "id"]) == 0
    assert f"  * id 1: v {change}" in capsys.readouterr().out.splitlines()


def test_diff__names_a_double_key_that_python_has_no_object_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pq.write_table(
        pa.table({"t": pa.array([253_402_300_800] * 2, pa.timestamp("s"))}), tmp_path / "a.parquet"
    )
    assert cli.main(["diff", *[str(tmp_path / "a.parquet")] * 2, "--key", "t"]) == 3
    assert "have one key, t '10000-01-01 00:00:00.000'" in capsys.readouterr().err


def test_diff__shows_the_first_columns_of_a_wide_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [f"v{number}" for number in range(30)]
    for file, value in (("old.csv", 1), ("new.csv", 2)):
        (tmp_path / file).write_text(
            "\n".join([",".join(["id", *names]), ",".join(["7", *[str(value)] * 30])])
        )
    assert cli.main(["diff", str(tmp_path / "old.csv"), str(tmp_path / "new.csv"), "--key", "id"]) == 0
    said = capsys.readouterr().out
    assert "updated columns: v0 1, v1 1," in said
    assert "v19 1 → 2, and 10 more\n" in said
    assert "v20" not in said
