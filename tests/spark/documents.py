"""A small data set of documents, for tests: near-duplicates, equal ones, and some that are refused."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from epsjoin.spark.job.job import Job, Step
from epsjoin.spark.join import refine
from oracles.trees import Tree, recurrence
from tests.local.trees.cases import as_tree
from tests.spark.conftest import STEPS, JobMaker
from tests.tiny import key

EARLIER, LATER = "2023-05-01", "2023-06-01"
EPS, MAX_NODES = 2, 12
N_GROUPS, N_OF_GROUP = 8, 6
DOCUMENT = {
    "name": "doc",
    "logicalType": "object",
    "required": True,
    "role": "tree",
    "max_nodes": MAX_NODES,
}
STEPS_OF_TREES: dict[str, Step] = {
    name: step
    for each, of_each in STEPS.items()
    for name, step in ([("refine", refine.run)] if each == "cluster" else []) + [(each, of_each)]
}
"""The chain of documents, in its order."""

BAD = {
    "twice": '{"name": "twice", "doc": {"a": 1, "a": 2}}',
    "nan": '{"name": "nan", "doc": [NaN]}',
    "half": '{"name": "half", "doc": ["\\ud800"]}',
    "large": json.dumps({"name": "large", "doc": list(range(20))}),
    "broken": '{"name": "broken", "doc": {"a": }',
    "text": '{"name": "text", "doc": "[]"}',
}
"""Records that are refused, by what is wrong with them."""


def some_documents() -> dict[str, Any]:
    """Groups of documents within a few edits of each other; some are equal but for the order of keys."""
    random = Random(0)
    documents: dict[str, Any] = {}
    for group in range(N_GROUPS):
        base = {f"k{group}": group, "mark": random.choice("ab"), "size": [group % 3, group % 2]}
        for number in range(N_OF_GROUP):
            made = {**base}
            for _ in range(number % 4):
                made[random.choice(list(made))] = random.randrange(3)
            documents[f"g{group}n{number}"] = dict(random.sample(list(made.items()), len(made)))
    return documents


def expected_pairs(documents: dict[str, Any], eps: int = EPS) -> set[tuple[frozenset[str], int]]:
    """Names and edits of all pairs within eps, by the plain recurrence on every two documents."""
    trees = {name: as_tree(document) for name, document in documents.items()}
    names = sorted(trees)
    found = (
        (frozenset((left, right)), edits_between(trees[left], trees[right]))
        for place, left in enumerate(names)
        for right in names[place + 1 :]
    )
    return {(pair, edits) for pair, edits in found if edits <= eps}


@cache  # tests have most documents in common
def edits_between(tree: Tree, other: Tree) -> int:
    return int(recurrence(tree, other))


def write_snapshot(folder: Path, run: str, documents: dict[str, Any], bad: bool = True) -> None:
    lines = [json.dumps({"name": name, "doc": document}) for name, document in documents.items()]
    text = "\n".join([*lines, *(BAD.values() if bad else ())]) + "\n"
    (folder / f"{run}.jsonl").write_text(text, encoding="utf-8")


def job_of_documents(make_job: JobMaker) -> Job:
    """A job on monthly snapshots of documents."""
    return make_job(
        [key("name", "string"), DOCUMENT],
        path="{date}.jsonl",
        format="json",
        interval="month",
        run=EARLIER,
        metric="tree_edit",
        max_quarantine_share=0.5,
        defaults={"eps": EPS, "min_pts": 3},
        params={"n_parts": 2, "replication_budget": 9.0},
    )


def run_until(job: Job, last: str) -> dict[str, dict[str, float]]:
    """Run the steps of the chain up to this one; their counters."""
    counters = {}
    for name, step in STEPS_OF_TREES.items():
        counters[name] = dict(step(job))
        if name == last:
            return counters
    raise AssertionError(last)
