"""Trees while they are read: nodes are added as they end."""

from __future__ import annotations

from array import array

import numpy as np

from epsjoin.kernels.arrays import Bools, Bytes, Ints
from epsjoin.kernels.digests import Pieces, digest_messages
from epsjoin.kernels.trees.shape import Labels

_KEY = b"epsjoin's labels"
"""Key of all hashes of labels; fixed, so that trees made in two processes can be compared."""


class Builder:
    """Collects nodes in postorder.

    Attributes
    ----------
    n_nodes : number of nodes so far, of all trees.
    """

    def __init__(self) -> None:
        self.n_nodes = 0
        self._numbers: dict[str, int] = {}
        self._labels, self._sizes, self._starts = array("q"), array("q"), array("q", [0])
        self._is_list = bytearray()

    def end_node(self, label: str, begin: int, is_list: bool = False) -> None:
        """Add a node whose children are all there.

        Parameters
        ----------
        label : of the node.
        begin : number of nodes when the node began, before its children.
        is_list : whether the order of its children may count.
        """
        self._labels.append(self._numbers.setdefault(label, len(self._numbers)))
        self._sizes.append(self.n_nodes - begin + 1)
        self._is_list.append(is_list)
        self.n_nodes += 1

    def end_tree(self) -> None:
        """End the tree whose nodes have been added."""
        self._starts.append(self.n_nodes)

    def arrays(self) -> tuple[Ints, Labels, Ints, Bools, dict[int, str]]:
        """Return the fields of :class:`epsjoin.Trees`."""
        hashes = hash_labels(list(self._numbers))
        labels = hashes[np.frombuffer(self._labels, np.int64)] if self.n_nodes else np.empty(0, np.uint64)
        return (
            np.array(self._starts, np.int64),
            labels,
            np.array(self._sizes, np.int64),
            np.array(self._is_list, np.uint8).astype(np.bool_),
            dict(zip(map(int, hashes), self._numbers, strict=True)),
        )


def hash_labels(labels: list[str]) -> Labels:
    """Hash labels to 64 bits, each by itself: by their UTF-8, halves of a surrogate pair included."""
    encoded = [label.encode("utf-8", "surrogatepass") for label in labels]
    lengths = np.array([len(each) for each in encoded], np.int64)
    starts = np.cumsum(lengths) - lengths
    data: Bytes = np.frombuffer(b"".join(encoded) or b"\0", np.uint8)
    return np.ascontiguousarray(digest_messages(len(labels), [Pieces(data, starts, lengths)], _KEY)[:, 0])
