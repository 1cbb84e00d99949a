"""The documents do not rot: what they link, name and tell a person to type is there."""

from __future__ import annotations

import functools
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from epsjoin import errors
from epsjoin.commands import cli
from epsjoin.contracts.load_source import load_source

REPO = Path(__file__).resolve().parents[1]
PAGES = [REPO / "README.md", REPO / "CONTRIBUTING.md", *sorted((REPO / "docs").rglob("*.md"))]
DOCUMENTS = [*PAGES, REPO / "CHANGELOG.md"]
TARGETS = set(re.findall(r"^([a-z-]+):", (REPO / "Makefile").read_text(), re.MULTILINE))


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(
        rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )


PACKAGE = REPO / "jobs" / "epsjoin"
FLOORS = "|".join(init.parent.name for init in PACKAGE.glob("*/__init__.py"))


def missing_modules(text: str) -> set[str]:
    """Names of modules in backquotes, as ``local/epsilon/fit``, that the package does not have."""
    named = set(re.findall(rf"`((?:{FLOORS})/[\w/]*)`", text))
    return {
        name for name in named if not (PACKAGE / name).is_dir() and not (PACKAGE / f"{name}.py").is_file()
    }


@pytest.mark.parametrize(
    "folder", ["kernels/pairs", "kernels/plan", "kernels/sweep", "local/plan", "local/plan/expectation"]
)
def test_folder__of_many_modules_says_where_each_belongs(folder: str) -> None:
    modules = {file.stem for file in (PACKAGE / folder).glob("*.py")} - {"__init__"}
    modules |= {file.parent.name for file in (PACKAGE / folder).glob("*/__init__.py")}
    assert set(re.findall(r"``(\w+)``", (PACKAGE / folder / "__init__.py").read_text())) == modules


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPO)))
def test_documents__link_and_name_what_is_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    links = {link for link in re.findall(r"\]\(([^)\s]+)\)", text) if not link.startswith(("http", "#"))}
    missing = {link for link in links if not (page.parent / link.split("#")[0]).exists()}
    assert not missing, "links"
    commands = set(re.findall(r"(?<![\w./-])((?:bin|jobs|conf|docker|services|tests)/[\w./-]*\w)", text))
    missing = {name for name in commands if not (REPO / name).exists() and not name.endswith(".secrets")}
    assert not missing, "files"
    assert not missing_modules(text), "modules of the package"
    typed = [line for block in re.findall(r"```.*?```", text, re.DOTALL) for line in block.splitlines()]
    typed += re.findall(r"`(make [^`]*)`", text)
    targets = {match[1] for line in typed if (match := re.match(r"make ([a-z][a-z-]*)", line))}
    assert targets <= TARGETS, "targets of make"


def test_architecture__has_a_line_for_every_folder_of_the_project() -> None:
    ignored = {line.strip("/") for line in (REPO / ".gitignore").read_text().splitlines()}
    folders = {folder.name for folder in REPO.iterdir() if folder.is_dir() and folder.name[0] not in "._"}
    lines = re.findall(r"^\| (`.*?) \|", (REPO / "docs" / "architecture.md").read_text(), re.MULTILINE)
    assert folders - ignored <= {name for line in lines for name in re.findall(r"`(\w+)/", line)}


def test_operate__says_what_every_exit_code_means() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    codes = {kind.exit_code for kind in kinds if issubclass(kind, errors.EpsjoinError)}
    text = (REPO / "docs" / "operate.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| (\d+)[ ,]", text, re.MULTILINE)
    assert sorted(map(int, listed)) == sorted({0, errors.INTERRUPTED, errors.CLOSED_PIPE} | codes)


