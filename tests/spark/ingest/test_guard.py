"""The guard at the door: what it compares, what is only told, and what becomes of a run that it holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from epsjoin.errors import DataRefusedError, EpsjoinError
from epsjoin.lake import refusals, slices, transactions
from epsjoin.lake.fingerprints import new_fingerprint
from epsjoin.lake.lake import Slice
from epsjoin.lake.uris import filesystem_of
from epsjoin.local.guard.judge import CHECKS
from epsjoin.pipeline import tables_of
from epsjoin.spark.checks.quality import check_quality
from epsjoin.spark.ingest import ingest
from epsjoin.spark.job.job import Job
from epsjoin.spark.points import buckets
from tests.spark.ingest.guarded import NEXT, NOW, TEXT, accepting, findings, write
from tests.spark.ingest.here import new_job
from tests.tiny import RUN, coordinate, key


def tiny(folder: Path, columns: Sequence[dict[str, Any]] = (), **custom: Any) -> Job:
    """A job with a run before of a thousand records, in no order of their ids."""
    job = new_job(folder, columns or [key(), coordinate("x"), coordinate("y")], **custom)
    write(job, RUN, lines(1000))
    ingest.run(job)
    return job


def lines(n: int, first: int = 0) -> str:
    rows = [f"{i},{i % 89}.5,{i % 97}.25" for i in range(first, first + n)]
    return "\n".join(["id,x,y", *rows[::-1]]) + "\n"


def test_guard__that_holds_a_run_which_had_come_in_leaves_all_its_tables(
    here: None, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = replace(tiny(tmp_path), run=NEXT)
    write(job, NEXT, lines(999))
    ingest.run(job)
    tables = [table for table in tables_of("ingest") if table != "job_metrics"]

    def stored() -> list[Any]:
        of_run = [slices.read_slice(job.lake, Slice(table, NEXT)).to_pylist() for table in tables]
        folders = (Path(filesystem_of(job.lake.location(table))[1]) for table in tables)
        return [of_run, *(sorted(folder.glob(f"run={NEXT}/*.parquet")) for folder in folders)]

    whole = stored()
    write(job, NEXT, lines(100))
    with pytest.raises(DataRefusedError, match=r"run again with \{\"accept\"") as refused:
        ingest.run(job)
    assert stored() == whole
    assert refusals.read(job.lake, NEXT) == str(refused.value)
    capsys.readouterr()
    check_quality(job, "input")
    assert f"run {NEXT} was made again and refused; these are its tables of before: {refused.value}" in (
        " ".join(capsys.readouterr().out.split())
    )
    for broken, says in (("id,x\n", "column 'y' is missing"), ("id,x,y\n1,a,2\n", "are bad")):
        Path(job.project / f"{NEXT}.csv").write_text(broken)
        with pytest.raises(DataRefusedError, match=says) as refused:
            ingest.run(job)
        assert refusals.read(job.lake, NEXT) == str(refused.value), "not what was wrong with the file before"
        assert stored() == whole
    with monkeypatch.context() as unwritable:
        unwritable.setattr(refusals, "write", Mock(side_effect=EpsjoinError("refused.txt cannot be written")))
        with pytest.raises(DataRefusedError, match="are bad"):  # and another try would end in the same way
            ingest.run(job)
    assert "ingest: refused.txt cannot be written" in capsys.readouterr().out
    write(job, NEXT, lines(100))
    ingest.run(accepting(job, "lost"))
    assert refusals.read(job.lake, NEXT) == ""
    assert len(slices.read_slice(job.lake, Slice("points", NEXT))) == 100


def test_guard__deletes_the_files_of_what_it_held(here: None, tmp_path: Path) -> None:
    job = tiny(tmp_path)
    write(job, NEXT, lines(100))
    with pytest.raises(DataRefusedError):
        ingest.run(replace(job, run=NEXT))
    for table in ("points", "digests"):
        folder = Path(filesystem_of(job.lake.location(table))[1])
        assert not list(folder.glob(f"run={NEXT}/*.parquet"))


def test_guard__says_that_there_is_nothing_to_compare_with_at_the_first_run(
    here: None, tmp_path: Path
) -> None:
    job = tiny(tmp_path)
    found = findings(job, RUN)
    assert set(found) == set(CHECKS)
    assert {(row["observed"], row["verdict"], row["against"]) for row in found.values()} == {
        (None, "ok", None)
    }


def test_guard__compares_only_numbers_where_records_have_no_key(here: None, tmp_path: Path) -> None:
    job = tiny(tmp_path, [coordinate("x"), coordinate("y")])
    write(job, NEXT, lines(900))
    with pytest.raises(
        DataRefusedError, match=r"^at least 100 of 1,000 records of run .* are missing in .*10%"
    ):
        ingest.run(replace(job, run=NEXT))
    assert findings(job, NEXT)["moved"]["observed"] is None
    write(job, NEXT, lines(3000))
    with pytest.raises(DataRefusedError, match="at least 2,000 of 3,000 records of .* are not in run"):
        ingest.run(replace(job, run=NEXT))


def test_guard__compares_only_numbers_with_a_run_that_has_no_digests_of_its_points(
    here: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As one of an earlier version, or one whose ingest was killed before its last commit."""
    job = tiny(tmp_path)
    for where in (Slice("digests", RUN), Slice("digests", RUN, fingerprint=new_fingerprint())):
        transactions.commit(job.lake, {where: []})
        write(job, NEXT, lines(1000, first=5000))
        ingest.run(replace(job, run=NEXT))
        assert findings(job, NEXT)["lost"]["words"].startswith("at least 0 of 1,000")
        assert findings(job, NEXT)["moved"]["observed"] is None
        told = f"the guard compares numbers of records alone: run {RUN} has no digests"
        assert told in capsys.readouterr().out


