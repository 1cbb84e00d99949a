"""Trees from texts, lists and parents, and what is refused."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import numpy as np
import pandas
import pytest

from epsjoin import ArgumentError, DataRefusedError, Trees, tree_distance
from epsjoin.local.trees.packed import pack, unpack
from oracles.trees import Tree, nested, random_tree


def labels_of(trees: Trees) -> list[str]:
    return [trees.text(node) for node in range(len(trees.size))]


def flattened(value: Any) -> list[str]:
    """The labels of a JSON value in postorder."""
    if isinstance(value, dict):
        return [each for key, below in value.items() for each in [*flattened(below), f".{key}"]] + ["{}"]
    if isinstance(value, list):
        return [each for below in value for each in flattened(below)] + ["[]"]
    return [json.dumps(value, ensure_ascii=False)]


def test_from_json__has_the_nodes_of_the_document_in_postorder() -> None:
    text = '{"a": [1, -0, 1.50, 1e400, {}], "é": {"b": null, "c": [true, false, []]}, "x y": "q\\"\\u00e9"} '
    trees = Trees.from_json([text])
    expected = flattened(json.loads(text.replace("1e400", '"huge"')))
    assert labels_of(trees) == [each.replace('"huge"', "1e400") for each in expected]
    assert trees.size[-1] == len(expected)
    assert [trees.text(node) for node in np.flatnonzero(trees.is_list)] == ["[]", "[]", "[]"]


def test_from_json__tells_kinds_of_values_apart_but_not_spellings() -> None:
    trees = Trees.from_json(['"1"', "1", "1.0", "1e0", "true", '"true"', '"\\u0031"', "-0", "0"])
    assert labels_of(trees) == ['"1"', "1", "1.0", "1.0", "true", '"true"', '"1"', "0", "0"]


def test_from_json__keeps_both_of_two_equal_keys() -> None:
    trees = Trees.from_json(['{"a": 1, "a": 2}', '{"a": 2}'])
    assert labels_of(trees.take([0])) == ["1", ".a", "2", ".a", "{}"]
    assert tree_distance(trees.take([0]), trees.take([1])) == 2


def test_from_json__reads_halves_of_surrogate_pairs_as_labels_of_their_own() -> None:
    trees = Trees.from_json(['"\\ud800"', '"\\ud801"', '"\\ud83d\\ude00"', '{"\\ud800": 1}'])
    assert len(set(trees.label.tolist())) == len(trees.label) == 6


@pytest.mark.parametrize("opening", ['{"a":', "["])
def test_from_json__reads_a_hundred_thousand_levels(opening: str) -> None:
    n = 100_000
    trees = Trees.from_json([opening * n + "1" + ("}" if opening[0] == "{" else "]") * n])
    assert trees.height.max() == n * (2 if opening[0] == "{" else 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a value at character 0"),
        ("{", "expected a key in double quotes at character 1"),
        ('{"a"}', "expected : at character 4"),
        ('{"a":}', "expected a value at character 5"),
        ('{"a":1', "expected , or } at character 6"),
        ('{"a":1]', "expected , or } at character 6"),
        ('{"a":1,}', "expected a key in double quotes at character 7"),
        ("[1,]", "expected a value at character 3"),
        ("[1 2]", r"expected , or \] at character 3"),
        ("[1", r"expected , or \] at character 2"),
        ("1 2", "goes on after its end, at character 2"),
        ("01", "goes on after its end, at character 1"),
        ("NaN", "expected a value at character 0"),
        ("[-Infinity]", "expected a value at character 1"),
        ("'a'", "expected a value"),
        ('"a', "Unterminated string"),
        ('"\n"', "Invalid control character"),
        ('"\\x"', "Invalid .*escape"),
        ("\ufeff1", "expected a value at character 0"),
        ("\u0661", "expected a value at character 0"),
    ],
)
def test_from_json__refuses_what_is_not_json_with_its_number_and_place(text: str, message: str) -> None:
    with pytest.raises(ArgumentError, match=f"text number 1 is not JSON: .*{message}"):
        Trees.from_json(["{}", text])


def test_from_json__takes_and_refuses_what_the_standard_library_does() -> None:
    random = Random(9)
    whole = '{"a": [1, {"b": "c\\n"}, -2.5e-3], "d": null}'
    taken = 0
    for _ in range(2000):
        at, what = random.randrange(len(whole)), random.choice('{}[],:"1-.e tn\\')
        text = whole[:at] + what + whole[at + random.randint(0, 1) :]
        try:
            pairs = json.loads(text, object_pairs_hook=_Pairs)
        except ValueError:
            with pytest.raises(ArgumentError):
                Trees.from_json([text])
        else:
            taken += 1
            assert labels_of(Trees.from_json([text])) == _flattened_pairs(pairs)
    assert 100 < taken < 1900


class _Pairs(list):
    """The keys and values of an object, doubles included."""


def _flattened_pairs(value: Any) -> list[str]:
    if isinstance(value, _Pairs):
        return [each for key, below in value for each in [*_flattened_pairs(below), f".{key}"]] + ["{}"]
    if isinstance(value, list):
        return [each for below in value for each in _flattened_pairs(below)] + ["[]"]
    return [json.dumps(value, ensure_ascii=False)]


def test_from_brackets_and_nested_and_parents__read_the_same_trees() -> None:
    random = Random(2)
    trees = [random_tree(random, random.randint(1, 12), "ab") for _ in range(30)]

    def brackets(tree: Tree) -> str:
        return f"{{{tree[0]}{''.join(map(brackets, tree[1]))}}}"

    first = Trees.from_nested([nested(tree) for tree in trees])
    second = Trees.from_brackets([f" {brackets(tree)}\n" for tree in trees])
    texts = [first.text(node) for node in range(len(first.size))]
    third = Trees.from_parents(texts, first.parent, first.starts)
    ranges = zip(first.starts, first.starts[1:], strict=False)
    shuffled = np.concatenate([np.arange(end - 1, begin - 1, -1) for begin, end in ranges])
    last = np.repeat(first.n_nodes - 1, first.n_nodes)
    parents = np.where(first.parent < 0, -1, last - first.parent)[shuffled]
    fourth = Trees.from_parents([texts[node] for node in shuffled], parents, first.starts)
    for other in (second, third):
        assert (other.label == first.label).all()
        assert (other.size == first.size).all()
    assert fourth.n_nodes.tolist() == first.n_nodes.tolist()
    assert all(tree_distance(first.take([i]), fourth.take([i])) == 0 for i in range(30))


def test_from_brackets__reads_braces_in_labels_and_empty_ones() -> None:
    trees = Trees.from_brackets([r"{a\{\}\\b{ x }{}}"])
    assert labels_of(trees) == [" x ", "", r"a{}\b"]


@pytest.mark.parametrize("text", ["", "a", "{a", "{a}}", "{a}{b}", "{a{b}c}", r"{a\b}", "{a} x"])
def test_from_brackets__refuses_what_is_no_tree(text: str) -> None:
    with pytest.raises(ArgumentError, match="text number 1 is no tree"):
        Trees.from_brackets(["{a}", text])


@pytest.mark.parametrize("nested", [[], [["a"], "b"], ["a", 1], None, ["a", []]])
def test_from_nested__refuses_what_is_no_tree(nested: Any) -> None:
    with pytest.raises(ArgumentError, match="tree 1 has a"):
        Trees.from_nested(["a", nested])


@pytest.mark.parametrize(
    ("parents", "message"),
    [
        ([0, 0], "tree 0 has 0"),
        ([-1, -1], "tree 0 has 2"),
        ([-1, 5], "the parent of its node 1 is 5"),
        ([-1, -2], "the parent of its node 1 is -2"),
    ],
)
def test_from_parents__refuses_what_is_no_tree(parents: list[int], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Trees.from_parents(["a", "b"], parents, [0, 2])


def test_from_parents__refuses_circles_and_lengths() -> None:
    with pytest.raises(ArgumentError, match="tree 0 has a circle"):
        Trees.from_parents(["a", "b", "c"], [-1, 2, 1], [0, 3])
    with pytest.raises(ArgumentError, match="equally long, not 1 and 2"):
        Trees.from_parents(["a"], [-1, 0], [0, 2])
    with pytest.raises(ArgumentError, match="labels must be a list of texts, not int"):
        Trees.from_parents(5, [-1], [0, 1])
    for starts in ([0, 1], [0, 0, 2], [1, 2], []):
        with pytest.raises(ArgumentError, match=r"starts must ascend strictly|one-dimensional"):
            Trees.from_parents(["a", "b"], [-1, 0], np.array(starts, np.int64))


def test_from_parents__takes_the_labels_of_a_series_by_their_places() -> None:
    labels = pandas.Series(["root", "left", "right", "alone"], index=[2, 0, 1, 0])
    trees = Trees.from_parents(labels, [-1, 0, 0, -1], [0, 3, 4])
    assert labels_of(trees) == ["left", "right", "root", "alone"]


@pytest.mark.parametrize("size", [[1, 1], [2, 2], [0, 2], [1, 3], [1, 2, 3, 2]])
def test_trees__refuse_sizes_of_no_postorder(size: list[int]) -> None:
    n = len(size)
    with pytest.raises(ArgumentError, match="size must be that of subtrees in postorder"):
        Trees(np.array([0, n]), np.zeros(n, np.uint64), np.array(size))


def test_trees__refuse_other_types_and_lengths() -> None:
    one = np.ones(1, np.int64)
    with pytest.raises(ArgumentError, match="label must be uint64"):
        Trees(np.array([0, 1]), one, one)
    with pytest.raises(ArgumentError, match="equally long"):
        Trees(np.array([0, 1]), np.zeros(2, np.uint64), one)
    with pytest.raises(ArgumentError, match="texts must be a dictionary of labels by their hashes, not 5"):
        Trees(np.array([0, 1]), np.zeros(1, np.uint64), one, texts=5)


def test_trees__do_not_change_with_the_arrays_they_were_made_of() -> None:
    given = np.array([0, 3]), np.arange(3, dtype=np.uint64), np.array([1, 2, 3]), np.zeros(3, np.bool_)
    trees = Trees(*given)
    for array in given:
        array[:] = 1
    assert trees.starts.tolist() == [0, 3]
    assert trees.label.tolist() == [0, 1, 2]
    assert trees.size.tolist() == [1, 2, 3]
    assert not trees.is_list.any()


def test_take__chooses_in_any_order_and_knows_its_limits() -> None:
    trees = Trees.from_brackets(["{a}", "{b{c}}", "{d{e}{f}}"])
    assert labels_of(trees.take([2, 1, 1])) == ["e", "f", "d", "c", "b", "c", "b"]
    assert labels_of(trees.take(trees.n_nodes > 1)) == ["c", "b", "e", "f", "d"]
    assert len(trees.take([])) == 0
    for rows in ([3], [-1]):
        with pytest.raises(ArgumentError, match="rows must be from 0 to 2, not"):
            trees.take(rows)
    for bools in ([False, True], [True, False, True, False], True):
        with pytest.raises(
            ArgumentError, match="rows must be numbers of trees or one bool for each of the 3 trees"
        ):
            trees.take(bools)


def test_text__of_an_unknown_label_is_its_hash() -> None:
    trees = Trees.from_brackets(["{a}"])
    bare = Trees(trees.starts, trees.label, trees.size)
    assert bare.text(0) == f"{int(trees.label[0]):016x}"
    for node in (-1, 1, 0.0, None):
        with pytest.raises(ArgumentError, match="node must be a whole number"):
            trees.text(node)


def test_from_json__takes_a_list_of_texts_only() -> None:
    with pytest.raises(ArgumentError, match="one entry per tree, not from one text"):
        Trees.from_json("{}")
    for none in (None, 5, np.array("{}")):
        with pytest.raises(ArgumentError, match=f"one entry per tree, not from one {type(none).__name__}"):
            Trees.from_json(none)
    with pytest.raises(ArgumentError, match="JSON texts must be str; number 0 is bytes"):
        Trees.from_json([b"{}"])


def test_packed__trees_are_the_same_without_their_texts() -> None:
    trees = Trees.from_json(['{"a": [1, 2]}', "3", '"\\u00e9"'])
    packed = pack(trees)
    assert [len(each) for each in packed] == [13 * n for n in trees.n_nodes]
    read = unpack([packed[2], packed[0]])
    same = trees.take([2, 0])
    for name in ("starts", "label", "size", "is_list"):
        assert getattr(read, name).tolist() == getattr(same, name).tolist()
    assert len(unpack([])) == 0


@pytest.mark.parametrize(("packed", "n_bytes"), [(b"", 0), (b"x" * 14, 14)])
def test_packed__refuses_what_is_no_tree(packed: bytes, n_bytes: int) -> None:
    with pytest.raises(DataRefusedError, match=f"value 1 has {n_bytes} bytes"):
        unpack([*pack(Trees.from_brackets(["{a}"])), packed])
