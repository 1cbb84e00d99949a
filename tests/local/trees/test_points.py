"""Documents as the pipeline has them: points whose distance is a bound, and places that tell moves."""

from __future__ import annotations

import itertools
import json
from random import Random
from typing import Any

import numpy as np
import pytest

from epsjoin.local.trees import points as of_pipeline
from epsjoin.local.trees.packed import pack
from epsjoin.local.trees.points import find_places, to_points
from oracles.trees import recurrence
from tests.local.trees.cases import as_tree, as_trees, random_pairs


def random_document(random: Random) -> dict[str, Any]:
    """A small document: half of two of them are alike."""
    inner = [random.choice([1, 2, "1", None]), {"b": random.randint(1, 3)}, [random.randint(1, 2)]]
    return {key: random.choice(inner) for key in random.sample("abcd", random.randint(0, 3))}


def test_to_points__are_at_most_as_far_apart_as_their_trees() -> None:
    random = Random(3)
    documents = [random_document(random) for _ in range(40)]
    _, points = to_points([json.dumps(document) for document in documents])
    trees = [as_tree(document) for document in documents]
    sharp = 0
    for i, j in itertools.combinations(range(len(documents)), 2):
        bound, edits = np.abs(points[i] - points[j]).sum(), recurrence(trees[i], trees[j])
        assert bound <= edits, (documents[i], documents[j])
        sharp += bound == edits > 0
    assert sharp > 50, "the bound says something"


def test_to_points__are_halves_of_counts_and_the_packed_trees() -> None:
    packed, points = to_points(['{"a": 1}', "[[], 2]"])
    assert points.shape == (2, 48)
    assert points.sum(axis=1).tolist() == [3.0, 3.0], "three nodes each, half by height and half by label"
    assert (points * 2 == np.rint(points * 2)).all()
    assert [len(each) for each in packed] == [3 * 13, 3 * 13]


def test_to_points__of_more_documents_than_a_chunk_are_those_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [json.dumps({"a": number % 3, str(number): [number] * number}) for number in range(7)]
    packed, points = to_points(texts)
    monkeypatch.setattr(of_pipeline, "CHUNK", 3)
    again = to_points(texts)
    assert again[0] == packed
    assert (again[1] == points).all()
    assert to_points([])[1].shape == (0, 48)


def shuffled(random: Random, value: Any) -> Any:
    """The same document with its keys and its elements in another order."""
    if isinstance(value, dict):
        items = [(key, shuffled(random, each)) for key, each in value.items()]
        return dict(random.sample(items, len(items)))
    if isinstance(value, list):
        return random.sample([shuffled(random, each) for each in value], len(value))
    return value


def test_find_places__are_equal_without_an_edit_and_different_with_one() -> None:
    document = {"mark": "bar", "data": {"values": [1, 2, {"a": None}]}, "size": 3, "tags": ["x", "y"]}
    same = [shuffled(Random(seed), document) for seed in range(5)]
    others = [{**document, "size": 4}, {**document, "size": "3"}, {"mark": "bar"}]
    packed, _ = to_points([json.dumps(each, indent=2) for each in [document, *same, *others]])
    places = find_places(packed)
    assert len(set(packed)) > 5, "the orders differ"
    assert len(set(places[:6].tolist())) == 1
    assert len(set(places[5:].tolist())) == 4
    assert find_places([]).shape == (0,)
    left, right, _ = random_pairs(1, 1, 6)[0]
    assert len(set(find_places(pack(as_trees([left, right]))).tolist())) == 2
