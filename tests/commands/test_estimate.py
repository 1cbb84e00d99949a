"""The command epsjoin estimate: what it says against what the join gives."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from epsjoin.commands import cli, forecast
from epsjoin.lake.lake import Lake
from epsjoin.local.join.arrays import join, self_join
from epsjoin.local.plan.cuts import Cuts
from tests.lake.landmarks import small_lake, square

SKIN = Path(__file__).parents[1] / "data" / "vectors" / "adbench_33_skin.csv.gz"


@pytest.fixture
def square_file(tmp_path: Path) -> Path:
    file = tmp_path / "square.parquet"
    pq.write_table(pa.table({"x": square()[:, 0], "y": square()[:, 1]}), file)
    return file


def ask(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = cli.main(["estimate", *map(str, arguments)])
    said = capsys.readouterr()
    return code, said.out, said.err


def facts(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    code, out, err = ask(capsys, *arguments, "--json")
    assert (code, err) == (0, "")
    return dict(json.loads(out))


def test_estimate__of_a_file_is_what_the_join_gives(
    square_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = facts(capsys, square_file, "--columns", "x,y", "--eps", 0.02, "--max-pairs", 20_000)
    pairs = len(self_join(square(), 0.02).left)
    assert found["pairs_low"] <= found["pairs"] == pairs <= found["pairs_high"]  # the sample is the set
    assert found["neighbours"] == pytest.approx(2 * pairs / 4000)
    assert found["pair_bytes"] == 24 * pairs
    assert (found["rows"], found["sample_rows"], found["parts"]) == (4000, 4000, 8)
    assert found["join"] is None, "files have no run before"
    assert 4000 / 8 <= found["largest_part_rows"] < 4000
    assert 1.0 <= found["replicas"] < 1.5
    assert found["candidates"] > pairs
    assert found["time"] == "seconds"
    assert 0.999 * 20_000 <= len(self_join(square(), found["eps_for_max_pairs"]).left) <= 20_000
    assert 2 * len(self_join(square(), found["eps_for_neighbours"]).left) / 4000 == pytest.approx(
        10, rel=0.05
    )


def test_estimate__of_lists_is_what_their_join_gives_and_leaves_out_what_has_no_direction(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    vectors = np.random.default_rng(3).standard_normal((500, 6))
    lists = [*vectors.tolist(), [0.0] * 6, [1.0] * 5, None]
    pq.write_table(pa.table({"v": pa.array(lists, pa.list_(pa.float64()))}), tmp_path / "a.parquet")
    asked = [tmp_path / "a.parquet", "--columns", "v[6]", "--eps", 0.2]
    found = facts(capsys, *asked, "--metric", "cosine")
    assert (found["rows"], found["rows_left_out"], found["rows_bad"]) == (500, 1, 2)
    assert found["pairs"] == len(self_join(vectors, 0.2, "cosine").left) > 50
    assert facts(capsys, *asked)["rows"] == 501, "by Euclid's distance a vector of zeros is a point"
    wide = np.random.default_rng(3).standard_normal((500, 64))
    table = pa.table({"v": pa.array(wide.tolist(), pa.list_(pa.float64()))})
    pq.write_table(table, tmp_path / "wide.parquet")
    asked = [tmp_path / "wide.parquet", "--columns", "v[64]", "--metric", "cosine", "--eps", 0.7]
    found = facts(capsys, *asked)
    assert (found["replicas"], found["candidates"]) == (1.0, 500 * 500 / 2), "as a run would, by products"
    assert found["pairs"] == len(self_join(wide, 0.7, "cosine").left)
    pq.write_table(pa.table({"x[1]": [1.0, 2.0], "x[2]": [1.0, 2.0]}), tmp_path / "names.parquet")
    assert facts(capsys, tmp_path / "names.parquet", "--columns", "x[1],x[2]", "--eps", 2)["pairs"] == 1
    (tmp_path / "b.csv").write_text("v[6]\n1\n2\n")
    assert facts(capsys, tmp_path / "b.csv", "--columns", "v[6]", "--eps", 2)["rows"] == 2, "a name in CSV"


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        ("x,y", " x , y"),
        (" x,y ", "' x','y '"),
        (" x,y ", " ' x' , \"y \" "),
        ('"x, km","y, km"', "'x, km','y, km'"),
        ("o'clock,'y", "o'clock,'y"),
    ],
)
def test_estimate__takes_names_in_quotes_as_they_are(
    header: str, columns: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.csv").write_text(f"{header}\n1,2\n1.5,2\n9,9\n")
    found = facts(capsys, tmp_path / "a.csv", "--columns", columns, "--eps", 1, "--delimiter", ",")
    assert (found["rows"], found["pairs"]) == (3, 1)


def test_estimate__of_two_tables_is_what_their_join_gives(
    square_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    others = np.random.default_rng(8).random((3000, 2))
    file = tmp_path / "others.parquet"
    pq.write_table(pa.table({"x": others[:, 0], "y": others[:, 1]}), file)
    asked = [square_file, "--right", file, "--columns", "x,y", "--max-pairs", 20_000]
    found = facts(capsys, *asked, "--eps", 0.02)
    pairs = len(join(square(), others, 0.02).left)
    assert found["pairs_low"] == found["pairs"] == pairs == found["pairs_high"], "the samples are the tables"
    assert found["neighbours"] == pytest.approx(pairs / 4000)
    assert (found["rows"], found["right_rows"]) == (4000, 3000)
    counters: dict[str, int] = {}
    join(square(), others, 0.02, cuts=Cuts(n_parts=found["parts"]), counters=counters)
    assert found["candidates"] == pytest.approx(counters["candidates"], rel=0.1)
    assert found["replicas"] * 7000 == pytest.approx(counters["rows"], rel=0.01)
    both = np.concatenate((square(), others))
    self_join(both, 0.02, cuts=Cuts(n_parts=found["parts"]), counters=counters)
    assert found["candidates"] < 0.35 * counters["candidates"], "not those of both tables as one"
    fitting = found["eps_for_max_pairs"]
    assert len(join(square(), others, fitting).left) == pytest.approx(20_000, rel=0.05)
    code, out, err = ask(capsys, *asked, "--eps", 0.5)
    assert code == 4
    assert "  right rows" in out
    assert float(err.split("the largest eps that fits is about ")[1]) == pytest.approx(fitting, rel=1e-3)
    code, _, err = ask(capsys, square_file, "--right", file, "--lake", "/lake")
    assert code == 2
    assert "(and --right, --metric, --delimiter)" in err


def test_estimate__without_eps_only_suggests(square_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = ask(capsys, square_file, "--columns", "x,y", "--neighbours", 5)
    assert code == 0
    names = [line[2:].split("  ")[0] for line in out.splitlines()]
    assert names == ["rows", "sample", "exponent", "eps for 5 neighbours"]


def test_estimate__says_each_thing_on_a_line_with_its_unit(
    square_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = ask(capsys, square_file, "--columns", "x,y", "--eps", 0.02, "--metric", "chebyshev")
    assert code == 0
    lines = out.splitlines()
    begins = {line.index(line[2:].split("  ")[-1].strip()) for line in lines}
    assert len(begins) == 1, out  # the texts stand one below the other
    for text in ("0.02 (chebyshev)", " per point", " rows", " kB", "of one core", "candidates"):
        assert text in out


def test_estimate__of_few_pairs_says_how_few_neighbours_there_are(
    square_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = (square_file, "--columns", "x,y", "--eps", 1e-3)
    neighbours = facts(capsys, *asked)["neighbours"]
    assert 0 < neighbours < 0.05
    said = dict(line[2:].split("  ", 1) for line in ask(capsys, *asked)[1].splitlines())
    assert float(said["neighbours"].split()[0]) == pytest.approx(neighbours, rel=0.05)
    assert said["replicas"].strip() == "1.00 rows per point"


def test_estimate__refuses_ten_billion_pairs_without_counting_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, err = ask(capsys, SKIN, "--columns", "f0,f1,f2", "--eps", 1.5, "--max-pairs", 100_000_000)
    assert code == 4
    assert "pairs                      about 10," in out
    assert err.startswith(
        "epsjoin estimate: eps 1.5 would give about 1.03e+10 pairs (9.89e+09 to 1.06e+10), "
        "100,000,000 are allowed (--max-pairs); the largest eps that fits is about 0.03"
    )


def test_estimate__of_one_row_says_one_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "one.csv").write_text("x,y\n1,2\n")
    code, out, _ = ask(capsys, tmp_path / "one.csv", "--columns", "x,y", "--eps", 1)
    assert code == 0
    assert re.search(r"^  sample +1 row$", out, re.MULTILINE)


def test_estimate__says_why_no_eps_fits(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = ask(capsys, SKIN, "--columns", "f0,f1,f2", "--eps", 0.1, "--max-pairs", 1000)
    assert code == 4
    assert "no eps fits: about 21,340,640 pairs are of equal points" in err
    assert "eps for 1,000 pairs    none: 21,340,640 pairs are of equal points" in out


def test_estimate__warns_of_more_pairs_than_the_job_allows(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = ask(capsys, SKIN, "--columns", "f0,f1,f2", "--eps", 1.5)
    assert code == 0
    assert "more than the job allows (max_pairs 1,000,000,000)" in out


def test_estimate__says_how_many_rows_are_left_out_and_how_many_bad(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.csv"
    file.write_text(
        "x\n" + "".join(f"{i % 977}.5\n" for i in range(2000)) + "nan\n\n?\n'  '\n".replace("'", '"')
    )
    code, out, _ = ask(capsys, file, "--columns", "x", "--eps", 1)
    assert code == 0
    said = {
        name.strip(): text.strip()
        for name, _, text in (line[2:].partition("  ") for line in out.splitlines())
    }
    assert said["rows"] == "2,000"
    assert said["left out"] == "1 row more: a coordinate is missing"
    assert said["bad"] == f"2 rows more, such as {file}: line 2002: x: not finite: 'nan'"


def test_estimate__refuses_with_the_number_that_it_has_counted(
    square_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = ask(capsys, square_file, "--columns", "x,y", "--eps", 0.02, "--max-pairs", 10)
    assert code == 4
    (number,) = re.findall(r"pairs +([0-9,]+) \(of all rows\)", out)
    assert f"eps 0.02 would give about {number} pairs (of all rows), 10 are allowed" in err


@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_estimate__names_one_eps_for_so_many_pairs(
    square_file: Path, capsys: pytest.CaptureFixture[str], metric: str
) -> None:
    """The line of the prediction and the refusal: an eps of more pairs would be refused in its turn."""
    asked = [square_file, "--columns", "x,y", "--metric", metric, "--max-pairs", 5000]
    for eps in (0.1, 0.5):
        _, out, err = ask(capsys, *asked, "--eps", eps)
        (line,) = re.findall(r"eps for 5,000 pairs +(\S+)\n", out)
        assert err.endswith(f"the largest eps that fits is about {line}\n")
        assert ask(capsys, *asked, "--eps", line)[0] == 0
    suggested = facts(capsys, *asked)["eps_for_max_pairs"]
    assert ask(capsys, *asked, "--eps", suggested)[0] == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            [],
            "files and --columns (and --right, --metric, --delimiter), or --lake, --dataset and --run; "
            "not nothing",
        ),
        (["a.csv"], "not files"),
        (["a.csv", "--columns", "x", "--lake", "/l"], "not files, columns, lake"),
        (["--lake", "/l", "--dataset", "a", "--run", "b", "--delimiter", ";"], "not delimiter, lake"),
        (["a.csv", "--columns", "x", "--delimiter", "x"], "--delimiter must be one of ',', ';', '|', tab"),
        (["a.csv", "--columns", "x,x"], "--columns must be different names"),
        (["a.csv", "--columns", "x,"], "--columns must be different names"),
        (["a.csv", "--columns", "'x',x"], "--columns must be different names"),
        (
            ["a.csv", "--columns", "lon_deg,Latitude", "--metric", "haversine"],
            "haversine takes the latitude first: --columns Latitude,lon_deg",
        ),
        (["a.csv", "--columns", "x", "--metric", "haversine"], "haversine needs 2 coordinates"),
        (["a.csv", "--columns", "x", "--eps", "-1"], "eps must be a number above 0"),
        (["a.csv", "--columns", "x"], "a.csv is no file"),
        (["--lake", "lake", "--dataset", "navaids", "--run", "2023-06-01"], "--lake must be a URI"),
    ],
)
def test_estimate__says_what_is_wrong_with_its_arguments(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = ask(capsys, *arguments)
    assert (code, out) == (2, "")
    assert sentence in err


@pytest.mark.parametrize("wish", [["--neighbours", "0"], ["--max-pairs", "-5"], ["--neighbours", "nan"]])
def test_estimate__says_that_a_wish_makes_no_sense(
    square_file: Path, wish: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = ask(capsys, square_file, "--columns", "x,y", *wish)
    assert code == 2
    assert f"{wish[0]} must be above 0" in err


@pytest.mark.parametrize(
    ("rows", "more", "sentence"),
    [
        ("", [], "there are no points; a coordinate is missing in 0 rows, 0 rows bad"),
        ("1,1\n1,1\n", [], "eps cannot be chosen from these points"),
        (
            "91,0\n0,-361\n",
            ["--metric", "haversine"],
            "2 rows bad: .*line 2: x: above 90: '91'",
        ),
    ],
)
def test_estimate__refuses_data_of_which_nothing_can_be_said(
    tmp_path: Path, rows: str, more: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.csv").write_text("x,y\n" + rows)
    code, _, err = ask(capsys, tmp_path / "a.csv", "--columns", "x,y", *more)
    assert code == 3
    assert re.search(sentence, err)


def test_estimate__counts_among_the_bad_rows_what_is_no_place_as_ingest_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.csv"
    file.write_text("lat,lon\n10,2\n95,3\n10,359\n11,2\n-10,400\n")
    options = ("--columns", "lat,lon", "--metric", "haversine", "--eps", 200)
    code, out, _ = ask(capsys, file, *options, "--json")
    assert code == 0
    assert (json.loads(out)["rows"], json.loads(out)["rows_bad"]) == (3, 2)
    code, out, _ = ask(capsys, file, *options, "--right", file)
    assert (code, "4 rows more, such as" in out) == (0, True)


def test_estimate__with_eps_needs_no_power_law(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.csv").write_text("x\n" + "1\n" * 50)
    code, out, err = ask(capsys, tmp_path / "a.csv", "--columns", "x", "--eps", 1)
    assert (code, err) == (0, "")
    assert "pairs           1,225 (of all rows)" in out
    assert "unknown: no two different points" in out
    code, _, err = ask(capsys, tmp_path / "a.csv", "--columns", "x", "--eps", 1, "--max-pairs", 10)
    assert code == 4
    assert "10 are allowed (--max-pairs); no eps fits: about 1,225 pairs are of equal points" in err


@pytest.mark.parametrize(
    ("seconds", "word"), [(59.9, "seconds"), (60, "minutes"), (3600, "hours"), (86400, "days"), (1e9, "days")]
)
def test_time__has_a_class(seconds: float, word: str) -> None:
    assert forecast.choose_time_unit(seconds)[0] == word


def of_lake(lake: Lake) -> list[str]:
    where = ["--lake", lake.uri, "--contracts", str(lake.contracts)]
    return [*where, "--dataset", "landmarks", "--run", "2023-01-01"]


def test_estimate__of_a_lake_takes_metric_eps_and_unit_of_the_contract(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = small_lake(tmp_path)
    found = facts(capsys, *of_lake(lake))
    assert (found["rows"], found["metric"], found["unit"]) == (3000, "euclidean", "degrees")
    assert found["eps"] == lake.source.defaults["eps"]
    assert found["pairs"] == len(self_join(square(3000), found["eps"]).left)
    assert found["join"] == "of all points: the source has no key, so that an id is only a place in a file"
    assert facts(capsys, *of_lake(lake), "--eps", 0.05)["eps"] == 0.05
    assert found["target_neighbours"] == 10.0
    contract = lake.contracts / "landmarks.odcs.yaml"
    contract.write_text(contract.read_text().replace("min_pts: 10", "min_pts: 10\n      neighbours: 3"))
    assert facts(capsys, *of_lake(lake))["target_neighbours"] == 3.0
    assert facts(capsys, *of_lake(lake), "--neighbours", 4)["target_neighbours"] == 4.0


def test_estimate__of_a_lake_without_the_run_says_what_to_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = small_lake(tmp_path)
    code, _, err = ask(capsys, *of_lake(lake)[:-1], "2024-01-01")
    assert code == 3
    assert "points has no slice of run 2024-01-01; run ingest for it first" in err


@pytest.mark.parametrize(
    ("delimiter", "given"), [(",", ()), (";", ()), ("\t", ()), ("^", ("^",)), ("\t", ("tab",))]
)
def test_estimate__of_a_file_by_any_delimiter_is_that_of_its_points(
    tmp_path: Path,
    delimiter: str,
    given: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
) -> None:
    points, file, same = square(400), tmp_path / "square.csv", tmp_path / "square.parquet"
    pq.write_table(pa.table({"x": points[:, 0], "y": points[:, 1]}), same)
    lines = [["x", "y"], *([repr(float(x)), repr(float(y))] for x, y in points)]
    file.write_text("".join(delimiter.join(line) + "\n" for line in lines))
    asked = ["--columns", "x,y", "--eps", 0.02]
    by = [each for sign in given for each in ("--delimiter", sign)]
    assert facts(capsys, file, *asked, *by) == facts(capsys, same, *asked)
