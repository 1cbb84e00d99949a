"""What a source's contract says of documents that are compared as trees."""

from __future__ import annotations

from epsjoin.contracts.source_columns import Refuse, Source
from epsjoin.params import is_finite

METRIC, UNIT, ROLE = "tree_edit", "edits", "tree"
"""The metric of data sets of documents, the unit of its distances, the role of the column of documents."""

TREE = "tree"
"""Column of ``points`` that holds the documents as trees."""

MAX_NODES = 2000
"""Default maximum number of nodes of a document; two take memory and time for each pair of their subtrees."""

HEIGHT_BINS, LABEL_BINS = 16, 32
"""Numbers of bins of the histograms of a document: of the heights of its nodes, and of their labels."""

AXES = (
    *(f"half the nodes of height {bin_} modulo {HEIGHT_BINS}" for bin_ in range(HEIGHT_BINS)),
    *(f"half the labels of bin {bin_}" for bin_ in range(LABEL_BINS)),
)
"""Names of the numbers of a tree's point: half of its histograms, of heights and of labels.

The Manhattan distance of two points is then at most the number of edits between their trees.
"""


def check_tree(source: Source, n_trees: int, refuse: Refuse) -> None:
    """Refuse what documents cannot have, and a column of documents where there is another metric.

    Parameters
    ----------
    n_trees : number of columns of the role ``tree``.
    refuse : raises ContractError with a sentence.
    """
    if source.metric != METRIC and n_trees:
        refuse(f"the role {ROLE} is for the metric {METRIC}, not for {source.metric}")
    if source.metric == METRIC and (n_trees != 1 or source.coordinates):
        refuse(
            f"the metric {METRIC} takes one column of the role {ROLE} and no coordinates, "
            f"not {n_trees} and {len(source.coordinates)}"
        )
    for column in source.columns:
        if column.type == "object" and column.name != source.tree:
            refuse(f"column {column.name}: logicalType object is for a column of the role {ROLE}")
    if source.metric == METRIC:
        _check_source(source, refuse)


def is_whole(eps: object) -> bool:
    """Whether an eps is a number of edits: whole, and 1 at least."""
    return is_finite(eps) and eps >= 1 and float(eps).is_integer()


def _check_source(source: Source, refuse: Refuse) -> None:
    if source.unit != UNIT:
        refuse(f"distances of the metric {METRIC} are in {UNIT}, unit cannot be {source.unit!r}")
    _check_column(source, refuse)
    eps = source.defaults.get("eps")
    if not is_whole(eps):
        refuse(
            f"defaults: eps of the metric {METRIC} must be a whole number of edits, 1 at least, not {eps!r}"
        )


def _check_column(source: Source, refuse: Refuse) -> None:
    column = source.column(source.tree)
    if column.type not in ("string", "object"):
        refuse(
            f"column {column.name}: a {ROLE} is a string (the text of JSON) or an object (JSON as it is), "
            f"not {column.type}"
        )
    if column.type == "object" and source.format != "json":
        refuse(f"column {column.name}: an object is for files of the format json, not {source.format}")
    if column.name in source.key or column.name in source.windowed:
        refuse(f"column {column.name}: a {ROLE} can be neither key nor windowed")
    if column.values:
        refuse(f"column {column.name}: a {ROLE} can be no list of validValues")
    if type(column.max_nodes) is not int or column.max_nodes < 1:
        refuse(
            f"column {column.name}: max_nodes must be a whole number, 1 at least, not {column.max_nodes!r}"
        )
    if any(other.name.lower() == TREE for other in source.columns):
        refuse(f"column {TREE}: the points table has a column of that name; give it another one")
