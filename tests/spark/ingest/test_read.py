"""Reading a snapshot's files: what is left of one that is refused."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from epsjoin.spark.ingest import read as ingest_read
from epsjoin.spark.ingest.facts import FileFacts
from tests.spark.conftest import JobMaker
from tests.spark.ingest.test_ingest import XY


@pytest.mark.parametrize("source_format", ["csv", "json"])
def test_read_file__digests_what_a_refused_file_has_left(
    make_job: JobMaker, tmp_path: Path, source_format: str
) -> None:
    job = make_job(XY, path="a", format=source_format)
    content = ("id,x,y,name\n" + '1,0,0,"' + "a" * 5_000_000) if source_format == "csv" else '{"id": 1}\n' * 9
    (tmp_path / "a").write_text(content)
    schema = ingest_read.staged_schema(job.lake)
    uri = (tmp_path / "a").as_uri()
    *_, last = ingest_read._read_file(job.lake.source, schema, 0, "a", uri)
    facts = FileFacts(**json.loads(last.to_pylist()[-1]["_facts"]))
    assert facts.refused
    assert facts.n_bytes == len(content)
    assert facts.sha256 == hashlib.sha256(content.encode()).hexdigest()
