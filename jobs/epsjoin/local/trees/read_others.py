"""Trees in bracket notation, as nested lists and as arrays of parents, without recursion."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Ints
from epsjoin.local.trees.builder import Builder

_TOKEN = re.compile(r"[{}]|(?:[^{}\\]|\\[{}\\])+")


def read_brackets(builder: Builder, text: object, number: int) -> None:
    """Add one tree in bracket notation; see :meth:`epsjoin.Trees.from_brackets`.

    Raises
    ------
    ArgumentError
        The text is not a tree.
    """
    if not isinstance(text, str):
        raise ArgumentError(f"trees in brackets must be str; number {number} is {type(text).__name__}")
    open_nodes: list[list[Any]] = []  # label, None as long as it may still come, and where the node begins
    is_done = False
    at, end = len(text) - len(text.lstrip()), len(text.rstrip())
    while at < end:
        found = _TOKEN.match(text, at, end)
        piece = found[0] if found else text[at]
        if is_done or found is None or (not open_nodes and piece != "{"):
            raise ArgumentError(f"text number {number} is no tree: {piece[:20]!r} at character {at}")
        if piece == "{":
            if open_nodes and open_nodes[-1][0] is None:
                open_nodes[-1][0] = ""
            open_nodes.append([None, builder.n_nodes])
        elif piece == "}":
            label, begin = open_nodes.pop()
            builder.end_node(label or "", begin)
            is_done = not open_nodes
        elif open_nodes[-1][0] is None:
            open_nodes[-1][0] = re.sub(r"\\(.)", r"\1", piece)
        else:
            raise ArgumentError(
                f"text number {number} is no tree: a label comes before children, not after them as at {at}"
            )
        at += len(piece)
    if not is_done:
        raise ArgumentError(f"text number {number} is no tree: it ends too early")
    builder.end_tree()


def read_nested(builder: Builder, nested: Any, number: int) -> None:
    """Add one tree of nested lists; see :meth:`epsjoin.Trees.from_nested`.

    Raises
    ------
    ArgumentError
        Something is neither a text nor a list that begins with one.
    """
    open_nodes: list[tuple[str, Iterator[Any], int]] = []
    node = nested
    while True:
        if isinstance(node, str):
            builder.end_node(node, builder.n_nodes)
        elif isinstance(node, (list, tuple)) and node and isinstance(node[0], str):
            open_nodes.append((node[0], iter(node[1:]), builder.n_nodes))
        else:
            raise ArgumentError(
                f"a node must be a text, or a list of a text and children; tree {number} has "
                f"a {type(node).__name__}"
                f"{' that begins with none' if isinstance(node, (list, tuple)) else ''}"
            )
        while open_nodes:
            label, children, begin = open_nodes[-1]
            following = next(children, _NONE)
            if following is not _NONE:
                node = following
                break
            builder.end_node(label, begin)
            open_nodes.pop()
        else:
            break
    builder.end_tree()


_NONE = object()


def read_parents(builder: Builder, labels: Sequence[str], parents: Ints, starts: Ints) -> None:
    """Add trees by the parents of their nodes; see :meth:`epsjoin.Trees.from_parents`.

    Raises
    ------
    ArgumentError
        The arrays do not describe trees.
    """
    if not isinstance(labels, Iterable):
        raise ArgumentError(f"labels must be a list of texts, not {type(labels).__name__}")
    labels = list(labels)  # by position: a pandas Series is cut by its index
    if len(labels) != len(parents):
        raise ArgumentError(f"labels and parents must be equally long, not {len(labels)} and {len(parents)}")
    if not len(starts) or starts[0] != 0 or starts[-1] != len(parents) or (starts[1:] <= starts[:-1]).any():
        raise ArgumentError(f"starts must ascend strictly from 0 to the number of nodes, {len(parents)}")
    for number, (begin, end) in enumerate(zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)):
        _read_tree(builder, labels[begin:end], parents[begin:end].tolist(), number)


def _read_tree(builder: Builder, labels: Sequence[str], parents: list[int], number: int) -> None:
    roots = [node for node, parent in enumerate(parents) if parent == -1]
    if len(roots) != 1:
        raise ArgumentError(f"a tree must have one root, whose parent is -1; tree {number} has {len(roots)}")
    children: list[list[int]] = [[] for _ in parents]
    for node, parent in enumerate(parents):
        if not -1 <= parent < len(parents):
            raise ArgumentError(
                f"tree {number} has {len(parents)} nodes; the parent of its node {node} is {parent}"
            )
        if parent >= 0:
            children[parent].append(node)
    open_nodes = [(roots[0], iter(children[roots[0]]), builder.n_nodes)]
    before = builder.n_nodes
    while open_nodes:
        node, left, begin = open_nodes[-1]
        child = next(left, -1)
        if child >= 0:
            open_nodes.append((child, iter(children[child]), builder.n_nodes))
            continue
        label = labels[node]
        if not isinstance(label, str):
            raise ArgumentError(f"labels must be texts; node {node} of tree {number} has {label!r}")
        builder.end_node(label, begin)
        open_nodes.pop()
    if builder.n_nodes - before != len(parents):
        raise ArgumentError(f"tree {number} has a circle: not all of its nodes are below its root")
    builder.end_tree()
