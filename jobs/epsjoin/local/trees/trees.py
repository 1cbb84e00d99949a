"""Labelled trees in arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Bools, Ints
from epsjoin.kernels.trees.shape import Labels, fill_shape, first_misfit
from epsjoin.local.arguments import are_several, check_count, int_column
from epsjoin.local.trees import read_json, read_others
from epsjoin.local.trees.builder import Builder


@dataclass(frozen=True, eq=False, repr=False)
class Trees:
    """Rooted, labelled trees; made from texts or nested lists by one of the methods ``from_...``.

    Parameters
    ----------
    starts : (n + 1,) int64, where the nodes of each tree begin in the other arrays, from 0, strictly
        ascending: a tree has a node at least.
    label : (nodes,) uint64, the 64-bit hash of each node's label; in postorder: every node comes after those
        below it, children from left to right.
    size : (nodes,) int64, the number of nodes of the subtree below each node, the node included.
    is_list : (nodes,) bool, whether the order of the node's children counts with ``ordered="arrays"``; by
        default of no node.
    texts : the labels by their hashes, for people; a label that is not there is shown as its hash.

    Raises
    ------
    ArgumentError
        The arrays have wrong types or lengths, or sizes that no trees in postorder have.

    Notes
    -----
    25 bytes per node, and each different label once. Labels are compared by their hashes, which are the first
    64 bits of SipHash-2-4 with a fixed key: among n different labels two are confused with a chance of about
    n² / 2⁶⁵, one in 37 million for a million labels. Trees that were read by different processes can be
    compared.

    Examples
    --------
    >>> trees = Trees.from_brackets(["{a{b}{c{d}}}", "{a}"])
    >>> len(trees), trees.size.tolist(), trees.height.tolist()
    (2, [1, 1, 2, 4, 1], [0, 0, 1, 2, 0])
    """

    starts: Ints
    label: Labels
    size: Ints
    is_list: Bools | None = None
    texts: Mapping[int, str] | None = None

    def __post_init__(self) -> None:
        # copies: kernels index by these arrays, which nobody may change after they were checked
        starts, size = int_column("starts", self.starts).copy(), int_column("size", self.size).copy()
        label = np.array(self.label, order="C")
        is_list = np.zeros(len(size), np.bool_) if self.is_list is None else np.array(self.is_list, order="C")
        if label.dtype != np.uint64 or is_list.dtype != np.bool_:
            raise ArgumentError(
                f"label must be uint64 and is_list bool, not {label.dtype} and {is_list.dtype}"
            )
        if not label.shape == is_list.shape == size.shape:
            raise ArgumentError(
                "label, size and is_list must be equally long and one-dimensional, not "
                f"{label.shape}, {size.shape} and {is_list.shape}"
            )
        if not len(starts) or starts[0] != 0 or starts[-1] != len(size) or (np.diff(starts) < 1).any():
            raise ArgumentError(f"starts must ascend strictly from 0 to the number of nodes, {len(size)}")
        if not isinstance(self.texts, Mapping | None):
            raise ArgumentError(f"texts must be a dictionary of labels by their hashes, not {self.texts!r}")
        misfit = first_misfit(starts, size)
        if misfit >= 0:
            raise ArgumentError(
                f"size must be that of subtrees in postorder; node {misfit} has {size[misfit]}, which does "
                "not fit the nodes before it or the end of its tree"
            )
        for name, value in (("starts", starts), ("label", label), ("size", size), ("is_list", is_list)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "texts", self.texts or {})

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __repr__(self) -> str:
        return f"Trees({len(self)} trees, {len(self.size)} nodes)"

    @classmethod
    def from_json(cls, texts: Iterable[str]) -> Trees:
        """Read JSON documents, one tree each.

        Parameters
        ----------
        texts : JSON texts. An object becomes a node ``{}`` with a node ``.key`` for each of its keys, which
            has the value as its only child; an array becomes a node ``[]``, which is a list; any other value
            becomes a leaf whose label is its JSON text, as Python writes it: 1, 1.0, "1" and true are
            different, 1.0 and 1e0 are equal. A key that comes twice gives two nodes.

        Returns
        -------
        Trees

        Raises
        ------
        ArgumentError
            A text is not JSON (NaN and Infinity are not JSON either); the message has its number and the
            place.

        Notes
        -----
        Any depth: nothing recurses.

        Examples
        --------
        >>> trees = Trees.from_json(['{"a": [1, "x"]}'])
        >>> [trees.text(node) for node in range(len(trees.size))]
        ['1', '"x"', '[]', '.a', '{}']
        """
        return cls._built(read_json.read, texts)

    @classmethod
    def from_brackets(cls, texts: Iterable[str]) -> Trees:
        r"""Read trees in bracket notation: ``{label{child}{child}}``.

        Parameters
        ----------
        texts : one text per tree. In labels, braces and backslashes have a backslash before them. White space
            is a part of labels, except around the whole text.

        Returns
        -------
        Trees

        Raises
        ------
        ArgumentError
            A text is not a tree; the message has its number and the place.

        Examples
        --------
        >>> Trees.from_brackets(["{a{b}{c}}"])
        Trees(1 trees, 3 nodes)
        """
        return cls._built(read_others.read_brackets, texts)

    @classmethod
    def from_nested(cls, nested: Iterable[Any]) -> Trees:
        """Read trees from nested lists.

        Parameters
        ----------
        nested : one per tree: a text is a leaf, a list or tuple of a text and children is a node with that
            label.

        Returns
        -------
        Trees

        Raises
        ------
        ArgumentError
            Something else was found; the message has the number of the tree.

        Examples
        --------
        >>> Trees.from_nested([["a", "b", ["c", "d"]], "a"])
        Trees(2 trees, 5 nodes)
        """
        return cls._built(read_others.read_nested, nested)

    @classmethod
    def from_parents(cls, labels: Sequence[str], parents: ArrayLike, starts: ArrayLike) -> Trees:
        """Read trees from the parents of their nodes, in any order of the nodes.

        Parameters
        ----------
        labels : (nodes,) texts.
        parents : (nodes,) int64, the place of each node's parent among the nodes of its tree, -1 for the
            root. The children of a node are ordered as the nodes are.
        starts : (n + 1,) int64, where the nodes of each tree begin; the last is the number of nodes.

        Returns
        -------
        Trees

        Raises
        ------
        ArgumentError
            The lengths differ, or a tree has no root or several, a parent that is not in it, or a cycle.

        Examples
        --------
        >>> Trees.from_parents(["a", "b", "c"], [-1, 0, 0], [0, 3]).size.tolist()
        [1, 1, 3]
        """
        builder = Builder()
        read_others.read_parents(
            builder, labels, int_column("parents", parents), int_column("starts", starts)
        )
        return cls(*builder.arrays())

    @classmethod
    def _built(cls, read: Any, given: Iterable[Any]) -> Trees:
        if not are_several(given):
            one = "text" if isinstance(given, (str, bytes)) else type(given).__name__
            raise ArgumentError(f"trees are read from a list with one entry per tree, not from one {one}")
        builder = Builder()
        for number, each in enumerate(given):
            read(builder, each, number)
        return cls(*builder.arrays())

    def take(self, rows: ArrayLike) -> Trees:
        """Choose trees.

        Parameters
        ----------
        rows : numbers of trees, in any order, also repeatedly, or (n,) bool.

        Returns
        -------
        Trees
            With the same labels.

        Raises
        ------
        ArgumentError
            A row is not one of the trees, or there is not one bool for each tree.

        Examples
        --------
        >>> Trees.from_brackets(["{a}", "{b{c}}"]).take([1]).size.tolist()
        [1, 2]
        """
        chosen = np.asarray(rows)
        if chosen.dtype == np.bool_:
            if chosen.shape != (len(self),):
                raise ArgumentError(
                    f"rows must be numbers of trees or one bool for each of the {len(self)} trees, not bool "
                    f"of the shape {chosen.shape}"
                )
            chosen = np.flatnonzero(chosen)
        chosen = int_column("rows", chosen if chosen.size else np.empty(0, np.int64))
        if chosen.size and not (chosen.min() >= 0 and chosen.max() < len(self)):
            raise ArgumentError(
                f"rows must be from 0 to {len(self) - 1}, not {chosen.min()} to {chosen.max()}"
            )
        lengths = np.diff(self.starts)[chosen]
        starts = np.concatenate(([0], np.cumsum(lengths)))
        nodes = np.arange(starts[-1]) + np.repeat(self.starts[chosen] - starts[:-1], lengths)
        assert self.is_list is not None  # noqa: S101  # __post_init__ has set it
        return Trees(starts, self.label[nodes], self.size[nodes], self.is_list[nodes], self.texts)

    def text(self, node: int) -> str:
        """Return the label of a node of any tree, by its place in the arrays.

        Returns
        -------
        str
            The hash in hexadecimal digits if the label is not known.

        Raises
        ------
        ArgumentError
            There is no such node.
        """
        label = int(self.label[check_count("node", node, 0, len(self.label) - 1)])
        return (self.texts or {}).get(label, f"{label:016x}")

    @property
    def n_nodes(self) -> Ints:
        """(n,) int64, the number of nodes of each tree."""
        return np.diff(self.starts)

    @property
    def parent(self) -> Ints:
        """(nodes,) int64, the place of each node's parent in its tree; -1 for a root."""
        return self._shape[0]

    @property
    def height(self) -> Ints:
        """(nodes,) int64, the number of edges of the longest path from each node down to a leaf."""
        return self._shape[1]

    @property
    def degree(self) -> Ints:
        """(nodes,) int64, the number of children of each node."""
        return self._shape[2]

    @cached_property
    def _shape(self) -> tuple[Ints, Ints, Ints]:
        parent, height, degree = (np.empty(len(self.size), np.int64) for _ in range(3))
        fill_shape(self.starts, self.size, parent, height, degree)
        return parent, height, degree
