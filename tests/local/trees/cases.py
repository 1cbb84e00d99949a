"""Trees for the tests: random ones, edited ones, and the specifications of charts."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from epsjoin import Trees
from oracles.trees import Tree, edited, n_nodes, nested, random_tree

DATA = Path(__file__).parents[2] / "data" / "vega_specs"
LABELS = "abc"


def as_trees(trees: list[Tree], lists: str = "") -> Trees:
    """The trees; nodes with the labels ``lists`` are lists."""
    made = Trees.from_nested([nested(tree) for tree in trees])
    is_list = np.array([made.text(node) in lists for node in range(len(made.size))], np.bool_)
    return Trees(made.starts, made.label, made.size, is_list, made.texts)


def edited_at_random(random: Random, tree: Tree, edits: int) -> Tree:
    """The tree after so many random edits."""
    for _ in range(edits):
        tree = random.choice([each for _, _, each in edited(tree, LABELS)])
    return tree


def random_pairs(seed: int, number: int, most_nodes: int) -> list[tuple[Tree, Tree, int | None]]:
    """Pairs of trees, every other one made by an edit script, whose length is the third entry."""
    random = Random(seed)
    pairs: list[tuple[Tree, Tree, int | None]] = []
    while len(pairs) < number:
        tree = random_tree(random, random.randint(1, most_nodes), LABELS)
        if len(pairs) % 2:
            edits = random.randint(0, 4)
            other = edited_at_random(random, tree, edits)
            if n_nodes(other) <= most_nodes:
                pairs.append((tree, other, edits))
        else:
            pairs.append((tree, random_tree(random, random.randint(1, most_nodes), LABELS), None))
    return pairs


def as_tree(value: Any) -> Tree:
    """The tree of a document, by the definition of :meth:`epsjoin.Trees.from_json`."""
    if isinstance(value, dict):
        return "{}", tuple((f".{key}", (as_tree(each),)) for key, each in value.items())
    if isinstance(value, list):
        return "[]", tuple(map(as_tree, value))
    return json.dumps(value), ()


def _rows(snapshot: str) -> list[dict[str, object]]:
    with gzip.open(DATA / f"{snapshot}.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


@cache
def specs(snapshot: str) -> tuple[list[str], Trees]:
    """Names and trees of at most 300 nodes of one snapshot of the specifications of charts."""
    rows = _rows(snapshot)
    trees = Trees.from_json([json.dumps(row["spec"]) for row in rows])
    is_small = trees.n_nodes <= 300
    return [str(row["name"]) for row, small in zip(rows, is_small, strict=True) if small], trees.take(
        is_small
    )


def specs_as_text(snapshot: str) -> list[str]:
    """The same specifications as JSON texts."""
    names = set(specs(snapshot)[0])
    return [json.dumps(row["spec"]) for row in _rows(snapshot) if row["name"] in names]