def test_guard__says_the_same_of_many_records_that_it_takes_in_parts(
    here: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All but the order, and the keys, which it estimates then."""
    job = replace(tiny(tmp_path), run=NEXT)
    write(job, NEXT, lines(1000, first=30).replace(".5,", ".75,"))
    said = []
    for limit in (1 << 23, 300):
        monkeypatch.setattr(buckets, "MAX_ROWS", limit)
        with pytest.raises(DataRefusedError):
            ingest.run(job)
        said.append(findings(job, NEXT))
    assert said[1]["order"]["observed"] is None
    for rows in said:
        rows.pop("order"), rows.pop("keys")
    assert said[0] == said[1]
    assert said[0]["moved"]["observed"] == 1.0
    assert said[0]["shift"]["observed"] == 1.0


def test_guard__of_another_contract_compares_the_columns_that_both_runs_have(
    here: None, tmp_path: Path
) -> None:
    job = replace(tiny(tmp_path), run=NEXT)
    columns = [key(), coordinate("x"), coordinate("y"), {"name": "note", **TEXT}]
    later = replace(new_job(tmp_path, columns), run=NEXT)
    write(job, NEXT, lines(1000).replace(".25", ".25,a").replace("id,x,y", "id,x,y,note"))
    ingest.run(later)
    found = findings(later, NEXT)
    assert found["moved"]["observed"] == 0.0
    assert (found["updated"]["verdict"], found["columns"]["verdict"]) == ("warned", "warned")
    assert found["updated"]["words"].endswith("no column that both runs have in one type")
    assert found["columns"]["words"] == "the files have other columns than in run 2023-06-01: new: note"


def test_guard__allows_what_the_contract_allows(here: None, tmp_path: Path) -> None:
    job = tiny(tmp_path, guard={"lost": None, "moved": 1.0, "shift": 1.0})
    write(job, NEXT, lines(400).replace(".5,", ".75,"))
    ingest.run(replace(job, run=NEXT))
    found = findings(job, NEXT)
    assert (found["lost"]["observed"], found["lost"]["limit"], found["moved"]["limit"]) == (0.6, None, 1.0)


def test_guard__warns_of_a_loss_that_is_unusual(here: None, tmp_path: Path) -> None:
    """1 % is unusual after nothing, 2 % is not after 1 %; what was held does not count."""
    job = tiny(tmp_path)
    for run, n, verdict in (
        ("2023-07-01", 990, "warned"),
        ("2023-08-01", 971, "ok"),
        ("2023-09-01", 500, "held"),
        ("2023-10-01", 923, "ok"),
        ("2023-11-01", 920, "ok"),
    ):
        write(job, run, lines(n))
        if verdict == "held":
            with pytest.raises(DataRefusedError):
                ingest.run(replace(job, run=run))
        else:
            ingest.run(replace(job, run=run))
        assert findings(job, run)["lost"]["verdict"] == verdict, run


def test_guard__takes_no_other_change_for_a_loss(here: None, tmp_path: Path) -> None:
    """After 300 new records a loss of 1 % is still unusual."""
    job = tiny(tmp_path)
    for run, n, verdict in (("2023-07-01", 1300, "ok"), ("2023-08-01", 1287, "warned")):
        write(job, run, lines(n))
        ingest.run(replace(job, run=run))
        assert findings(job, run)["lost"]["verdict"] == verdict, run
    assert findings(job, "2023-07-01")["new"]["observed"] > 0.2


@pytest.mark.parametrize("changed", ["note", "y"])
def test_guard__compares_no_values_of_a_column_whose_type_has_changed(
    here: None, tmp_path: Path, changed: str
) -> None:
    """Of points, none of the coordinates then: they would be of another number of dimensions."""

    def job_of(type_: str) -> Job:
        columns = [key(), coordinate("x"), coordinate("y"), {"name": "note", "logicalType": "number"}]
        for column in columns:
            if column["name"] == changed:
                column["logicalType"] = type_
        return new_job(tmp_path, columns, guard={"moved": 1.0, "shift": 1.0, "scale": 1.0})

    rows = lines(1000).replace(".25", ",7").replace("id,x,y", "id,x,y,note")
    others = rows.replace(",7\n", ",8\n") if changed == "note" else rows.replace(".5,", ".5,1")
    for run, type_, text in ((NOW, "integer", rows), (NEXT, "number", others)):
        write(job_of(type_), run, text)
        ingest.run(replace(job_of(type_), run=run))
    found = findings(job_of("number"), NEXT)
    if changed == "note":
        assert found["updated"]["words"].endswith("no column that both runs have in one type")
    else:
        assert found["moved"]["observed"] == 1.0
        assert found["shift"]["words"].endswith("or their coordinates are not comparable")