@pytest.mark.parametrize("command", ["estimate", "diff"])
def test_commands__print_what_stands_below_them(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(REPO)
    start = f"$ bin/epsjoin {command} "
    [block] = [b for b in blocks(REPO / "docs" / "commands.md", "") if b.startswith(start)]
    typed, _, shown = block.replace("\\\n", " ").removeprefix("$ bin/epsjoin ").partition("\n")
    assert cli.main(shlex.split(typed)) == 0
    assert capsys.readouterr().out.rstrip("\n") == shown.rstrip("\n")


ADD = REPO / "docs" / "add-a-data-set.md"


def test_add_a_data_set__its_commands_work_up_to_the_jobs(tmp_path: Path) -> None:
    contracts = tmp_path / "data_contracts"
    contracts.mkdir()
    files, contract, estimate, *_ = blocks(ADD, "sh")
    for block in (files, contract, estimate):
        mine = block.replace("/tmp/wells", f"{tmp_path}/wells")
        mine = mine.replace("--to data_contracts", f"--to {contracts}")
        done = subprocess.run(["bash", "-euc", mine], cwd=REPO, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert "eps for 5 neighbours  0.359161" in done.stdout
    assert "pairs                 4,493 (of all rows)" in done.stdout
    (head,) = blocks(ADD, "text")
    written = (contracts / "wells.odcs.yaml").read_text()
    assert written.startswith(head)
    source = load_source(contracts, "wells")
    assert (source.key, source.coordinates) == (("well_id",), ("east_km", "north_km"))
    assert source.path == f"{tmp_path}/wells/{{date}}.csv"
    assert source.interval == "day"
    assert "`dags/wells.py`" in ADD.read_text()
    for word in ("required", "max_quarantine_share", "interval", "metric", "primaryKey", "defaults"):
        assert word in written


def step_of(section: str, name: str) -> list[str]:
    """The cells of a step's row in a table of docs/benchmarks/around.md, as they stand there."""
    (row,) = re.findall(rf"^\| {name} \| (.*) \|$", section, re.MULTILINE)
    return [cell.strip() for cell in row.split("|")]


def test_figures_of_around__are_quoted_as_its_command_wrote_them() -> None:
    """Text that is written by hand stays as it was where a page is measured anew."""
    page = (REPO / "docs" / "benchmarks" / "around.md").read_text(encoding="utf-8")
    of_set = dict(re.findall(r"<!-- ([\w, ]+):begin -->\n(.*?)<!-- \1:end -->", page, re.DOTALL))
    cpu = float(step_of(of_set["navaids"], "all steps")[1])
    assert f"navaids`, which has six times as many records, take {cpu:.0f} s of CPU together" in " ".join(
        ADD.read_text(encoding="utf-8").split()
    )
    wall, *_, largest = step_of(of_set["cad16L"], "all steps")
    readme = " ".join((REPO / "README.md").read_text(encoding="utf-8").split())
    assert f"took {wall} s, and the largest process held {largest} MB" in readme
    scaling = (REPO / "docs" / "scaling.md").read_text(encoding="utf-8")
    for name, points in (("cad16L", "1,300,000"), ("cad16L x 4", "5,200,000"), ("cad16L x 16", "20,800,000")):
        said = " ".join(of_set[name].partition("Beyond their starts")[2].split())
        (of_join,) = re.findall(r"`replicate` and `merge_join` ([\d.]+);", said)
        (of_outliers,) = re.findall(
            r"; `outliers` ([\d.]+) \(([\d.]+) of the join, ([\d.]+) µs a row\)", said
        )
        assert f"| {points} | {' | '.join([of_join, *of_outliers])} |" in scaling
    wall, cpu = step_of(of_set["cad16L x 16"], "outliers")[:2]
    # of the largest set
    (of_joins,) = re.findall(r"Starts included, .*`outliers` ([\d.]+ and [\d.]+)\.", said)
    whole = f"20.8 million points took {wall} s and {cpu} CPU s, {of_joins} of `replicate` and `merge_join`."
    assert whole in " ".join(scaling.split())


def test_vacuum__deletes_what_is_old_and_no_row(
    tmp_path: Path,
) -> None:
    table = tmp_path / "lake" / "tiny" / "points"
    for number in range(3):
        write_deltalake(
            table, pa.table({"id": [number], "run": ["a"]}), mode="overwrite", partition_by=["run"]
        )
    for name, days in (("killed.parquet", 8), ("running.parquet", 1)):
        file = table / "run=a" / name
        file.write_bytes(b"")
        os.utime(file, (time.time() - days * 86_400,) * 2)
    replaced = set(DeltaTable(table, version=0).file_uris() + DeltaTable(table, version=1).file_uris())
    for file in (table / "_delta_log").glob("*.json"):  # as if it were of last month
        text = file.read_text()
        file.write_text(re.sub(r'(?<="deletionTimestamp":)\d+', "1600000000000", text))
    command = [sys.executable, str(REPO / "bin" / "vacuum.py"), (tmp_path / "lake").as_uri()]
    done = subprocess.run([*command, "7"], capture_output=True, text=True, check=True)
    assert "3 files deleted, 1 row as before" in done.stdout
    assert not any(Path(file).exists() for file in replaced)
    assert {file.name for file in (table / "run=a").iterdir()} >= {"running.parquet"}
    assert DeltaTable(table).to_pyarrow_table()["id"].to_pylist() == [2]
    for age, says in (
        (["6"], "DAYS must be 7 to 36500, not 6; --now deletes files of any age"),
        (["36501"], "DAYS must be 7 to 36500, not 36501"),
        (["9" * 22], f"DAYS must be 7 to 36500, not {'9' * 22}"),
        (["7", "--now"], "not allowed with argument"),
        ([], "one of the arguments DAYS --now is required"),
    ):
        done = subprocess.run([*command, *age], capture_output=True, text=True)
        assert done.returncode == 2
        assert says in done.stderr
    write_deltalake(table, pa.table({"id": [3], "run": ["a"]}), mode="overwrite", partition_by=["run"])
    done = subprocess.run([*command, "--now"], capture_output=True, text=True, check=True)
    assert "1 row as before" in done.stdout
    assert len(list((table / "run=a").iterdir())) == 1, "nothing that was replaced is left, however new"
    done = subprocess.run([*command[:2], "lake", "7"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), "a folder is one, too"
    done = subprocess.run([*command[:2], "s3://lake", "7"], capture_output=True, text=True)
    assert "s3://lake is not on this machine" in done.stderr
    done = subprocess.run([*command[:2], (tmp_path / "like").as_uri(), "7"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, f"vacuum: there is no lake {tmp_path / 'like'}\n")
    for folder in (tmp_path, table.parent, table):
        done = subprocess.run([*command[:2], str(folder), "--now"], capture_output=True, text=True)
        assert done.returncode == 1
        assert f"{folder} has no tables of data sets in it, so nothing was deleted" in done.stderr
    (tmp_path / "new").mkdir()
    done = subprocess.run([*command[:2], str(tmp_path / "new"), "7"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), "no run has written to it yet"


def test_vacuum__goes_on_past_a_table_that_is_broken(tmp_path: Path) -> None:
    """A record that must be gone would stay in all tables after it."""
    for name in ("broken", "killed", "points"):
        for number in range(2):
            write_deltalake(
                tmp_path / "tiny" / name, pa.table({"id": [number], "run": ["a"]}), mode="overwrite"
            )
    (tmp_path / "tiny" / "broken" / "_delta_log" / f"{1:020}.json").write_text('{"add":')
    for commit in (tmp_path / "tiny" / "killed" / "_delta_log").iterdir():
        commit.unlink()
    command = [sys.executable, str(REPO / "bin" / "vacuum.py"), str(tmp_path), "--now"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stdout == f"{tmp_path}/tiny/points: 1 file deleted, 1 row as before\n"
    of_broken, of_killed, in_all = done.stderr.splitlines()
    assert of_broken.startswith(f"vacuum: {tmp_path}/tiny/broken is as it was: ")
    assert of_broken.endswith("where its log is broken, any job that writes it says what to do")
    assert of_killed.startswith(
        f"vacuum: {tmp_path}/tiny/killed is as it was: its log is empty, as after a job"
    )
    assert in_all == "vacuum: 2 of 3 tables could not be vacuumed, for the reasons above"


@pytest.mark.parametrize("is_uri", [False, True])
def test_vacuum__touches_no_lake_but_the_one_that_it_is_given(is_uri: bool, tmp_path: Path) -> None:
    """Of the path ``a%20b`` deltalake makes ``a b``, where another lake may lie."""
    other = tmp_path / "a b" / "tiny" / "points"
    for number in range(2):
        write_deltalake(other, pa.table({"id": [number]}), mode="overwrite")
    lake = tmp_path / "a%20b"
    shutil.copytree(tmp_path / "a b", lake)
    given = lake.as_uri() if is_uri else str(lake)
    command = [sys.executable, str(REPO / "bin" / "vacuum.py"), given, "--now"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert len(list(other.glob("*.parquet"))) == 2
    assert done.returncode == 2
    assert f"{lake} has %20 in its path, where deltalake reads ' ', and might vacuum another" in done.stderr


def test_vacuum__of_a_uri_with_two_slashes_touches_no_lake(tmp_path: Path) -> None:
    """Of ``file://data/lake`` the lake would be ``/lake``."""
    table = tmp_path / "tiny" / "points"
    for number in range(2):
        write_deltalake(table, pa.table({"id": [number]}), mode="overwrite")
    command = [sys.executable, str(REPO / "bin" / "vacuum.py"), f"file://data{tmp_path}", "--now"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert len(list(table.glob("*.parquet"))) == 2
    assert done.returncode == 2
    assert done.stderr.endswith(f"a file URI has three slashes, file:///..., not file://data{tmp_path}\n")
    command[2] = f"file://localhost{tmp_path}"
    assert subprocess.run(command, capture_output=True).returncode == 0
    assert len(list(table.glob("*.parquet"))) == 1


def test_vacuum__that_is_interrupted_while_it_is_loaded_says_so(tmp_path: Path) -> None:
    (tmp_path / "deltalake.py").write_text("raise KeyboardInterrupt")
    command = [sys.executable, str(REPO / "bin" / "vacuum.py"), str(tmp_path), "7"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "vacuum: interrupted; nothing was begun\n")


def test_vacuum__whose_reader_has_seen_enough_ends_quietly(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "tiny" / "points", pa.table({"id": [1]}))
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, str(REPO / "bin" / "vacuum.py"), str(tmp_path), "7"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


@functools.cache
def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    slugs = [re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings]
    before = [slugs[:i].count(slug) for i, slug in enumerate(slugs)]
    return {f"{slug}-{n}" if n else slug for slug, n in zip(slugs, before, strict=True)}


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: str(page.relative_to(REPO)))
def test_documents__link_to_headings_that_are_there(page: Path) -> None:
    links = re.findall(r"\]\(([^)\s#]*\.md)?#([^)\s]+)\)", page.read_text(encoding="utf-8"))
    missing = {(at, name) for at, name in links if name not in anchors(page.parent / at if at else page)}
    assert not missing


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: str(page.relative_to(REPO)))
def test_documents__have_lines_that_fit_a_screen(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert [line for line in text.splitlines() if len(line) > 120 and not line.startswith("|")] == []
