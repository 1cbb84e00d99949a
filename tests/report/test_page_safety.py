"""Whatever the data holds, the page stays whole: nothing of it is taken for HTML, nothing is fetched."""

from __future__ import annotations

import dataclasses
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from epsjoin.findings import Findings
from epsjoin.report import page
from tests.drawn_once import DrawnOnce
from tests.html_reader import Reader

REPOSITORY = Path(__file__).parents[2]


EVIL = "<script>alert('x')</script>\"&"
HIDDEN = "\x00\x1b\x85\ufffe\u2028"
"""What a page may not have, or what a shell would obey."""


def poisoned(value: Any) -> Any:
    """The same with a script tag, and what is not to be seen, in every text, key and column name."""
    if isinstance(value, str):
        return value + EVIL + HIDDEN
    if isinstance(value, Mapping):
        return {key: poisoned(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(poisoned(entry) for entry in value)
    return value


def test_page__escapes_whatever_came_from_the_data(example: Findings) -> None:
    fields = {field.name: getattr(example, field.name) for field in dataclasses.fields(example)}
    evil = {name: poisoned(value) for name, value in fields.items() if not isinstance(value, np.ndarray)}
    columns = {**dict.fromkeys(evil["key"], EVIL), EVIL: EVIL}
    evil["outliers"] = [{**row, "tied": (1, 1), "columns": columns} for row in evil["outliers"]]
    evil["params"] = {**evil["params"], EVIL: EVIL}
    evil["counters"] = {EVIL: {EVIL: 1.0}}
    evil["quarantine_reasons"] = {EVIL: 3}
    # a date
    evil["trends"] = [{**row, "run": row["run"].removesuffix(EVIL + HIDDEN)} for row in evil["trends"]]
    evil["epsilon"] = {**evil["epsilon"], "exponent": None, "note": EVIL}
    found = page.render(dataclasses.replace(example, **evil))
    assert "<script" not in found.lower()
    assert "&lt;script&gt;" in found
    assert not set(HIDDEN) & set(found)
    assert r"\x00\x1b\x85\ufffe\u2028" in found
    text = Reader(found).words
    for what in ("params", "title", "label", "source", "raw", "reason", "unit"):
        assert EVIL in text, what
    assert text.count("alert(") > 25


def test_page__is_self_contained(html: str, reader: Reader) -> None:
    assert not {"script", "link", "iframe", "object", "embed", "img", "base"} & set(reader.tags)
    loading = [
        value or ""
        for name, value in reader.attributes
        if name in ("src", "href", "srcset", "data", "action")
    ]
    assert [value for value in loading if not value.startswith(("#", "data:image/png;base64,"))] == []
    assert [name for name, _ in reader.attributes if name.startswith("on")] == []
    assert set(re.findall(r"url\((.)", html)) <= {"#"}
    assert "@import" not in html
    assert "http" not in html


def test_page__is_the_same_bytes_in_another_process(
    example: Findings, html: str, tmp_path: Path, drawn_once: DrawnOnce
) -> None:
    fields = {field.name: getattr(example, field.name) for field in dataclasses.fields(example)}
    (tmp_path / "findings").write_bytes(pickle.dumps(fields))
    code = (
        "import pickle, sys; from epsjoin import findings; from epsjoin.report import page;"
        "fields = pickle.load(open(sys.argv[1], 'rb'));"
        "sys.stdout.buffer.write(page.render(findings.Findings(**fields)).encode())"
    )
    other = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "findings")],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": "jobs", "PYTHONHASHSEED": "4711", "TZ": "Asia/Tokyo", "LC_ALL": "C"},
        stdout=subprocess.PIPE,
        check=True,
    )
    assert other.stdout == html.encode()
    drawn_once.forget()
    assert page.render(example) == html


def test_page__isolates_what_came_from_the_data(example: Findings) -> None:
    """A name with U+202E, which turns the direction of writing, must not turn what follows it."""
    turned = "abc\u202edef"
    fields = {field.name: getattr(example, field.name) for field in dataclasses.fields(example)}
    names = ("snapshots", "unknown_columns", "quarantine_reasons", "quarantine_examples", "largest_clusters")
    evil = {name: fields[name] for name in (*names, "outliers")}
    assert example.comparison is not None
    columns = dict.fromkeys(example.outliers[0]["columns"], turned)
    near = [{"id": 1, "key": [turned], "label": turned, "distance": 1.0}]
    evil |= {
        "unknown_columns": (turned,),
        "quarantine_reasons": {turned: 1},
        "snapshots": [{**row, "source": turned} for row in example.snapshots],
        "quarantine_examples": [
            {**row, "source": turned, "reason": turned, "raw": turned} for row in example.quarantine_examples
        ],
        "largest_clusters": [{**row, "key": [turned], "label": turned} for row in example.largest_clusters],
        "outliers": [
            {
                **row,
                "key": [turned],
                "label": turned,
                "dimensions": turned,
                "columns": columns,
                "nearest": near,
            }
            for row in example.outliers
        ],
        "comparison": dataclasses.replace(
            example.comparison,
            examples=[
                {
                    **{"what": "updated", "id": 1, "key": [turned], "label": turned},
                    "columns": [("a", "b", turned)],
                }
            ],
        ),
    }
    found = page.render(dataclasses.replace(example, **evil))
    assert found.count(f"<bdi>{turned}</bdi>") > 30
    assert found.replace(f"<bdi>{turned}</bdi>", "").count("\u202e") == 0
    assert "(\u2068abcdef\u2069)" in found, "in a sentence, where there is no room for a tag"


def test_page__needs_nothing_to_be_there(nothing: Findings) -> None:
    text = Reader(page.render(nothing)).words
    for absent in ("None", "nan", "undefined"):
        assert absent not in text
    assert "No points" in text
    assert "No record was refused." in text


def test_page__needs_no_value_in_any_row(mapless: Findings) -> None:
    bare = dataclasses.replace(
        mapless,
        params={},
        snapshots=[{"source": "a.csv"}],
        quarantine_examples=[{}],
        epsilon={"eps": None, "method": None},
        plan={"kind": None},
        largest_clusters=[{"cluster_id": 0, "size": 120}],
        outliers=[{"rank": 1, "id": 7}],
        counters={"ingest": {}},
    )
    text = Reader(page.render(bare)).words
    assert "None" not in text
    assert "an unknown ε" in text


def test_page__stays_below_two_megabytes_with_fifty_thousand_points(example: Findings) -> None:
    rng = np.random.default_rng(1)
    many = dataclasses.replace(
        example,
        n_points=5_000_000,
        map_points=rng.uniform((-20, 30), (40, 70), (50_000, 2)),
        map_cluster_ids=rng.choice([-1, *range(0, 10_000, 1000)], 50_000),
    )
    found = page.render(many)
    assert len(found.encode()) < 2_000_000
    assert "50,000 of 5,000,000 points" in Reader(found).words
